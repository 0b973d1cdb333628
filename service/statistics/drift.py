"""Distance of recent traffic from a reference, without labels, and how much of it sampling noise explains.

Traffic is compared as counts of kinds: score bins, predicted classes, values of an attribute. The distance of
two mixes is that of Jensen and Shannon: 0 if they are equal, 1 if they have no kind in common; it is a metric
(Endres and Schindelin, IEEE Transactions on Information Theory 2003), and that of a Hilbert space (Fuglede
and Topsoe, ISIT 2004).

Two samples of one mix always differ. To second order the squared distance of samples of n and m is then (1/n
+ 1/m) chi^2 / (8 ln 2), with one degree of freedom less than there are kinds: a quantile of this noise is
subtracted before anything is called drift. As the distance is that of a Hilbert space, the rest is a lower
bound of the distance of the mixes themselves, with the confidence of the quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.statistics.ratios import ratio

FALSE_SHARE: Final = 0.001
"""Probability that any distance of a model, of all groups and mixes, is overestimated in one evaluation."""

_SMALL_COUNTS: Final = 1.2  # noise over chi-square where kinds are rare; by simulation (test_drift.py)


@dataclass(frozen=True)
class MixDrift:
    """Distance of one mix of every group from the reference."""

    distance: Floats  # of Jensen and Shannon, as observed, in [0, 1] [G]; NaN without traffic on either side
    excess: Floats  # the same minus the noise, at least 0 [G]; 0 where the distance is NaN


def mix_counts(groups: Indices, kinds: Indices, counts: Ints, shape: tuple[int, int]) -> Ints:
    """Traffic by group and kind [G, K], from group, kind and count of every cell [cells]."""
    flat = np.bincount(groups * shape[1] + kinds, weights=counts, minlength=shape[0] * shape[1])
    return flat.astype(np.int64).reshape(shape)


def mix_drift(reference: Ints, recent: Ints, *, comparisons: int) -> MixDrift:
    """Distance of every group's recent mix from that of the reference, by predictions of every kind [G, K].

    `comparisons` is the number of all comparisons in one evaluation; the error probability is divided by it.
    """
    n, m = reference.sum(axis=1), recent.sum(axis=1)
    has_traffic = (n > 0) & (m > 0)
    p = reference / np.where(has_traffic, n, 1)[:, None]
    q = recent / np.where(has_traffic, m, 1)[:, None]
    middle = (p + q) / 2
    divergence = (special.rel_entr(p, middle) + special.rel_entr(q, middle)).sum(axis=1) / (2 * np.log(2))
    distance = np.where(has_traffic, np.sqrt(np.clip(divergence, 0.0, 1.0)), np.nan)
    kinds = ((reference + recent) > 0).sum(axis=1)
    noise = _distance_by_noise(n, m, kinds, FALSE_SHARE / comparisons)
    return MixDrift(distance, np.where(has_traffic, np.maximum(distance - noise, 0.0), 0.0))


def _distance_by_noise(n: Ints, m: Ints, kinds: Ints, chance: float) -> Floats:
    """The distance that samples of one mix exceed with this probability [G]; infinite without a sample."""
    freedom, inverse = np.unique(np.maximum(kinds - 1, 1), return_inverse=True)
    quantiles = np.asarray(special.chdtri(freedom, chance), np.float64)[inverse]
    with np.errstate(divide="ignore"):
        distance: Floats = np.sqrt((1 / n + 1 / m) * _SMALL_COUNTS * quantiles / (8 * np.log(2)))
    return distance


def kolmogorov_smirnov(reference: Ints, recent: Ints) -> Floats:
    """Largest difference of the cumulative shares of ordered bins [G]; NaN without traffic on either side.

    It is a lower bound of that of the unbinned scores. Counts are predictions by bin [G, B].
    """
    p, q = (ratio(np.cumsum(counts, axis=1), counts.sum(axis=1)[:, None]) for counts in (reference, recent))
    return np.asarray(np.abs(p - q).max(axis=1), np.float64)


def drift_scores(mixes: Sequence[MixDrift]) -> Floats:
    """Drift score of every group in [0, 1] [G]: the largest distance over its mixes, after noise."""
    return np.asarray(np.max([mix.excess for mix in mixes], axis=0), np.float64)


def volume_ratio(reference: Ints, recent: Ints, *, reference_seconds: float, recent_seconds: float) -> Floats:
    """Recent predictions per second over those in the reference [G]; NaN where one is not known."""
    if not (reference_seconds > 0 and recent_seconds > 0):
        return np.full(len(reference), np.nan)
    return ratio(recent / recent_seconds, reference / reference_seconds)


def expected_accuracy(recent: Ints, accuracies: Floats) -> Floats:
    """Accuracy expected from recent scores, without labels of the group [G]; NaN without recent traffic.

    Each score bin [G, B] is taken to be as accurate as it is over all of the model's labels [B]; NaN if it
    never had traffic. Where groups differ in their scores alone, this is their accuracy (Guillory et al.,
    ICCV 2021, predict accuracy from such differences of confidences; Garg et al., ICLR 2022, compare that
    with others). A group that is less accurate than this has wrong predictions with high scores.
    """
    promised = recent @ np.where(np.isnan(accuracies), 0.0, accuracies)
    return ratio(promised, recent.sum(axis=1))


def drift_label_shares(scores: Floats, drifted: Flags) -> Floats | None:
    """Shares of the labels reserved for drift [G]: those of drifted groups are proportional to their scores.

    None if no group has drifted. Items are still drawn evenly within a group, so posteriors are unaffected.
    """
    if not drifted.any():
        return None
    weights = np.where(drifted, scores, 0.0)
    return np.asarray(weights / weights.sum(), np.float64)
