"""Evidence about the groups of a model by e-processes, valid under continuous monitoring (pure).

Only labels count here that are a random sample within a grouping's groups, whatever the policy: those that
its own assessments asked for, and unrequested ones of an even sample of all traffic. They count in the order
of their requests, and once all earlier requests for the group have ended. A label never loses weight with
age; what labels said that were trimmed from the stream is continued from a checkpoint. Where labels may be
wrong, the first label of an item counts, and as many wrong ones are allowed for as is stated or learned
(`label_errors`). Items without a label count against the evidence, if any true class is allowed for
(`unanswered_requests`): whatever is said of a group would hold with their labels, too.

What is promised is per model, over all groupings, groups and kinds of evidence: while nothing is wrong, the
probability that anything is ever confirmed is `evidence.alpha` at the most; of what is confirmed at one
time, a share of `evidence.alpha` is false on average, at the most. Each group gets its share of alpha when
it arrives, by the order of arrival (`log_arrival_weights`), and the kinds of evidence share it evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Flags, Floats, Indices, UInt64s
from service.domain.request_order import Places, requested_at
from service.monitoring.certificate import Certificate
from service.monitoring.evidence_base import KINDS, EvidenceKind, WatchedGroups, log_shares
from service.monitoring.outcome_aggregates import SumTallies
from service.monitoring.outcome_table import LabelSequence
from service.monitoring.reference_labels import ranks, split_labels
from service.statistics.e_detector import change_point
from service.statistics.e_processes import discoveries
from service.statistics.grouped_e_processes import GroupedLabels, GroupEvidence, assess_evidence
from service.statistics.label_errors import WrongLabels
from service.store.checkpoints import DatedChange
from service.store.references import ReferenceWindow

LabelsOf = Callable[[Flags], tuple[LabelSequence, Indices]]
"""Labels that a grouping asked for in some of its groups [G], and the group of each [n]."""

_BASELINES: Final = 0.5
"""Of the share of `changed`, what pays for baselines that are above the accuracy of their reference."""

_CHANGE_MASS = 0.9  # probability inside the interval of a change's time


@dataclass(frozen=True)
class GroupingEvidence:
    """What labels say against the groups of one grouping; arrays are [G]."""

    watched: WatchedGroups
    state: GroupEvidence  # from all labels that count
    # what is taken for true, by weighted e-BH over all groups and kinds of the model
    confirmed: Mapping[EvidenceKind, Flags]
    changes: Mapping[int, DatedChange]  # those that are confirmed, by group
    wrong_labels: WrongLabels  # that it allows for
    labels: SumTallies  # how many labels of each group there are, and which
    used: SumTallies  # those that count now and are not of the checkpoint
    last: Places  # the highest place among the requests of these
    waiting: Indices  # labels that may be of the reference, but wait for earlier requests to end
    reference: ReferenceWindow | None
    certificate: Certificate | None = None  # None without a threshold

    @property
    def groups(self) -> list[str]:
        """Names of the groups."""
        return self.watched.names

    @property
    def log_e(self) -> Mapping[EvidenceKind, Floats]:
        """Logarithm of the e-value of every kind; NaN where there is none."""
        return {
            "below_threshold": self.state.below,
            "declined": self.state.declined,
            "miscalibrated": self.state.miscalibrated,
            "changed": self.state.changed,
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

    def continues(
        self, watched: WatchedGroups, reference: ReferenceWindow | None, wrong_labels: WrongLabels
    ) -> Flags:
        """Of which groups further labels add to what is known, so that nothing is computed again."""
        now = self.watched
        before = self.reference, self.wrong_labels, now.names, now.base_position
        same = before == (reference, wrong_labels, watched.names, watched.base_position)
        return now.numbers == watched.numbers if same else np.zeros(len(watched.names), dtype=np.bool_)

    def unchanged(self, labels: SumTallies, watched: WatchedGroups) -> Flags:
        """Which groups have the same labels, of which the same ones count."""
        is_waiting = self.labels.counts != self.used.counts
        none_waits = ~is_waiting & (watched.ended > self.last)
        found: Flags = labels.same(self.labels) & (none_waits | (self.watched.ended == watched.ended))
        return found


def collected_evidence(
    watched: WatchedGroups,
    labels_of: LabelsOf,
    tallies: SumTallies,
    *,
    settings: ModelSettings,
    wrong_labels: WrongLabels,
    reference: ReferenceWindow | None,
    before: GroupingEvidence | None,
) -> GroupingEvidence:
    """Evidence about the groups of one grouping; nothing is confirmed yet.

    With a window, the reference is what was predicted in it, and evidence begins with what was predicted
    after it. Without one it is the first labels of every group that were requested while it was not under
    suspicion; they count for what is asked of the group itself as well.

    Labels are tallied by group [G]. Groups of which nothing has changed since `before` are not looked at.
    """
    alpha, count, base = wrong_labels.left_of(settings.evidence.alpha), len(watched.names), watched.base
    continues = same = np.zeros(count, np.bool_)
    if before is not None and (continues := before.continues(watched, reference, wrong_labels)).any():
        same = continues & before.unchanged(tallies, watched)
    else:
        before = None
    found, of_groups = labels_of(~same)
    waits = ~found.suspected & (found.places >= watched.ended[of_groups])
    waiting = np.bincount(of_groups[waits], minlength=count)
    labels, groups = watched.in_order(found, of_groups)
    used, last = _tallies(groups, labels.marks, count), np.zeros(count, dtype=np.uint64)
    np.maximum.at(last, groups, labels.places)
    seen_before = _seen_before(groups, labels.marks, before) & continues[groups]
    if reference is not None:
        kept = labels.predicted_at >= reference.since
        # A reference that is complete by the checkpoint takes no more labels.
        kept &= (labels.predicted_at >= reference.until) | ~base.is_closed[groups]
        labels, groups, seen_before = labels.part(kept), groups[kept], seen_before[kept]
        then = labels.predicted_at < reference.until
        now = counted = ~then
    else:
        left = np.where(base.is_closed, 0.0, settings.reference.labels - base.reference_labels)
        then, now = split_labels(groups, labels.suspected, left)
        counted = np.ones(len(groups), dtype=np.bool_)
    seen = np.bincount(groups[seen_before], minlength=count)
    known = base if before is None else before.state
    if before is not None:
        used.counts[same], used.marks[same] = before.used.counts[same], before.used.marks[same]
        last[same], waiting[same] = before.last[same], before.waiting[same]
    some, numbers = np.flatnonzero(~same), np.cumsum(~same) - 1
    shares = np.exp(log_shares(watched, settings)["changed"])
    known = known.with_part(
        some,
        assess_evidence(
            GroupedLabels(
                numbers[groups],
                labels.scores,
                labels.correct | labels.unanswered,
                labels.unanswered,
                then,
                now,
                counted,
            ),
            seen=seen[some],
            before=known.part(some),
            thresholds=watched.thresholds(settings)[some],
            alpha=alpha,
            baseline_alpha=alpha * shares[some] * _BASELINES,
            fixed=reference is None,
            base=base.part(some),
            wrong_labels=wrong_labels,
        ),
    )
    return GroupingEvidence(watched, known, {}, {}, wrong_labels, tallies, used, last, waiting, reference)


def conclude(
    found: Mapping[str, GroupingEvidence],
    labels_of: Mapping[str, LabelsOf],
    settings: ModelSettings,
    wrong_labels: WrongLabels,
    before: Mapping[str, GroupingEvidence | None],
) -> dict[str, GroupingEvidence]:
    """Evidence by grouping, with what is confirmed over all of them, and with changes dated."""
    evidence, weights, places = [], [], []
    for name, collected in found.items():
        for kind, shares in log_shares(collected.watched, settings).items():
            evidence.append(collected.log_e[kind])
            weights.append(shares + (np.log1p(-_BASELINES) if kind == "changed" else 0.0))
            places.append((name, kind))
    if not places:
        return dict(found)
    alpha = wrong_labels.left_of(settings.evidence.alpha)
    taken = discoveries(np.concatenate(evidence), alpha, np.concatenate(weights))
    parts = np.split(taken, np.cumsum([len(part) for part in evidence])[:-1])
    by_place = dict(zip(places, parts, strict=True))
    concluded = {}
    for name, collected in found.items():
        nothing = np.zeros(len(collected.groups), dtype=np.bool_)
        confirmed = {kind: by_place.get((name, kind), nothing) for kind in KINDS}
        changes = _changes(collected, confirmed["changed"], labels_of[name], before.get(name))
        concluded[name] = replace(collected, confirmed=confirmed, changes=changes)
    return concluded


def _changes(
    collected: GroupingEvidence,
    changed: Flags,
    labels_of: LabelsOf,
    before: GroupingEvidence | None,
) -> dict[int, DatedChange]:
    """When those groups changed of which it is confirmed."""
    watched, base = collected.watched, collected.watched.base
    found: dict[int, DatedChange] = {}
    if not changed.any():
        return found
    same = np.zeros(len(changed), dtype=np.bool_)
    if before is not None:
        same = before.continues(watched, collected.reference, collected.wrong_labels)
        same = same & collected.used.same(before.used) if same.any() else same
    undated = []
    for group in np.flatnonzero(changed).tolist():
        if (dated := watched.base_changes.get(group)) is not None:
            since = (collected.state.answered_now - base.answered_now)[group]
            found[group] = msgspec.structs.replace(dated, labels=dated.labels + int(since))
        elif before is not None and same[group] and group in before.changes:
            found[group] = before.changes[group]
        else:
            undated.append(group)
    if undated:
        which = np.zeros(len(changed), dtype=np.bool_)
        which[undated] = True
        labels, groups = watched.in_order(*labels_of(which))
        for group in undated:
            found[group] = _dated(collected, group, labels.part(groups == group))
    return dict(sorted(found.items()))


def _dated(collected: GroupingEvidence, group: int, labels: LabelSequence) -> DatedChange:
    """When a group changed, by its labels behind the checkpoint, in their order."""
    known, base, window = collected.state, collected.watched.base, collected.reference
    if window is None:
        left = known.reference_labels[[group]] - base.reference_labels[[group]]
        now = split_labels(np.zeros(len(labels.places), np.intp), labels.suspected, left).now
    else:
        now = labels.predicted_at >= window.until
    labels = labels.part(now & ~labels.unanswered)
    if not len(labels.places):
        at = requested_at(collected.watched.base_position)
        return DatedChange(at, at, at, at, 0)
    # How accurate the group was in the reference; never 0 or 1 (Jeffreys).
    rate = (known.reference_correct[group] + 0.5) / (known.reference_labels[group] + 1)
    point = change_point(labels.correct, float(rate), _CHANGE_MASS)
    at, earliest, latest = (labels.time_of(place) for place in (point.after, point.earliest, point.latest))
    return DatedChange(
        at=at,
        earliest=earliest,
        latest=latest,
        predicted_at=float(labels.predicted_at[point.after]),
        labels=len(labels.correct) - point.after,
    )


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
    first = ranks(groups, len(known.counts)) < known.counts[groups]
    left = _tallies(groups[first], marks[first], len(known.counts))
    found: Flags = first & left.same(known)[groups]
    return found
