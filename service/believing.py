"""Facts -> beliefs about the groups of every grouping, by the labels that were there at a time (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from service.assessment.groups import CellTraffic, Labels, assess_grouping
from service.assessment.weights import Asked, balance_weights
from service.cells import ALL, CellSpace
from service.grouping_snapshot import GroupingSnapshot, Pace, confusion_snapshot, grouping_snapshot
from service.ledger import OutcomeLedger
from service.model_settings import ModelSettings
from service.store.facts import TrafficFacts

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Groups:
    """A grouping's groups that have traffic, and the group of every cell.

    Attributes:
        names: of the groups [G].
        cells: group of every cell [cells]; cells without traffic may stand in any group.
    """

    names: list[str]
    cells: Indices


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
