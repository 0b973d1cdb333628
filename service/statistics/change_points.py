"""Weights of labels under the posterior over change points.

The labels since the last change of a group estimate its accuracy now, and the change point is unknown. So
every position in the order of labels has a posterior probability of being the last change point. A change has
the prior probability 1 / `run_length` at each label. The accuracy between changes has a Beta prior, worth
`_LEVEL_LABELS` labels, around the group's mean over all of its labels: most changes are moderate (Fearnhead
and Liu, JRSS B 2007, recursion 2; Adams and MacKay, *Bayesian online changepoint detection*, 2007). The
posterior of the accuracy is a mixture of Betas, one for each position.

The result is a set of weights: weighted labels have the mean of the mixture, and their number gives its
variance. It is small while an old and a new accuracy are both plausible. No change point is selected, so
intervals are not biased by a selection from the same labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.ratios import ratio

SUSPECTED: Final = 0.2  # probability from which a change applies to all labels of its group, by any request
DETECTED: Final = 0.5  # probability from which a change is reported
_RARER: Final = 10.0
"""Reports assume changes this many times rarer than intervals do, so that fewer are false."""

FEWEST: Final = 5  # labels since a change, without which it is not considered
_PRIOR: Final = 0.5  # Jeffreys' prior of a group's mean over all of its labels
_LEVEL_LABELS: Final = 20.0  # labels that the prior between changes is worth; compared in docs/forgetting.md
_SINGLE: Final = 64  # latest labels with a position each; of older ones, half as many for every doubling
_LEAST_KEPT: Final = 11.0
"""Labels that are left of a group with many: a few more than alerts need by default.

With fewer, a group that is known to be too inaccurate would become uncertain when it gets even worse, and its
alert would end. Coverage after a change hardly differs. Of few labels, a quarter is left.
"""

_AT_ONCE: Final = 100_000  # groups times positions, so that arrays fit a processor's cache


@dataclass(frozen=True)
class ChangePointWeights:
    """Weights of labels after changes."""

    factors: Floats  # of every label, in (0, 1]; within a group not more for an older label [n]
    changed: Floats  # probability that the accuracy has changed, if changes were `_RARER` times rarer [G]
    before: Indices  # labels before the most probable last change; 0 where none is detected [G]


def change_point_weights(*, correct: Flags, sizes: Indices, run_length: float) -> ChangePointWeights:
    """Weights of all labels, given outcomes group by group, oldest first [n], and labels per group [G].

    `run_length` is the average number of a group's labels from one change to the next.

    Raises:
        ValueError: the run length is not more than 1.
    """
    if not run_length > 1:
        raise ValueError(f"a run length of {run_length:g} leaves no label between changes")
    factors = np.ones(len(correct))
    changed, before = np.zeros(len(sizes)), np.zeros(len(sizes), dtype=np.intp)
    begins = np.cumsum(sizes) - sizes
    right = np.concatenate(([0], np.cumsum(correct)))
    ascending = np.argsort(sizes, kind="stable")
    for chosen in _batches(ascending[sizes[ascending] >= 2 * FEWEST], sizes):
        positions = _Positions.of(right, begins[chosen], sizes[chosen])
        last = positions.last_change(run_length)
        groups, labels, weights = positions.label_weights(last)
        unchanged = last[np.arange(len(chosen)), positions.first]
        changed[chosen] = _were_changes_rarer(unchanged, sizes[chosen], run_length)
        factors[begins[chosen][groups] + labels] = weights
        likeliest = positions.likeliest(last)
        before[chosen] = np.where(changed[chosen] >= DETECTED, likeliest, 0)
    return ChangePointWeights(factors, changed, before)


def _were_changes_rarer(unchanged: Floats, sizes: Indices, run_length: float) -> Floats:
    """Probability of a change if the run length were longer: Bayes' rule on the probability of none [G]."""
    ahead = np.expm1(-sizes * np.log1p(-1 / run_length))
    ahead_if_rarer = np.expm1(-sizes * np.log1p(-1 / (_RARER * run_length)))
    odds = (1 - unchanged) * ahead_if_rarer / ahead
    changed: Floats = odds / (odds + unchanged)
    return changed


