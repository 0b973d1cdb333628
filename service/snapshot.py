"""The result of one assessment round: everything that metrics, page and API show of one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from service.assessment.groups import CellTraffic, Labels, assess_grouping
from service.assessment.weights import Asked, balance_weights
from service.assessment_snapshot import AssessmentSnapshot, assessment_snapshot
from service.cells import ALL, CellSpace
from service.grouping_snapshot import GroupingSnapshot, Pace, confusion_snapshot, grouping_snapshot
from service.ledger import OutcomeLedger
from service.model_settings import ModelSettings
from service.store.facts import OutcomeEntry, RequestFacts, TrafficFacts
from service.store.requests import OpenRequest
from service.timeline import Moment, moment

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

FLOW_BINS = 48
"""Stretches of time that the flow of labels is told by."""


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
class LabelFlow:
    """Labels over time.

    Attributes:
        edges: of stretches of time, seconds since the epoch [n + 1].
        correct: labels in each that say that the prediction is right [n].
        incorrect: the others [n].
    """

    edges: Floats
    correct: npt.NDArray[np.int64]
    incorrect: npt.NDArray[np.int64]


@dataclass(frozen=True)
class ModelSnapshot:
    """Everything known of one model at one time.

    Attributes:
        model: its name.
        settings: its settings.
        taken_at: seconds since the epoch.
        predictions: in the traffic.
        combinations: of attribute values that are told apart.
        combination_limit: how many fit.
        pool_items: unlabelled items in the pool.
        pool_item_age: their median age in seconds, from a sample; None of an empty pool.
        outbox_size: label requests that wait to be published.
        outcomes: in the beliefs.
        last_label_at: seconds since the epoch; None before the first.
        groupings: those that have traffic.
        assessments: all that are configured.
        requests: those in flight, by id.
        recent: the outcomes that came last, the newest first.
        flow: labels over the time that is remembered.
        past: what was believed earlier, oldest first.
    """

    model: str
    settings: ModelSettings
    taken_at: float
    predictions: int
    combinations: int
    combination_limit: int
    pool_items: int
    pool_item_age: float | None
    outbox_size: int
    outcomes: int
    last_label_at: float | None
    groupings: dict[str, GroupingSnapshot]
    assessments: dict[str, AssessmentSnapshot]
    requests: dict[str, OpenRequest]
    recent: list[OutcomeEntry]
    flow: LabelFlow
    past: tuple[Moment, ...]


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
    """The outcomes that were known at a time as columns, weighted by the balance heuristic and their age.

    Args:
        space: cells of the model.
        ledger: its outcomes, placed in cells.
        traffic: its traffic.
        decay: how fast labels lose weight, 1/s.
        now: seconds since the epoch.
    """
    columns = ledger.columns()
    seen = (traffic.traffic.counts[columns.cells] > 0) & (columns.given_at <= now)
    cells, sources = columns.cells[seen], columns.sources[seen]
    freshness = np.exp(-decay * np.maximum(now - columns.predicted_at[seen], 0.0))
    asked = []
    for code, (_, grouping) in enumerate(ledger.sources):
        known = grouping if grouping in space.groupings else ALL
        members = np.flatnonzero(sources == code)
        if members.size:
            asked.append(Asked(space.groups(known, traffic.combinations)[1], members))
    weights = balance_weights(cells=cells, freshness=freshness, traffic=traffic.traffic.weights, asked=asked)
    return Labels(cells, columns.correct[seen], weights, freshness, columns.true_classes[seen])


def take_snapshot(
    *,
    model: str,
    settings: ModelSettings,
    space: CellSpace,
    traffic: TrafficFacts,
    requests: RequestFacts,
    ledger: OutcomeLedger,
    metric_groups: int,
    history_seconds: float,
    now: float,
    rng: np.random.Generator,
    before: ModelSnapshot | None = None,
    past: tuple[Moment, ...] = (),
) -> ModelSnapshot:
    """Beliefs from facts: a pure function, the same on every replica but for the Monte Carlo draws.

    Args:
        model: its name.
        settings: its settings.
        space: its cells.
        traffic: its traffic.
        requests: its label requests.
        ledger: its outcomes, placed in cells.
        metric_groups: groups per grouping that have metrics of their own, at most.
        history_seconds: how far back the flow of labels is told.
        now: seconds since the epoch.
        rng: for joint draws.
        before: the last snapshot, so that the same groups keep metrics of their own.
        past: what was believed earlier.
    """
    told_before = {} if before is None else {n: _told_names(g) for n, g in before.groupings.items()}
    groupings = believed_groupings(
        settings=settings,
        space=space,
        traffic=traffic,
        ledger=ledger,
        metric_groups=metric_groups,
        at=now,
        told_before=told_before,
    )
    return ModelSnapshot(
        model=model,
        settings=settings,
        taken_at=now,
        predictions=int(traffic.traffic.counts.sum()),
        combinations=len(traffic.combinations),
        combination_limit=space.combination_limit,
        pool_items=sum(traffic.pool_sizes.values()),
        pool_item_age=_pool_item_age(traffic, now),
        outbox_size=requests.outbox_size,
        outcomes=len(ledger),
        last_label_at=ledger.last_label_at,
        groupings=groupings,
        assessments={
            name: assessment_snapshot(
                name, assessment, groupings, requests, interval=settings.interval, now=now, rng=rng
            )
            for name, assessment in settings.assessments.items()
        },
        requests=requests.open,
        recent=ledger.recent,
        flow=_flow(ledger, now - history_seconds, now),
        past=past,
    )


def past_moment(
    *,
    settings: ModelSettings,
    space: CellSpace,
    traffic: TrafficFacts,
    ledger: OutcomeLedger,
    before: ModelSnapshot,
    at: float,
) -> Moment:
    """What was believed at an earlier time, by the labels that were there then.

    Args:
        settings: of the model.
        space: its cells.
        traffic: its traffic now.
        ledger: its outcomes.
        before: a snapshot, whose groups told one by one are those remembered.
        at: seconds since the epoch.
    """
    told = {name: _told_names(grouping) for name, grouping in before.groupings.items()}
    groupings = believed_groupings(
        settings=settings,
        space=space,
        traffic=traffic,
        ledger=ledger,
        metric_groups=max((len(names) for names in told.values()), default=1),
        at=at,
        told_before=told,
    )
    return moment(at, groupings)


def believed_groupings(
    *,
    settings: ModelSettings,
    space: CellSpace,
    traffic: TrafficFacts,
    ledger: OutcomeLedger,
    metric_groups: int,
    at: float,
    told_before: Mapping[str, Collection[str]],
) -> dict[str, GroupingSnapshot]:
    """Beliefs about the groups of every grouping that has traffic, by the labels that were there at a time.

    Args:
        settings: of the model.
        space: its cells.
        traffic: its traffic.
        ledger: its outcomes, placed in cells.
        metric_groups: groups per grouping that have metrics of their own, at most.
        at: seconds since the epoch.
        told_before: names of those that had them last time, by grouping.
    """
    decay = settings.label_decay_per_second
    labels = labels_of(space, ledger, traffic, decay=decay, now=at)
    pace = Pace(
        labels_per_second=sum(
            assessment.budget.labels / (assessment.budget.per_days * 86_400)
            for assessment in settings.assessments.values()
            if assessment.budget.per_days is not None
        ),
        labels=len(labels.cells),
        decay=decay,
    )
    cell_bins = space.groups("score_bin", traffic.combinations)[1]
    told: dict[str, GroupingSnapshot] = {}
    for name, grouping in space.groupings.items():
        groups = present_groups(space, name, traffic)
        if not groups.names:
            continue
        beliefs = assess_grouping(
            cell_groups=groups.cells,
            cell_bins=cell_bins,
            group_count=len(groups.names),
            bin_count=space.bin_count,
            traffic=CellTraffic(traffic.traffic.weights, traffic.traffic.score_sums),
            labels=labels,
            prior=settings.prior,
        )
        confusion = None
        if grouping.kind == "predicted_class":
            confusion = confusion_snapshot(
                groups.names, beliefs, settings, cell_groups=groups.cells, labels=labels, traffic=traffic
            )
        told[name] = grouping_snapshot(
            groups.names,
            grouping.kind,
            beliefs,
            settings,
            pace=pace,
            metric_groups=metric_groups,
            told_before=told_before.get(name, ()),
            confusion=confusion,
        )
    _tell_overall(told, settings, ledger, pace)
    return told


def _tell_overall(
    groupings: dict[str, GroupingSnapshot], settings: ModelSettings, ledger: OutcomeLedger, pace: Pace
) -> None:
    """Take the accuracy over all traffic from the grouping by which most labels were asked.

    Within its groups those labels are a random sample, so it knows best. Under a fixed prior, which cannot
    learn that all groups are off alike, its sum over groups would be biased.
    """
    asked: Counter[str] = Counter()
    for code, count in Counter(ledger.columns().sources.tolist()).items():
        asked[ledger.sources[code][1]] += count
    known = [name for name, _ in asked.most_common() if name in groupings]
    if settings.prior == "learned" and known and known[0] != ALL and ALL in groupings:
        everything = groupings[ALL]
        beliefs = replace(everything.beliefs, accuracy=groupings[known[0]].beliefs.overall)
        groupings[ALL] = grouping_snapshot(
            everything.groups, everything.kind, beliefs, settings, pace=pace, metric_groups=1
        )


def _told_names(grouping: GroupingSnapshot) -> set[str]:
    return {grouping.groups[g] for g in grouping.told}


def _flow(ledger: OutcomeLedger, begin: float, end: float) -> LabelFlow:
    columns = ledger.columns()
    edges = np.linspace(begin, end, FLOW_BINS + 1)
    right = columns.correct > 0
    correct, incorrect = (np.histogram(columns.given_at[part], edges)[0] for part in (right, ~right))
    return LabelFlow(edges, correct, incorrect)


def _pool_item_age(traffic: TrafficFacts, now: float) -> float | None:
    """Median age, every shard's sample standing for all of its items."""
    sampled = [(p, times) for p, times in traffic.pool_times.items() if len(times)]
    if not sampled:
        return None
    times = np.concatenate([times for _, times in sampled])
    weights = np.repeat(
        [traffic.pool_sizes[p] / len(found) for p, found in sampled], [len(found) for _, found in sampled]
    )
    order = np.argsort(times)
    cumulative = np.cumsum(weights[order])
    return max(0.0, now - float(times[order][np.searchsorted(cumulative, cumulative[-1] / 2)]))
