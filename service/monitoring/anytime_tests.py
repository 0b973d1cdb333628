"""Facts -> evidence about the groups of a model, valid however often one looks (pure).

Only labels that a grouping's own assessments asked for count here: within its groups they are a random
sample, whatever the policy, which evidence needs. They count in the order in which they were requested, and
a label counts once all earlier requests for its group have ended. A label never loses weight with age; what
labels said that the stream has let go of is continued from a checkpoint.

What is promised is per model, over all groupings, groups and kinds of evidence: while nothing is wrong, the
probability that anything is ever confirmed is `evidence.alpha` at the most; of what is confirmed at one
time, a share of `evidence.alpha` is false on average, at the most. Each group gets its share of alpha when
it arrives, by the order of arrival (`log_arrival_weights`), and the kinds of evidence share it evenly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Flags, Floats, Indices, UInt64s
from service.domain.cells import OTHER, GroupingKind
from service.domain.request_order import NO_PLACE, Places, requested_at
from service.monitoring.evidence_base import (
    ANY_GROUPING,
    OTHERS_SAY,
    Base,
    Checkpoint,
    GroupKey,
    arrival_numbers,
    arrival_order,
    first_open,
    open_places,
)
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.label_columns import LabelSequence
from service.monitoring.outcome_aggregates import SumTallies
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.e_detector import change_point
from service.statistics.e_processes import discoveries, log_arrival_weights
from service.statistics.grouped_e_processes import GroupedLabels, GroupEvidence, assess_evidence
from service.store.checkpoints import EvidenceCheckpoint
from service.store.references import ReferenceWindow
from service.store.requests import OpenRequest

EvidenceKind = Literal["below_threshold", "declined", "miscalibrated", "changed"]
"""What evidence says of a group."""

KINDS: tuple[EvidenceKind, ...] = ("below_threshold", "declined", "miscalibrated", "changed")

EXPECTED_TO_DIFFER = frozenset({"score_bin", "positive_score", "votes", "challenge"})
"""Kinds of groupings whose groups are accurate as their scores or votes are: a threshold is none for them."""

_BASELINES: Final = 0.5
"""Of the share of `changed`, what pays for baselines that are above the accuracy of their reference."""

_CHANGE_MASS = 0.9
"""Probability inside the interval of a change's time."""


@dataclass(frozen=True)
class Change:
    """When a group became less accurate than its reference, or than a threshold that it reached there.

    Attributes:
        at: when the first label after it was requested, seconds since the epoch.
        earliest: the same, of the lower end of its interval.
        latest: of the upper end.
        predicted_at: when that label's item was predicted.
        labels: since then.
    """

    at: float
    earliest: float
    latest: float
    predicted_at: float
    labels: int


@dataclass(frozen=True)
class WatchedGroups:
    """The groups of one grouping, and what evidence about them starts from.

    Attributes:
        names: of the groups [G].
        kind: what the grouping is by.
        numbers: in the order of arrival among all groups of the model, from 1 [G].
        ended: the first request of every group that is still open; labels from there on wait [G].
        base: evidence by the checkpoint.
        sharing: how many groupings of the model are the same one under several names.
    """

    names: list[str]
    kind: GroupingKind
    numbers: Indices
    ended: Places
    base: Base
    sharing: int = 1

    @classmethod
    def alone(cls, names: list[str], kind: GroupingKind) -> WatchedGroups:
        """Those of a model's only grouping: they arrived in their order, and no request is open."""
        count = len(names)
        ended = np.full(count, NO_PLACE, dtype=np.uint64)
        return cls(names, kind, np.arange(1, count + 1), ended, Base.none(count))

    def counting(self, labels: LabelSequence, groups: Indices) -> Flags:
        """Which labels count now: all earlier requests for their group have ended [n]."""
        counting: Flags = (labels.places > self.base.place) & (labels.places < self.ended[groups])
        return counting


