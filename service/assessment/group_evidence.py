"""Evidence about many groups at once, kept current as labels come: what each further label adds is little.

Labels stand group by group, in each in the order in which they came. Some are of a reference, the others of
"now"; what is told of a group is recomputed only where it has got labels, or has lost some.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment.change import advance_detectors, log_detectors, no_detectors
from service.assessment.decline import log_e_declined
from service.assessment.miscalibration import log_gains, log_wealth
from service.assessment.sequential import confidence_sequence, log_e_below

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

_CONCLUDED: Final = ("below", "declined", "miscalibrated", "lower", "upper", "detector")
"""What follows from sums of a group that has labels, and is not known of others."""

_AT_ONCE: Final = 1 << 16
"""Labels, of which the last group may add some."""

_NEAR_END: Final = 1e-6
"""A reference's bound nearer to 0 or 1 is taken for this."""


class Tally(NamedTuple):
    """Labels of every group by sort [G]: those that count, those of the reference, those of now."""

    correct: Floats
    wrong: Floats
    then_correct: Floats
    then_wrong: Floats
    now_correct: Floats
    now_wrong: Floats

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
            correct=by_count[:, 1, 1],
            wrong=by_count[:, 1, 0],
            then_correct=by_time[:, 1, 1],
            then_wrong=by_time[:, 1, 0],
            now_correct=by_time[:, 0, 1],
            now_wrong=by_time[:, 0, 0],
        )


@dataclass(frozen=True)
class GroupEvidence:
    """What labels say against every group; logarithms are natural, and NaN where nothing is known [G].

    Attributes:
        labels: that count for what is asked of the group itself.
        reference_labels: of the reference.
        reference_correct: of these, those that say so.
        below: against "the accuracy is the threshold or more".
        declined: against "the accuracy is that of the reference, or more".
        miscalibrated: against "scores are right as probabilities".
        lower: bound of the accuracy that holds at all times at once.
        upper: likewise.
        baseline: of accuracy, from which the detector tells a decline: a lower bound of the reference's, or
            the threshold, if that is higher and was reached in the reference.
        detector: the e-detector of a decline that began at any label of "now".
        gains: of all bets [G, K], as `log_gains` tells them.
        detectors: of all declines [G, K], as `advance_detectors` tells them.
    """

    labels: Floats
    reference_labels: Floats
    reference_correct: Floats
    below: Floats
    declined: Floats
    miscalibrated: Floats
    lower: Floats
    upper: Floats
    baseline: Floats
    detector: Floats
    gains: Floats
    detectors: Floats

    @classmethod
    def none(cls, group_count: int) -> Self:
        """Of groups without a label."""
        no, unknown = np.zeros(group_count), np.full(group_count, np.nan)
        nothing = np.zeros(0)
        gains = log_gains(nothing, nothing.astype(np.bool_), nothing.astype(np.intp), group_count)
        told = (unknown,) * 7
        return cls(no, no, no, *told, gains, no_detectors(group_count))

    def part(self, which: Indices) -> GroupEvidence:
        """Of some groups."""
        return GroupEvidence(**{name: column[which] for name, column in vars(self).items()})

    def with_part(self, which: Indices, found: GroupEvidence) -> GroupEvidence:
        """With what was found of some groups."""
        told = {name: column.copy() for name, column in vars(self).items()}
        for name, column in vars(found).items():
            told[name][which] = column
        return GroupEvidence(**told)