def _batches(ascending: Indices, sizes: Indices) -> list[Indices]:
    """Groups in the order of their sizes, split into batches of similar sizes."""
    batches = []
    while len(ascending):
        smallest = int(sizes[ascending[0]])
        alike = int(np.searchsorted(sizes[ascending], max(2 * smallest, _SINGLE), "right"))
        count = min(alike, max(1, _AT_ONCE // len(_ages(2 * smallest))))
        batches.append(ascending[:count])
        ascending = ascending[count:]
    return batches


def _ages(size: int) -> Indices:
    """Positions as numbers of labels since, ascending from 0 to `size` or beyond."""
    ages = [np.arange(_SINGLE + 1)]
    step = 1
    while ages[-1][-1] < size:
        step *= 2
        ages.append(ages[-1][-1] + step * np.arange(1, _SINGLE // 2 + 1))
    together = np.concatenate(ages)
    return np.asarray(together[: int(np.searchsorted(together, size)) + 1], np.intp)


@dataclass(frozen=True)
class _Positions:
    """Positions where accuracies may have changed, of groups in the order of their sizes."""

    ages: Indices  # labels since every position, in groups that have as many [P + 1]
    since: Indices  # labels since every position [G, P + 1]
    right: Indices  # correct ones of these [G, P + 1]
    first: Indices  # position before the first label of every group [G]

    @classmethod
    def of(cls, right: Indices, begins: Indices, sizes: Indices) -> _Positions:
        """From cumulated outcomes of all labels [n + 1], and where every group's labels begin."""
        ages = _ages(int(sizes[-1]))
        since = np.minimum(ages, sizes[:, None])
        ends = (begins + sizes)[:, None]
        return cls(ages, since, right[ends] - right[ends - since], np.searchsorted(ages, sizes))

    def last_change(self, run_length: float) -> Floats:
        """Probability of every position to be that of the last change, or the first one [G, P + 1].

        Filtering: the probability of all labels before a position sums over the last change before it.
        """
        groups, count = self.since.shape
        sizes = self.since[:, -1]
        labels, (right, wrong) = np.arange(int(sizes.max())), _level_prior(self.right[:, -1], sizes)
        # Log rising factorials of the prior's parameters: of correct labels, of wrong ones, and of all.
        of_right, of_wrong, of_all = (
            _cumulated(np.log(start + labels))
            for start in (right[:, None], wrong[:, None], np.array(_LEVEL_LABELS))
        )
        lasts = np.log1p(-1 / run_length)
        # A position represents all labels up to the next one.
        chance = np.log(np.diff(self.ages) / run_length)
        begun = np.full((groups, count), -np.inf)
        begun[np.arange(groups), self.first] = 0.0

        def continued(position: int, rows: slice) -> Floats:
            """Of every older position: it began a run, which lasted until this one."""
            length = self.since[rows, position + 1 :] - self.since[rows, position, None]
            hits = self.right[rows, position + 1 :] - self.right[rows, position, None]
            row = np.arange(groups)[rows, None]
            likely = of_right[row, hits] + of_wrong[row, length - hits] - of_all[length]
            probability: Floats = begun[rows, position + 1 :] + likely + length * lasts
            return probability

        for position in range(count - 2, 0, -1):
            rows = slice(int(np.searchsorted(self.first, position, "right")), None)
            begun[rows, position] = _log_sum(continued(position, rows)) + chance[position]
        positions = np.full((groups, count), -np.inf)
        positions[:, 1:] = continued(0, slice(None))
        # So few labels are weak evidence, but would dominate the posterior.
        few = (self.ages < FEWEST) & (np.arange(count) != self.first[:, None])
        positions[few] = -np.inf
        return special.softmax(positions, axis=1)

    def label_weights(self, last: Floats) -> tuple[Indices, Indices, Floats]:
        """Group, number within the group, and weight of every label [n].

        Each position would weight the labels since it equally; a label's weight is the mean over positions.
        """
        prior, _ = _level_prior(self.right[:, -1], self.since[:, -1])
        mean = (prior[:, None] + self.right) / (_LEVEL_LABELS + self.since)
        variance = mean * (1 - mean) / (_LEVEL_LABELS + self.since + 1)
        middle = (last * mean).sum(axis=1)
        spread = (last * (variance + (mean - middle[:, None]) ** 2)).sum(axis=1)
        # As many labels as a Beta of this mean and variance has beside its prior.
        left = middle * (1 - middle) / spread - 1 - _LEVEL_LABELS
        left = np.maximum(left, np.minimum(_LEAST_KEPT, self.since[:, -1] / 4))
        each = ratio(last, self.since, 0.0)
        weights = left[:, None] * np.cumsum(each[:, ::-1], axis=1)[:, ::-1]
        sizes = self.since[:, -1]
        groups = np.repeat(np.arange(len(sizes)), sizes)
        labels = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        position = np.searchsorted(self.ages, sizes[groups] - 1 - labels, "right")
        return groups, labels, np.minimum(weights[groups, position], 1.0)

    def likeliest(self, last: Floats) -> Indices:
        """Labels before the most probable last change, the first position excluded [G]."""
        changes = last.copy()
        rows = np.arange(len(last))
        changes[rows, self.first] = 0.0
        before: Indices = self.since[:, -1] - self.since[rows, changes.argmax(axis=1)]
        return before


def _level_prior(right: Indices, sizes: Indices) -> tuple[Floats, Floats]:
    """Parameters of the Beta prior of accuracies between changes, by correct labels and all labels [G]."""
    mean = (right + _PRIOR) / (sizes + 2 * _PRIOR)
    return _LEVEL_LABELS * mean, _LEVEL_LABELS * (1 - mean)


def _cumulated(logarithms: Floats) -> Floats:
    """Sums of the first 0, 1, ... logarithms along the last axis."""
    none = np.zeros((*logarithms.shape[:-1], 1))
    return np.concatenate((none, np.cumsum(logarithms, axis=-1)), axis=-1)


def _log_sum(logarithms: Floats) -> Floats:
    """Log of the sum of every row's exponentials; no row is all -inf."""
    highest = logarithms.max(axis=1, keepdims=True)
    total: Floats = np.log(np.exp(logarithms - highest).sum(axis=1)) + highest[:, 0]
    return total
