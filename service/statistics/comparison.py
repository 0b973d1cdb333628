"""The difference D = theta_1 - theta_2 of two independent Betas: is it beyond what does not matter?

A belief is a pair (alpha, beta) of arrays of any shapes that broadcast [...]. Everything is by quadrature:
10,000 draws have a standard error of up to .005, more than what labels are expected to tell differs by.

P(D > e) is the integral of f_1(x) F_2(x - e) over [e, 1]. Its ends are cut to where both beliefs have mass;
an end near which a density may be infinite is stretched by u^4, so that Gauss-Legendre nodes crowd there; and
with F_2 - F_2(end) in place of F_2 the integrand is bounded at x = 1 even where f_1 has all its mass there.
P(D < -e) is the same of the beliefs about 1 - theta.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats
from service.statistics import beta as betas

Belief = tuple[Floats, Floats]

NODES = 64
"""Nodes that keep probabilities to 1e-9, where the region is .001 or more and parameters are up to 10,000.

48 keep them to 2e-6, 32 to 3e-3. Time goes with the nodes, most of it into F_2.
"""

_TAIL_LOG = 27.6
"""The mass of a belief beyond an end that is cut is at most exp(-27.6), 1e-12."""

_SMOOTH_FROM = 4.0
"""A density of an end whose parameter is less is not taken for smooth there, and not cut."""

_STRETCH = 4
"""Power by which nodes crowd at an end that is not smooth."""


@dataclass(frozen=True)
class _Span:
    """Where f_1(x) F_2(x - region) is integrated.

    Attributes:
        start: y = x - region at the lower end [...].
        rest: 1 - x at the upper end [...].
        width: between them [...]; 0 where the beliefs do not meet.
        rough_start: whether the integrand is not smooth near the lower end [...].
        rough_end: the same of the upper end.
    """

    start: Floats
    rest: Floats
    width: Floats
    rough_start: Flags
    rough_end: Flags

    @classmethod
    def of(cls, first: Belief, second: Belief, region: Floats) -> Self:
        (a1, b1), (a2, b2) = first, second
        start = np.clip(np.maximum(_low(a2, b2), _low(a1, b1) - region), 0.0, 1 - region)
        rest = np.clip(np.maximum(_low(b1, a1), _low(b2, a2) - region), 0.0, 1 - region - start)
        width = 1 - region - rest - start

        def rough(parameter: Floats, distance: Floats) -> Flags:
            return np.asarray((parameter < _SMOOTH_FROM) & (distance < width), np.bool_)

        return cls(
            start,
            rest,
            width,
            rough(a2, start) | rough(a1, start + region),
            rough(b1, rest) | rough(b2, rest + region),
        )

    def nodes(self, count: int) -> tuple[Floats, Floats, Floats]:
        """Values of x - region and 1 - x, both exact near 0, and weights [..., count]."""
        kind = self.rough_start.astype(np.intp), self.rough_end.astype(np.intp)
        ahead, behind, weights = (table[kind] for table in _rules(count))
        width = self.width[..., None]
        return self.start[..., None] + width * ahead, self.rest[..., None] + width * behind, width * weights


def rope_probabilities(first: Belief, second: Belief, *, region: float, nodes: int = NODES) -> Floats:
    """P(D < -region), P(|D| <= region) and P(D > region) [..., 3] (Ji et al. 2021, comparison).

    Args:
        first: belief about theta_1.
        second: belief about theta_2.
        region: difference that does not matter, above 0, below 1.
        nodes: of the quadrature.

    Raises:
        ValueError: a parameter is not positive, or the region is not between 0 and 1.
    """
    first, second = _checked(first, second, region)
    below = _above(first[::-1], second[::-1], region, nodes)[..., 0]
    return _three(below, _above(first, second, region, nodes)[..., 0])


def expected_confidence(
    first: Belief,
    second: Belief,
    probability_first: Floats,
    probability_second: Floats,
    *,
    region: float,
    nodes: int = NODES,
    quick: bool = False,
) -> Floats:
    """Expected largest of the three probabilities after one more label of group 1, and of group 2 [..., 2].

    The reward for comparing (Ji et al. 2021, table 1). All four labels that may come share the nodes: they
    multiply f_1 by theta or 1 - theta, or shift F_2 by x^a (1 - x)^b / (a B(a, b)), up to the parameter.

    With the means for probabilities, both are today's confidence wherever no one label changes which of the
    three is largest, and differ by rounding alone: a caller who compares them must settle ties.

    Args:
        first: belief about theta_1.
        second: belief about theta_2.
        probability_first: that a label of group 1 is right [...].
        probability_second: that a label of group 2 is right [...].
        region: difference that does not matter, above 0, below 1.
        nodes: of the quadrature.
        quick: whether F_2 is integrated from its density at the nodes, which is three times faster, and with
            48 nodes right to 2e-6.

    Raises:
        ValueError: a parameter is not positive, or the region is not between 0 and 1.
    """
    first, second = _checked(first, second, region)
    below = _above(first[::-1], second[::-1], region, nodes, labels=True, quick=quick)
    # What is right of theta is wrong of 1 - theta.
    below = below[..., [0, 2, 1, 4, 3]]
    above = _above(first, second, region, nodes, labels=True, quick=quick)
    confidence = _three(below, above).max(axis=-1)[..., 1:]
    right, wrong = confidence[..., ::2], confidence[..., 1::2]
    chances = np.stack(np.broadcast_arrays(probability_first, probability_second), axis=-1)
    return np.asarray(chances * right + (1 - chances) * wrong, np.float64)


def mixture_rope_probabilities(
    weights: Floats, first: Belief, second: Belief, *, region: float, nodes: int = NODES
) -> Floats:
    """The three probabilities [..., 3] where both beliefs are mixtures over the same components.

    Args and errors are those of `rope_probabilities`, but for:
        weights: of the components [..., J], summing to 1.
        first: belief about theta_1 given the component, parameters [..., J].
        second: belief about theta_2 given the component, independent of the first.
    """
    given = rope_probabilities(first, second, region=region, nodes=nodes)
    return np.asarray((np.asarray(weights)[..., None] * given).sum(axis=-2), np.float64)


def difference_density(first: Belief, second: Belief, points: Floats, *, nodes: int = NODES) -> Floats:
    """Density of D at the points, for plots.

    Args:
        first: belief about theta_1 [...].
        second: belief about theta_2 [...].
        points: differences, which broadcast with the parameters; beyond -1 and 1 the density is 0.
        nodes: of the quadrature, on either half.

    Returns:
        Density, in the common shape; infinite at 0 where both beliefs are infinitely dense at the same end.

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
    density[inner] = _overlap(one, two, size[inner], nodes)
    alike = size == 0
    alpha, beta = (a1 + a2 - 1)[alike], (b1 + b2 - 1)[alike]
    proper = (alpha > 0) & (beta > 0)
    logs = special.betaln(np.where(proper, alpha, 1.0), np.where(proper, beta, 1.0))
    logs -= special.betaln(a1, b1)[alike] + special.betaln(a2, b2)[alike]
    density[alike] = np.where(proper, np.exp(logs), np.inf)
    return density


