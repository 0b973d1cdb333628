"""Probabilities of being among the lowest groups, and ranks, from joint draws.

Draws are [S, ..., G]: S joint draws of G groups, of any number of independent runs. Ranks count from 0, the
lowest; for ranks from the highest, negate the draws. Ties, as among draws of exactly 0 or 1, are broken by
the order of the groups.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Floats

Ranks = npt.NDArray[np.unsignedinteger[Any]]


def ranks(draws: Floats) -> Ranks:
    """Rank of every group in every draw [S, ..., G], in the smallest unsigned type that holds G ranks."""
    groups = draws.shape[-1]
    order = np.argsort(draws, axis=-1).reshape(-1, groups)
    of_kind = np.min_scalar_type(max(groups - 1, 0))
    found = np.empty(order.size, of_kind)
    order += groups * np.arange(len(order))[:, None]
    found[order] = np.arange(groups, dtype=of_kind)
    return found.reshape(draws.shape)


def mean_rank(ranks: Ranks, mass: float) -> tuple[Floats, Floats, Floats]:
    """Mean rank of every group, and the lower and upper end of its interval [..., G], from ranks [S, ..., G].

    The ends are ranks, and at most (1 - mass) / 2 of the draws are beyond either.
    """
    size, tail = len(ranks), (1 - mass) / 2
    # Whole numbers of few bytes are sorted in a fraction of the time that quantiles of floats take.
    ascending = np.sort(np.moveaxis(ranks, 0, -1), axis=-1)
    lower, upper = (ascending[..., max(0, math.ceil(size * part - 1))] for part in (tail, 1 - tail))
    return ranks.mean(axis=0), lower.astype(np.float64), upper.astype(np.float64)


def extreme_probabilities(ranks: Ranks, top_m: int) -> Floats:
    """P(group is among the `top_m` lowest) [..., G], from ranks [S, ..., G].

    Its standard error is at most 1 / (2 sqrt(S)).

    Raises:
        ValueError: `top_m` is less than 1.
    """
    if top_m < 1:
        raise ValueError("as many as none are not extreme")
    return np.asarray((ranks < top_m).mean(axis=0), np.float64)