@dataclass(frozen=True)
class GroupingEvidence:
    """What labels say against the groups of one grouping; arrays are [G].

    Attributes:
        watched: the groups.
        known: evidence as logarithms, and bounds.
        confirmed: what is taken for true, by weighted e-BH over all groups and kinds of the model.
        changes: those that are confirmed, by group.
        alpha: the expected share of false ones among what is confirmed.
        labels: how many labels of each group there are, and which.
        used: those that count now and are not of the checkpoint.
        last: the highest place among the requests of these.
        reference: the window that was set, if any.
    """

    watched: WatchedGroups
    known: GroupEvidence
    confirmed: Mapping[EvidenceKind, Flags]
    changes: Mapping[int, Change]
    alpha: float
    labels: SumTallies
    used: SumTallies
    last: Places
    reference: ReferenceWindow | None

    @property
    def groups(self) -> list[str]:
        """Names of the groups."""
        return self.watched.names

    @property
    def log_e(self) -> Mapping[EvidenceKind, Floats]:
        """Logarithm of the e-value of every kind; NaN where there is none."""
        return {
            "below_threshold": self.known.below,
            "declined": self.known.declined,
            "miscalibrated": self.known.miscalibrated,
            "changed": self.known.changed,
        }

    @property
    def changed(self) -> Flags:
        """Whether a change is confirmed."""
        return self.confirmed["changed"]

    @property
    def alarming(self) -> Flags:
        """Whether anything is confirmed."""
        found: Flags = np.logical_or.reduce(list(self.confirmed.values()))
        return found

    def continues(self, watched: WatchedGroups, reference: ReferenceWindow | None) -> Flags:
        """Of which groups further labels add to what is known, so that nothing is computed again."""
        now = self.watched
        same = (
            self.reference == reference
            and now.names == watched.names
            and now.base.place == watched.base.place
        )
        return now.numbers == watched.numbers if same else np.zeros(len(watched.names), dtype=np.bool_)

    def unchanged(self, labels: SumTallies, watched: WatchedGroups) -> Flags:
        """Which groups have the same labels, of which the same ones count."""
        is_waiting = self.labels.counts != self.used.counts
        none_waits = ~is_waiting & (watched.ended > self.last)
        found: Flags = labels.same(self.labels) & (none_waits | (self.watched.ended == watched.ended))
        return found


def model_evidence(
    *,
    settings: ModelSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    open_requests: Mapping[str, OpenRequest],
    reference: ReferenceWindow | None,
    checkpoint: EvidenceCheckpoint | None,
    before: Mapping[str, GroupingEvidence | None],
    until: int = NO_PLACE,
) -> dict[str, GroupingEvidence]:
    """Evidence about every grouping that has traffic and asked for labels.

    Args:
        settings: of the model.
        index: its groups.
        ledger: its outcomes.
        open_requests: its requests that have not ended, by id, read before the outcomes.
        reference: the window that "now" is compared with, if one was set.
        checkpoint: what earlier labels said, if any is kept.
        before: what was known last time, by grouping, so that only what has changed is computed.
        until: requests from this place on are left out.
    """
    there = Checkpoint(checkpoint, index.space, reference)
    labelled = _labelled(index, ledger, there)
    opened = open_places(open_requests, settings, there.keys)
    order = arrival_order(there.arrivals, _first_places(ledger, labelled, opened, there))
    shared = Counter(there.keys[name] for name in labelled)

    def labels_of(name: str, which: Flags) -> tuple[LabelSequence, Indices]:
        groups, _ = labelled[name]
        labels = ledger.asked_by(name, np.append(which, False)[groups.numbers])
        return labels, groups.cells[labels.cells]

    found: dict[str, GroupingEvidence] = {}
    for name, (groups, tallies) in labelled.items():
        watched = WatchedGroups(
            groups.names,
            index.space.groupings[name].kind,
            arrival_numbers(order, there.keys[name], groups.names),
            np.minimum(first_open(opened, there.keys[name], groups.names), np.uint64(until)),
            there.base(name, groups.names),
            shared[there.keys[name]],
        )
        known = before.get(name)
        same = np.zeros(len(groups.names), dtype=np.bool_)
        if known is not None and (continues := known.continues(watched, reference)).any():
            same = continues & known.unchanged(tallies, watched)
        labels, of_groups = labels_of(name, ~same)
        found[name] = _gathered(
            watched,
            labels,
            of_groups,
            tallies,
            settings=settings,
            reference=reference,
            before=known,
            same=same,
        )
    return _concluded(found, labels_of, settings, before)


def arrivals(
    *, index: GroupIndex, ledger: OutcomeLedger, checkpoint: Checkpoint, until: int
) -> list[GroupKey]:
    """Groups in the order of their arrival, those whose first label was requested before a place.

    Args:
        index: groups of the model.
        ledger: its outcomes.
        checkpoint: what it knows of arrivals.
        until: the place.
    """
    places = _first_places(ledger, _labelled(index, ledger, checkpoint), {}, checkpoint)
    return arrival_order(checkpoint.arrivals, places, until)


