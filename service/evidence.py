"""Facts -> evidence about the groups of a grouping, which may be looked at any time (pure).

Only labels that a grouping's own assessments asked for say something here: within its groups they are a
random sample, whatever the policy, which evidence needs. They count in the order in which their outcomes
came. A label never loses weight with age.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from service.assessment.change import change_point
from service.assessment.group_evidence import GroupedLabels, GroupEvidence, assess_evidence
from service.assessment.sequential import discoveries
from service.cells import CellSpace, GroupingKind
from service.ledger import LabelSequence, OutcomeLedger
from service.model_settings import ModelSettings
from service.outcome_sums import Marks, SumTallies
from service.present import present_groups
from service.store.facts import TrafficFacts
from service.store.references import ReferenceWindow

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

EvidenceKind = Literal["below_threshold", "declined", "miscalibrated"]
"""What evidence tells of a group."""

KINDS: tuple[EvidenceKind, ...] = ("below_threshold", "declined", "miscalibrated")

EXPECTED_TO_DIFFER = frozenset({"score_bin", "positive_score", "votes", "challenge"})
"""Kinds of groupings whose groups are accurate as their scores or votes are: a threshold is none for them."""

OTHERS_SAY = frozenset({"votes", "challenge"})
"""Kinds by what other classifiers say: where these differ the model is right less often than its scores tell,
and a change may be theirs."""

_CHANGE_MASS = 0.9
"""Probability inside the interval of a change's time."""