def _above(
    first: Belief, second: Belief, region: float, nodes: int, *, labels: bool = False, quick: bool = False
) -> Floats:
    """P(D > region) [..., 1], or also after a label: right or wrong of group 1, then of group 2 [..., 5]."""
    (a1, b1), (a2, b2) = first, second
    span = _Span.of(first, second, np.asarray(region))
    y, rest, weights = span.nodes(nodes)
    x = y + region
    density = _density(x, rest, (a1[..., None], b1[..., None])) * weights
    low, high = span.start + region, 1 - region - span.rest
    mass_end = np.asarray(special.betainc(a2, b2, high), np.float64)
    share = special.betaincc(a1, b1, low)
    if quick:
        mass = _mass_to_end(y, rest + region, weights, second, mass_end)
    else:
        mass = np.asarray(special.betainc(a2[..., None], b2[..., None], y), np.float64) - mass_end[..., None]
    found = [mass_end * share + _dot(density, mass)]
    if labels:
        bump = _bump(y, rest + region, (a2[..., None], b2[..., None]))
        bump_end = _bump(high, span.rest + region, second)
        bump -= bump_end[..., None]
        shifted = bump_end * share + _dot(density, bump)
        bump_low = _bump(low, 1 - low, first)
        density *= mass
        right = mass_end * (share + bump_low / a1) + _dot(density, x) * (a1 + b1) / a1
        wrong = mass_end * (share - bump_low / b1) + _dot(density, rest) * (a1 + b1) / b1
        found += [right, wrong, found[0] - shifted / a2, found[0] + shifted / b2]
    return np.stack(found, axis=-1)


def _mass_to_end(y: Floats, beyond: Floats, weights: Floats, belief: Belief, mass_end: Floats) -> Floats:
    """F(y) less F at the upper end [..., nodes]: the density integrated as the polynomial through its nodes.

    Only where the density is infinite at 0 is F itself computed, at ten times the cost.
    """
    alpha, beta = (parameter[..., None] for parameter in belief)
    count = y.shape[-1]
    rule = np.polynomial.legendre.leggauss(count)[1] / 2
    mass = -(_density(y, beyond, (alpha, beta)) * weights / rule) @ _integration(count).T
    infinite = np.broadcast_to(belief[0] < 1, mass.shape[:-1])
    if infinite.any():
        alphas, betas_ = (np.broadcast_to(p, infinite.shape)[infinite][:, None] for p in belief)
        mass[infinite] = special.betainc(alphas, betas_, y[infinite]) - mass_end[infinite][:, None]
    return np.asarray(mass, np.float64)


