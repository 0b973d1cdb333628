"""Classifiers as cells of groups by score bins, labelled label by label, estimated as the service does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from service.domain.arrays import Floats, Indices, Ints
from service.statistics.balance_heuristic import AssessmentLabels, inverse, label_densities
from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.policies import Policy, Situation, ThompsonPolicy
from service.statistics.questions import Question
from service.statistics.tasks import TASKS

BINS: Final = 10
_FEW, _MANY = 50, 100
"""Labels between estimates, which are most of the work: before the first hundred labels, and from then on."""


@dataclass(frozen=True)
class World:
    """Traffic, mean scores and true accuracies of the cells [groups, BINS]."""

    traffic: Floats
    scores: Floats
    accuracy: Floats

    def group_accuracy(self) -> Floats:
        """Of every group [groups]."""
        return np.asarray((self.traffic * self.accuracy).sum(axis=1) / self.traffic.sum(axis=1), np.float64)

    def group_ece(self) -> Floats:
        """Calibration error of every group [groups]."""
        shares = self.traffic / self.traffic.sum(axis=1, keepdims=True)
        return np.asarray((shares * np.abs(self.accuracy - self.scores)).sum(axis=1), np.float64)

    def overall_accuracy(self) -> float:
        """Of all traffic."""
        return float((self.traffic * self.accuracy).sum() / self.traffic.sum())

    @property
    def group_shares(self) -> Floats:
        """Traffic share of every group [groups]."""
        return np.asarray(self.traffic.sum(axis=1) / self.traffic.sum(), np.float64)

    def assessed(self, cell_groups: Indices, labels: Labels) -> GroupingBeliefs:
        """Posteriors of a grouping, given the group of every cell [cells]."""
        groups = len(self.traffic)
        return assess_grouping(
            cell_groups=cell_groups,
            cell_bins=np.tile(np.arange(BINS), groups),
            group_count=int(cell_groups.max()) + 1,
            bin_count=BINS,
            traffic=CellTraffic(self.traffic.ravel(), (self.traffic * self.scores).ravel()),
            labels=labels,
            prior="learned",
        )


class Look(NamedTuple):
    """What is estimated at one number of labels."""

    labels: int
    groups: GroupingBeliefs
    everything: GroupingBeliefs  # all traffic as one group
    labelled: Ints  # labels of every group [groups]


def watch(
    rng: np.random.Generator,
    world: World,
    task: tuple[str, str] | None,
    budgets: Sequence[int],
    *,
    beside: float = 0.0,
    policy: Policy | None = None,
) -> Iterator[Look]:
    """Label by a policy for a task and measure, or else at random; estimates at every budget.

    Without a policy by Thompson sampling. For every label so many `beside` are asked at random, which budgets
    do not count.
    """
    size = world.traffic.size
    cell_groups = np.arange(size) // BINS
    one_group, asked_groups = np.zeros_like(cell_groups), cell_groups
    shares, within = world.group_shares, world.traffic / world.traffic.sum(axis=1, keepdims=True)
    if task is None:
        asked_groups, shares = one_group, np.ones(1)
    cells, correct, is_beside = np.empty(0, np.intp), np.empty(0), np.empty(0, np.bool_)
    while True:
        fresh = np.ones(len(cells))
        asked = [AssessmentLabels(asked_groups, np.flatnonzero(~is_beside), shares)]
        if beside > 0:
            asked.append(AssessmentLabels(one_group, np.flatnonzero(is_beside), np.ones(1)))
        density = label_densities(cells=cells, freshness=fresh, assessments=asked, cell_count=size)
        labels = Labels(cells, correct, inverse(density[cells]), fresh, np.full(len(cells), -1))
        beliefs = world.assessed(cell_groups, labels)
        spent = int((~is_beside).sum())
        if spent in budgets:
            labelled = np.bincount(cell_groups[cells], minlength=len(world.traffic))
            yield Look(spent, beliefs, world.assessed(one_group, labels), labelled)
        if spent >= max(budgets):
            return
        most = _FEW if spent < _MANY else _MANY
        wanted = min([most, *(budget - spent for budget in budgets if budget > spent)])
        others = _drawn_at_random(rng, world, round(beside * (spent + wanted)) - len(cells) + spent)
        if task is None:
            new = _drawn_at_random(rng, world, wanted)
        else:
            asked_now = _chosen(rng, beliefs, task, policy or ThompsonPolicy(), wanted)
            new = np.array([g * BINS + rng.choice(BINS, p=within[g]) for g in asked_now], np.intp)
        cells = np.concatenate([cells, new, others])
        correct = np.concatenate(
            [correct, rng.random(len(cells) - len(correct)) < world.accuracy.ravel()[cells[len(correct) :]]]
        )
        is_beside = np.concatenate([is_beside, np.zeros(len(new), np.bool_), np.ones(len(others), np.bool_)])


def _drawn_at_random(rng: np.random.Generator, world: World, count: int) -> Indices:
    """Cells of labels of all traffic [count]."""
    shares = world.traffic.ravel() / world.traffic.sum()
    return np.asarray(rng.choice(len(shares), count, p=shares), np.intp)


def _chosen(
    rng: np.random.Generator, beliefs: GroupingBeliefs, task: tuple[str, str], policy: Policy, count: int
) -> Iterator[int]:
    """Groups of the next labels."""
    asking, question = beliefs.accuracy_beliefs(), TASKS[task](Question(beliefs.cells))
    situation = Situation(asking, beliefs.shares[None], np.ones((1, len(beliefs.shares)), dtype=bool))
    for _ in range(count):
        group = policy.choose(question, situation, rng)[0]
        asking.expect(group)
        yield int(group[0])