def _labelled(
    index: GroupIndex, ledger: OutcomeLedger, checkpoint: Checkpoint
) -> dict[str, tuple[Groups, SumTallies]]:
    """Of every grouping with evidence the groups that have traffic, and which labels they have.

    `OTHER` has no evidence: values come into it and leave it, so its labels are no even sample of it.
    """
    drawn_for = {grouping for source in ledger.sources for grouping in source.groupings}
    kinds = {name: grouping.kind for name, grouping in index.space.groupings.items()}
    asked = (drawn_for & kinds.keys()) | checkpoint.groupings
    labelled: dict[str, tuple[Groups, SumTallies]] = {}
    for name in sorted(name for name in asked if kinds[name] not in OTHERS_SAY):
        groups = _without_other(index[name])
        tallies = ledger.tallied(name, groups.numbers, len(groups.names))
        if tallies.counts.any() or name in checkpoint.groupings:
            labelled[name] = groups, tallies
    return labelled


def _without_other(groups: Groups) -> Groups:
    """The same groups, with no label in `OTHER`."""
    if OTHER not in groups.names:
        return groups
    return replace(groups, there=groups.there & (groups.cells != groups.names.index(OTHER)))


def _first_places(
    ledger: OutcomeLedger,
    labelled: Mapping[str, tuple[Groups, SumTallies]],
    opened: Mapping[GroupKey, int],
    checkpoint: Checkpoint,
) -> dict[GroupKey, int]:
    """Of every group with labels or open requests, the place of the first request."""
    places = ledger.first_requests()
    for group_key, place in opened.items():
        if group_key[0] != ANY_GROUPING:
            places[group_key] = min(place, places.get(group_key, NO_PLACE))
    known = set(checkpoint.arrivals)
    for name, (groups, tallies) in labelled.items():
        # Their labels were drawn for groups of other names, such as `__other__` before a bound was raised.
        key = checkpoint.keys[name]
        unnamed = np.array(
            [(key, group) not in places and (key, group) not in known for group in groups.names], np.bool_
        )
        if (unnamed & (tallies.counts > 0)).any():
            labels = ledger.asked_by(name, np.append(unnamed, False)[groups.numbers])
            firsts = np.full(len(groups.names), NO_PLACE, dtype=np.uint64)
            np.minimum.at(firsts, groups.cells[labels.cells], labels.places)
            places |= {
                (key, groups.names[group]): int(firsts[group])
                for group in np.flatnonzero(unnamed & (firsts < NO_PLACE)).tolist()
            }
    return places


def grouping_evidence(
    watched: WatchedGroups,
    labels: LabelSequence,
    groups: Indices,
    *,
    settings: ModelSettings,
    reference: ReferenceWindow | None = None,
    before: GroupingEvidence | None = None,
) -> GroupingEvidence:
    """Evidence about the groups of a model's only grouping.

    With a window, the reference is what was predicted in it, and evidence begins with what was predicted
    after it. Without one it is the first labels of every group, which count for what is asked of the group
    itself as well.

    Args:
        watched: the groups.
        labels: that the grouping asked for [n].
        groups: of every label [n].
        settings: of the model.
        reference: the window that was set, if any.
        before: what was known last time, if anything was.
    """
    tallies = _tallies(groups, labels.marks, len(watched.names))
    gathered = _gathered(
        watched, labels, groups, tallies, settings=settings, reference=reference, before=before
    )
    return _concluded({"": gathered}, lambda *_: (labels, groups), settings, {"": before})[""]


