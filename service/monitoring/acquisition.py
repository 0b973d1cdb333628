"""What an assessment's policy decides on, and how likely it is to ask every group next."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.config.assessments import AssessmentSettings
from service.domain.arrays import Flags, Floats
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.statistics.policies import NONE, POLICIES, Policy, Situation
from service.statistics.questions import Question, Task
from service.statistics.tasks import TASKS

_MOST_DECISIONS = 100
"""Decisions behind the probability of being asked next: standard errors of 0.05 at most."""

_FEWEST_DECISIONS = 5
_DECIDED_GROUPS = 20_000
"""Of very many groups fewer decisions are made, so many groups in all."""

_DECIDED_ENTRIES = 200_000
"""The same where a decision reads the whole confusion matrix."""


@dataclass(frozen=True)
class Standing:
    """An assessment that can ask now.

    Attributes:
        task: what a label is worth.
        policy: who is labelled next.
        situation: what it decides on; requests in flight count as answered with what is expected of them.
    """

    task: Task[Any]
    policy: Policy
    situation: Situation


def standing(settings: AssessmentSettings, grouping: GroupingSnapshot, in_flight: Floats) -> Standing | None:
    """The assessment by its beliefs; a copy.

    None while a group that it compares has no traffic, and where labels are planned instead: of ensembles and
    challenges.

    Args:
        settings: the assessment's.
        grouping: the one that labels are asked by.
        in_flight: requests waiting for an answer, per group [G].
    """
    task = _task_of(settings, grouping)
    if task is None:
        return None
    beliefs = _standing_beliefs(task, grouping)
    for group in np.repeat(np.arange(len(grouping.groups)), in_flight.astype(np.intp)):
        beliefs.expect(np.array([group]))
    weights = grouping.beliefs.shares[None]
    available, relevant = weights > 0, task.relevant(1)
    if relevant is not None:
        available &= relevant
    return Standing(task, POLICIES[settings.policy](), Situation(beliefs, weights, available))


def named_groups(
    stands: Standing, beliefs: Any, available: Flags, count: int, rng: np.random.Generator
) -> list[int]:
    """Groups that the policy names, step by step; fewer than wanted where none is available.

    Each counts as answered when it is named.

    Args:
        stands: how the assessment stands.
        beliefs: its own, by now.
        available: groups that can be asked [1, G].
        count: how many are wanted.
        rng: for the policy's decisions.
    """
    expected = copy.deepcopy(beliefs)
    named: list[int] = []
    while len(named) < count:
        situation = Situation(expected, stands.situation.weights, available)
        chosen = stands.policy.choose(stands.task, situation, rng)[0]
        chosen = chosen[chosen != NONE][: count - len(named)]
        if not chosen.size:
            break
        named += chosen.tolist()
        for group in chosen:
            expected.expect(np.array([group]))
    return named


@dataclass(frozen=True)
class Aim:
    """Where suspicion wants labels.

    Attributes:
        shares: of those that it asks for, per group [G].
        label_share: of all labels that it asks for.
    """

    shares: Floats
    label_share: float

    def groups(self, available: Flags, wanted: int, rng: np.random.Generator) -> list[int]:
        """Groups that suspicion asks for, one a label; each of the labels that are wanted may be its.

        Args:
            available: groups that can be asked [G].
            wanted: labels in all.
            rng: which they are.
        """
        shares = self.among(available)
        if shares is None:
            return []
        count = int(rng.binomial(wanted, self.label_share))
        named: list[int] = rng.choice(len(shares), size=count, p=shares).tolist()
        return named

    def among(self, available: Flags) -> Floats | None:
        """The same shares, of groups that can be asked alone [G]; None where none of them has drifted.

        Args:
            available: groups that can be asked [G].
        """
        shares = np.where(available, self.shares, 0.0)
        total = shares.sum()
        return None if total == 0 else np.asarray(shares / total, np.float64)


def chances(
    settings: AssessmentSettings,
    grouping: GroupingSnapshot,
    in_flight: Floats,
    rng: np.random.Generator,
    aim: Aim | None = None,
) -> Floats | None:
    """Probability that every group is asked next [G]; None while the policy can ask none.

    A policy that names several groups at a step counts as asking one of them.

    Args:
        settings: the assessment's.
        grouping: the one that labels are asked by.
        in_flight: requests waiting for an answer, per group [G].
        rng: for the policy's decisions.
        aim: where suspicion wants labels, if it does.
    """
    stands = standing(settings, grouping, in_flight)
    if stands is None:
        return None
    size = len(grouping.groups)
    work = _DECIDED_GROUPS // size
    if stands.task.kind == "confusion" and grouping.confusion is not None:
        work = _DECIDED_ENTRIES // grouping.confusion.mean.size
    counts, decisions = np.zeros(size), max(_FEWEST_DECISIONS, min(_MOST_DECISIONS, work))
    for _ in range(decisions):
        chosen = stands.policy.choose(stands.task, stands.situation, rng)[0]
        named = chosen[chosen != NONE]
        if not named.size:
            return None
        counts[named] += 1 / named.size
    chance: Floats = counts / decisions
    suspected = None if aim is None else aim.among(stands.situation.available[0])
    if aim is not None and suspected is not None:
        chance = (1 - aim.label_share) * chance + aim.label_share * suspected
    return chance


def _task_of(settings: AssessmentSettings, grouping: GroupingSnapshot) -> Task[Any] | None:
    """The task of an assessment; None while a group that it compares has no traffic.

    Args:
        settings: the assessment's.
        grouping: the one that labels are asked for.
    """
    if settings.task in ("ensemble", "challenge"):
        return None
    pair = np.array([0, 1])
    if settings.between is not None:
        if not set(settings.between) <= set(grouping.groups):
            return None
        pair = np.array([grouping.groups.index(name) for name in settings.between])
    cost = grouping.confusion.cost if grouping.confusion else None
    question = Question(
        cells=grouping.beliefs.cells,
        top_m=settings.top_m,
        extreme=settings.end,
        costs=cost.costs if cost else None,
        pair=pair,
        region=settings.region,
        positive=grouping.positive,
    )
    return TASKS[settings.task, settings.metric](question)


def _standing_beliefs(task: Task[Any], grouping: GroupingSnapshot) -> Any:
    """The beliefs that a task reads; a copy, so that what is in flight can be counted."""
    if task.kind == "accuracy":
        return grouping.beliefs.accuracy_beliefs()
    if task.kind == "bins":
        return grouping.beliefs.bin_beliefs()
    if grouping.confusion is None:
        raise ValueError("confusion is known of groupings by predicted class alone")
    return grouping.confusion.beliefs.standing()
