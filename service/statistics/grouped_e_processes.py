"""Evidence about many groups at once, kept current as labels come: what each further label adds is little.

Labels are sorted by group, and in each group by the order of their requests. Some are of a reference, the
others of "now". What is known of a group is recomputed only where it has got labels, or has lost some. It
can also be continued from a checkpoint: evidence from labels that are not there any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.decline import log_e_declined
from service.statistics.e_detector import advance_bets, log_wealth_of_bets, no_bets
from service.statistics.e_processes import confidence_sequence, log_e_below
from service.statistics.miscalibration import log_gains, log_wealth

_CONCLUDED: Final = ("below", "declined", "miscalibrated", "lower", "upper", "changed")
"""What follows from sums of a group that has labels, and is not known of others."""

STATE: Final = (
    *("labels", "correct", "reference_labels", "reference_correct", "now_labels", "now_correct"),
    *("baseline", "gains", "bets"),
)
"""What evidence is continued from when the labels that it was made from are gone."""

_AT_ONCE: Final = 1 << 16
"""Labels, of which the last group may add some."""

_NEAR_END: Final = 1e-6
"""A reference's bound nearer to 0 or 1 is taken for this."""


class Tally(NamedTuple):
    """Labels of every group [G], and those of them that say that predictions are right.

    Those that count for the group itself, those of the reference, and those of "now".
    """

    labels: Floats
    correct: Floats
    reference_labels: Floats
    reference_correct: Floats
    now_labels: Floats
    now_correct: Floats

    def part(self, which: Flags) -> Tally:
        """Of some groups."""
        return Tally(*(column[which] for column in self))


@dataclass(frozen=True)
class GroupedLabels:
    """Labels group by group, as columns [n].

    Attributes:
        groups: of each, ascending.
        scores: of the predicted class.
        correct: whether that is the true one.
        then: whether it is of the reference.
        counted: whether it counts for what is asked of the group itself, whatever the reference.
    """

    groups: Indices
    scores: Floats
    correct: Flags
    then: Flags
    counted: Flags

    def part(self, which: Flags | slice) -> GroupedLabels:
        """Some of them."""
        return GroupedLabels(
            self.groups[which],
            self.scores[which],
            self.correct[which],
            self.then[which],
            self.counted[which],
        )

    def portions(self) -> Iterator[GroupedLabels]:
        """All of them, whole groups at a time and not very many at once, as much is computed of each."""
        begin = 0
        while begin < len(self.groups):
            last = self.groups[min(begin + _AT_ONCE, len(self.groups)) - 1]
            end = int(np.searchsorted(self.groups, last, "right"))
            yield self.part(slice(begin, end))
            begin = end

    def tally(self, group_count: int) -> Tally:
        """How many there are of each sort."""
        sorts = 8 * self.groups + 4 * self.then + 2 * self.counted + self.correct
        found = np.bincount(sorts, minlength=8 * group_count).reshape(-1, 2, 2, 2).astype(np.float64)
        by_time, by_count = found.sum(axis=2), found.sum(axis=1)
        return Tally(
            labels=by_count[:, 1].sum(axis=1),
            correct=by_count[:, 1, 1],
            reference_labels=by_time[:, 1].sum(axis=1),
            reference_correct=by_time[:, 1, 1],
            now_labels=by_time[:, 0].sum(axis=1),
            now_correct=by_time[:, 0, 1],
        )


@dataclass(frozen=True)
class GroupEvidence:
    """What labels say against every group; logarithms are natural, and NaN where nothing is known [G].

    Attributes:
        labels: that count for what is asked of the group itself.
        correct: of these, those that say so.
        reference_labels: of the reference.
        reference_correct: of these, those that say so.
        now_labels: those that are compared with the reference.
        now_correct: of these, those that say so.
        below: against "the accuracy is the threshold or more".
        declined: against "the accuracy is that of the reference, or more".
        miscalibrated: against "scores are right as probabilities".
        changed: against "the accuracy has been the baseline or more at every label of now".
        lower: bound of the accuracy that holds at all times at once.
        upper: likewise.
        baseline: of accuracy, from which a change is looked for: a lower bound of the reference's, or the
            threshold, if that is higher and was reached in the reference.
        gains: of all bets against the scores [G, K], as `log_gains` returns them.
        bets: of all bets on declines [G, K], as `advance_bets` returns them.
    """

    labels: Floats
    correct: Floats
    reference_labels: Floats
    reference_correct: Floats
    now_labels: Floats
    now_correct: Floats
    below: Floats
    declined: Floats
    miscalibrated: Floats
    changed: Floats
    lower: Floats
    upper: Floats
    baseline: Floats
    gains: Floats
    bets: Floats

    @classmethod
    def none(cls, group_count: int) -> Self:
        """Of groups without a label."""
        no, unknown = np.zeros(group_count), np.full(group_count, np.nan)
        nothing = np.zeros(0)
        gains = log_gains(nothing, nothing.astype(np.bool_), nothing.astype(np.intp), group_count)
        return cls(*(no,) * 6, *(unknown,) * 7, gains, no_bets(group_count))

    def part(self, which: Indices) -> GroupEvidence:
        """Of some groups."""
        return GroupEvidence(**{name: column[which] for name, column in vars(self).items()})

    def with_part(self, which: Indices, found: GroupEvidence) -> GroupEvidence:
        """With what was found of some groups."""
        columns = {name: column.copy() for name, column in vars(self).items()}
        for name, column in vars(found).items():
            columns[name][which] = column
        return GroupEvidence(**columns)

    @property
    def is_closed(self) -> Flags:
        """Whether the reference is complete, as labels have been compared with it [G]."""
        return (self.now_labels > 0) & ~np.isnan(self.baseline)


