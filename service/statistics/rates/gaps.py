"""Anytime-valid evidence that groups differ: in a difference, or in a ratio, of a rate.

The hypothesis "the rate of a is above that of b by at most g" is the union, over all t, of "the rate of a
is at most t + g, and that of b at least t". Evidence against both parts comes from labels of different
groups, so for each t the product of their e-values is an e-value, and the least of these products is one for
the union. It is taken over intervals of t. In each, the parts are tested at the ends that include all t
within, so the least over finitely many intervals is exact; it costs a difference of one step.

That a grouping has a gap means that some pair has. Its hypothesis is tested by the mean over all pairs,
before the least is taken (Vovk and Wang, Annals of Statistics 2021: means of e-values are e-values).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from service.domain.arrays import Floats
from service.statistics.rates.evidence import LimitEvidence

_ROUNDING: Final = 1e-9


def log_e_difference(evidence: LimitEvidence, least: float) -> Floats:
    """Log e-values against "the rate of a is above that of b by at most `least`" [R, G, G], a first.

    Raises:
        ValueError: the difference is negative, or not below 1.
    """
    return _least(_pairs(evidence, _higher_by(evidence, least)))


def log_e_ratio(evidence: LimitEvidence, least: float) -> Floats:
    """Log e-values against "the rate of a is at most `least` times that of b" [R, G, G], a first.

    Raises:
        ValueError: the ratio is below 1.
    """
    return _least(_pairs(evidence, _higher_times(evidence, least)))


def log_e_any_difference(evidence: LimitEvidence, least: float) -> Floats:
    """Log e-value against "no two groups differ by more than `least`" [R]: the gap of the grouping.

    Raises:
        ValueError: the difference is negative, or not below 1.
    """
    return _any_pair(_pairs(evidence, _higher_by(evidence, least)))


def log_e_any_ratio(evidence: LimitEvidence, most: float) -> Floats:
    """Log e-value against "the least rate over the highest is at least `most`" [R], such as 0.8.

    Raises:
        ValueError: the ratio is not within 0 and 1.
    """
    if not 0 < most <= 1:
        raise ValueError(f"a ratio of {most:g} is not above 0, and at most 1")
    return _any_pair(_pairs(evidence, _higher_times(evidence, 1 / most)))


def _higher_by(evidence: LimitEvidence, least: float) -> Floats:
    if not 0 <= least < 1:
        raise ValueError(f"a difference of {least:g} is not in [0, 1)")
    return evidence.limits[1:] + least


def _higher_times(evidence: LimitEvidence, least: float) -> Floats:
    if least < 1:
        raise ValueError(f"a ratio of {least:g} of the higher rate to the lower one is below 1")
    return evidence.limits[1:] * least


def _pairs(evidence: LimitEvidence, ends: Floats) -> Floats:
    """Log e-values of all pairs in every interval of the lower rate [R, G, G, T - 1].

    `ends` are the most that the higher rate may be, if the lower one is at most the interval's upper end.
    """
    limits = evidence.limits
    place = np.searchsorted(limits, ends - _ROUNDING)
    # What holds of every rate has no evidence against it: the e-value 1.
    some = place < len(limits) - 1
    above = np.where(some, evidence.log_e_above[..., np.minimum(place, len(limits) - 1)], 0.0)
    below = np.where(limits[:-1] > 0, evidence.log_e_below[..., :-1], 0.0)
    return np.asarray(above[:, :, None] + below[:, None], np.float64)


def _least(pairs: Floats) -> Floats:
    """The least over the intervals [R, G, G]; minus infinity for a group and itself."""
    least = pairs.min(axis=-1)
    own = np.arange(least.shape[1])
    least[:, own, own] = -np.inf
    return np.asarray(least, np.float64)


def _any_pair(pairs: Floats) -> Floats:
    """The least over the intervals of the mean over all pairs [R]; 0 if there is no pair."""
    groups = pairs.shape[1]
    if groups < 2:  # noqa: PLR2004 - a pair
        return np.zeros(len(pairs))
    apart = ~np.eye(groups, dtype=bool)
    some = pairs[:, apart]
    most = some.max(axis=1)
    means = most + np.log(np.exp(some - most[:, None]).mean(axis=1))
    return np.asarray(means.min(axis=-1), np.float64)
