"""Intervals hold the truth as often as they say, under Thompson sampling, when models misjudge themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special

from service.statistics import beta
from service.statistics.balance_heuristic import AssessmentLabels, inverse, label_densities
from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.policies import Situation, ThompsonPolicy
from service.statistics.questions import Question
from service.statistics.tasks import TASKS

BUDGETS = (50, 100, 200, 500)
BINS = 10
BATCH = 50
"""Labels between beliefs, which are most of the work."""
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


@dataclass(frozen=True)
class World:
    """Cells of groups by score bins, with traffic, mean scores and true accuracies [groups, BINS]."""

    traffic: np.ndarray
    scores: np.ndarray
    accuracy: np.ndarray

    def group_accuracy(self) -> np.ndarray:
        return (self.traffic * self.accuracy).sum(axis=1) / self.traffic.sum(axis=1)

    def group_ece(self) -> np.ndarray:
        shares = self.traffic / self.traffic.sum(axis=1, keepdims=True)
        return (shares * np.abs(self.accuracy - self.scores)).sum(axis=1)


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
class Look:
    """What is believed at one budget: of every group, and of all traffic."""

    groups: GroupingBeliefs
    everything: GroupingBeliefs


def believed(there: World, cell_groups: np.ndarray, labels: Labels) -> GroupingBeliefs:
    groups = len(there.traffic)
    return assess_grouping(
        cell_groups=cell_groups,
        cell_bins=np.tile(np.arange(BINS), groups),
        group_count=int(cell_groups.max()) + 1,
        bin_count=BINS,
        traffic=CellTraffic(there.traffic.ravel(), (there.traffic * there.scores).ravel()),
        labels=labels,
        prior="learned",
    )


def watch(rng: np.random.Generator, there: World, task: tuple[str, str]) -> Iterator[Look]:
    """Label by Thompson sampling; beliefs at every budget."""
    groups = len(there.traffic)
    cell_groups = np.repeat(np.arange(groups), BINS)
    within = there.traffic / there.traffic.sum(axis=1)[:, None]
    shares = there.traffic.sum(axis=1) / there.traffic.sum()
    cells, correct = np.empty(0, np.intp), np.empty(0)
    while True:
        fresh = np.ones(len(cells))
        asked = [AssessmentLabels(cell_groups, np.arange(len(cells)), shares)]
        density = label_densities(
            cells=cells, freshness=fresh, assessments=asked, cell_count=len(cell_groups)
        )
        labels = Labels(cells, correct, inverse(density[cells]), fresh, np.full(len(cells), -1))
        beliefs = believed(there, cell_groups, labels)
        if len(cells) in BUDGETS:
            yield Look(beliefs, believed(there, np.zeros_like(cell_groups), labels))
        if len(cells) >= BUDGETS[-1]:
            return
        asking, question = beliefs.accuracy_beliefs(), TASKS[task](Question(beliefs.cells))
        situation = Situation(asking, beliefs.shares[None], np.ones((1, groups), dtype=bool))
        chosen = []
        for _ in range(BATCH):
            group = ThompsonPolicy().choose(question, situation, rng)[0]
            asking.expect(group)
            chosen.append(int(group[0]))
        new = np.array([g * BINS + rng.choice(BINS, p=within[g]) for g in chosen])
        cells = np.concatenate([cells, new])
        correct = np.concatenate([correct, rng.random(len(new)) < there.accuracy.ravel()[new]])


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
            for at, look in enumerate(watch(rng, there, task)):
                for name, beliefs, truth in (
                    ("accuracy", look.groups.accuracy, there.group_accuracy()),
                    ("ece", look.groups.ece, there.group_ece()),
                    ("everything", look.everything.accuracy, (there.traffic * there.accuracy).sum()),
                    ("overall", look.groups.overall, (there.traffic * there.accuracy).sum()),
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