def _overlap(first: Belief, second: Belief, distance: Floats, nodes: int) -> Floats:
    """Integral of f_1(x) f_2(x - distance) [N], in two halves: each has one infinite factor at most."""
    span = _Span.of(first, second, distance)
    half = span.width / 2
    flat = np.zeros(half.shape, np.bool_)
    lower = _Span(span.start, span.rest + half, half, span.rough_start, flat)
    upper = _Span(span.start + half, span.rest, half, flat, span.rough_end)
    one, two = ((alpha[:, None], beta[:, None]) for alpha, beta in (first, second))
    gap = distance[:, None]
    found = np.zeros(half.shape)
    y, rest, weights = lower.nodes(nodes)
    low, middle = span.start, span.start + half
    end = _density(low + distance, 1 - distance - low, first)
    held = special.betainc(*second, middle) - special.betainc(*second, low)
    found += end * held + _dot(
        weights * _density(y, rest + gap, two), _density(y + gap, rest, one) - end[:, None]
    )
    y, rest, weights = upper.nodes(nodes)
    end = _density(1 - distance - span.rest, span.rest + distance, second)
    held = special.betaincc(*first, middle + distance) - special.betaincc(*first, 1 - span.rest)
    found += end * held + _dot(
        weights * _density(y + gap, rest, one), _density(y, rest + gap, two) - end[:, None]
    )
    return found


def _checked(first: Belief, second: Belief, region: float) -> tuple[Belief, Belief]:
    """The beliefs in their common shape."""
    betas.require_positive(*first, *second)
    if not 0 < region < 1:
        raise ValueError("the region of practical equivalence must be between 0 and 1")
    a1, b1, a2, b2 = (np.asarray(array, np.float64) for array in np.broadcast_arrays(*first, *second))
    return (a1, b1), (a2, b2)


def _three(below: Floats, above: Floats) -> Floats:
    """Probabilities of the three regions [..., 3], free of what rounding adds."""
    below, above = np.clip(below, 0.0, 1.0), np.clip(above, 0.0, 1.0)
    return np.stack([below, np.maximum(1 - below - above, 0.0), above], axis=-1)


def _low(alpha: Floats, beta: Floats) -> Floats:
    """A value below which there is no mass to speak of; 0 where the density is not smooth at 0.

    It is that after a label which lowers the belief: one that is nearly certain of 1 has hardly any mass to
    cut by, and such a label moves all of it. By Bernstein's bound for Betas (Skorski, Modern Stochastics
    2023), P(theta < mu - t) <= exp(-t^2 / (2 (v + c t / 3))) with c = 2 (a - b) / (n (n + 2)) if that is
    positive, else 0: nearly as far in as the quantile, and much faster.
    """
    beta = beta + 1
    total = alpha + beta
    mean, spread = betas.mean(alpha, beta), betas.variance(alpha, beta)
    lean = np.maximum(2 * (alpha - beta) / (total * (total + 2)), 0.0) * _TAIL_LOG / 3
    low = mean - lean - np.sqrt(lean**2 + 2 * _TAIL_LOG * spread)
    return np.where(alpha < _SMOOTH_FROM, 0.0, np.maximum(low, 0.0))


def _bump(x: Floats, rest: Floats, belief: Belief) -> Floats:
    """x^a (1 - x)^b / B(a, b)."""
    alpha, beta = belief
    return np.asarray(
        np.exp(special.xlogy(alpha, x) + special.xlogy(beta, rest) - special.betaln(alpha, beta)), np.float64
    )


def _density(x: Floats, rest: Floats, belief: Belief) -> Floats:
    """Density at x = 1 - rest; at 0 and 1 that of the nearest double, since there it may be infinite."""
    alpha, beta = belief
    least = np.finfo(np.float64).tiny
    logs = (alpha - 1) * np.log(np.maximum(x, least)) + (beta - 1) * np.log(np.maximum(rest, least))
    return np.asarray(np.exp(logs - special.betaln(alpha, beta)), np.float64)


def _dot(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.einsum("...n,...n->...", one, other), np.float64)


@cache
def _rules(count: int) -> tuple[Floats, Floats, Floats]:
    """Gauss-Legendre on [0, 1]: nodes, 1 - nodes and weights [2, 2, count], by whether an end is stretched.

    The stretched u is I(u; p, q), with a power of 1 at an end that is left as it is.
    """
    raw, weights = np.polynomial.legendre.leggauss(count)
    u, v = (1 + raw) / 2, (1 - raw) / 2
    powers = np.array([1, _STRETCH])
    p, q = powers[:, None, None], powers[None, :, None]
    slope = u ** (p - 1) * v ** (q - 1) / special.beta(p, q)
    ahead, behind = special.betainc(p, q, u), special.betainc(q, p, v)
    return np.asarray(ahead, np.float64), np.asarray(behind, np.float64), slope * weights / 2


@cache
def _integration(count: int) -> Floats:
    """Matrix [n, n] that integrates the polynomial through nodes on [0, 1] from each of them to 1."""
    raw = np.polynomial.legendre.leggauss(count)[0]
    legendre = np.polynomial.legendre
    values = legendre.legvander(raw, count - 1)
    primitives = np.stack([legendre.legval(raw, legendre.legint(row)) for row in np.eye(count)], axis=1)
    ends = np.array([legendre.legval(1.0, legendre.legint(row)) for row in np.eye(count)])
    return np.asarray((ends - primitives) @ np.linalg.inv(values) / 2, np.float64)
