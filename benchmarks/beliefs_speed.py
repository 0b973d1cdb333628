"""How long the service takes to believe and to decide, on made-up facts of a given size.

Accuracy intervals and calibration errors of 1,000 groups of 10 score bins, with the learned prior and with a
fixed one; a decision over 10,000 groups, for every policy; a confusion matrix of 1,000 classes with costs.
One process, one core's worth of work; the fastest of several turns.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Indices
from service.statistics.confusion import assess_confusion
from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.names import PriorName
from service.statistics.policies import POLICIES, Situation
from service.statistics.questions import Question
from service.statistics.tasks import TASKS

BINS = 10
MASS = 0.95
LABELS_PER_CELL = 5


class Facts(NamedTuple):
    """Made-up facts of one grouping."""

    cell_groups: Indices
    cell_bins: Indices
    traffic: CellTraffic
    labels: Labels


def made_up(groups: int, classes: int, rng: np.random.Generator) -> Facts:
    """Cells of groups by score bins, all with traffic, and labels in most of them."""
    cell_groups = np.repeat(np.arange(groups), BINS)
    cell_bins = np.tile(np.arange(BINS), groups)
    scores = (cell_bins + rng.uniform(0.2, 0.8, groups * BINS)) / BINS
    weights = rng.gamma(2.0, size=groups * BINS)
    off = np.repeat(rng.normal(-0.5, 0.5, groups), BINS)
    cells = rng.integers(0, groups * BINS, LABELS_PER_CELL * groups * BINS)
    correct = rng.random(len(cells)) < special.expit(special.logit(scores) + off)[cells]
    wrong = rng.integers(0, classes, len(cells))
    return Facts(
        cell_groups,
        cell_bins,
        CellTraffic(weights, weights * scores),
        Labels(
            cells,
            correct.astype(np.float64),
            np.ones(len(cells)),
            np.ones(len(cells)),
            np.where(correct, cell_groups[cells] % classes, wrong),
        ),
    )


def assessed(facts: Facts, prior: PriorName) -> GroupingBeliefs:
    """Beliefs from facts."""
    return assess_grouping(
        cell_groups=facts.cell_groups,
        cell_bins=facts.cell_bins,
        group_count=int(facts.cell_groups.max()) + 1,
        bin_count=BINS,
        traffic=facts.traffic,
        labels=facts.labels,
        prior=prior,
    )


def fastest(turns: int, work: Callable[[], object]) -> float:
    """Milliseconds of the fastest turn."""
    best = np.inf
    for _ in range(turns):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return 1e3 * best


def measure(turns: int) -> dict[str, float]:
    """Everything, in milliseconds, and the memory in MiB."""
    rng = np.random.default_rng(0)
    figures: dict[str, float] = {}
    facts = made_up(1_000, 1_000, rng)

    priors: tuple[PriorName, ...] = ("learned", "informed")
    for prior in priors:
        name = f"accuracy and ECE with intervals, 1,000 groups x {BINS} bins, {prior}, ms"
        figures[name] = fastest(turns, partial(_intervals, facts, prior))
    many = assessed(made_up(10_000, 2, rng), "informed_jeffreys")
    for task, metric in (("estimation", "accuracy"), ("identification", "accuracy")):
        question = TASKS[task, metric](Question(many.cells, top_m=1))
        situation = Situation(
            many.accuracy_beliefs(), many.shares[None, :], np.ones((1, len(many.shares)), dtype=np.bool_)
        )
        for name, policy in POLICIES.items():
            figures[f"a decision over 10,000 groups, {task}, {name}, ms"] = fastest(
                turns, partial(policy().choose, question, situation, rng)
            )
    figures["a confusion matrix of 1,000 classes with costs, ms"] = fastest(
        turns, partial(_costs, facts, rng)
    )
    figures["peak memory of this process, MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def _intervals(facts: Facts, prior: PriorName) -> None:
    beliefs = assessed(facts, prior)
    beliefs.accuracy.interval(MASS)
    beliefs.ece.interval(MASS)


def _costs(facts: Facts, rng: np.random.Generator) -> None:
    beliefs = assessed(facts, "learned")
    classes = len(beliefs.shares)
    probabilities = rng.random((classes, classes))
    confusion = assess_confusion(
        beliefs,
        cell_groups=facts.cell_groups,
        labels=facts.labels,
        predicted=np.arange(classes),
        probability_sums=list(probabilities),
        class_count=classes,
        prior="learned",
    )
    confusion.mean()
    costs = rng.random((classes, classes))
    confusion.cost_beliefs(costs).estimate(mass=MASS, kind="equal_tailed")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure beliefs and decisions of the service.")
    parser.add_argument("--turns", type=int, default=5, help="turns, of which the fastest counts")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    options = parser.parse_args()
    figures = measure(options.turns)
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        print("\n".join(f"{name:<75} {figure:>9.1f}" for name, figure in figures.items()))


if __name__ == "__main__":
    main()
