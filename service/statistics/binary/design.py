"""Precision, recall and others at the threshold, from labels and their inclusion probabilities alone.

This is the design-based check of the model-based posterior: nothing is assumed of the scores. Within a
stratum, labelled items are a random sample, so an item's weight is the inverse of its inclusion probability,
W_h / n_h, with W_h the stratum's share of the traffic and n_h its labels. The positive share of the items
called positive, and that of the others, are self-normalised (Hajek) estimates: sums of weighted positive
labels over sums of weights (Sarndal, Swensson and Wretman, *Model Assisted Survey Sampling*, 1992, section
5.7; Sawade, Landwehr and Scheffer, NIPS 2010, estimate F-measures so; Marchant and Rubinstein, VLDB 2017,
within strata of scores). All measures follow from these two shares, as the share that is called positive is
known from all traffic.

Intervals are those of Clopper and Pearson (1934) with an effective number of labels (Korn and Graubard,
Survey Methodology 1998), from the variance within strata. There, the share of a stratum is drawn by one label
towards that of all, as a few labels of one class vary by nothing. One more label of the class, in the stratum
of the largest weight, keeps the interval wide where few labels of the class were found, or none (Fay and
Feuer, Statistics in Medicine 1997, do so with weighted Poisson counts). In one stratum this is exactly
Clopper and Pearson. Strata without a label may have any share of positive items.

The two ends are quantiles of two confidence distributions. Half of the draws of a measure are of either, as
for items that may have any class (`service/statistics/binary/performance.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats
from service.statistics.binary.label_gains import LabelledStrata
from service.statistics.binary.performance import Performance
from service.statistics.ratios import ratio

_DRAWS: Final = 8_000  # of either confidence distribution
_SHRUNK: Final = 1.0  # labels by which the share of a stratum is drawn towards that of all, in variances


@dataclass(frozen=True)
class ShareDraws:
    """Draws of the lower and the upper confidence distribution of a share [S]."""

    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class DesignEstimate:
    """What labels say about the threshold, whatever the scores mean."""

    called: float  # share of the items that is called positive
    precision: ShareDraws  # positive share of these
    missed: ShareDraws  # positive share of the others

    def performance(self, threshold: float, rng: np.random.Generator) -> Performance:
        """Draws of the performance at this threshold alone [S, 1]."""
        precision, missed = (_either(each, rng) for each in (self.precision, self.missed))
        right = self.called * precision
        positives = right + (1 - self.called) * missed
        ones = np.ones_like(right)
        return Performance(
            thresholds=np.array([threshold]),
            called=self.called * ones[:, None],
            right=right[:, None],
            positives=positives,
            items=ones,
        )


def design_estimate(
    samples: Sequence[LabelledStrata], rng: np.random.Generator, unclear: Floats | None = None
) -> DesignEstimate:
    """The estimate from labels of strata, each of items that are either all called positive or none.

    There are several samples if labels may be wrong: imputations of the same labels, each as probable.
    `unclear` are draws of the share of every stratum's items that may have any class [S, B]; none may if
    None.
    """
    counts, called = samples[0].counts, samples[0].called > 0

    def share(side: Flags) -> ShareDraws:
        drawn = [_share(sample, side, rng, -(-_DRAWS // len(samples))) for sample in samples]
        lower = np.concatenate([each.lower for each in drawn])
        upper = np.concatenate([each.upper for each in drawn])
        if unclear is None or not side.any():
            return ShareDraws(lower, upper)
        doubtful = rng.choice(unclear[:, side] @ counts[side] / counts[side].sum(), len(lower))
        return ShareDraws((1 - doubtful) * lower, (1 - doubtful) * upper + doubtful)

    return DesignEstimate(float(counts[called].sum() / counts.sum()), share(called), share(~called))


def _share(sample: LabelledStrata, side: Flags, rng: np.random.Generator, draws: int) -> ShareDraws:
    """Of the positive items of some strata."""
    positives, negatives = sample.positives[side], sample.negatives[side]
    labels = positives + negatives
    if not labels.any():
        return ShareDraws(np.zeros(draws), np.ones(draws))
    shares = sample.counts[side] / sample.counts[side].sum()
    weights = ratio(shares, labels, 0.0)
    weighted = _WeightedLabels(weights, positives, negatives)
    covered = float(shares[labels > 0].sum())
    lower = covered * weighted.with_one_more(positive=False).draw(rng, draws)
    upper = covered * weighted.with_one_more(positive=True).draw(rng, draws) + (1 - covered)
    return ShareDraws(lower, upper)


@dataclass(frozen=True)
class _WeightedLabels:
    """Labels by stratum, and the weight of each [B]."""

    weights: Floats
    positives: Floats
    negatives: Floats

    def with_one_more(self, *, positive: bool) -> _WeightedLabels:
        """The same with one more label, in the stratum of the largest weight."""
        one = (np.arange(len(self.weights)) == self.weights.argmax()).astype(np.float64)
        return _WeightedLabels(
            self.weights, self.positives + one * positive, self.negatives + one * (not positive)
        )

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """From the Beta distribution of the Hajek estimate and the effective number of labels."""
        found, total = self.weights @ self.positives, self.weights @ (self.positives + self.negatives)
        share = float(found / total)
        labels = self.positives + self.negatives
        shares = (self.positives + _SHRUNK * share) / (labels + _SHRUNK)
        variance = float(self.weights**2 @ (labels * shares * (1 - shares))) / total**2
        if variance <= 0:
            return np.full(count, share)
        effective = share * (1 - share) / variance
        return rng.beta(effective * share, effective * (1 - share), count)


def _either(draws: ShareDraws, rng: np.random.Generator) -> Floats:
    """The even mixture of the two distributions, in a random order [S]."""
    taken = np.where(rng.random(len(draws.lower)) < 0.5, draws.lower, draws.upper)  # noqa: PLR2004 - even
    return rng.permutation(taken)
