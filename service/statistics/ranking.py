"""Which groups are lowest or highest, and who comes where: from joint draws, or exactly from Betas.

Draws are [S, ..., G]: S joint draws of G groups, of any number of independent runs. Ranks count from 0, the
lowest; from the highest they are those of the draws' negatives. Groups that draw the same number, as tiny
parameters do that draw 0 or 1, come in their own order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from service.domain.arrays import Floats
from service.statistics import beta as betas

Ranks = npt.NDArray[np.unsignedinteger[Any]]

_TOLERANCE = 1e-11
"""By how much halving a panel of the quadrature may change any probability."""

_PANEL_NODES = 20
"""Gauss-Legendre nodes of a panel."""

_DEEPEST = 40
"""Halvings of a panel, after which it is taken as it is."""

_POWER_LAW = 40.0
"""Beyond expit(+-40) a tail of a Beta is its leading power to within rounding."""

_CERTAIN = 36.0
"""Logarithm of a probability that does not matter."""


def ranks(draws: Floats) -> Ranks:
    """Rank of every group in every draw [S, ..., G], in as few bytes as ranks of G groups need."""
    groups = draws.shape[-1]
    order = np.argsort(draws, axis=-1).reshape(-1, groups)
    of_kind = np.min_scalar_type(max(groups - 1, 0))
    found = np.empty(order.size, of_kind)
    order += groups * np.arange(len(order))[:, None]
    found[order] = np.arange(groups, dtype=of_kind)
    return found.reshape(draws.shape)


def rank_probabilities(ranks: Ranks) -> Floats:
    """P(rank of group = r) [..., G, G], the ranks along the last axis; G x G is for moderate G.

    A standard error is at most 1 / (2 sqrt(S)).

    Args:
        ranks: of the groups in every draw [S, ..., G].
    """
    size, groups = ranks.shape[0], ranks.shape[-1]
    flat = ranks.reshape(size, -1)
    # One count for every (run, group, rank), run by run and group by group.
    slots = np.arange(flat.shape[1]) * groups
    counts = np.bincount((slots + flat).ravel(), minlength=flat.shape[1] * groups)
    return np.asarray(counts.reshape(*ranks.shape[1:], groups) / size, np.float64)


def mean_rank(ranks: Ranks, mass: float) -> tuple[Floats, Floats, Floats]:
    """Mean rank of every group, and the lower and upper end of an interval of ranks [..., G].

    The interval leaves a tail of (1 - mass) / 2 of the draws at most on either side; its ends are ranks.

    Args:
        ranks: of the groups in every draw [S, ..., G].
        mass: probability inside the interval.
    """
    size, tail = len(ranks), (1 - mass) / 2
    # Whole numbers of few bytes are sorted in a fraction of the time that quantiles of floats take.
    ascending = np.sort(np.moveaxis(ranks, 0, -1), axis=-1)
    lower, upper = (ascending[..., max(0, math.ceil(size * part - 1))] for part in (tail, 1 - tail))
    return ranks.mean(axis=0), lower.astype(np.float64), upper.astype(np.float64)


def extreme_probabilities(ranks: Ranks, top_m: int) -> Floats:
    """P(group is among the `top_m` lowest) [..., G].

    A standard error is at most 1 / (2 sqrt(S)).

    Args:
        ranks: of the groups in every draw [S, ..., G].
        top_m: how many are extreme.

    Raises:
        ValueError: `top_m` is less than 1.
    """
    if top_m < 1:
        raise ValueError("as many as none are not extreme")
    return np.asarray((ranks < top_m).mean(axis=0), np.float64)


def probability_lowest_exact(alpha: Floats, beta: Floats) -> Floats:
    """P(group is the lowest) of independent Betas [..., G], by quadrature, to 1e-9.

    The integral of f_g times the survival functions of all others, over v, where logit(theta) = sinh(v): so
    that beliefs that are narrow, and those that are nearly certain of 0 or 1, spread alike. Panels are halved
    where a half tells otherwise. Up to 10,000 groups; for the highest, swap alpha and beta.

    Raises:
        ValueError: a parameter is not positive.
    """
    betas.require_positive(alpha, beta)
    a, b = (np.asarray(array, np.float64) for array in np.broadcast_arrays(alpha, beta))
    span = _where_the_lowest_is(a, b)
    total = np.zeros(a.shape)
    panels = [(start / 8, 1 / 8, 0, _panel(a, b, span, (start / 8, 1 / 8))) for start in range(8)]
    while panels:
        start, width, depth, whole = panels.pop()
        half = width / 2
        one, two = (_panel(a, b, span, (begin, half)) for begin in (start, start + half))
        if depth < _DEEPEST and np.abs(one + two - whole).max(initial=0.0) > _TOLERANCE:
            panels += [(start, half, depth + 1, one), (start + half, half, depth + 1, two)]
        else:
            total += one + two
    return total


def _where_the_lowest_is(alpha: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Values of v [...] between which the lowest group lies, but for a mass that does not matter."""
    widest = np.arcsinh(_CERTAIN / min(alpha.min(initial=1.0), beta.min(initial=1.0)) + _POWER_LAW)
    ends = []
    for wanted in (np.exp(-_CERTAIN), _CERTAIN):
        low, high = np.full(alpha.shape[:-1], -widest), np.full(alpha.shape[:-1], widest)
        # The interval need not be exact: its ends are where hardly any mass is.
        for _ in range(30):
            middle = (low + high) / 2
            hazard = -_log_survival(alpha, beta, np.sinh(middle)[..., None]).sum(axis=-1)
            low, high = np.where(hazard < wanted, middle, low), np.where(hazard < wanted, high, middle)
        ends.append((low, high))
    # The lower bounds: beyond the upper bound of the upper end survival may be 0, whose logarithm is none.
    return ends[0][0], ends[1][0]


def _panel(alpha: Floats, beta: Floats, span: tuple[Floats, Floats], part: tuple[float, float]) -> Floats:
    """The integral [..., G] over a part of the span: where it starts and how wide it is, as shares of it."""
    low, high = span
    start, width = part
    found = np.zeros(alpha.shape)
    nodes, weights = np.polynomial.legendre.leggauss(_PANEL_NODES)
    norm = special.betaln(alpha, beta)
    for node, weight in zip(nodes, weights, strict=True):
        v = (low + (high - low) * (start + width * (1 + node) / 2))[..., None]
        t = np.sinh(v)
        density = alpha * special.log_expit(t) + beta * special.log_expit(-t) - norm
        survival = _log_survival(alpha, beta, t)
        logs = density + survival.sum(axis=-1, keepdims=True) - survival
        found += np.exp(logs) * np.cosh(v) * ((high - low)[..., None] * width * weight / 2)
    return found


def _log_survival(alpha: Floats, beta: Floats, t: Floats) -> Floats:
    """Logarithm of P(theta > expit(t))."""
    near = np.clip(t, -_POWER_LAW, _POWER_LAW)
    norm = special.betaln(alpha, beta)
    with np.errstate(divide="ignore"):
        middle = np.where(
            t < 0,
            np.log1p(-special.betainc(alpha, beta, special.expit(near))),
            np.log(special.betainc(beta, alpha, special.expit(-near))),
        )
        lower = np.log1p(-np.minimum(np.exp(alpha * np.minimum(t, -_POWER_LAW) - norm) / alpha, 1.0))
    upper = -beta * t - norm - np.log(beta)
    return np.where(t < -_POWER_LAW, lower, np.where(t > _POWER_LAW, upper, middle))
