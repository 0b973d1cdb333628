"""The density of the difference D = theta_1 - theta_2 of two independent Betas, for plots."""

from __future__ import annotations

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics import beta as betas
from service.statistics.comparison import NODES, Belief, Span, density_at, dot


def difference_density(first: Belief, second: Belief, points: Floats) -> Floats:
    """Density of D at these points, in the common shape of parameters and points; 0 beyond -1 and 1.

    It is infinite at 0 where both densities are infinite at the same end.

    Raises:
        ValueError: a parameter is not positive.
    """
    betas.require_positive(*first, *second)
    a1, b1, a2, b2, d = (
        np.asarray(array, np.float64) for array in np.broadcast_arrays(*first, *second, points)
    )
    turned, size = d < 0, np.abs(d)
    inner = (size > 0) & (size < 1)
    one = np.where(turned, a2, a1)[inner], np.where(turned, b2, b1)[inner]
    two = np.where(turned, a1, a2)[inner], np.where(turned, b1, b2)[inner]
    density = np.zeros(d.shape)
    density[inner] = _overlap(one, two, size[inner])
    alike = size == 0
    alpha, beta = (a1 + a2 - 1)[alike], (b1 + b2 - 1)[alike]
    proper = (alpha > 0) & (beta > 0)
    logs = special.betaln(np.where(proper, alpha, 1.0), np.where(proper, beta, 1.0))
    logs -= special.betaln(a1, b1)[alike] + special.betaln(a2, b2)[alike]
    density[alike] = np.where(proper, np.exp(logs), np.inf)
    return density


def _overlap(first: Belief, second: Belief, distance: Floats) -> Floats:
    """Integral of f_1(x) f_2(x - distance) [N], in two halves, each with at most one infinite factor."""
    span = Span.of(first, second, distance)
    half = span.width / 2
    flat = np.zeros(half.shape, np.bool_)
    lower = Span(span.start, span.rest + half, half, span.rough_start, flat)
    upper = Span(span.start + half, span.rest, half, flat, span.rough_end)
    one, two = ((alpha[:, None], beta[:, None]) for alpha, beta in (first, second))
    gap = distance[:, None]
    y, rest, weights = lower.nodes(NODES)
    low, middle = span.start, span.start + half
    end = density_at(low + distance, 1 - distance - low, first)
    held = special.betainc(*second, middle) - special.betainc(*second, low)
    found = end * held + dot(
        weights * density_at(y, rest + gap, two), density_at(y + gap, rest, one) - end[:, None]
    )
    y, rest, weights = upper.nodes(NODES)
    end = density_at(1 - distance - span.rest, span.rest + distance, second)
    held = special.betaincc(*first, middle + distance) - special.betaincc(*first, 1 - span.rest)
    found += end * held + dot(
        weights * density_at(y + gap, rest, one), density_at(y, rest + gap, two) - end[:, None]
    )
    return found