def _gathered(
    watched: WatchedGroups,
    labels: LabelSequence,
    groups: Indices,
    tallies: SumTallies,
    *,
    settings: ModelSettings,
    reference: ReferenceWindow | None,
    before: GroupingEvidence | None,
    same: Flags | None = None,
) -> GroupingEvidence:
    """Evidence about the groups of one grouping; nothing is confirmed yet.

    Args:
        watched: the groups.
        labels: that the grouping asked for [n].
        groups: of every label [n].
        tallies: of all its labels.
        settings: of the model.
        reference: the window that was set, if any.
        before: what was known last time, if anything was.
        same: groups of which nothing has changed since, so that their labels are left out here [G].
    """
    alpha, count, base = settings.evidence.alpha, len(watched.names), watched.base
    continues = np.zeros(count, np.bool_) if before is None else before.continues(watched, reference)
    if before is None or not continues.any():
        before = None
    labels, groups = _in_order(labels, groups, watched)
    used, last = _tallies(groups, labels.marks, count), np.zeros(count, dtype=np.uint64)
    np.maximum.at(last, groups, labels.places)
    seen_before = _seen_before(groups, labels.marks, before) & continues[groups]
    if reference is not None:
        kept = labels.predicted_at >= reference.since
        # A reference that is complete by the checkpoint takes no more labels.
        kept &= (labels.predicted_at >= reference.until) | ~base.evidence.is_closed[groups]
        labels, groups, seen_before = labels.part(kept), groups[kept], seen_before[kept]
        then = labels.predicted_at < reference.until
        counted = ~then
    else:
        lengths = np.bincount(groups, minlength=count)
        rank = np.arange(len(groups)) - (np.cumsum(lengths) - lengths)[groups]
        left = np.where(
            base.evidence.is_closed, 0.0, settings.reference.labels - base.evidence.reference_labels
        )
        then, counted = rank < left[groups], np.ones(len(groups), dtype=np.bool_)
    seen = np.bincount(groups[seen_before], minlength=count)
    known = base.evidence if before is None else before.known
    here = np.ones(count, dtype=np.bool_)
    if before is not None and same is not None:
        here = ~same
        used.counts[same], used.marks[same] = before.used.counts[same], before.used.marks[same]
        last[same] = before.last[same]
    some, numbers = np.flatnonzero(here), np.cumsum(here) - 1
    shares = np.exp(_log_shares(watched, settings)["changed"])
    known = known.with_part(
        some,
        assess_evidence(
            GroupedLabels(numbers[groups], labels.scores, labels.correct, then, counted),
            seen=seen[some],
            before=known.part(some),
            threshold=_threshold(watched.kind, settings),
            alpha=alpha,
            baseline_alpha=alpha * shares[some] * _BASELINES,
            fixed=reference is None,
            base=base.evidence.part(some),
        ),
    )
    return GroupingEvidence(
        watched=watched,
        known=known,
        confirmed={},
        changes={},
        alpha=alpha,
        labels=tallies,
        used=used,
        last=last,
        reference=reference,
    )


def _in_order(
    labels: LabelSequence, groups: Indices, watched: WatchedGroups
) -> tuple[LabelSequence, Indices]:
    """The labels that count now, sorted by group, and in each by the order of their requests."""
    counting = watched.counting(labels, groups)
    if not counting.all():
        labels, groups = labels.part(counting), groups[counting]
    # They are nearly sorted by then, which makes this fast; and numbers of 16 bits are sorted faster.
    order = np.argsort(labels.places, kind="stable")
    of_groups = groups[order].astype(np.uint16) if len(watched.names) <= 1 << 16 else groups[order]
    order = order[np.argsort(of_groups, kind="stable")]
    return labels.part(order), groups[order]


def _log_shares(watched: WatchedGroups, settings: ModelSettings) -> dict[EvidenceKind, Floats]:
    """Logarithm of the share of alpha that every group has for every kind of evidence [G]."""
    possible = [kind for kind in KINDS if kind != "below_threshold" or _threshold(watched.kind, settings)]
    weights = log_arrival_weights(watched.numbers) - np.log(len(possible) * watched.sharing)
    return dict.fromkeys(possible, weights)


def _concluded(
    found: Mapping[str, GroupingEvidence],
    labels_of: Callable[[str, Flags], tuple[LabelSequence, Indices]],
    settings: ModelSettings,
    before: Mapping[str, GroupingEvidence | None],
) -> dict[str, GroupingEvidence]:
    """The same with what is confirmed over all groupings, and changes dated.

    Args:
        found: evidence by grouping.
        labels_of: labels that a grouping asked for in some of its groups, and the group of each.
        settings: of the model.
        before: what was known last time.
    """
    evidence, weights, places = [], [], []
    for name, gathered in found.items():
        for kind, shares in _log_shares(gathered.watched, settings).items():
            evidence.append(gathered.log_e[kind])
            weights.append(shares + (np.log1p(-_BASELINES) if kind == "changed" else 0.0))
            places.append((name, kind))
    if not places:
        return dict(found)
    taken = discoveries(np.concatenate(evidence), settings.evidence.alpha, np.concatenate(weights))
    parts = np.split(taken, np.cumsum([len(part) for part in evidence])[:-1])
    by_place = dict(zip(places, parts, strict=True))
    concluded = {}
    for name, gathered in found.items():
        nothing = np.zeros(len(gathered.groups), dtype=np.bool_)
        confirmed = {kind: by_place.get((name, kind), nothing) for kind in KINDS}
        changes = _changes(gathered, confirmed["changed"], partial(labels_of, name), before.get(name))
        concluded[name] = replace(gathered, confirmed=confirmed, changes=changes)
    return concluded


