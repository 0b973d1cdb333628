"""Facts -> beliefs about the groups of every grouping, by the labels that were there at a time (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from service.assessment.groups import CellTraffic, Labels, assess_grouping
from service.assessment.weights import Asked, balance_weights
from service.cells import ALL, POSITIVE_SCORE, CellSpace
from service.evidence import GroupingEvidence
from service.grouping_snapshot import GroupingSnapshot, Pace, confusion_snapshot, grouping_snapshot
from service.ledger import OutcomeLedger
from service.model_settings import ModelSettings
from service.outcome_sums import OutcomeSums
from service.relearning import AskedGrouping, Forgotten, Relearned, forgotten
from service.store.facts import TrafficFacts

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_LEAST_KEPT = 1e-6
"""Of labels that a change left nothing of; they must not weigh without end."""


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


@dataclass(frozen=True)
class KnownLabels:
    """The labels that were there at a time.

    Attributes:
        labels: as columns, weighted.
        count: how many there are.
        asked: how many were asked for by every grouping.
        relearned: groups that have changed, by grouping and name.
    """

    labels: Labels
    count: int
    asked: dict[str, int]
    relearned: Mapping[str, Mapping[str, Relearned]]


def labels_of(
    space: CellSpace,
    ledger: OutcomeLedger,
    traffic: TrafficFacts,
    *,
    decay: float,
    run_length: float | None,
    now: float,
) -> KnownLabels:
    """The outcomes that were known at a time, weighted by the balance heuristic, their age and changes since.

    Args:
        space: cells of the model.
        ledger: its outcomes, placed in cells.
        traffic: its traffic.
        decay: how fast labels lose weight, 1/s.
        run_length: labels of a group from one change to the next; None where changes are not looked for.
        now: seconds since the epoch.
    """
    changes = _changes(space, ledger, traffic, run_length, now)
    sums = ledger.sums(at=now, decay=decay, factors=changes.factors)
    # Of the same rows; without what changes take.
    whole = None if changes.factors is None else ledger.sums(at=now, decay=decay).freshness
    # What is in no cell of the traffic tells nothing about it.
    there = traffic.traffic.counts[sums.cells] > 0
    there &= ledger.evenly_asked[sums.sources]
    sums, whole = sums.part(there), None if whole is None else whole[there]
    asked: Counter[str] = Counter()
    labelled = []
    for code, (_, grouping) in enumerate(ledger.sources):
        members = np.flatnonzero(sums.sources == code)
        if members.size:
            asked[grouping] += int(sums.counts[members].sum())
            known = grouping if grouping in space.groupings else ALL
            kept = None
            if whole is not None and changes.regions is not None:
                kept = _kept(changes.regions, sums, whole, members)
            labelled.append(Asked(space.groups(known, traffic.combinations)[1], members, kept))
    weights = balance_weights(
        cells=sums.cells, freshness=sums.freshness, traffic=traffic.traffic.weights, asked=labelled
    )
    labels = Labels(
        sums.cells,
        sums.correct,
        weights,
        sums.freshness,
        sums.true_classes,
        sums.counts,
        None if space.challenge is None else sums.challenger,
    )
    return KnownLabels(labels, int(sums.counts.sum()), dict(asked), changes.relearned)


def known_labels(
    settings: ModelSettings, space: CellSpace, ledger: OutcomeLedger, traffic: TrafficFacts, *, now: float
) -> KnownLabels:
    """The same, weighted as a model's settings want it.

    Args:
        settings: of the model.
        space: its cells.
        ledger: its outcomes, placed in cells.
        traffic: its traffic.
        now: seconds since the epoch.
    """
    decay, run_length = settings.label_decay_per_second, settings.change_run_length
    return labels_of(space, ledger, traffic, decay=decay, run_length=run_length, now=now)


def _kept(regions: Indices, sums: OutcomeSums, whole: Floats, members: Indices) -> Floats:
    """What changes leave of the labels of one source, on average over cells that changed alike [cells]."""
    of, count = regions[sums.cells[members]], int(regions.max(initial=0)) + 1
    left = np.bincount(of, weights=sums.freshness[members], minlength=count)
    all_of_it = np.bincount(of, weights=whole[members], minlength=count)
    share = np.divide(left, all_of_it, out=np.ones(count), where=all_of_it > 0)
    return np.maximum(share, _LEAST_KEPT)[regions]


def _changes(
    space: CellSpace, ledger: OutcomeLedger, traffic: TrafficFacts, run_length: float | None, now: float
) -> Forgotten:
    """What changes leave of every outcome."""
    if run_length is None:
        return Forgotten(None, {})
    sources: dict[str, list[int]] = {}
    for code, (_, grouping) in enumerate(ledger.sources):
        sources.setdefault(grouping, []).append(code)
    asked = [
        AskedGrouping(name, *space.groups(name, traffic.combinations), sources[name])
        for name in space.groupings
        if name in sources
    ]
    return forgotten(ledger.placed(at=now), asked, run_length=run_length, memory=ledger.changes)


def believed_groupings(
    *,
    settings: ModelSettings,
    space: CellSpace,
    traffic: TrafficFacts,
    ledger: OutcomeLedger,
    metric_groups: int,
    at: float,
    told_before: Mapping[str, Collection[str]],
    known: KnownLabels | None = None,
    drifted_before: Mapping[str, Collection[str]] | None = None,
    evidence: Mapping[str, GroupingEvidence] | None = None,
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
        known: the labels that were there then, if they have been looked at already.
        drifted_before: names of those that had drifted then, by grouping.
        evidence: about the groups of groupings that asked for labels.
    """
    proven = evidence or {}
    known = known or known_labels(settings, space, ledger, traffic, now=at)
    pace = Pace(
        labels_per_second=sum(
            assessment.budget.labels / (assessment.budget.per_days * 86_400)
            for assessment in settings.assessments.values()
            if assessment.budget.per_days is not None
        ),
        labels=known.count,
        decay=settings.label_decay_per_second,
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
            labels=known.labels,
            prior=settings.prior,
        )
        confusion = None
        if grouping.kind == "predicted_class":
            confusion = confusion_snapshot(
                groups.names,
                beliefs,
                settings,
                cell_groups=groups.cells,
                labels=known.labels,
                traffic=traffic,
            )
        told[name] = grouping_snapshot(
            groups.names,
            grouping.kind,
            beliefs,
            settings,
            pace=pace,
            metric_groups=metric_groups,
            told_before=told_before.get(name, ()),
            drifted_before=(drifted_before or {}).get(name, ()),
            confusion=confusion,
            positive=_positive_scores(space, groups, traffic) if name == POSITIVE_SCORE else None,
            evidence=proven.get(name),
            relearned=known.relearned.get(name, {}),
        )
    _tell_overall(told, settings, known.asked, pace)
    return told


