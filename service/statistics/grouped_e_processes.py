"""E-processes of many groups at once, updated as labels arrive at little cost per label.

Labels are sorted by group, and in each group by the order of their requests. Some are of a reference, the
others of "now". A group's e-values are recomputed only where it has got labels, or has lost some. They can
also be continued from a checkpoint: evidence from labels that are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.baselines import baselines, thresholds_of_baselines
from service.statistics.e_detector import advance_bets, log_wealth_of_bets, no_bets
from service.statistics.e_processes import (
    confidence_sequence,
    log_e_below,
    log_e_declined,
    log_e_miscalibrated,
    log_gains,
)
from service.statistics.label_errors import NEVER_WRONG, WrongLabels

# derived from sums of a group with labels, and NaN of others
_CONCLUDED: Final = ("below", "declined", "miscalibrated", "lower", "upper", "changed")
STATE: Final = (
    *("labels", "correct", "unanswered"),
    *("reference_labels", "reference_correct", "reference_unanswered", "now_labels", "now_correct"),
    *("baseline", "held_to", "gains", "bets", "met", "met_target"),
)  # columns of a checkpoint, from which evidence is continued when its labels are gone
_AT_ONCE: Final = 1 << 16  # labels per portion; the last group may exceed it


class Tally(NamedTuple):
    """Labels by group [G], and the correct ones of them.

    Those that count for the group itself, those of the reference, and those of "now". Some may be of neither.
    Unanswered requests count as labels: as correct ones, but in the reference as wrong ones.
    """

    labels: Floats
    correct: Floats
    unanswered: Floats  # of the labels that count for the group itself
    reference_labels: Floats
    reference_correct: Floats
    reference_unanswered: Floats
    now_labels: Floats
    now_correct: Floats

    def part(self, which: Flags) -> Tally:
        """Of some groups."""
        return Tally(*(column[which] for column in self))


@dataclass(frozen=True)
class GroupedLabels:
    """Labels group by group, as columns [n]."""

    groups: Indices  # of each, ascending
    scores: Floats  # of the predicted class
    correct: Flags  # whether it is the true class, or there is no label
    unanswered: Flags  # whether there is no label
    in_reference: Flags  # whether it is in the reference
    is_compared: Flags  # whether it is compared with the reference
    is_counted: Flags  # whether it counts for the group itself, whatever the reference

    def part(self, which: Flags | slice) -> GroupedLabels:
        """Some of them."""
        return GroupedLabels(**{name: column[which] for name, column in vars(self).items()})

    def portions(self) -> Iterator[GroupedLabels]:
        """All of them in portions of whole groups, which bound the memory of intermediate arrays."""
        begin = 0
        while begin < len(self.groups):
            last = self.groups[min(begin + _AT_ONCE, len(self.groups)) - 1]
            end = int(np.searchsorted(self.groups, last, "right"))
            yield self.part(slice(begin, end))
            begin = end

    def tally(self, group_count: int) -> Tally:
        """Their numbers by group."""
        times = np.where(self.is_compared, 0, 2 - self.in_reference)  # now, reference, or neither
        sorts = 12 * self.groups + 4 * times + 2 * self.is_counted + self.correct
        found = np.bincount(sorts, minlength=12 * group_count).reshape(-1, 3, 2, 2).astype(np.float64)
        by_time, by_count = found.sum(axis=2), found.sum(axis=1)
        own, reference = (
            np.bincount(self.groups[self.unanswered & which], minlength=group_count)
            for which in (self.is_counted, self.in_reference & ~self.is_compared)
        )
        return Tally(
            labels=by_count[:, 1].sum(axis=1),
            correct=by_count[:, 1, 1],
            unanswered=own.astype(np.float64),
            reference_labels=by_time[:, 1].sum(axis=1),
            reference_correct=by_time[:, 1, 1] - reference,
            reference_unanswered=reference.astype(np.float64),
            now_labels=by_time[:, 0].sum(axis=1),
            now_correct=by_time[:, 0, 1],
        )


@dataclass(frozen=True)
class GroupEvidence:
    """Log e-values against every group, with the sums that they derive from; NaN where undefined [G].

    The first columns are those of `Tally`.
    """

    labels: Floats
    correct: Floats
    unanswered: Floats
    reference_labels: Floats
    reference_correct: Floats
    reference_unanswered: Floats
    now_labels: Floats
    now_correct: Floats
    below: Floats  # against "the accuracy is the threshold or more"
    declined: Floats  # against "the accuracy is that of the reference, or more"
    miscalibrated: Floats  # against "scores are calibrated probabilities"
    changed: Floats  # against "the accuracy was the baseline or more at every label of now"
    lower: Floats  # end of the accuracy's confidence sequence
    upper: Floats  # likewise
    baseline: Floats  # lower bound of the reference's accuracy; the threshold, if reached and higher
    held_to: Floats  # that threshold; 0 without one
    gains: Floats  # log gains of all bets against the scores [G, K], from `log_gains`
    bets: Floats  # log wealth of all bets on declines [G, K], from `advance_bets`
    met: Floats  # against "the accuracy misses the threshold", from `CertificateTest`
    met_target: Floats  # the target of that test

    @classmethod
    def none(cls, group_count: int) -> Self:
        """Of groups without a label."""
        no, unknown = np.zeros(group_count), np.full(group_count, np.nan)
        nothing = np.zeros(0)
        gains = log_gains(nothing, nothing.astype(np.bool_), nothing.astype(np.intp), group_count)
        return cls(*(no,) * 8, *(unknown,) * 8, gains, no_bets(group_count), no, unknown)

    def part(self, which: Indices) -> GroupEvidence:
        """Of some groups."""
        return GroupEvidence(**{name: column[which] for name, column in vars(self).items()})

    def with_part(self, which: Indices, found: GroupEvidence) -> GroupEvidence:
        """With some groups replaced."""
        columns = {name: column.copy() for name, column in vars(self).items()}
        for name, column in vars(found).items():
            columns[name][which] = column
        return GroupEvidence(**columns)

    @property
    def answered_now(self) -> Floats:
        """Labels that were compared with a complete reference, up to the same number [G]."""
        return self.now_labels - (self.unanswered - self.reference_unanswered)

    @property
    def is_closed(self) -> Flags:
        """Whether the reference is complete, as labels have been compared with it [G]."""
        return (self.now_labels > 0) & ~np.isnan(self.baseline)


def assess_evidence(
    labels: GroupedLabels,
    *,
    seen: Indices,
    before: GroupEvidence,
    thresholds: Floats,
    alpha: float,
    baseline_alpha: Floats,
    fixed: bool,
    base: GroupEvidence,
    wrong_labels: WrongLabels = NEVER_WRONG,
) -> GroupEvidence:
    """Evidence against every group, from labels that are newer than the checkpoint.

    Args:
        labels: all of these.
        seen: how many of the first labels of every group `before` includes [G]; 0 where some of these are
            gone, or were corrected.
        before: evidence from these.
        thresholds: required accuracy of every group; NaN without one [G].
        alpha: error probability of a group's confidence sequence.
        baseline_alpha: probability that a baseline exceeds the accuracy of its reference [G].
        fixed: whether the number of a reference's labels was fixed in advance, and those of "now" are later.
        base: the checkpoint, or `none`; a reference that is complete there keeps its baseline, unless it was
            held to another threshold. Bets on a decline then begin again.
        wrong_labels: share of labels that may be wrong, for which evidence and the confidence sequence allow.
            If there are any, there is no evidence against calibration.
    """
    count = len(seen)
    first = np.searchsorted(labels.groups, np.arange(count))
    lengths = np.diff(first, append=len(labels.groups))
    changed = lengths != seen
    restarted = seen == 0
    tally = Tally(*(getattr(base, name) + more for name, more in labels.tally(count)._asdict().items()))
    columns = {name: column.copy() for name, column in vars(before).items()} | tally._asdict()

    rank = np.arange(len(labels.groups)) - first[labels.groups]
    fresh = labels.part(labels.is_counted & (rank >= seen[labels.groups]))
    columns["gains"][restarted] = base.gains[restarted]
    for some in fresh.portions():
        columns["gains"] += log_gains(some.scores, some.correct, some.groups, count, some.unanswered)

    held_to = columns["held_to"] = thresholds_of_baselines(thresholds, wrong_labels)
    # Checkpoints of earlier versions do not say which threshold it was.
    is_kept = base.is_closed & (np.isnan(base.held_to) | (base.held_to == held_to))
    moved = (restarted & ~is_kept) | (tally.reference_labels != before.reference_labels)
    moved |= tally.reference_correct != before.reference_correct
    columns["baseline"][moved] = baselines(
        tally.reference_correct[moved],
        (tally.reference_labels - tally.reference_correct)[moved],
        alpha=baseline_alpha[moved],
        fixed=fixed,
        threshold=held_to[moved],
    )
    columns["baseline"][is_kept] = base.baseline[is_kept]
    again = moved | restarted
    columns["bets"][again] = np.where((base.is_closed & ~is_kept)[:, None], no_bets(count), base.bets)[again]
    followed = labels.is_compared & (again[labels.groups] | (rank >= seen[labels.groups]))
    followed &= ~np.isnan(columns["baseline"])[labels.groups]
    placed = np.where(again, base.now_labels, before.now_labels).astype(np.intp)
    for some in labels.part(followed).portions():
        columns["bets"] = advance_bets(
            columns["bets"], some.correct, some.groups, columns["baseline"], placed
        )

    for name in _CONCLUDED:
        columns[name][restarted] = np.nan
    some = (changed | restarted) & (tally.labels + tally.reference_labels > 0)
    _conclude(columns, tally, some, thresholds=thresholds, alpha=alpha, wrong_labels=wrong_labels)
    return GroupEvidence(**columns)


def _conclude(
    columns: dict[str, Floats],
    tally: Tally,
    which: Flags,
    *,
    thresholds: Floats,
    alpha: float,
    wrong_labels: WrongLabels,
) -> None:
    """E-values and bounds from the sums of some groups."""
    some = tally.part(which)
    correct, wrong = some.correct, some.labels - some.correct
    labelled, compared = some.labels > 0, (some.now_labels > 0) & (some.reference_labels > 0)
    # With the unanswered ones incorrect for the lower end, and correct for the upper one.
    lowers, uppers = confidence_sequence(
        np.stack((correct - some.unanswered, correct)),
        np.stack((wrong + some.unanswered, wrong)),
        1 - alpha,
    )
    # Of an accuracy a, labels agree with a (1 - d) to a + (1 - a) e of the predictions if a share d of those
    # about correct predictions is wrong, and a share e of the others.
    shares, share = wrong_labels.of_correct, wrong_labels.of_incorrect
    least = (lowers[0] - share) / (1 - share) if share < 1 else np.zeros(len(correct))
    most = uppers[1] / (1 - shares[-1]) if shares else np.ones(len(correct))
    columns["lower"][which] = np.where(labelled, np.maximum(least, 0.0), np.nan)
    columns["upper"][which] = np.where(labelled, np.minimum(most, 1.0), np.nan)
    is_scored = labelled & (wrong_labels == NEVER_WRONG)
    columns["miscalibrated"][which] = np.where(
        is_scored, log_e_miscalibrated(columns["gains"][which]), np.nan
    )
    tested = labelled & ~np.isnan(thresholds[which])
    if tested.any() and shares:
        # One row for every share of wrong labels: evidence holds for each of them.
        agreeing = thresholds[which][tested] * (1 - np.array(shares)[:, None])
        columns["below"][np.flatnonzero(which)[tested]] = log_e_below(
            correct[tested], wrong[tested], agreeing
        ).min(axis=0)
    declined = log_e_declined(
        some.now_correct,
        some.now_labels - some.now_correct,
        some.reference_correct,
        some.reference_labels - some.reference_correct,
    )
    columns["declined"][which] = np.where(compared, declined, np.nan)
    wealth = log_wealth_of_bets(columns["bets"][which], some.now_labels)
    columns["changed"][which] = np.where(compared, wealth, np.nan)