@dataclass(frozen=True)
class Change:
    """When a group became less accurate than its reference, or than a threshold that it reached there.

    Attributes:
        at: when the first label after it was given, seconds since the epoch.
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
class GroupingEvidence:
    """What labels say against the groups of one grouping; arrays are [G].

    Attributes:
        groups: their names.
        known: evidence as logarithms, and bounds.
        log_e: logarithm of the e-value of every kind; NaN where there is none.
        confirmed: whether it is taken for true, by e-BH over all groups.
        log_change: logarithm of the e-detector over the run length, an alarm from 0 on; NaN where there
            is none.
        changes: those that alarm, by group.
        alpha: the expected share of false ones among those confirmed.
        run_length: labels until the detector's first false alarm, on average, or more.
        labels: how many labels of each group this was made from, and which.
        reference: the window that was set, if any.
    """

    groups: list[str]
    known: GroupEvidence
    log_e: Mapping[EvidenceKind, Floats]
    confirmed: Mapping[EvidenceKind, Flags]
    log_change: Floats
    changes: Mapping[int, Change]
    alpha: float
    run_length: float
    labels: SumTallies
    reference: ReferenceWindow | None

    @property
    def changed(self) -> Flags:
        """Whether the detector alarms."""
        found = np.zeros(len(self.groups), dtype=np.bool_)
        found[list(self.changes)] = True
        return found

    @property
    def alarming(self) -> Flags:
        """Whether anything is confirmed, or has changed."""
        found: Flags = np.logical_or.reduce([*self.confirmed.values(), self.changed])
        return found


def model_evidence(
    *,
    settings: ModelSettings,
    space: CellSpace,
    traffic: TrafficFacts,
    ledger: OutcomeLedger,
    reference: ReferenceWindow | None,
    before: Mapping[str, GroupingEvidence | None],
) -> dict[str, GroupingEvidence]:
    """Evidence about every grouping that has traffic and asked for labels.

    Args:
        settings: of the model.
        space: its cells.
        traffic: its traffic, which tells what groups there are.
        ledger: its outcomes, placed in cells.
        reference: the window that "now" is compared with, if one was set.
        before: what was known last time, by grouping, so that only what has changed is computed.
    """
    found: dict[str, GroupingEvidence] = {}
    asked = {grouping for source in ledger.sources for grouping in source.groupings} & set(space.groupings)
    for name in sorted(name for name in asked if space.groupings[name].kind not in OTHERS_SAY):
        groups, known = present_groups(space, name, traffic), before.get(name)
        count = len(groups.names)
        tallies = ledger.tallied(name, np.where(groups.there, groups.cells, count), count)
        if not tallies.counts.any():
            continue
        same = np.zeros(count, dtype=np.bool_)
        if known is not None and _goes_on(known, groups.names, reference):
            same = tallies.same(known.labels)
        labels = ledger.asked_by(name, groups.there & ~same[groups.cells])
        found[name] = grouping_evidence(
            groups.names,
            space.groupings[name].kind,
            labels,
            groups.cells[labels.cells],
            settings=settings,
            reference=reference,
            before=known,
            same=same,
        )
    return found


def _goes_on(known: GroupingEvidence, names: list[str], reference: ReferenceWindow | None) -> bool:
    """Whether further labels add to what is known, and do not make it anew."""
    # How sure a reference's bound has to be depends on how many groups there are.
    return known.reference == reference and known.groups == names


def grouping_evidence(
    names: list[str],
    kind: GroupingKind,
    labels: LabelSequence,
    groups: Indices,
    *,
    settings: ModelSettings,
    reference: ReferenceWindow | None,
    before: GroupingEvidence | None,
    same: Flags | None = None,
) -> GroupingEvidence:
    """Evidence about the groups of one grouping.

    With a window, the reference is what was predicted in it, and evidence begins anew with what was predicted
    after it. Without one it is the first labels of every group, which count for what is asked of the group
    itself as well.

    Args:
        names: of the groups [G].
        kind: what the grouping is by.
        labels: that the grouping asked for, in the order in which they came [n].
        groups: of every label [n].
        settings: of the model.
        reference: the window that was set, if any.
        before: what was known last time, if anything was.
        same: groups whose labels are still those that it was made from, so that they are left out here [G].
    """
    alpha, run_length = settings.evidence.alpha, settings.evidence.run_length
    count = len(names)
    # Of 16 bits, which are sorted faster.
    order = np.argsort(groups.astype(np.uint16) if count <= 1 << 16 else groups, kind="stable")
    labels, groups = labels.part(order), groups[order]
    if before is not None and not _goes_on(before, names, reference):
        before = None
    told = _told_before(groups, labels.marks, before)
    tallies = _tallies(groups, labels.marks, count)
    if reference is not None:
        kept = labels.predicted_at >= reference.since
        labels, groups, told = labels.part(kept), groups[kept], told[kept]
    lengths, seen = np.bincount(groups, minlength=count), np.bincount(groups[told], minlength=count)
    begins = np.cumsum(lengths) - lengths
    if reference is None:
        rank = np.arange(len(groups)) - begins[groups]
        then, counted = rank < settings.reference.labels, np.ones(len(groups), dtype=np.bool_)
    else:
        then = labels.predicted_at < reference.until
        counted = ~then
    known = GroupEvidence.none(count) if before is None else before.known
    here = np.ones(count, dtype=np.bool_)
    if before is not None and same is not None:
        here = ~same
        tallies.counts[same], tallies.marks[same] = before.labels.counts[same], before.labels.marks[same]
    some, numbers = np.flatnonzero(here), np.cumsum(here) - 1
    known = known.with_part(
        some,
        assess_evidence(
            GroupedLabels(numbers[groups], labels.scores, labels.correct, then, counted),
            seen=seen[some],
            before=known.part(some),
            threshold=_threshold(kind, settings),
            alpha=alpha,
            fixed=reference is None,
            together=count,
        ),
    )
    log_e: dict[EvidenceKind, Floats] = {
        "below_threshold": known.below,
        "declined": known.declined,
        "miscalibrated": known.miscalibrated,
    }
    log_change = known.detector - np.log(run_length)
    changes: dict[int, Change] = {}
    for group in np.flatnonzero(log_change >= 0).tolist():
        if before is not None and seen[group] == lengths[group] and group in before.changes:
            changes[group] = before.changes[group]
        else:
            begin = begins[group]
            own = begin + np.flatnonzero(~then[begin : begin + lengths[group]])
            changes[group] = _change(labels.part(own), _rate(known, group))
    return GroupingEvidence(
        groups=names,
        known=known,
        log_e=log_e,
        confirmed={name: discoveries(values, alpha) for name, values in log_e.items()},
        log_change=log_change,
        changes=changes,
        alpha=alpha,
        run_length=run_length,
        labels=tallies,
        reference=reference,
    )


def _threshold(kind: GroupingKind, settings: ModelSettings) -> float | None:
    least = settings.alerts.min_accuracy
    # Nothing is less accurate than 0, and a single error tells that 1 is not reached.
    return least if least is not None and 0 < least < 1 and kind not in EXPECTED_TO_DIFFER else None


def _tallies(groups: Indices, marks: Marks, count: int) -> SumTallies:
    """How many labels there are of every group, and which [G]."""
    found = SumTallies(count)
    found.add(groups, marks)
    return found


def _told_before(groups: Indices, marks: Marks, before: GroupingEvidence | None) -> Flags:
    """Which labels, group by group, are known: the first ones of a group, if all of them are left [n]."""
    if before is None:
        return np.zeros(len(groups), dtype=np.bool_)
    known = before.labels
    lengths = np.bincount(groups, minlength=len(known.counts))
    rank = np.arange(len(groups)) - (np.cumsum(lengths) - lengths)[groups]
    first = rank < known.counts[groups]
    left = _tallies(groups[first], marks[first], len(known.counts))
    told: Flags = first & left.same(known)[groups]
    return told


def _rate(known: GroupEvidence, group: int) -> float:
    """How accurate the group was in the reference; never 0 or 1 (Jeffreys)."""
    return float((known.reference_correct[group] + 0.5) / (known.reference_labels[group] + 1))


def _change(labels: LabelSequence, accuracy: float) -> Change:
    point = change_point(labels.correct, accuracy, _CHANGE_MASS)
    at, earliest, latest = labels.given_at[[point.after, point.earliest, point.latest]].tolist()
    return Change(
        at=at,
        earliest=earliest,
        latest=latest,
        predicted_at=float(labels.predicted_at[point.after]),
        labels=len(labels.correct) - point.after,
    )