def _positive_scores(space: CellSpace, groups: Groups, traffic: TrafficFacts) -> Floats:
    """Mean score of the positive class in every group [G]."""
    weights, sums = traffic.traffic.weights, traffic.traffic.score_sums
    own = space.predicted_positive(len(traffic.combinations))
    positive = np.bincount(
        groups.cells, weights=np.where(own, sums, weights - sums), minlength=len(groups.names)
    )
    return positive / np.bincount(groups.cells, weights=weights, minlength=len(groups.names))


def _tell_overall(
    groupings: dict[str, GroupingSnapshot], settings: ModelSettings, asked: Mapping[str, int], pace: Pace
) -> None:
    """Take the accuracy over all traffic from the grouping by which most labels were asked.

    Within its groups those labels are a random sample, so it knows best. Under a fixed prior, which cannot
    learn that all groups are off alike, its sum over groups would be biased.
    """
    most = max((name for name in groupings if name in asked), key=lambda name: asked[name], default=ALL)
    if settings.prior == "learned" and most != ALL and ALL in groupings:
        everything = groupings[ALL]
        beliefs = replace(everything.beliefs, accuracy=groupings[most].beliefs.overall)
        groupings[ALL] = grouping_snapshot(
            everything.groups,
            everything.kind,
            beliefs,
            settings,
            pace=pace,
            metric_groups=1,
            evidence=everything.evidence,
            relearned=everything.relearned,
        )
