"""Strata and labels that the tests of error rates share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.domain.arrays import Floats
from service.statistics.rates.measures import Rate
from service.statistics.rates.strata import RateLabels, RateStrata

SELECTED = np.array([False, False, True, True])


def strata(shares: Sequence[Sequence[float]], *, sizes: bool = False, score: float = 0.5) -> RateStrata:
    """Groups with two strata of items that are not selected and two of selected ones, by shares or sizes."""
    counts = np.array(shares, np.float64)
    totals = counts.sum(axis=1)
    return RateStrata(
        shares=counts / totals[:, None],
        selected=SELECTED,
        scores=np.full(counts.shape, score),
        sizes=counts if sizes else None,
    )


def labelled(
    of: RateStrata, labels: Sequence[Sequence[float]], positives: Sequence[Sequence[float]]
) -> RateLabels:
    """One run with so many labels of every group and stratum."""
    return RateLabels(of, np.array([labels], np.float64), np.array([positives], np.float64))


def rate_by_hand(rate: Rate, positive: Floats, selected: Floats) -> float:
    """The rate of items, counted one by one."""
    pairs = list(zip(positive.astype(int), selected.astype(int), strict=True))
    top, bottom = (sum(by[pair] for pair in pairs) for by in (rate.numerator, rate.denominator))
    return float(top / bottom)
