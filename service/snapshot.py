"""The result of one assessment round: everything that metrics, page and API show of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.assessment.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.assessment.weights import Asked, balance_weights
from service.cells import ALL, CellSpace
from service.ledger import OutcomeLedger
from service.settings import AssessmentSettings, ModelSettings
from service.store.facts import RequestFacts, TrafficFacts

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

EXTREME_DRAWS = 2_000
"""Joint draws behind P(group is among the lowest): a standard error of at most 0.011."""

EVENTS = ("issued", "reissued", "answered", "corrected", "retracted", "skipped", "expired")
"""What can happen to a label request."""


@dataclass(frozen=True)
class Groups:
    """A grouping's groups that have traffic, and the group of every cell.

    Attributes:
        names: of the groups [G].
        cells: group of every cell [cells]; cells without traffic may stand in any group.
    """

    names: list[str]
    cells: Indices


@dataclass(frozen=True)
class GroupingSnapshot:
    """What is believed about one grouping; arrays are [G]."""

    groups: list[str]
    beliefs: GroupingBeliefs
    accuracy_lower: Floats
    accuracy_mean: Floats
    accuracy_upper: Floats
    ece_lower: Floats
    ece_mean: Floats
    ece_upper: Floats
    accuracy_below: Floats | None
    """P(accuracy < the alert threshold), where one is configured."""
    ece_above: Floats | None
    """P(ECE > the alert threshold), where one is configured."""


@dataclass(frozen=True)
class AssessmentSnapshot:
    """How one assessment stands.

    Attributes:
        grouping: its grouping's name.
        groups: names of the groups [G].
        in_flight: requests waiting for an answer, per group [G].
        open_requests: the same in all, those for groups that are no more included.
        window: field of the budget that pays now.
        budget_remaining: labels left in this window.
        events: how often what happened to its requests.
        extreme: P(group is among the top m) [G], for identification.
    """

    grouping: str
    groups: list[str]
    in_flight: Floats
    open_requests: int
    window: str
    budget_remaining: int
    events: dict[str, int]
    extreme: Floats | None


@dataclass(frozen=True)
class ModelSnapshot:
    """Everything known of one model at one time."""

    model: str
    taken_at: float
    predictions: int
    combinations: int
    combination_limit: int
    pool_items: int
    outbox_size: int
    outcomes: int
    last_label_at: float | None
    groupings: dict[str, GroupingSnapshot]
    assessments: dict[str, AssessmentSnapshot]


def present_groups(space: CellSpace, grouping: str, traffic: TrafficFacts) -> Groups:
    """The groups of a grouping that have ever had traffic.

    A group without traffic has no accuracy to tell, and must not win "least accurate".
    """
    names, cells = space.groups(grouping, traffic.combinations)
    counts = np.bincount(cells, weights=traffic.traffic.counts, minlength=len(names))
    present = counts > 0
    renumbered = np.maximum(np.cumsum(present) - 1, 0)
    return Groups([name for name, there in zip(names, present, strict=True) if there], renumbered[cells])


def labels_of(
    space: CellSpace, ledger: OutcomeLedger, traffic: TrafficFacts, *, decay: float, now: float
) -> Labels:
    """The outcomes as columns, weighted: by the balance heuristic, and by their age.

    Args:
        space: cells of the model.
        ledger: its outcomes, placed in cells.
        traffic: its traffic.
        decay: how fast labels lose weight, 1/s.
        now: seconds since the epoch.
    """
    cells, correct, predicted_at, sources = ledger.columns()
    seen = traffic.traffic.counts[cells] > 0
    cells, correct, predicted_at, sources = cells[seen], correct[seen], predicted_at[seen], sources[seen]
    freshness = np.exp(-decay * np.maximum(now - predicted_at, 0.0))
    asked = []
    for code, (_, grouping) in enumerate(ledger.sources):
        known = grouping if grouping in space.groupings else ALL
        members = np.flatnonzero(sources == code)
        if members.size:
            asked.append(Asked(space.groups(known, traffic.combinations)[1], members))
    weights = balance_weights(cells=cells, freshness=freshness, traffic=traffic.traffic.weights, asked=asked)
    return Labels(cells, correct, weights, freshness)


def take_snapshot(
    *,
    model: str,
    settings: ModelSettings,
    space: CellSpace,
    traffic: TrafficFacts,
    requests: RequestFacts,
    ledger: OutcomeLedger,
    now: float,
    rng: np.random.Generator,
) -> ModelSnapshot:
    """Beliefs from facts: a pure function, the same on every replica but for the Monte Carlo draws.

    Args:
        model: its name.
        settings: its settings.
        space: its cells.
        traffic: its traffic.
        requests: its label requests.
        ledger: its outcomes, placed in cells.
        now: seconds since the epoch.
        rng: for joint draws.
    """
    labels = labels_of(space, ledger, traffic, decay=settings.label_decay_per_second, now=now)
    cell_bins = space.groups("score_bin", traffic.combinations)[1]
    groupings: dict[str, GroupingSnapshot] = {}
    for name in space.groupings:
        groups = present_groups(space, name, traffic)
        if groups.names:
            beliefs = assess_grouping(
                cell_groups=groups.cells,
                cell_bins=cell_bins,
                group_count=len(groups.names),
                bin_count=space.bin_count,
                traffic=CellTraffic(traffic.traffic.weights, traffic.traffic.score_sums),
                labels=labels,
                prior=settings.prior,
            )
            groupings[name] = _grouping_snapshot(groups.names, beliefs, settings)
    return ModelSnapshot(
        model=model,
        taken_at=now,
        predictions=int(traffic.traffic.counts.sum()),
        combinations=len(traffic.combinations),
        combination_limit=space.combination_limit,
        pool_items=sum(traffic.pool_sizes.values()),
        outbox_size=requests.outbox_size,
        outcomes=len(ledger),
        last_label_at=ledger.last_label_at,
        groupings=groupings,
        assessments={
            name: _assessment_snapshot(name, assessment, groupings, requests, now=now, rng=rng)
            for name, assessment in settings.assessments.items()
        },
    )


def _grouping_snapshot(
    names: list[str], beliefs: GroupingBeliefs, settings: ModelSettings
) -> GroupingSnapshot:
    accuracy_lower, accuracy_upper = beliefs.accuracy.interval(settings.interval)
    ece_lower, ece_upper = beliefs.ece.interval(settings.interval)
    alerts = settings.alerts
    return GroupingSnapshot(
        groups=names,
        beliefs=beliefs,
        accuracy_lower=accuracy_lower,
        accuracy_mean=beliefs.accuracy.mean(),
        accuracy_upper=accuracy_upper,
        ece_lower=ece_lower,
        ece_mean=beliefs.ece.mean,
        ece_upper=ece_upper,
        accuracy_below=None
        if alerts.min_accuracy is None
        else beliefs.accuracy.probability_below(alerts.min_accuracy),
        ece_above=None if alerts.max_ece is None else beliefs.ece.probability_above(alerts.max_ece),
    )


def _assessment_snapshot(
    name: str,
    settings: AssessmentSettings,
    groupings: Mapping[str, GroupingSnapshot],
    requests: RequestFacts,
    *,
    now: float,
    rng: np.random.Generator,
) -> AssessmentSnapshot:
    grouping = groupings.get(settings.grouping)
    names = grouping.groups if grouping else []
    index = {group: i for i, group in enumerate(names)}
    in_flight = np.zeros(len(names))
    opened = [request.group for request in requests.open.values() if request.assessment == name]
    for group in opened:
        if group in index:
            in_flight[index[group]] += 1
    window = budget_window(name, settings, now)
    extreme = None
    if settings.task == "identification" and grouping:
        extreme = grouping.beliefs.accuracy.extreme_probabilities(
            rng, top_m=settings.top_m, draws=EXTREME_DRAWS
        )
    return AssessmentSnapshot(
        grouping=settings.grouping,
        groups=names,
        in_flight=in_flight,
        open_requests=len(opened),
        window=window,
        budget_remaining=max(0, settings.budget.labels - requests.budget.get(window, 0)),
        events={event: requests.tallies.get((event, name), 0) for event in EVENTS},
        extreme=extreme,
    )


def budget_window(assessment: str, settings: AssessmentSettings, now: float) -> str:
    """Field of the budget that pays for labels asked now: one per window of `per_days`."""
    days = settings.budget.per_days
    return f"{assessment}|{0 if days is None else int(now // (days * 86_400))}"
