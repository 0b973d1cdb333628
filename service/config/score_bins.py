"""Score bins: equal-width ones or inner edges, and finer ones at both ends of the scale for rare classes."""

from __future__ import annotations

import itertools
from typing import Final

MOST_SCORE_BINS: Final = 1_000

_TAILS: Final = (1e-6, 1e-5, 1e-4, 0.0003, 0.001, 0.003, 0.01, 0.03)
"""Edges below the tenth where both ends are fine: a rare class is searched among low scores.

Labels are requested by score bin. If most traffic were in the lowest one, no label could be requested where
missed positive items are most probable in it. Scores below the first edge count as equal
(`service/statistics/binary/strata.py`).
"""


def checked_bins(bins: int | list[float]) -> int | list[float]:
    """The same number of bins, or inner edges.

    Raises:
        ValueError: there are none, too many, or edges that do not ascend.
    """
    if isinstance(bins, int):
        if not 1 <= bins <= MOST_SCORE_BINS:
            raise ValueError(f"must be from 1 to {MOST_SCORE_BINS:,}, but is {bins:.7g}")
    elif len(bins) >= MOST_SCORE_BINS:
        raise ValueError(f"must have fewer than {MOST_SCORE_BINS:,} edges, but has {len(bins):,}")
    elif not all(low < high for low, high in itertools.pairwise((0.0, *bins, 1.0))):
        raise ValueError("must be inner edges that ascend within (0, 1), such as [0.5, 0.9]")
    return bins


def inner_edges(bins: int | list[float], *, fine_ends: bool) -> tuple[float, ...]:
    """Inner edges of the bins, ascending."""
    if not isinstance(bins, int):
        return tuple(bins)
    edges = {i / bins for i in range(1, bins)}
    if fine_ends:
        edges |= {*_TAILS, *(1 - tail for tail in _TAILS)}
    return tuple(sorted(edges))
