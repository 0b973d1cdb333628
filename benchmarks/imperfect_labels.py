"""Do intervals of performance, ensembles and challengers hold if labels are wrong, or missing?

Through the service's own path from outcomes to estimates. docs/annotators.md and
docs/missing-labels.md explain the figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from benchmarks.imperfect_sites import Case, Site, predictions
from benchmarks.several_labels import People
from service.config.labels_per_item import LabelsPerItem
from service.domain.arrays import Flags, Floats
from service.replay.tables import Cell, Table, print_tables
from service.replay.workers import workers

CASES: Final[Mapping[str, Case]] = {
    "performance": Case("performance"),
    "performance, 5% positive": Case("performance", prevalence=0.05),
    "performance, usual people": Case("performance", ability=3.0, harder=1.0),
    "performance, 60 items": Case("performance", requests=60),
    "performance, a sixth of the people guess": Case("performance", guessing=1 / 6),
    "performance, one label per item": Case("performance", policy=LabelsPerItem(reliability=0.95)),
    "challenge, 2 classes": Case("challenge"),
    "challenge, 3 classes": Case("challenge", 3),
    "challenge, usual people": Case("challenge", 3, ability=3.0, harder=1.0),
    "challenge, 60 items": Case("challenge", 3, requests=60),
    "challenge, a sixth of the people guess": Case("challenge", 3, guessing=1 / 6),
    "challenge, one label per item": Case("challenge", 3, policy=LabelsPerItem(reliability=0.95)),
    "ensemble, 2 classes": Case("ensemble"),
    "ensemble, 3 classes": Case("ensemble", 3),
    "ensemble, usual people": Case("ensemble", 3, ability=3.0, harder=1.0),
    "ensemble, a sixth of the people guess": Case("ensemble", 3, guessing=1 / 6),
    "performance, hardest 30% skipped": Case("performance", hardest_skipped=0.3),
    "challenge, hardest 30% skipped": Case("challenge", hardest_skipped=0.3),
    "challenge, 3 classes, hardest 30% skipped": Case("challenge", 3, hardest_skipped=0.3),
    "ensemble, hardest 30% skipped": Case("ensemble", hardest_skipped=0.3),
    "ensemble, 3 classes, hardest 30% skipped": Case("ensemble", 3, hardest_skipped=0.3),
}


class Found(NamedTuple):
    """Of one run: labels per item; the intervals of every way, and what they are to hold."""

    labels: float
    ends: (
        Floats  # lower and upper ends, if labels are taken at their word, of the service, and of true classes
    )
    truth: Floats  # [measures]


def run_once(case: Case, seed: int, run: int) -> Found:
    """One run: a function of its arguments alone."""
    rng = np.random.default_rng([seed, run])
    site = Site(case, predictions(case, rng), rng)
    truth, predicted = site.items.truth.tolist(), site.items.predicted.tolist()
    clean = site.entries({item: [(0, truth[item])] for item in site.chosen.tolist()})
    if case.hardest_skipped:
        answered: Flags = site.items.hardness < 1 - case.hardest_skipped
        some = site.entries({i: [(0, truth[i])] if answered[i] else [] for i in site.chosen.tolist()})
        ways = [site.estimates(some, unanswered={"skipped": "at_random"}), site.estimates(some)]
        return Found(1.0, np.stack([*ways, site.estimates(clean)]), site.truths())
    people = People(case.labellers, rng)
    given = {item: people.labels(predicted[item], truth[item]) for item in site.chosen.tolist()}
    first = site.entries({item: labels[:1] for item, labels in given.items()})
    policy = case.policy.model_dump(exclude_unset=True)
    ways = [site.estimates(first), site.estimates(site.entries(given), labels_per_item=policy)]
    count = sum(map(len, given.values())) / len(given)
    return Found(count, np.stack([*ways, site.estimates(clean)]), site.truths())


COLUMNS: Final = (
    "labels per item",
    "hold: at their word, %",
    "hold: service, %",
    "hold: true classes, %",
    "lowest of a measure: service, %",
    "width: at their word, points",
    "service, points",
    "true classes, points",
)


def cells_of(found: list[Found]) -> tuple[Cell, ...]:
    """Shares of intervals that hold, in percent, and their widths."""
    truth, ends = np.stack([each.truth for each in found]), np.stack([each.ends for each in found])
    held = (ends[:, :, 0] <= truth[:, None]) & (truth[:, None] <= ends[:, :, 1])
    widths = (ends[:, :, 1] - ends[:, :, 0]).mean(axis=(0, 2))
    labels = float(np.mean([each.labels for each in found]))
    shares = 100 * held.mean(axis=0)
    return (
        labels,
        *(float(each) for each in shares.mean(axis=1)),
        float(shares[1].min()),
        *(100 * float(each) for each in widths),
    )


def table(runs: int, jobs: int, cases: Mapping[str, Case]) -> Table:
    """Of all cases."""
    with workers(jobs) as crew:
        rows = [
            (name, cells_of(crew.each(run_once, [(case, 0, run) for run in range(runs)], name)))
            for name, case in cases.items()
        ]
    return Table(f"95% intervals that hold; {runs} runs", "task and labels", COLUMNS, rows)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure intervals if labels are wrong or missing.")
    parser.add_argument("--runs", type=int, default=60, help="of every case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--case", choices=CASES, action="append", help="only this one; may be repeated")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    given = parser.parse_args()
    cases = {name: CASES[name] for name in given.case or CASES}
    print_tables([table(given.runs, given.jobs, cases)], as_json=given.json, as_markdown=given.markdown)


if __name__ == "__main__":
    main()
