"""State of one assessment: its requests in flight, its results, and which groups its policy labels next."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
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
from service.domain.cells import OTHER
from service.monitoring.budget import BudgetState, budget_state
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.reference_filling import ReferenceFilling
from service.monitoring.score_gains import ScoreGains
from service.monitoring.suspected_groups import Aim
from service.statistics import ranking
from service.statistics.comparison import mixture_rope_probabilities
from service.statistics.estimate import Estimate
from service.statistics.narrowing import NarrowMeasure
from service.statistics.policies import NONE, POLICIES, Policy, Situation
from service.statistics.questions import Question, Task
from service.statistics.tasks import TASKS
from service.store.facts import RequestFacts

_MOST_DRAWS = 2_000  # joint draws behind rank probabilities: standard errors of 0.011 at most
_DRAWN_NUMBERS = 1_000_000  # numbers drawn in all, where groups are very many, ...
_FEWEST_DRAWS = 200  # ... but this many joint draws: standard errors of 0.035 at most
_MOST_DECISIONS = 100  # behind the probability of the next label request: standard errors of 0.05 at most
_FEWEST_DECISIONS = 5
_DECIDED_GROUPS = 20_000  # decisions times groups, where groups are very many
_DECIDED_ENTRIES = 200_000  # the same, where a decision reads the whole confusion matrix

FEWEST_PREDICTIONS = 5
"""Predictions from which a policy may name a group, if it may name any that has them.

