"""Strata of scores: neighbouring bins put together, fine near the threshold and at both ends.

What few labels can tell apart is far coarser than bins: some forty strata suffice. Their sizes grow
geometrically with the distance from the threshold, where errors are most frequent, and from either end, where
few items decide the precision or the recall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.statistics.binary.score_bins import ScoreBins

_SMALLEST: Final = 4.0  # items of the smallest strata
_FROM_THRESHOLD: Final = 16  # strata on each side of it
_FROM_END: Final = 8  # and at each end
_FURTHEST: Final = 1e3  # from the threshold, in standard deviations
_NEAR_END: Final = 1e-6  # probabilities are clipped to be this far from 0 and 1
_STEPS: Final = 2  # of Newton's method, from interpolated log odds
_LEAST: Final = 1e-300  # to divide by
_LEAST_RANK: Final = 1e-15  # from 0 and 1: items that are nearly forgotten have no rank of their own
_HEAVY: Final = 0.02  # share of the items from which on a bin is a stratum of its own


@dataclass(frozen=True)
class Strata:
    """Strata of the bins' scores, the lowest first; arrays are [B] unless stated."""

    starts: Ints  # first bin of every stratum
    of_bins: Indices  # the stratum of every bin [bins]
    called: Flags  # whether the model calls its items positive
    ranks: Floats  # normal quantile of the middle rank, 0 at the threshold
    bin_ranks: Floats  # the same of every bin [bins]
    logits: Floats  # mean logit of the scores, if these are probabilities
    deviations: Floats  # scores from the threshold, in standard deviations of all scores

    def sums(self, values: Floats) -> Floats:
        """Sums over the bins [..., bins] of every stratum [..., B]."""
        return np.add.reduceat(values, self.starts, axis=-1)

    def of_all_bins(self, log_odds: Floats, counts: Floats) -> Floats:
        """Probabilities of all bins [S, bins] from the log odds of strata [S, B] and items of bins [bins].

        Log odds are interpolated between strata by rank; ends are kept. Then each stratum is shifted so that
        its mean probability is the one given: a curve that is bent inside a stratum would shift the mean.
        """
        latent = _interpolated(log_odds, self.ranks, self.bin_ranks)
        shares = counts / self.sums(counts)[self.of_bins]
        means = special.expit(log_odds)
        for _ in range(_STEPS):
            probabilities = special.expit(latent)
            slopes = self.sums(shares * probabilities * (1 - probabilities))
            steps = (means - self.sums(shares * probabilities)) / np.maximum(slopes, _LEAST)
            latent += np.clip(steps, -1, 1)[:, self.of_bins]
        return np.asarray(special.expit(latent), np.float64)


def stratify(bins: ScoreBins, threshold: float) -> Strata:
    """Strata of scores from whose threshold on an item is called positive.

    A bin with many items is a stratum of its own: its labels may be requested at another rate than those of
    its neighbours, and say nothing of their shares.
    """
    called = bins.lower_ends >= threshold
    below, above = float(bins.counts[~called].sum()), float(bins.counts[called].sum())
    cuts = np.concatenate(
        (
            below - _growing(below, _FROM_THRESHOLD),
            _growing(below, _FROM_END),
            below + np.append(0.0, _growing(above, _FROM_THRESHOLD)),
            bins.total - _growing(above, _FROM_END),
        )
    )
    reached = np.cumsum(bins.counts) - bins.counts
    heavy = np.flatnonzero(bins.counts > _HEAVY * bins.total)
    cut_at = np.searchsorted(reached, cuts - 1e-9 * bins.total)
    starts = np.unique(np.concatenate(([0], cut_at, heavy, heavy + 1)))
    starts = starts[starts < len(reached)]
    of_bins = np.searchsorted(starts, np.arange(len(reached)), side="right") - 1
    counts = np.add.reduceat(bins.counts, starts)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(bins.counts * values, starts) / counts, np.float64)

    least = min(0.5 / bins.total, 0.25)
    origin = special.ndtri(np.clip(below / bins.total, least, 1 - least))
    shares = bins.counts / bins.total
    deviation = float(np.sqrt(shares @ (bins.scores - shares @ bins.scores) ** 2))
    return Strata(
        starts=starts,
        of_bins=of_bins,
        called=called[starts],
        ranks=_quantiles((np.cumsum(counts) - counts / 2) / bins.total) - origin,
        bin_ranks=_quantiles(bins.ranks) - origin,
        logits=mean(special.logit(np.clip(bins.scores, _NEAR_END, 1 - _NEAR_END))),
        deviations=np.clip(mean(bins.scores - threshold) / (deviation or 1.0), -_FURTHEST, _FURTHEST),
    )


def _quantiles(ranks: Floats) -> Floats:
    """Standard normal quantiles."""
    return np.asarray(special.ndtri(np.clip(ranks, _LEAST_RANK, 1 - _LEAST_RANK)), np.float64)


def _growing(total: float, count: int) -> Floats:
    """Sizes of ever larger parts of a number of items, from one end on."""
    if total <= _SMALLEST:
        return np.zeros(0)
    return np.geomspace(_SMALLEST, total, count)[:-1]


def _interpolated(log_odds: Floats, at: Floats, wanted: Floats) -> Floats:
    """Log odds [S, W] at further coordinates [W], between those of strata [B], ascending; ends are kept."""
    if len(at) == 1:
        return np.repeat(log_odds, len(wanted), axis=1)
    right: Indices = np.clip(np.searchsorted(at, wanted), 1, len(at) - 1)
    part = np.clip((wanted - at[right - 1]) / np.maximum(at[right] - at[right - 1], _LEAST), 0.0, 1.0)
    return log_odds[:, right - 1] * (1 - part) + log_odds[:, right] * part
