"""How often labels contradict the score model where it is right, and what that is worth where it is wrong.

Pools of scored items with known truth: half of the kinds are what the score model expects, such as calibrated
or overconfident classifiers. In the others the positive share changes with the score in ways that no smooth
curve follows. Every run is one of `credence replay --task performance`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

import numpy as np
from scipy import special

from benchmarks.known_classifiers import Classifier
from service.domain.arrays import Flags, Floats
from service.replay.performance import BinaryScores, PerformanceStudy, run_once
from service.replay.tables import Table, print_tables

RIGHT: Final = ("calibrated", "overconfident", "rare")
WRONG: Final = ("steps", "lapses", "hidden")
CASES: Final = (("adaptive", 200), ("adaptive", 500), ("random", 200))
"""Policies and numbers of labels."""

_ITEMS: Final = 8_000
_THRESHOLD: Final = 0.5
_COLUMNS: Final = {
    "labels contradict": "design_disagrees",
    **{
        f"{words}, {kind}": f"{name}{key}_coverage"
        for name, words in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
        for kind, key in (("model", ""), ("design", "_design"), ("shown", "_shown"))
    },
    "width of recall, model": "recall_width",
    "width of recall, design": "recall_design_width",
}


def pool(kind: str, rng: np.random.Generator) -> tuple[Floats, Flags]:
    """Scores, and whether items are positive [N]."""
    if kind in RIGHT:
        items = Classifier.of_kind(kind, rng).items(_ITEMS, rng)
        return items.scores, items.positive
    prevalence, distance = float(rng.choice([0.05, 0.2, 0.4])), rng.uniform(1.5, 3.5)
    classifier = Classifier(prevalence, distance, (1.0, 1.0), 0.0, 1.0, np.zeros(1))
    items = classifier.items(_ITEMS, rng)
    scores, positive = items.scores, items.positive.copy()
    if kind == "steps":
        shares = np.select([scores >= 0.9, scores >= _THRESHOLD, scores >= 0.02], [0.95, 0.1, 0.001], 0.08)  # noqa: PLR2004 - where steps are
        positive = rng.random(_ITEMS) < shares
    elif kind == "lapses":
        positive = rng.random(_ITEMS) < np.where(special.logit(scores) > 4, 0.3, scores)  # noqa: PLR2004 - from where scores lie
    else:
        # Half as many positive items again, among the lowest tenth of the scores.
        lowest = np.argsort(scores)[: _ITEMS // 10]
        count = min(int(positive.sum()) // 2, len(lowest) // 2)
        positive[rng.choice(lowest, count, replace=False)] = True
    return scores, positive


def one_run(kind: str, policy: str, labels: int, seed: int) -> list[float]:
    """What one run finds, by column."""
    rng = np.random.default_rng([seed, (*RIGHT, *WRONG).index(kind)])
    scores, positive = pool(kind, rng)
    study = PerformanceStudy(
        BinaryScores(1, scores, positive),
        labels=(labels,),
        runs=1,
        threshold=_THRESHOLD,
        policy=policy,
        aim="f1" if seed % 2 else "recall",
        seed=seed,
    )
    measures = run_once(study, study.mixture, labels, 0).measures
    return [measures[name] for name in _COLUMNS.values()]


def table(runs: int, jobs: int, kinds: Sequence[str]) -> Table:
    """Means over runs, in per cent, by kind of classifier, policy and number of labels."""
    rows = []
    with ProcessPoolExecutor(jobs) as workers:
        for kind in kinds:
            for policy, labels in CASES:
                found = list(workers.map(partial(one_run, kind, policy, labels), range(runs)))
                means = 100 * np.nanmean(np.array(found), axis=0)
                rows.append((f"{kind}, {policy}, {labels}", tuple(means.tolist())))
    return Table(
        f"intervals that hold the truth, %: {runs} classifiers of each kind",
        "classifiers, policy, labels",
        tuple(_COLUMNS),
        rows,
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure the design-based check of the score model.")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--kinds", nargs="+", default=(*RIGHT, *WRONG), choices=(*RIGHT, *WRONG))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    found = table(options.runs, options.jobs, options.kinds)
    print_tables([found], as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
