"""What an assessment's policy decides on, and how likely it is to ask every group next."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.config.assessments import (
    AssessmentSettings,
    ComparisonSettings,
    IdentificationSettings,
    PolicySettings,
)
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
class AcquisitionState:
    """An assessment that can ask now."""

    task: Task[Any]  # what a label is worth
    policy: Policy  # who is labelled next
    # what it decides on; requests in flight count as answered with what is expected of them
    situation: Situation


def acquisition_state(
    settings: AssessmentSettings, grouping: GroupingSnapshot, in_flight: Floats
) -> AcquisitionState | None:
    """What an assessment's policy decides on, with a copy of the estimates of its grouping.

    Of every group, `in_flight` requests wait for an answer [G]. None while a group that it compares has no
    traffic, and where labels are planned instead: of ensembles and challenges.
    """
    if not isinstance(settings, PolicySettings):
        return None
    task = _task_of(settings, grouping)
    if task is None:
        return None
    beliefs = _beliefs_of(task, grouping)
    for group in np.repeat(np.arange(len(grouping.groups)), in_flight.astype(np.intp)):
        beliefs.expect(np.array([group]))
    weights = grouping.beliefs.shares[None]
    available, relevant = weights > 0, task.relevant(1)
    if relevant is not None:
        available &= relevant
    return AcquisitionState(task, POLICIES[settings.policy](), Situation(beliefs, weights, available))


def select_groups(
    state: AcquisitionState, beliefs: Any, available: Flags, count: int, rng: np.random.Generator
) -> list[int]:
    """Groups that the policy names, step by step; fewer than wanted where none is available.

    Each counts as answered when it is named, and `beliefs` are the current ones. Groups that can be asked are
    `available` [1, G].
    """
    expected = copy.deepcopy(beliefs)
    named: list[int] = []
    while len(named) < count:
        situation = Situation(expected, state.situation.weights, available)
        chosen = state.policy.choose(state.task, situation, rng)[0]
        chosen = chosen[chosen != NONE][: count - len(named)]
        if not chosen.size:
            break
        named += chosen.tolist()
        for group in chosen:
            expected.expect(np.array([group]))
    return named


@dataclass(frozen=True)
class Aim:
    """Label requests for drifted groups."""

    shares: Floats  # of them, per group [G]
    label_share: float  # of all label requests

    def groups(self, available: Flags, wanted: int, rng: np.random.Generator) -> list[int]:
        """Groups that suspicion asks for, one a label; each of the labels that are wanted may be its."""
        shares = self.among(available)
        if shares is None:
            return []
        count = int(rng.binomial(wanted, self.label_share))
        named: list[int] = rng.choice(len(shares), size=count, p=shares).tolist()
        return named

    def among(self, available: Flags) -> Floats | None:
        """The same shares, of groups that can be asked alone [G]; None where none of them has drifted."""
        shares = np.where(available, self.shares, 0.0)
        total = shares.sum()
        return None if total == 0 else np.asarray(shares / total, np.float64)


def next_label_probabilities(
    settings: AssessmentSettings,
    grouping: GroupingSnapshot,
    in_flight: Floats,
    rng: np.random.Generator,
    aim: Aim | None = None,
) -> Floats | None:
    """Probability that every group is asked next [G]; None while the policy can ask none.

    A policy that names several groups at a step counts as asking one of them. Of every group, `in_flight`
    requests wait for an answer [G].
    """
    state = acquisition_state(settings, grouping, in_flight)
    if state is None:
        return None
    size = len(grouping.groups)
    work = _DECIDED_GROUPS // size
    if state.task.kind == "confusion" and grouping.confusion is not None:
        work = _DECIDED_ENTRIES // grouping.confusion.mean.size
    counts, decisions = np.zeros(size), max(_FEWEST_DECISIONS, min(_MOST_DECISIONS, work))
    for _ in range(decisions):
        chosen = state.policy.choose(state.task, state.situation, rng)[0]
        named = chosen[chosen != NONE]
        if not named.size:
            return None
        counts[named] += 1 / named.size
    chance: Floats = counts / decisions
    suspected = None if aim is None else aim.among(state.situation.available[0])
    if aim is not None and suspected is not None:
        chance = (1 - aim.label_share) * chance + aim.label_share * suspected
    return chance


def _task_of(settings: PolicySettings, grouping: GroupingSnapshot) -> Task[Any] | None:
    """The task of an assessment; None while a group that it compares has no traffic."""
    cost = grouping.confusion.cost if grouping.confusion else None
    question = Question(
        cells=grouping.beliefs.cells, costs=cost.costs if cost else None, positive=grouping.positive
    )
    match settings:
        case IdentificationSettings():
            question = replace(question, top_m=settings.top_m, extreme=settings.end)
        case ComparisonSettings():
            if not set(settings.between) <= set(grouping.groups):
                return None
            pair = np.array([grouping.groups.index(name) for name in settings.between])
            question = replace(question, pair=pair, region=settings.region)
    return TASKS[settings.task, settings.metric](question)


def _beliefs_of(task: Task[Any], grouping: GroupingSnapshot) -> Any:
    """A copy of the posterior that a task reads, so that requests in flight can be counted."""
    if task.kind == "accuracy":
        return grouping.beliefs.accuracy_beliefs()
    if task.kind == "bins":
        return grouping.beliefs.bin_beliefs()
    if grouping.confusion is None:
        raise ValueError("confusion is known of groupings by predicted class alone")
    return grouping.confusion.beliefs.standing()
