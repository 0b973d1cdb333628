"""Do intervals of groups hold if items get no label, and that depends on how hard they are?

Through the service's own path from outcomes to estimates. One region is worse than the others.
docs/missing-labels.md explains the figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from benchmarks.several_labels import (
    NOW,
    REGION,
    Items,
    World,
    ends_of,
    labelled,
    settings_of,
    traffic_of,
)
from service.config.settings import Settings
from service.domain.arrays import Flags, Floats, Ints
from service.domain.cells import CellSpace
from service.domain.traffic import Traffic
from service.monitoring.posteriors import assess_groupings
from service.monitoring.unanswered_requests import unanswered_requests
from service.replay.tables import Cell, Table, print_tables
from service.replay.workers import workers
from service.store.outcome_entries import OutcomeEntry
from service.store.records import EXPIRED, SKIPPED, Fact, LabelFact

TRAFFIC: Final = 20_000
WORLD: Final = World(classes=2, worse=1.0)


class Requests(NamedTuple):
    """Requests of one run [n]."""

    hardness: Floats  # rank in the traffic, from 0 to 1
    scores: Floats  # likewise
    regions: Ints
    uniform: Floats  # random numbers


@dataclass(frozen=True)
class Missing:
    """Requests that end without a label: a share of those between two values of something."""

    reason: str
    of: str
    between: tuple[float, float] = (0.0, 1.0)
    share: float = 1.0

    def which(self, asked: Requests) -> Flags:
        """Which of some requests these are [n]."""
        values, (lower, upper) = getattr(asked, self.of), self.between
        chosen: Flags = (values >= lower) & (values <= upper) & (asked.uniform < self.share)
        return chosen


WAYS: Final[Mapping[str, Missing]] = {
    "none": Missing(SKIPPED, "hardness", share=0.0),
    "the hardest 30% are skipped": Missing(SKIPPED, "hardness", (0.7, 1.0)),
    "the hardest 30% expire": Missing(EXPIRED, "hardness", (0.7, 1.0)),
    "80% of the hardest 20% are skipped": Missing(SKIPPED, "hardness", (0.8, 1.0), 0.8),
    "80% of the hardest 20% expire": Missing(EXPIRED, "hardness", (0.8, 1.0), 0.8),
    "40% of the easier half expire": Missing(EXPIRED, "hardness", (0.0, 0.5), 0.4),
    "half of the lowest 40% of scores expire": Missing(EXPIRED, "scores", (0.0, 0.4), 0.5),
    "30% expire at random": Missing(EXPIRED, "hardness", share=0.3),
    "5% are skipped at random": Missing(SKIPPED, "hardness", share=0.05),
    "60% of one region expire": Missing(EXPIRED, "regions", (1, 1), 0.6),
}


class Found(NamedTuple):
    """Of one run, ends of intervals [2, regions + 1], all traffic last, and truths [regions + 1]."""

    random: Floats  # if items without a label are taken to be like those with one
    default: Floats
    truth: Floats
    worst_case: float  # share of requests that the default allows any true class for


def predictions(rng: np.random.Generator) -> tuple[Items, Floats]:
    """The traffic, and how hard its items are: their ranks, from 0 to 1 [N]."""
    regions = rng.integers(0, WORLD.regions, TRAFFIC)
    scores = np.clip(rng.beta(6, 1.2, TRAFFIC), 0.05, 0.995)
    logits = special.logit(scores) + 0.3 * rng.normal(size=WORLD.regions)[regions]
    # What is too hard for the model is wrong, and hard for people, too.
    hard = rng.logistic(size=TRAFFIC) - logits + np.where(regions == 0, WORLD.worse, 0.0)
    predicted = rng.integers(0, WORLD.classes, TRAFFIC)
    other = (predicted + rng.integers(1, WORLD.classes, TRAFFIC)) % WORLD.classes
    items = Items(regions, scores, predicted, np.where(hard < 0, predicted, other))
    return items, _ranks(hard + 0.5 * rng.normal(size=TRAFFIC))


def run_once(way: str, labels: int, seed: int, run: int) -> Found:
    """One run with so many requests per region: a function of its arguments alone."""
    rng = np.random.default_rng([seed, run])
    space = settings_of(WORLD).cell_space("m")
    items, hardness = predictions(rng)
    chosen = np.concatenate(
        [rng.permutation(np.flatnonzero(items.regions == r))[:labels] for r in range(WORLD.regions)]
    )
    rng.shuffle(chosen)
    ranks = _ranks(items.scores)
    asked = Requests(hardness[chosen], ranks[chosen], items.regions[chosen], rng.random(len(chosen)))
    missing = WAYS[way]
    entries = _entries(items, chosen, missing.which(asked), missing.reason, space)
    traffic = traffic_of(items, space, WORLD)
    truth = [items.correct[items.regions == r].mean() for r in range(WORLD.regions)]
    random = {"skipped": "at_random", "expired": "at_random"}
    default, share = _estimates(entries, settings_of(WORLD), space, traffic)
    return Found(
        _estimates(entries, settings_of(WORLD, unanswered=random), space, traffic)[0],
        default,
        np.array([*truth, items.correct.mean()]),
        share,
    )


def _ranks(values: Floats) -> Floats:
    return np.asarray(np.argsort(np.argsort(values)) / len(values), np.float64)


def _entries(items: Items, chosen: Ints, missing: Flags, reason: str, space: CellSpace) -> list[OutcomeEntry]:
    entries = []
    for number, (item, is_missing) in enumerate(zip(chosen.tolist(), missing.tolist(), strict=True)):
        region, predicted = str(items.regions[item]), space.classes[items.predicted[item]]
        score = float(items.scores[item])
        fact = Fact(f"r{item}", f"i{item}", REGION, region, predicted, score, {REGION: region}, NOW, NOW)
        given = LabelFact(space.classes[items.truth[item]], NOW, "")
        if is_missing:
            given = LabelFact("", NOW, "", unanswered=reason)
        entries.append(OutcomeEntry((1, number), (1, number), "ask", fact, given))
    return entries


def _estimates(
    entries: list[OutcomeEntry], settings: Settings, space: CellSpace, traffic: Traffic
) -> tuple[Floats, float]:
    """Ends of the intervals of all regions and of all traffic, and the share in the worst case."""
    model = settings.models["m"]
    ledger, index = labelled(entries, space, traffic, may_err=False)
    found = assess_groupings(settings=model, index=index, probability_sums={}, ledger=ledger, at=NOW)
    return ends_of(found, WORLD), unanswered_requests(model, ledger).worst_case_share


COLUMNS: Final = (
    "worst case, % of requests",
    *(f"{which}: {what}, %" for which in ("regions", "all traffic") for what in ("at random", "default")),
    "width of a region: at random, points",
    "default, points",
)


def cells_of(found: list[Found]) -> tuple[Cell, ...]:
    """Shares of intervals that hold, in percent, and their widths."""
    truth = np.stack([each.truth for each in found])
    cells: list[Cell] = [100 * float(np.mean([each.worst_case for each in found]))]
    ends = [np.stack([getattr(each, way) for each in found], axis=1) for way in ("random", "default")]
    for which in (slice(0, -1), slice(-1, None)):
        cells += [
            100 * float(((lower <= truth) & (truth <= upper))[:, which].mean()) for lower, upper in ends
        ]
    cells += [100 * float((upper - lower)[:, :-1].mean()) for lower, upper in ends]
    return tuple(cells)


def table(runs: int, jobs: int, labels: int) -> Table:
    """Of all ways."""
    with workers(jobs) as crew:
        rows = [
            (way, cells_of(crew.each(run_once, [(way, labels, 0, run) for run in range(runs)], way)))
            for way in WAYS
        ]
    title = f"95% intervals of accuracies that hold; {labels} requests per region, {runs} runs"
    return Table(title, "which labels are missing", COLUMNS, rows)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure intervals if labels are missing.")
    parser.add_argument("--runs", type=int, default=100, help="of every way")
    parser.add_argument("--labels", type=int, default=60, help="requests per region")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", action="store_true", help="for a program")
    parser.add_argument("--markdown", action="store_true", help="for a page")
    given = parser.parse_args()
    found = table(given.runs, given.jobs, given.labels)
    print_tables([found], as_json=given.json, as_markdown=given.markdown)


if __name__ == "__main__":
    main()