def assess_evidence(
    labels: GroupedLabels,
    *,
    seen: Indices,
    before: GroupEvidence,
    threshold: float | None,
    alpha: float,
    fixed: bool,
    together: int | None = None,
) -> GroupEvidence:
    """What labels say against every group.

    The detectors' baselines are no higher than the true accuracies of references, or the threshold, with a
    probability of 1 - alpha for all groups together: each bound is wrong with that of alpha / G.

    Args:
        labels: all of them.
        seen: how many of the first labels of every group `before` knows [G]; 0 of a group of which some are
            gone, or say something else.
        before: what was known by these.
        threshold: that accuracy has to reach; None without one.
        alpha: probability with which bounds fail.
        fixed: whether it was fixed before how many labels the reference of a group has, and those of "now"
            are later ones.
        together: how many groups there are, if these are not all.
    """
    count = len(seen)
    first = np.searchsorted(labels.groups, np.arange(count))
    lengths = np.diff(first, append=len(labels.groups))
    changed = lengths != seen
    anew = seen == 0
    tally = labels.tally(count)
    told = {name: column.copy() for name, column in vars(before).items()}
    told["labels"] = tally.correct + tally.wrong
    told["reference_labels"] = tally.then_correct + tally.then_wrong
    told["reference_correct"] = tally.then_correct

    rank = np.arange(len(labels.groups)) - first[labels.groups]
    fresh = labels.part(labels.counted & (rank >= seen[labels.groups]))
    told["gains"][anew] = 0.0
    for some in fresh.portions():
        told["gains"] += log_gains(some.scores, some.correct, some.groups, count)

    moved = anew | (told["reference_labels"] != before.reference_labels)
    moved |= told["reference_correct"] != before.reference_correct
    told["baseline"][moved] = baselines(
        tally.then_correct[moved],
        tally.then_wrong[moved],
        alpha=alpha / (together or count),
        fixed=fixed,
        threshold=threshold,
    )
    again = moved | anew
    told["detectors"][again] = -np.inf
    followed = ~labels.then & (again[labels.groups] | (rank >= seen[labels.groups]))
    followed &= ~np.isnan(told["baseline"])[labels.groups]
    for some in labels.part(followed).portions():
        told["detectors"] = advance_detectors(told["detectors"], some.correct, some.groups, told["baseline"])

    for name in _CONCLUDED:
        told[name][anew] = np.nan
    _conclude(told, tally, (changed | anew) & (lengths > 0), threshold=threshold, alpha=alpha)
    return GroupEvidence(**told)


def _conclude(
    told: dict[str, Floats], tally: Tally, some: Flags, *, threshold: float | None, alpha: float
) -> None:
    """What follows from sums, of some groups."""
    correct, wrong, then_correct, then_wrong, now_correct, now_wrong = tally.part(some)
    labelled, compared = correct + wrong > 0, (now_correct + now_wrong > 0) & (then_correct + then_wrong > 0)
    lower, upper = confidence_sequence(correct, wrong, 1 - alpha)
    told["lower"][some] = np.where(labelled, lower, np.nan)
    told["upper"][some] = np.where(labelled, upper, np.nan)
    told["miscalibrated"][some] = np.where(labelled, log_wealth(told["gains"][some]), np.nan)
    if threshold is not None:
        below = log_e_below(correct, wrong, np.full(len(correct), threshold))
        told["below"][some] = np.where(labelled, below, np.nan)
    declined = log_e_declined(now_correct, now_wrong, then_correct, then_wrong)
    told["declined"][some] = np.where(compared, declined, np.nan)
    told["detector"][some] = np.where(compared, log_detectors(told["detectors"][some]), np.nan)


def baselines(
    correct: Floats, wrong: Floats, *, alpha: float, fixed: bool, threshold: float | None
) -> Floats:
    """Accuracies that groups had in the reference, or more; NaN of those without a label in it.

    Of a number of labels that was fixed before, by Clopper and Pearson (1934); else by a confidence sequence.
    A group that reached the threshold there is held to it as well: what is not as accurate as it is less
    accurate than one of both. Counts are [G], and each bound fails with a probability of `alpha`.
    """
    if fixed:
        lower = np.where(correct > 0, special.betaincinv(np.maximum(correct, 1), wrong + 1, alpha), 0.0)
    else:
        lower, _ = confidence_sequence(correct, wrong, 1 - alpha)
    if threshold is not None:
        lower = np.where(correct >= threshold * (correct + wrong), np.maximum(lower, threshold), lower)
    told: Floats = np.where(correct + wrong > 0, np.clip(lower, _NEAR_END, 1 - _NEAR_END), np.nan)
    return told
