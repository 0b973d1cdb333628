"""Which groups an assessment's policy labels next (pure)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.config.assessments import (
    AssessmentSettings,
    ComparisonSettings,
    IdentificationSettings,
    PolicySettings,
)
from service.config.model import ModelSettings
from service.domain.arrays import Flags, Floats
from service.domain.cells import OTHER
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.reference_filling import ReferenceFilling
from service.monitoring.score_gains import ScoreGains
from service.monitoring.suspected_groups import Aim
from service.statistics.narrowing import NarrowMeasure
from service.statistics.policies import NONE, POLICIES, Policy, Situation
from service.statistics.questions import Question, Task
from service.statistics.tasks import TASKS
from service.store.facts import RequestFacts
from service.store.requests import OpenRequest

_MOST_DECISIONS = 100  # behind the probability of the next label request: standard errors of 0.05 at most
_FEWEST_DECISIONS = 5
_DECIDED_GROUPS = 20_000  # decisions times groups, where groups are very many
_DECIDED_ENTRIES = 200_000  # the same, where a decision reads the whole confusion matrix

FEWEST_PREDICTIONS = 5
"""Predictions from which a policy other than `certify` may name a group, if it may name any that has them.

Values of an attribute that were seen once are so uncertain that they would take all labels."""


def open_draws(settings: ModelSettings, requests: RequestFacts) -> Mapping[str, list[OpenRequest]]:
    """Draws of new items that wait for an answer, by the grouping that they were drawn for.

    An item that was drawn more than once is in every list. Gold items are in none, as they have no group.
    """
    found: dict[str, list[OpenRequest]] = {one.asked_grouping: [] for one in settings.assessments.values()}
    for request in requests.of_new_items.values():
        for draw in () if request.gold else (request, *request.shared):
            if draw.assessment in settings.assessments:
                found[settings.assessments[draw.assessment].asked_grouping].append(draw)
    return found


@dataclass(frozen=True)
class AcquisitionState:
    """An assessment that can ask now."""

    task: Task[Any]  # what a label is worth
    policy: Policy  # who is labelled next
    situation: Situation  # what it decides on; requests in flight count as answered, as expected


def acquisition_state(
    settings: AssessmentSettings,
    grouping: GroupingSnapshot,
    awaited: Floats,
    gains: ScoreGains | None = None,
) -> AcquisitionState | None:
    """What an assessment's policy decides on, with a copy of the estimates of its grouping.

    Of every group, `awaited` requests of any assessment wait for an answer [G]; `gains` are what labels by
    score are worth. None while a group that it compares has no traffic, and where labels are planned instead:
    of ensembles and challenges.
    """
    if not isinstance(settings, PolicySettings):
        return None
    task = _task_of(settings, grouping)
    if task is None:
        return None
    beliefs = _beliefs_of(task, grouping)
    if gains is not None:
        task, beliefs = NarrowMeasure(task.question), gains.of(grouping.groups)
    weights = grouping.beliefs.shares[None]
    available, relevant = weights > 0, task.relevant(1)
    if relevant is not None:
        available &= relevant
    large = available & (grouping.predictions >= FEWEST_PREDICTIONS)
    if settings.policy != "certify" and large.any():  # a certificate needs small groups, too
        available = large
    situation = Situation(beliefs, weights, available, _labels_left(grouping))
    for group in np.repeat(np.arange(len(grouping.groups)), awaited.astype(np.intp)):
        situation.expect(np.array([group]))
    return AcquisitionState(task, POLICIES[settings.policy](), situation)


def _labels_left(grouping: GroupingSnapshot) -> Floats:
    """Labels that every group lacks for a certificate [1, G], without those that are given and wait to count.

    `OTHER` lacks none, as it has no evidence, nor do groups that certificates leave out. No group lacks any
    if one of the others is confirmed to miss its target: there is no certificate then.
    """
    evidence, left = grouping.evidence, grouping.first_labels.copy()
    if evidence is not None and evidence.certificate is not None:
        left = np.maximum(evidence.certificate.labels_left - evidence.certificate.waiting, 0.0)
        if (evidence.confirmed["below_threshold"] & grouping.in_certificate).any():
            left[:] = 0.0
    left[~grouping.in_certificate | np.array([name == OTHER for name in grouping.groups])] = 0.0
    return left[None]


def select_groups(
    state: AcquisitionState, available: Flags, count: int, rng: np.random.Generator
) -> list[int]:
    """Groups that the policy names, step by step; fewer than wanted where none is available.

    Each counts as answered when it is named. Groups that can be asked are `available` [1, G].
    """
    situation = copy.deepcopy(replace(state.situation, available=available))
    named: list[int] = []
    while len(named) < count:
        chosen = state.policy.choose(state.task, situation, rng)[0]
        chosen = chosen[chosen != NONE][: count - len(named)]
        if not chosen.size:
            break
        named += chosen.tolist()
        for group in chosen:
            situation.expect(np.array([group]))
    return named


def next_label_probabilities(
    settings: AssessmentSettings,
    grouping: GroupingSnapshot,
    awaited: Floats,
    rng: np.random.Generator,
    aim: Aim | None = None,
    *,
    filling: ReferenceFilling | None = None,
    gains: ScoreGains | None = None,
) -> Floats | None:
    """Probability that every group is asked next [G]; None while the policy can ask none.

    A policy that names several groups at a step counts as asking one of them.
    """
    state = acquisition_state(settings, grouping, awaited, gains)
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
    for first in (filling, aim):
        shares = None if first is None else first.among(state.situation.available[0])
        if first is not None and shares is not None:
            chance = (1 - first.label_share) * chance + first.label_share * shares
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
    return grouping.confusion.beliefs.confusion_beliefs()
