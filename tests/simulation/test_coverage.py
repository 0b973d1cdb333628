"""Intervals hold the truth as often as they say, under Thompson sampling, when models misjudge themselves."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special

from benchmarks.cell_worlds import BINS, World, watch
from service.statistics import beta

BUDGETS = (50, 100, 200, 500)
NOMINAL = 0.95
ALLOWED = 0.02
"""The promise: coverage is at least nominal minus two points."""

INTERVALS_PER_KIND = 72
CHANCE = 2 * (NOMINAL * (1 - NOMINAL) / (12 * INTERVALS_PER_KIND)) ** 0.5
"""Two standard errors of a coverage that is counted over 12 kinds of worlds and tasks: 1.5 points."""

CHANCE_OVERALL = (
    2 * (NOMINAL * (1 - NOMINAL) / (6 * (INTERVALS_PER_KIND // 3 + INTERVALS_PER_KIND // 12))) ** 0.5
)
"""The same of one interval for every world: 3.2 points."""


def world(rng: np.random.Generator, *, groups: int, misjudged: float) -> World:
    """Scores pile up towards 1; logits of accuracy are off by `misjudged`, and a little by chance."""
    middles = (np.arange(BINS) + 0.5) / BINS
    skill = rng.uniform(1.0, 5.0, (groups, 1))
    uneven = rng.uniform(0.5, 1.5, (groups, BINS))
    traffic = rng.dirichlet(np.full(groups, 2.0))[:, None] * middles**skill * uneven
    off = misjudged + rng.normal(0, 0.6, (groups, 1)) + rng.normal(0, 0.3, (groups, BINS))
    return World(
        traffic / traffic.sum(),
        np.broadcast_to(middles, (groups, BINS)),
        special.expit(special.logit(middles) + off),
    )


@dataclass(frozen=True)
class Measured:
    """Shares of intervals that hold the truth, and mean widths of those of overall accuracy, per budget."""

    inside: dict[str, np.ndarray]
    width: np.ndarray
    unweighted_width: np.ndarray
    """Of intervals from as many labels as the weighted ones are worth, score bins left aside."""


@pytest.fixture(scope="module")
def measured() -> Measured:
    """Over all kinds of worlds and tasks."""
    rng = np.random.default_rng(11)
    inside = {name: np.zeros(len(BUDGETS)) for name in ("accuracy", "ece", "everything", "overall")}
    widths = np.zeros((2, len(BUDGETS)))
    intervals, worlds = 0, 0
    for groups, misjudged, task in itertools.product(
        (3, 12), (0.0, -1.5, 1.5), (("estimation", "accuracy"), ("identification", "accuracy"))
    ):
        for _ in range(INTERVALS_PER_KIND // groups):
            there = world(rng, groups=groups, misjudged=misjudged)
            for at, look in enumerate(watch(rng, there, task, BUDGETS)):
                for name, beliefs, truth in (
                    ("accuracy", look.groups.accuracy, there.group_accuracy()),
                    ("ece", look.groups.ece, there.group_ece()),
                    ("everything", look.everything.accuracy, there.overall_accuracy()),
                    ("overall", look.groups.overall, there.overall_accuracy()),
                ):
                    lower, upper = beliefs.interval(NOMINAL)
                    inside[name][at] += ((lower <= truth) & (truth <= upper)).sum()
                n, mean = look.everything.labels[0], look.everything.accuracy.mean()[0]
                low, high = beta.interval(1 + n * mean, 1 + n * (1 - mean), NOMINAL)
                widths[:, at] += [float((upper - lower)[0]), float(high - low)]
            intervals += groups
            worlds += 1
    single = {"everything", "overall"}
    inside = {name: total / (worlds if name in single else intervals) for name, total in inside.items()}
    widths /= worlds
    return Measured(inside, widths[0], widths[1])


at_every_budget = pytest.mark.parametrize(
    "at", range(len(BUDGETS)), ids=[f"{budget}-labels" for budget in BUDGETS]
)


@at_every_budget
def test_intervals_of_accuracy_hold_the_truth_as_often_as_they_say(measured: Measured, at: int) -> None:
    assert measured.inside["accuracy"][at] >= NOMINAL - ALLOWED - CHANCE


@at_every_budget
@pytest.mark.parametrize("known_by", ["everything", "overall"])
def test_intervals_of_overall_accuracy_hold_the_truth_as_often_as_they_say(
    measured: Measured, known_by: str, at: int
) -> None:
    assert measured.inside[known_by][at] >= NOMINAL - ALLOWED - CHANCE_OVERALL


@at_every_budget
def test_overall_accuracy_is_narrower_than_unevenly_asked_labels_alone_would_make_it(
    measured: Measured, at: int
) -> None:
    assert measured.width[at] < 0.95 * measured.unweighted_width[at]


@at_every_budget
def test_intervals_of_calibration_error_hold_the_truth_as_often_as_they_say(
    measured: Measured, at: int
) -> None:
    assert measured.inside["ece"][at] >= NOMINAL - ALLOWED - CHANCE
