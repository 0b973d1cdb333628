"""State of one assessment: its settings, its requests in flight, its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.config.assessments import AssessmentSettings, ComparisonSettings, IdentificationSettings
from service.domain.arrays import Floats
from service.monitoring.acquisition import Aim, next_label_probabilities
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.statistics import ranking
from service.statistics.comparison import mixture_rope_probabilities
from service.statistics.estimate import Estimate
from service.store.facts import RequestFacts

MOST_DRAWS = 2_000
"""Joint draws behind probabilities of ranks: standard errors of 0.011 at most."""

_DRAWN_NUMBERS = 1_000_000
"""Of very many groups so many numbers are drawn in all, …"""

_FEWEST_DRAWS = 200
"""… but so many times at least: standard errors of 0.035 at most."""

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
    window: str  # field of the budget that pays now
    budget_remaining: int  # labels left in this window
    renews_at: float | None  # when the next window begins, seconds since the epoch; None if never
    oldest_request_at: float | None  # when the oldest request in flight was first issued; None without one
    events: dict[str, int]  # number of its requests, by event
    extreme: Floats | None  # P(group is among the top m) [G], for identification
    ranks: Estimate | None  # of the groups [G], counted from 1 at that end; for identification
    compared: Compared | None  # for comparison, once both groups have traffic
    next: Floats | None  # probability that a group is asked next [G]; None while the policy can ask none
    aim: Aim | None  # None while no group of the grouping has drifted


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
) -> AssessmentSnapshot:
    """State of an assessment, from estimates and requests; `interval` is the mass of intervals of ranks."""
    grouping = groupings.get(settings.asked_grouping)
    names = grouping.groups if grouping else []
    index = {group: i for i, group in enumerate(names)}
    in_flight = np.zeros(len(names))
    opened = [request for request in requests.open.values() if request.assessment == name]
    for request in opened:
        if request.group in index:
            in_flight[index[request.group]] += 1
    window = budget_window(name, settings, now)
    extreme, ranks = None, None
    if isinstance(settings, IdentificationSettings) and grouping:
        draws = _draws(settings, grouping, rng)
        from_end = ranking.ranks(draws if settings.end == "lowest" else -draws)
        extreme = ranking.extreme_probabilities(from_end, settings.top_m)
        mean, lower, upper = ranking.mean_rank(from_end, interval)
        ranks = Estimate(lower + 1, mean + 1, upper + 1)
    days = settings.budget.per_days
    return AssessmentSnapshot(
        settings=settings,
        grouping=settings.asked_grouping,
        groups=names,
        in_flight=in_flight,
        open_requests=len(opened),
        window=window,
        budget_remaining=max(0, settings.budget.labels - requests.budget.get(window, 0)),
        renews_at=None if days is None else (now // (days * 86_400) + 1) * days * 86_400,
        oldest_request_at=min((request.requested_at for request in opened), default=None),
        events={event: requests.tallies.get((event, name), 0) for event in EVENTS},
        extreme=extreme,
        ranks=ranks,
        compared=_compared(settings, grouping)
        if isinstance(settings, ComparisonSettings) and grouping
        else None,
        next=next_label_probabilities(settings, grouping, in_flight, rng, aim) if grouping else None,
        aim=aim,
    )


def budget_window(assessment: str, settings: AssessmentSettings, now: float) -> str:
    """Field of the budget that pays for labels asked now: one per window of `per_days`."""
    days = settings.budget.per_days
    return f"{assessment}|{0 if days is None else int(now // (days * 86_400))}"


def _draws(settings: IdentificationSettings, grouping: GroupingSnapshot, rng: np.random.Generator) -> Floats:
    """Joint draws of what the groups are ranked by [S, G]."""
    size = max(_FEWEST_DRAWS, min(MOST_DRAWS, _DRAWN_NUMBERS // len(grouping.groups)))
    if settings.metric == "calibration":
        return grouping.beliefs.ece.beliefs.sample(rng, size)
    if settings.metric == "cost" and grouping.confusion is not None and grouping.confusion.cost is not None:
        return grouping.confusion.cost.beliefs.sample(rng, size)
    return grouping.beliefs.accuracy.sample(rng, size)


def _compared(settings: ComparisonSettings, grouping: GroupingSnapshot) -> Compared | None:
    names = settings.between
    if not set(names) <= set(grouping.groups):
        return None
    first, second = (grouping.groups.index(name) for name in names)
    accuracy = grouping.beliefs.accuracy
    below, within, above = mixture_rope_probabilities(
        accuracy.weights,
        (accuracy.alpha[:, first], accuracy.beta[:, first]),
        (accuracy.alpha[:, second], accuracy.beta[:, second]),
        region=settings.region,
    ).tolist()
    return Compared(names[0], names[1], settings.region, below, within, above)
