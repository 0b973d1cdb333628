"""State of one assessment: its requests in flight, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.config.assessments import AssessmentSettings, ComparisonSettings, IdentificationSettings
from service.domain.arrays import Floats
from service.monitoring.acquisition import next_label_probabilities
from service.monitoring.budget import BudgetState, budget_state
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.reference_filling import ReferenceFilling
from service.monitoring.score_gains import ScoreGains
from service.monitoring.suspected_groups import Aim
from service.statistics import ranking
from service.statistics.comparison import mixture_rope_probabilities
from service.statistics.estimate import Estimate
from service.store.facts import RequestFacts
from service.store.requests import OpenRequest

_MOST_DRAWS = 2_000  # joint draws behind rank probabilities: standard errors of 0.011 at most
_DRAWN_NUMBERS = 1_000_000  # numbers drawn in all, where groups are very many, ...
_FEWEST_DRAWS = 200  # ... but this many joint draws: standard errors of 0.035 at most

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
    grouping: str  # whose groups are chosen for labels
    groups: list[str]
    in_flight: Floats  # its requests waiting for an answer, per group [G]
    awaited: Floats  # the same of all assessments that request labels for this grouping [G]
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
    drawn: Sequence[OpenRequest] = (),
) -> AssessmentSnapshot:
    """State of an assessment, from estimates and requests.

    `interval` is the mass of intervals of ranks, and `traffic` the number of predictions ever seen by some
    times, which a budget's pace follows. `drawn` are the open requests of the assessment's grouping, as of
    `open_draws`.
    """
    grouping = groupings.get(settings.chosen_grouping)
    names = grouping.groups if grouping else []
    index = {group: i for i, group in enumerate(names)}
    in_flight, awaited = np.zeros(len(names)), np.zeros(len(names))
    opened = [request for request in requests.open.values() if request.assessment == name]
    for request in opened:
        if request.group in index and request.opinion == 1 and not request.gold:
            in_flight[index[request.group]] += 1
    for request in drawn:
        if request.group in index:
            awaited[index[request.group]] += 1
    extreme, ranks = None, None
    if isinstance(settings, IdentificationSettings) and grouping:
        draws = _draws(settings, grouping, rng)
        from_end = ranking.ranks(draws if settings.end == "lowest" else -draws)
        extreme = ranking.extreme_probabilities(from_end, settings.top_m)
        mean, lower, upper = ranking.mean_rank(from_end, interval)
        ranks = Estimate(lower + 1, mean + 1, upper + 1)
    return AssessmentSnapshot(
        settings=settings,
        grouping=settings.chosen_grouping,
        groups=names,
        in_flight=in_flight,
        awaited=awaited,
        open_requests=len(opened),
        budget=budget_state(name, settings, requests, now=now, traffic=traffic),
        oldest_request_at=min((one.requested_at for one in opened if not one.gold), default=None),
        events={event: requests.tallies.get((event, name), 0) for event in EVENTS},
        extreme=extreme,
        ranks=ranks,
        compared=_compared(settings, grouping) if grouping else None,
        next=next_label_probabilities(settings, grouping, awaited, rng, aim, filling=filling, gains=gains)
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
