"""What traffic a model is given, before its inputs change in one group and after it.

Traffic is drawn from recorded items, at random, again and again. Before the change all groups, such as
regions, have the items of one recording. Then one group's items change: they are of another recording, by the
same model; or others of the same one; or they stay, and their labels turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.domain.errors import RecordingError
from service.replay.grouping import equal_width_bins, score_bins
from service.replay.options import Binning
from service.replay.recording import Recording
from service.statistics.balance_heuristic import sums

NO_CHANGE: Final = "no change"
CLASSES_SHIFT: Final = "classes shift"
LABELS_ALONE: Final = "labels alone"

_NOTHING = 1e-9


@dataclass(frozen=True)
class Change:
    """What becomes of the items of one group.

    Attributes:
        name: as it is shown.
        weights: how likely every item is then [N], summing to 1.
        turned: share of the labels that say that a prediction is right, and then say that it is wrong.
    """

    name: str
    weights: Floats
    turned: float = 0.0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Items:
    """All items that traffic may be of, those before the change first.

    Attributes:
        name: of the model.
        before: how many of the items there are before the change.
        classes: number of classes K.
        bin_count: number of score bins B.
        scores: of every item [N].
        bins: score bin of every item [N].
        predicted: class of every item [N].
        correct: whether the prediction is right [N].
        starts: the first item of every recording, and N at the end.
    """

    name: str
    before: int
    classes: int
    bin_count: int
    scores: Floats = field(repr=False)
    bins: Indices = field(repr=False)
    predicted: Indices = field(repr=False)
    correct: Flags = field(repr=False)
    starts: tuple[int, ...]

    @classmethod
    def of(cls, before: Recording, after: Sequence[Recording], *, bin_count: int, binning: Binning) -> Items:
        """Those of recordings by the same model; its bins are those of the first one.

        Raises:
            RecordingError: a recording has other classes than the first one.
        """
        for other in after:
            if other.classes != before.classes:
                raise RecordingError(
                    other.name,
                    f"it has {other.classes} classes, but {before.name} has {before.classes}; "
                    "record the same model",
                )
        every = [before, *after]
        bins = score_bins(before.scores, bin_count, binning)
        scores = np.concatenate([each.scores for each in every])
        return cls(
            name=before.name,
            before=before.size,
            classes=before.classes,
            bin_count=bin_count,
            scores=scores,
            bins=equal_width_bins(scores, bin_count)
            if binning == "equal_width"
            else _bins_alike(before.scores, bins, scores, bin_count),
            predicted=np.concatenate([each.predicted for each in every]).astype(np.intp),
            correct=np.concatenate([each.correct for each in every]),
            starts=(0, *np.cumsum([each.size for each in every]).tolist()),
        )

    @property
    def healthy(self) -> Change:
        """None at all."""
        return Change(NO_CHANGE, self._evenly(0))

    def of_recording(self, name: str, number: int, mixed: float) -> Change:
        """Such a share of the items is of another recording.

        Args:
            name: as the change is shown.
            number: of the recording, 1 for the first one after the change.
            mixed: the share, above 0 and at most 1.
        """
        return Change(name, (1 - mixed) * self._evenly(0) + mixed * self._evenly(number))

    def hard(self, name: str, mixed: float) -> Change:
        """Such a share of the items is of the half with the lowest scores: of each score as many are right.

        Items of the score at which the half ends are as likely as each other, wherever they were recorded.

        Args:
            name: as the change is shown.
            mixed: the share, above 0 and at most 1.
        """
        scores, half = self.scores[: self.before], (self.before + 1) // 2
        last = np.partition(scores, half - 1)[half - 1]
        lower, ties = scores < last, scores == last
        chosen = np.where(ties, (half - np.count_nonzero(lower)) / np.count_nonzero(ties), lower)
        weights = (1 - mixed) * self._evenly(0)
        weights[: self.before] += mixed / half * chosen
        return Change(name, weights)

    def classes_shift(self) -> Change | None:
        """Predicted classes come more or less often, so that the accuracy of the group stays as it was.

        Every other class comes more often, as far as that leaves the accuracy, which is linear in the shares
        of classes: of the signs +1 and -1 in turn that part is taken which neither the sum of the shares nor
        the accuracy feels (a projection, shares being weights). It is stretched until a class comes no more.
        None where there is no such part, as with two classes of which one is more accurate.
        """
        items = np.arange(self.before)
        predicted = self.predicted[items]
        counts = np.bincount(predicted, minlength=self.classes)
        shares = counts / self.before
        accuracy = np.bincount(predicted, self.correct[items], self.classes) / np.maximum(counts, 1)
        ordered = np.cumsum(counts > 0)
        signs = np.where(counts > 0, np.where(ordered % 2 == 1, 1.0, -1.0), 0.0)
        felt = np.stack([np.ones(self.classes), accuracy], axis=1) * np.sqrt(shares)[:, None]
        wanted = signs * np.sqrt(shares)
        left = wanted - felt @ np.linalg.lstsq(felt, wanted, rcond=None)[0]
        direction = np.divide(left, np.sqrt(shares), out=np.zeros(self.classes), where=shares > 0)
        lowest = float(direction.min())
        if lowest > -_NOTHING:
            return None
        weights = self._evenly(0)
        weights[items] *= 1 - direction[predicted] / lowest
        return Change(CLASSES_SHIFT, weights)

    def labels_alone(self, accuracy: float) -> Change | None:
        """Items stay as they were, and labels turn until they are as accurate; None where they are no more.

        Args:
            accuracy: that they fall to.
        """
        now = self.accuracy(self.healthy)
        return None if accuracy >= now else Change(LABELS_ALONE, self._evenly(0), 1 - accuracy / now)

    def accuracy(self, change: Change) -> float:
        """The true accuracy of a group after a change."""
        return float(change.weights @ self.correct) * (1 - change.turned)

    def by_bin(self, change: Change) -> Floats:
        """Share of a group's traffic in every score bin, after a change [B]."""
        return sums(self.bins, change.weights, self.bin_count)

    def scores_by_bin(self, change: Change) -> Floats:
        """Sum of the scores of a group's traffic in every score bin, by item, after a change [B]."""
        return sums(self.bins, change.weights * self.scores, self.bin_count)

    def by_class(self, change: Change) -> Floats:
        """Share of a group's traffic of every predicted class, after a change [K]."""
        return sums(self.predicted, change.weights, self.classes)

    @cached_property
    def bin_accuracies(self) -> Floats:
        """How accurate score bins are before the change [B]; those without an item then as they promise.

        A bin that no item is ever in has 0.
        """
        number = np.maximum(np.bincount(self.bins, minlength=self.bin_count), 1)
        promised = sums(self.bins, self.scores, self.bin_count) / number
        right = sums(self.bins, self.healthy.weights * self.correct, self.bin_count)
        there = self.by_bin(self.healthy)
        return np.divide(right, there, out=promised, where=there > 0)

    def _evenly(self, number: int) -> Floats:
        """All items of one recording are as likely [N]."""
        weights = np.zeros(len(self.scores))
        first, end = self.starts[number], self.starts[number + 1]
        weights[first:end] = 1 / (end - first)
        return weights


def _bins_alike(known: Floats, bins: Indices, scores: Floats, bin_count: int) -> Indices:
    """Bins of scores [N] by the bins of others: of the first one whose highest score is as high or higher.

    Args:
        known: scores whose bins are known.
        bins: these bins, which ascend with the score.
        scores: [N].
        bin_count: number of bins.
    """
    highest = np.full(bin_count, -np.inf)
    np.maximum.at(highest, bins, known)
    # A bin without a score ends where the one before it does.
    highest = np.maximum.accumulate(highest)
    return np.minimum(np.searchsorted(highest, scores, side="left"), bin_count - 1).astype(np.intp)