def assess_evidence(
    labels: GroupedLabels,
    *,
    seen: Indices,
    before: GroupEvidence,
    threshold: float | None,
    alpha: float,
    baseline_alpha: Floats,
    fixed: bool,
    base: GroupEvidence | None = None,
) -> GroupEvidence:
    """What labels say against every group.

    Args:
        labels: all of them that are behind the checkpoint, if there is one.
        seen: how many of the first labels of every group `before` knows [G]; 0 of a group of which some are
            gone, or say something else.
        before: what was known by these.
        threshold: that accuracy has to reach; None without one.
        alpha: probability with which the bounds of a group's accuracy fail.
        baseline_alpha: probability with which each baseline is above the accuracy of its reference [G].
        fixed: whether it was fixed before how many labels the reference of a group has, and those of "now"
            are later ones.
        base: the checkpoint: what is known by labels that are not among these. A reference that is complete
            there keeps its baseline.
    """
    count = len(seen)
    if base is None:
        base = GroupEvidence.none(count)
    first = np.searchsorted(labels.groups, np.arange(count))
    lengths = np.diff(first, append=len(labels.groups))
    changed = lengths != seen
    anew = seen == 0
    tally = Tally(*(getattr(base, name) + more for name, more in labels.tally(count)._asdict().items()))
    columns = {name: column.copy() for name, column in vars(before).items()} | tally._asdict()

    rank = np.arange(len(labels.groups)) - first[labels.groups]
    fresh = labels.part(labels.counted & (rank >= seen[labels.groups]))
    columns["gains"][anew] = base.gains[anew]
    for some in fresh.portions():
        columns["gains"] += log_gains(some.scores, some.correct, some.groups, count)

    moved = (anew & ~base.is_closed) | (tally.reference_labels != before.reference_labels)
    moved |= tally.reference_correct != before.reference_correct
    columns["baseline"][moved] = baselines(
        tally.reference_correct[moved],
        (tally.reference_labels - tally.reference_correct)[moved],
        alpha=baseline_alpha[moved],
        fixed=fixed,
        threshold=threshold,
    )
    columns["baseline"][base.is_closed] = base.baseline[base.is_closed]
    again = moved | anew
    columns["bets"][again] = base.bets[again]
    followed = ~labels.then & (again[labels.groups] | (rank >= seen[labels.groups]))
    followed &= ~np.isnan(columns["baseline"])[labels.groups]
    placed = np.where(again, base.now_labels, before.now_labels).astype(np.intp)
    for some in labels.part(followed).portions():
        columns["bets"] = advance_bets(
            columns["bets"], some.correct, some.groups, columns["baseline"], placed
        )

    for name in _CONCLUDED:
        columns[name][anew] = np.nan
    _conclude(
        columns, tally, (changed | anew) & (tally.labels + tally.reference_labels > 0), threshold, alpha
    )
    return GroupEvidence(**columns)


def _conclude(
    columns: dict[str, Floats], tally: Tally, which: Flags, threshold: float | None, alpha: float
) -> None:
    """What follows from sums, of some groups."""
    some = tally.part(which)
    correct, wrong = some.correct, some.labels - some.correct
    labelled, compared = some.labels > 0, (some.now_labels > 0) & (some.reference_labels > 0)
    lower, upper = confidence_sequence(correct, wrong, 1 - alpha)
    columns["lower"][which] = np.where(labelled, lower, np.nan)
    columns["upper"][which] = np.where(labelled, upper, np.nan)
    columns["miscalibrated"][which] = np.where(labelled, log_wealth(columns["gains"][which]), np.nan)
    if threshold is not None:
        below = log_e_below(correct, wrong, np.full(len(correct), threshold))
        columns["below"][which] = np.where(labelled, below, np.nan)
    declined = log_e_declined(
        some.now_correct,
        some.now_labels - some.now_correct,
        some.reference_correct,
        some.reference_labels - some.reference_correct,
    )
    columns["declined"][which] = np.where(compared, declined, np.nan)
    wealth = log_wealth_of_bets(columns["bets"][which], some.now_labels)
    columns["changed"][which] = np.where(compared, wealth, np.nan)


def baselines(
    correct: Floats, wrong: Floats, *, alpha: Floats, fixed: bool, threshold: float | None
) -> Floats:
    """Accuracies that groups had in the reference, or more; NaN of those without a label in it.

    Of a number of labels that was fixed before, by Clopper and Pearson (1934); else by a confidence sequence.
    A group that reached the threshold there is held to it as well: what is not as accurate as it is less
    accurate than one of both. Counts are [G], and each bound fails with the probability in `alpha` [G].
    """
    if fixed:
        lower = np.where(correct > 0, special.betaincinv(np.maximum(correct, 1), wrong + 1, alpha), 0.0)
    else:
        lower, _ = confidence_sequence(correct, wrong, 1 - alpha)
    if threshold is not None:
        lower = np.where(correct >= threshold * (correct + wrong), np.maximum(lower, threshold), lower)
    return np.where(correct + wrong > 0, np.clip(lower, _NEAR_END, 1 - _NEAR_END), np.nan)