Values of an attribute that were seen once are so uncertain that they would take all labels."""

EVENTS = ("issued", "reissued", "answered", "corrected", "retracted", "skipped", "expired")
"""What can happen to a label request."""


@dataclass(frozen=True)
class Compared:
    """How two groups compare."""

    first: str
    second: str
    region: float  # difference of accuracies that does not matter
    below: float  # P(the first is less accurate, by more than the region)
    within: float  # P(they differ by the region at most)
    above: float  # P(the first is more accurate, by more than the region)


@dataclass(frozen=True)
class AssessmentSnapshot:
    """State of one assessment."""

    settings: AssessmentSettings
    grouping: str  # that labels are requested for
    groups: list[str]
    in_flight: Floats  # requests waiting for an answer, per group [G]
    open_requests: int  # of all groups, those without traffic included
    budget: BudgetState
    oldest_request_at: float | None  # of requests in flight for others than gold items; None without any
    events: dict[str, int]  # number of its requests, by event
    extreme: Floats | None  # P(group is among the top m) [G], for identification
    ranks: Estimate | None  # of the groups [G], counted from 1 at that end; for identification
    compared: Compared | None  # for comparison, once both groups have traffic
    next: Floats | None  # probability that a group is asked next [G]; None while the policy can ask none
    aim: Aim | None  # None while no group of the grouping has drifted
    filling: ReferenceFilling | None  # of the references of its groups; None without traffic
    gains: ScoreGains | None  # of labels by score, for performance once it is learned


def assessment_snapshot(
    name: str,
    settings: AssessmentSettings,
    groupings: Mapping[str, GroupingSnapshot],
    requests: RequestFacts,
    *,
    interval: float,
    now: float,
    rng: np.random.Generator,
    aim: Aim | None = None,
    filling: ReferenceFilling | None = None,
    traffic: Sequence[tuple[float, int]] = (),
    gains: ScoreGains | None = None,
) -> AssessmentSnapshot:
    """State of an assessment, from estimates and requests.

    `interval` is the mass of intervals of ranks, and `traffic` the number of predictions ever seen by some
    times, which a budget's pace follows.
    """
    grouping = groupings.get(settings.asked_grouping)
    names = grouping.groups if grouping else []
    index = {group: i for i, group in enumerate(names)}
    in_flight = np.zeros(len(names))
    opened = [request for request in requests.open.values() if request.assessment == name]
    for request in opened:
        if request.group in index and request.opinion == 1 and not request.gold:
            in_flight[index[request.group]] += 1
    extreme, ranks = None, None
    if isinstance(settings, IdentificationSettings) and grouping:
        draws = _draws(settings, grouping, rng)
        from_end = ranking.ranks(draws if settings.end == "lowest" else -draws)
        extreme = ranking.extreme_probabilities(from_end, settings.top_m)
        mean, lower, upper = ranking.mean_rank(from_end, interval)
        ranks = Estimate(lower + 1, mean + 1, upper + 1)
    return AssessmentSnapshot(
        settings=settings,
        grouping=settings.asked_grouping,
        groups=names,
        in_flight=in_flight,
        open_requests=len(opened),
        budget=budget_state(name, settings, requests, now=now, traffic=traffic),
        oldest_request_at=min((one.requested_at for one in opened if not one.gold), default=None),
        events={event: requests.tallies.get((event, name), 0) for event in EVENTS},
        extreme=extreme,
        ranks=ranks,
        compared=_compared(settings, grouping) if grouping else None,
        next=next_label_probabilities(settings, grouping, in_flight, rng, aim, filling=filling, gains=gains)
        if grouping
        else None,
        aim=aim,
        filling=filling,
        gains=gains,
    )


def _draws(settings: IdentificationSettings, grouping: GroupingSnapshot, rng: np.random.Generator) -> Floats:
    """Joint draws of what the groups are ranked by [S, G]."""
    size = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _DRAWN_NUMBERS // len(grouping.groups)))
    if settings.metric == "calibration":
        return grouping.beliefs.ece.beliefs.sample(rng, size)
    if settings.metric == "cost" and grouping.confusion is not None and grouping.confusion.cost is not None:
        return grouping.confusion.cost.beliefs.sample(rng, size)
    return grouping.beliefs.accuracy.sample(rng, size)


def _compared(settings: AssessmentSettings, grouping: GroupingSnapshot) -> Compared | None:
    if not isinstance(settings, ComparisonSettings) or not set(settings.between) <= set(grouping.groups):
        return None
    names = settings.between
    first, second = (grouping.groups.index(name) for name in names)
    accuracy = grouping.beliefs.accuracy
    below, within, above = mixture_rope_probabilities(
        accuracy.weights,
        (accuracy.alpha[:, first], accuracy.beta[:, first]),
        (accuracy.alpha[:, second], accuracy.beta[:, second]),
        region=settings.region,
    ).tolist()
    return Compared(names[0], names[1], settings.region, below, within, above)


@dataclass(frozen=True)
class AcquisitionState:
    """An assessment that can ask now."""

    task: Task[Any]  # what a label is worth
    policy: Policy  # who is labelled next
    situation: Situation  # what it decides on; requests in flight count as answered, as expected


def acquisition_state(
    settings: AssessmentSettings,
    grouping: GroupingSnapshot,
    in_flight: Floats,
    gains: ScoreGains | None = None,
) -> AcquisitionState | None:
    """What an assessment's policy decides on, with a copy of the estimates of its grouping.

    Of every group, `in_flight` requests wait for an answer [G]; `gains` are what labels by score are worth.
    None while a group that it compares has no traffic, and where labels are planned instead: of ensembles and
    challenges.
    """
    if not isinstance(settings, PolicySettings):
        return None
    task = _task_of(settings, grouping)
    if task is None:
        return None
    beliefs = _beliefs_of(task, grouping)
    if gains is not None:
        task, beliefs = NarrowMeasure(task.question), gains.of(grouping.groups, grouping.beliefs.labels)
    weights = grouping.beliefs.shares[None]
    available, relevant = weights > 0, task.relevant(1)
    if relevant is not None:
        available &= relevant
    if (large := available & (grouping.predictions >= FEWEST_PREDICTIONS)).any():
        available = large
    situation = Situation(beliefs, weights, available, _labels_left(grouping))
    for group in np.repeat(np.arange(len(grouping.groups)), in_flight.astype(np.intp)):
        situation.expect(np.array([group]))
    return AcquisitionState(task, POLICIES[settings.policy](), situation)


def _labels_left(grouping: GroupingSnapshot) -> Floats:
    """Labels that every group lacks for a certificate [1, G], without those that are given and wait to count.

    `OTHER` lacks none, as it has no evidence. Nor does any group if one is confirmed to miss its target:
    there is no certificate then.
    """
    evidence, left = grouping.evidence, np.full(len(grouping.groups), grouping.first_labels)
    if evidence is not None and evidence.certificate is not None:
        left = np.maximum(evidence.certificate.labels_left - evidence.certificate.waiting, 0.0)
        left[:] = np.where(evidence.confirmed["below_threshold"].any(), 0.0, left)
    left[[name == OTHER for name in grouping.groups]] = 0.0
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
    in_flight: Floats,
    rng: np.random.Generator,
    aim: Aim | None = None,
    *,
    filling: ReferenceFilling | None = None,
    gains: ScoreGains | None = None,
) -> Floats | None:
    """Probability that every group is asked next [G]; None while the policy can ask none.

    A policy that names several groups at a step counts as asking one of them.
    """
    state = acquisition_state(settings, grouping, in_flight, gains)
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
