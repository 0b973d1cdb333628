"""How far recent traffic is from a reference, without labels, and how much of that noise alone could make.

Traffic is compared as counts of kinds: score bins, predicted classes, values of an attribute. The distance of
two mixes is that of Jensen and Shannon: 0 where they are the same, 1 where they have no kind in common; it is
a metric (Endres and Schindelin, IEEE Transactions on Information Theory 2003), and that of a Hilbert space
(Fuglede and Topsoe, ISIT 2004).

Two samples of one mix are never the same. To second order the squared distance of samples of n and m is then
(1/n + 1/m) chi^2 / (8 ln 2), with a degree of freedom less than there are kinds: what noise could make, and
is taken off before anything is called drift. As the distance is that of a Hilbert space, what is left is no
more than the distance of the mixes themselves, with the confidence that the quantile was taken at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices, Ints

FALSE_SHARE: Final = 0.001
"""Looks at a model at which any distance may come out higher than it is, of all groups and mixes together."""

_SMALL_COUNTS: Final = 1.2
"""So much wider than chi-square tells is noise where kinds are rare; by simulation (test_drift.py)."""


@dataclass(frozen=True)
class MixDrift:
    """How far one mix of every group is from the reference.

    Attributes:
        distance: of Jensen and Shannon, as observed, within 0 and 1 [G]; NaN of a group that has no traffic
            in the reference, or none of late.
        surely: the same less what noise could make of it, at least 0 [G]; 0 where the distance is NaN.
    """

    distance: Floats
    surely: Floats


def mix_counts(groups: Indices, kinds: Indices, counts: Ints, shape: tuple[int, int]) -> Ints:
    """Traffic of every group by kind [G, K].

    Args:
        groups: of every cell [cells].
        kinds: of every cell [cells].
        counts: predictions in every cell [cells].
        shape: G and K.
    """
    flat = np.bincount(groups * shape[1] + kinds, weights=counts, minlength=shape[0] * shape[1])
    return flat.astype(np.int64).reshape(shape)


def mix_drift(reference: Ints, recent: Ints, *, comparisons: int) -> MixDrift:
    """How far the recent mix of every group is from the one of the reference.

    Args:
        reference: predictions by kind [G, K].
        recent: the same of late [G, K].
        comparisons: that are made at one look, in all; each may be wrong so much more rarely.
    """
    n, m = reference.sum(axis=1), recent.sum(axis=1)
    there = (n > 0) & (m > 0)
    p = reference / np.where(there, n, 1)[:, None]
    q = recent / np.where(there, m, 1)[:, None]
    middle = (p + q) / 2
    divergence = (special.rel_entr(p, middle) + special.rel_entr(q, middle)).sum(axis=1) / (2 * np.log(2))
    distance = np.where(there, np.sqrt(np.clip(divergence, 0.0, 1.0)), np.nan)
    kinds = ((reference + recent) > 0).sum(axis=1)
    noise = _distance_by_noise(n, m, kinds, FALSE_SHARE / comparisons)
    return MixDrift(distance, np.where(there, np.maximum(distance - noise, 0.0), 0.0))


def _distance_by_noise(n: Ints, m: Ints, kinds: Ints, chance: float) -> Floats:
    """The distance that samples of one mix exceed with this chance [G]; infinite without a sample."""
    freedom, places = np.unique(np.maximum(kinds - 1, 1), return_inverse=True)
    quantiles = np.asarray(special.chdtri(freedom, chance), np.float64)[places]
    with np.errstate(divide="ignore"):
        distance: Floats = np.sqrt((1 / n + 1 / m) * _SMALL_COUNTS * quantiles / (8 * np.log(2)))
    return distance


def kolmogorov_smirnov(reference: Ints, recent: Ints) -> Floats:
    """Largest difference of the cumulative shares of ordered bins [G]; NaN without traffic on either side.

    That of the scores themselves, before they were put in bins, is this or more.

    Args:
        reference: predictions by bin [G, B].
        recent: the same of late [G, B].
    """
    n, m = reference.sum(axis=1), recent.sum(axis=1)
    there = (n > 0) & (m > 0)
    p = np.cumsum(reference, axis=1) / np.where(there, n, 1)[:, None]
    q = np.cumsum(recent, axis=1) / np.where(there, m, 1)[:, None]
    return np.where(there, np.abs(p - q).max(axis=1), np.nan)


def suspicion(mixes: Sequence[MixDrift]) -> Floats:
    """How far every group surely is from its reference, by the mix that tells most [G], within 0 and 1."""
    highest: Floats = np.max([mix.surely for mix in mixes], axis=0)
    return highest


def volume_ratio(reference: Ints, recent: Ints, *, reference_seconds: float, recent_seconds: float) -> Floats:
    """Predictions a second of late, over those in the reference [G]; NaN where one of them is not known.

    Args:
        reference: predictions [G].
        recent: the same of late [G].
        reference_seconds: how long the reference took.
        recent_seconds: how long it is that is recent.
    """
    if not (reference_seconds > 0 and recent_seconds > 0):
        return np.full(len(reference), np.nan)
    then, lately = reference / reference_seconds, recent / recent_seconds
    ratio: Floats = np.divide(lately, then, out=np.full(len(then), np.nan), where=then > 0)
    return ratio


def expected_accuracy(recent: Ints, accuracies: Floats) -> Floats:
    """The accuracy that recent scores promise without a label of the group [G]; NaN without recent traffic.

    Each score bin is taken to be as accurate as all of the model's labels say that it is. Where groups differ
    in their scores alone, this is their accuracy (Guillory et al., ICCV 2021, predict accuracy from such
    differences of confidences; Garg et al., ICLR 2022, compare that with others). A group that is less
    accurate than this is wrong where it is sure: scores mean something else there, which they cannot tell.

    Args:
        recent: predictions by score bin [G, B].
        accuracies: of the bins [B]; NaN of those without traffic ever.
    """
    totals = recent.sum(axis=1)
    promised = recent @ np.where(np.isnan(accuracies), 0.0, accuracies)
    accuracy: Floats = np.divide(promised, totals, out=np.full(len(totals), np.nan), where=totals > 0)
    return accuracy


def aimed_shares(suspicion: Floats, drifted: Flags) -> Floats | None:
    """Shares of the labels that suspicion asks for [G]: of groups that have drifted, by how far they have.

    None where no group has. Within a group its items are drawn as ever, so beliefs need not know why it was
    asked.

    Args:
        suspicion: how far every group surely is from its reference [G].
        drifted: whether that is far enough [G].
    """
    if not drifted.any():
        return None
    wanted = np.where(drifted, suspicion, 0.0)
    shares: Floats = wanted / wanted.sum()
    return shares
