"""The difference of two Betas: against quadrature by scipy, its symmetries, and what a label tells of it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from service.statistics import comparison
from service.statistics.difference import difference_density

sizes = st.floats(-3, 8.5).map(np.exp).map(float)
tiny = st.floats(-14.5, 8.5).map(np.exp).map(float)
pairs = st.tuples(tiny, tiny)
proper_pairs = st.tuples(sizes, sizes)
regions = st.floats(1e-3, 0.9)

Pair = tuple[float, float]


def belief(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    return np.array(pair[0]), np.array(pair[1])


def probabilities(first: Pair, second: Pair, region: float, **options: int) -> np.ndarray:
    return comparison.rope_probabilities(belief(first), belief(second), region=region, **options)


def reference_above(first: Pair, second: Pair, region: float) -> float:
    """P(D > region) as the mean of S_1(theta_2 + region) over the quantiles of theta_2, piece by piece."""
    pieces = np.concatenate(
        [special.expit(np.linspace(-36, 0, 120)), 1 - special.expit(np.linspace(0, -36, 120))]
    )
    pieces = np.unique(np.concatenate([pieces, stats.beta.ppf(np.linspace(1e-9, 1 - 1e-9, 40), *second)]))
    pieces = pieces[(pieces > 0) & (pieces < 1)]
    ends = np.unique(np.concatenate([[0.0], special.betainc(*second, pieces), [1.0]]))

    def survives(p: float) -> float:
        x = special.betaincinv(*second, p) + region
        return float(special.betaincc(*first, x)) if x < 1 else 0.0

    # With its full output quad keeps to itself that it asked for more digits than the quantiles have.
    return sum(
        integrate.quad(survives, low, high, epsabs=1e-13, epsrel=1e-11, limit=200, full_output=1)[0]
        for low, high in itertools.pairwise(ends)
    )


CASES = [
    ((2.0, 3.0), (4.0, 2.0)),
    ((0.05, 0.05), (0.05, 0.05)),
    ((0.05, 5000.0), (5000.0, 0.05)),
    ((5000.0, 0.05), (300.0, 20.0)),
    ((5000.0, 5000.0), (2600.0, 2400.0)),
    ((900.0, 100.0), (0.5, 0.5)),
    ((0.3, 40.0), (1.2, 0.1)),
    ((1.0, 1.0), (45.0, 5.0)),
    ((5e-7, 5e-7), (5e-7, 5e-7)),
    ((5e-7, 1.0), (3.0, 8.0)),
    ((18.0, 5e-7), (12.0, 3.0)),
    ((80.0, 5.0), (2.0, 5e-7)),
]


@pytest.mark.parametrize("region", [0.001, 0.05, 0.3])
@pytest.mark.parametrize(("first", "second"), CASES)
def test_the_three_probabilities_are_those_of_quadrature(first: Pair, second: Pair, region: float) -> None:
    above, below = reference_above(first, second, region), reference_above(second, first, region)
    expected = [below, 1 - below - above, above]
    np.testing.assert_allclose(probabilities(first, second, region), expected, atol=1e-9)


def test_the_difference_of_uniforms_is_a_triangle() -> None:
    found = probabilities((1.0, 1.0), (1.0, 1.0), 0.2)
    np.testing.assert_allclose(found, [0.32, 0.36, 0.32], atol=1e-12)


def test_two_certain_groups_are_where_they_are() -> None:
    assert probabilities((2.0, 1e-9), (1e-9, 2.0), 0.5) == pytest.approx([0, 0, 1], abs=1e-8)


@given(pairs, pairs, regions)
def test_they_sum_to_one(first: Pair, second: Pair, region: float) -> None:
    found = probabilities(first, second, region)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-9)


@given(pairs, pairs, regions)
def test_they_swap_where_the_groups_swap(first: Pair, second: Pair, region: float) -> None:
    # One integrates the density of the one group, the other that of the other.
    found, swapped = probabilities(first, second, region), probabilities(second, first, region)
    np.testing.assert_allclose(found, swapped[::-1], atol=1e-9)


@given(pairs, pairs, regions, regions)
def test_a_wider_region_holds_more(first: Pair, second: Pair, one: float, two: float) -> None:
    narrow, wide = (probabilities(first, second, region) for region in sorted((one, two)))
    assert wide[1] >= narrow[1] - 1e-9
    assert (wide[[0, 2]] <= narrow[[0, 2]] + 1e-9).all()


@given(proper_pairs, proper_pairs, st.floats(0.01, 0.5))
def test_fewer_nodes_are_less_exact_within_bounds(first: Pair, second: Pair, region: float) -> None:
    exact = probabilities(first, second, region)
    np.testing.assert_allclose(probabilities(first, second, region, nodes=48), exact, atol=5e-6)
    np.testing.assert_allclose(probabilities(first, second, region, nodes=32), exact, atol=5e-3)


def test_pairs_broadcast_and_are_each_their_own() -> None:
    rng = np.random.default_rng(4)
    first, second = np.exp(rng.uniform(-2, 7, (2, 3, 1))), np.exp(rng.uniform(-2, 7, (2, 4)))
    found = comparison.rope_probabilities(tuple(first), tuple(second), region=0.05)
    assert found.shape == (3, 4, 3)
    for i, j in np.ndindex(3, 4):
        one = probabilities(tuple(first[:, i, 0]), tuple(second[:, j]), 0.05)
        np.testing.assert_allclose(found[i, j], one, atol=1e-13)


@given(pairs, pairs, st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.3))
def test_the_expected_confidence_is_that_of_the_beliefs_after_the_label(
    first: Pair, second: Pair, p: float, q: float, region: float
) -> None:
    def confidence(*parameters: float) -> float:
        return float(probabilities(parameters[:2], parameters[2:], region).max())

    found = comparison.expected_confidence(
        belief(first), belief(second), np.array(p), np.array(q), region=region
    )
    (a, b), (c, d) = first, second
    expected = [
        p * confidence(a + 1, b, c, d) + (1 - p) * confidence(a, b + 1, c, d),
        q * confidence(a, b, c + 1, d) + (1 - q) * confidence(a, b, c, d + 1),
    ]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(proper_pairs, proper_pairs)
def test_at_the_mean_a_label_is_expected_to_cost_no_confidence(first: Pair, second: Pair) -> None:
    chances = np.array(first[0] / sum(first)), np.array(second[0] / sum(second))
    found = comparison.expected_confidence(belief(first), belief(second), *chances, region=0.05)
    # The largest of three is convex, and the three are martingales.
    assert (found >= probabilities(first, second, 0.05).max() - 1e-9).all()


def test_where_no_label_changes_the_verdict_both_groups_promise_the_same() -> None:
    first, second = belief((45.0, 5.0)), belief((20.0, 30.0))
    found = comparison.expected_confidence(first, second, np.array(0.9), np.array(0.4), region=0.05)
    today = probabilities((45.0, 5.0), (20.0, 30.0), 0.05).max()
    np.testing.assert_allclose(found, today, atol=1e-11)


def test_no_pairs_have_no_probabilities() -> None:
    none = np.empty(0), np.empty(0)
    assert comparison.rope_probabilities(none, none, region=0.05).shape == (0, 3)


def test_a_group_without_labels_is_asked_rather_than_one_with_many() -> None:
    none, many = belief((1.0, 1.0)), belief((250.0, 250.0))
    found = comparison.expected_confidence(none, many, np.array(0.5), np.array(0.5), region=0.05)
    assert found[0] > found[1]


def test_expected_confidences_of_many_pairs_are_each_their_own() -> None:
    rng = np.random.default_rng(9)
    a, b, c, d = np.exp(rng.uniform(-1, 5, (4, 6)))
    p, q = rng.random((2, 6))
    found = comparison.expected_confidence((a, b), (c, d), p, q, region=0.05)
    for i in range(6):
        one = comparison.expected_confidence((a[i], b[i]), (c[i], d[i]), p[i], q[i], region=0.05)
        np.testing.assert_allclose(found[i], one, atol=1e-13)


def test_probabilities_of_mixtures_are_averages_by_weight() -> None:
    weights = np.array([[0.2, 0.8], [1.0, 0.0]])
    alpha, beta = np.array([[3.0, 30.0]]), np.array([[1.0, 5.0]])
    other = np.array([[2.0, 9.0], [0.5, 4.0]]), np.array([[2.0, 2.0], [1.5, 3.0]])
    found = comparison.mixture_rope_probabilities(weights, (alpha, beta), other, region=0.05)
    given_component = comparison.rope_probabilities((alpha, beta), other, region=0.05)
    np.testing.assert_allclose(
        found[0], 0.2 * given_component[0, 0] + 0.8 * given_component[0, 1], rtol=1e-12
    )
    np.testing.assert_allclose(found[1], given_component[1, 0], rtol=1e-12)


def reference_density(first: Pair, second: Pair, point: float) -> float:
    low, high = max(0.0, point), min(1.0, 1 + point)

    def both(x: float) -> float:
        return float(stats.beta.pdf(x, *first) * stats.beta.pdf(x - point, *second))

    ends = np.linspace(low, high, 60)
    return sum(
        integrate.quad(both, start, end, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
        for start, end in itertools.pairwise(ends)
    )


@pytest.mark.parametrize("point", [-0.9, -0.31, -0.02, 0.05, 0.4, 0.97])
@pytest.mark.parametrize(
    ("first", "second"), [((2.0, 3.0), (4.0, 2.0)), ((1.0, 1.5), (3.0, 1.0)), ((200.0, 100.0), (90.0, 80.0))]
)
def test_a_density_is_that_of_quadrature(first: Pair, second: Pair, point: float) -> None:
    found = difference_density(belief(first), belief(second), np.array(point))
    assert found == pytest.approx(reference_density(first, second, point), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(("first", "second"), [*CASES[:8], *CASES[9:]])
@pytest.mark.parametrize("point", [-0.3, 0.05, 0.6])
def test_a_density_is_the_slope_of_the_probability(first: Pair, second: Pair, point: float) -> None:
    step = 1e-4
    size, side = abs(point), 2 if point > 0 else 0
    slope = (
        probabilities(first, second, size - step)[side] - probabilities(first, second, size + step)[side]
    ) / (2 * step)
    found = difference_density(belief(first), belief(second), np.array(point))
    # A central difference leaves out the third derivative of a peak, whose width is a hundred steps.
    assert found == pytest.approx(slope, rel=1e-3, abs=1e-5)


def test_a_density_without_difference_is_exact() -> None:
    found = difference_density(belief((2.0, 3.0)), belief((4.0, 1.5)), np.zeros(1))
    low = integrate.quad(lambda x: stats.beta.pdf(x, 2, 3) * stats.beta.pdf(x, 4, 1.5), 0, 1)[0]
    assert found[0] == pytest.approx(low, rel=1e-9)


def test_two_infinite_densities_at_one_end_meet_in_an_infinite_one() -> None:
    found = difference_density(belief((0.4, 3.0)), belief((0.5, 3.0)), np.zeros(1))
    assert found[0] == np.inf


def test_a_density_holds_all_mass_and_none_beyond_one() -> None:
    points = np.linspace(-1.2, 1.2, 4801)
    density = difference_density(belief((6.0, 3.0)), belief((3.0, 4.0)), points)
    assert density.shape == points.shape
    assert integrate.simpson(density, x=points) == pytest.approx(1, abs=1e-8)
    assert (density[np.abs(points) >= 1] == 0).all()


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_parameters_that_are_not_positive_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        probabilities((2.0, bad), (1.0, 1.0), 0.05)
    with pytest.raises(ValueError, match="positive"):
        difference_density(belief((1.0, 1.0)), belief((bad, 1.0)), np.zeros(1))


@pytest.mark.parametrize("region", [-0.1, 0.0, 1.0, np.nan])
def test_a_region_that_is_none_is_refused(region: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        probabilities((2.0, 1.0), (1.0, 1.0), region)


@given(proper_pairs, proper_pairs, st.floats(0.01, 0.5), st.floats(0, 1), st.floats(0, 1))
def test_quick_expectations_are_near_the_exact_ones(
    first: Pair, second: Pair, region: float, one: float, other: float
) -> None:
    chances = np.array(one), np.array(other)
    sides = belief(first), belief(second)
    exact = comparison.expected_confidence(*sides, *chances, region=region)
    quick = comparison.expected_confidence(*sides, *chances, region=region, nodes=48, quick=True)
    np.testing.assert_allclose(quick, exact, atol=2e-5)