def _changes(
    gathered: GroupingEvidence,
    changed: Flags,
    labels_of: Callable[[Flags], tuple[LabelSequence, Indices]],
    before: GroupingEvidence | None,
) -> dict[int, Change]:
    """When those groups changed of which it is confirmed."""
    watched, base = gathered.watched, gathered.watched.base
    found: dict[int, Change] = {}
    if not changed.any():
        return found
    same = np.zeros(len(changed), dtype=np.bool_)
    if before is not None:
        same = before.continues(watched, gathered.reference)
        same = same & gathered.used.same(before.used) if same.any() else same
    undated = []
    for group in np.flatnonzero(changed).tolist():
        if (dated := base.changes.get(group)) is not None:
            since = gathered.known.now_labels[group] - base.evidence.now_labels[group]
            told = Change(
                dated.at, dated.earliest, dated.latest, dated.predicted_at, dated.labels + int(since)
            )
            found[group] = told
        elif before is not None and same[group] and group in before.changes:
            found[group] = before.changes[group]
        else:
            undated.append(group)
    if undated:
        which = np.zeros(len(changed), dtype=np.bool_)
        which[undated] = True
        labels, groups = _in_order(*labels_of(which), watched)
        for group in undated:
            found[group] = _dated(gathered, group, labels.part(groups == group))
    return dict(sorted(found.items()))


def _dated(gathered: GroupingEvidence, group: int, labels: LabelSequence) -> Change:
    """When a group changed, by its labels behind the checkpoint, in their order."""
    known, base, window = gathered.known, gathered.watched.base, gathered.reference
    if window is None:
        now = (
            np.arange(len(labels.places))
            >= known.reference_labels[group] - base.evidence.reference_labels[group]
        )
    else:
        now = labels.predicted_at >= window.until
    labels = labels.part(now)
    if not len(labels.places):
        at = requested_at(base.place)
        return Change(at, at, at, at, 0)
    # How accurate the group was in the reference; never 0 or 1 (Jeffreys).
    rate = (known.reference_correct[group] + 0.5) / (known.reference_labels[group] + 1)
    point = change_point(labels.correct, float(rate), _CHANGE_MASS)
    at, earliest, latest = (
        requested_at(int(labels.places[place])) for place in (point.after, point.earliest, point.latest)
    )
    return Change(
        at=at,
        earliest=earliest,
        latest=latest,
        predicted_at=float(labels.predicted_at[point.after]),
        labels=len(labels.correct) - point.after,
    )


def _threshold(kind: GroupingKind, settings: ModelSettings) -> float | None:
    least = settings.alerts.min_accuracy
    # Nothing is less accurate than 0, and a single error tells that 1 is not reached.
    return least if least is not None and 0 < least < 1 and kind not in EXPECTED_TO_DIFFER else None


def _tallies(groups: Indices, marks: UInt64s, count: int) -> SumTallies:
    """How many labels there are of every group, and which [G]."""
    found = SumTallies(count)
    found.add(groups, marks)
    return found


def _seen_before(groups: Indices, marks: UInt64s, before: GroupingEvidence | None) -> Flags:
    """Which labels, group by group, are known: the first ones of a group, if all of them are left [n]."""
    if before is None:
        return np.zeros(len(groups), dtype=np.bool_)
    known = before.used
    lengths = np.bincount(groups, minlength=len(known.counts))
    rank = np.arange(len(groups)) - (np.cumsum(lengths) - lengths)[groups]
    first = rank < known.counts[groups]
    left = _tallies(groups[first], marks[first], len(known.counts))
    found: Flags = first & left.same(known)[groups]
    return found
