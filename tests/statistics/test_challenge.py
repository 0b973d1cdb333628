"""Champion and challenger: posterior and evidence of their difference, from items on which they disagree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from service.statistics.challenge import ChallengeBeliefs, PairedLabels, mixed_difference

COUNTS = st.tuples(*(st.integers(0, 60),) * 3)
SHARES = st.floats(0.02, 1.0)
MARGINS = st.floats(0.0, 0.2)
QUADRATURE = 1e-4
"""Sixteen points are off by less than this, of few labels and of many."""


def beliefs(counts: tuple[float, float, float], share: float) -> ChallengeBeliefs:
    challenger, champion, neither = (np.array([float(count)]) for count in counts)
    return ChallengeBeliefs(np.array([share]), PairedLabels(challenger, champion, neither))


def draws(counts: tuple[float, float, float], share: float) -> np.ndarray:
    theta = np.random.default_rng(1).dirichlet(np.array(counts) + 0.5, 200_000)
    return np.asarray(share * (theta[:, 0] - theta[:, 1]))


@pytest.mark.parametrize("counts", [(0, 0, 0), (3, 1, 0), (12, 30, 5), (400, 350, 80)])
@pytest.mark.parametrize("share", [0.05, 0.4])
def test_mean_variance_and_probabilities_are_those_of_joint_draws(
    counts: tuple[int, int, int], share: float
) -> None:
    estimated, drawn = beliefs(counts, share), draws(counts, share)
    assert estimated.mean[0] == pytest.approx(drawn.mean(), abs=4 * drawn.std() / len(drawn) ** 0.5)
    assert estimated.variance[0] == pytest.approx(drawn.var(), rel=0.02)
    # Four standard errors of a share of 200,000 draws at the most.
    for margin in (0.0, 0.01, 0.03):
        assert estimated.better(margin)[0] == pytest.approx((drawn > margin).mean(), abs=0.0045)
        assert estimated.worse(margin)[0] == pytest.approx((drawn < -margin).mean(), abs=0.0045)


@given(counts=COUNTS, share=SHARES)
def test_without_a_margin_only_labels_that_tell_the_two_apart_count(
    counts: tuple[int, int, int], share: float
) -> None:
    challenger, champion, _ = counts
    better = special.betaincc(challenger + 0.5, champion + 0.5, 0.5)
    assert beliefs(counts, share).better(0.0)[0] == pytest.approx(better, abs=QUADRATURE)


@given(counts=COUNTS, share=SHARES, margin=MARGINS)
def test_who_swaps_the_two_swaps_what_is_said(
    counts: tuple[int, int, int], share: float, margin: float
) -> None:
    there, swapped = beliefs(counts, share), beliefs((counts[1], counts[0], counts[2]), share)
    assert there.better(margin)[0] == pytest.approx(swapped.worse(margin)[0], abs=1e-12)
    assert there.log_e_better(margin)[0] == pytest.approx(swapped.log_e_worse(margin)[0])
    assert there.mean[0] == pytest.approx(-swapped.mean[0], abs=1e-12)


@given(counts=COUNTS, share=SHARES, margin=MARGINS)
def test_better_worse_and_alike_are_all_there_is(
    counts: tuple[int, int, int], share: float, margin: float
) -> None:
    estimated = beliefs(counts, share)
    better, worse = estimated.better(margin)[0], estimated.worse(margin)[0]
    assert 0 <= better <= 1
    assert better + worse <= 1 + QUADRATURE
    assert estimated.better(margin + 0.01)[0] <= better + QUADRATURE


@pytest.mark.parametrize("counts", [(0, 0, 0), (2, 0, 1), (9, 4, 3), (900, 800, 400)])
@pytest.mark.parametrize("margin", [0.003, 0.05])
def test_sixteen_points_are_enough(counts: tuple[int, int, int], margin: float) -> None:
    q, p, rest = (count + 0.5 for count in counts)
    needed = margin / 0.3

    def above(x: float) -> float:
        s = np.sin(x) ** 2
        density = special.xlogy(2 * (q + p) - 1, np.sin(x)) + special.xlogy(2 * rest - 1, np.cos(x))
        density -= special.betaln(q + p, rest)
        return float(2 * np.exp(density) * special.betaincc(q, p, min(1.0, (1 + needed / s) / 2)))

    expected = integrate.quad(
        above, np.arcsin(np.sqrt(needed)), np.pi / 2, points=[np.arcsin(np.sqrt((q + p) / (q + p + rest)))]
    )[0]
    assert beliefs(counts, 0.3).better(margin)[0] == pytest.approx(expected, abs=QUADRATURE)


def test_who_hardly_disagrees_cannot_differ_by_more() -> None:
    estimated = beliefs((500, 0, 0), 0.005)
    assert estimated.better(0.01) == [0.0]
    assert estimated.log_e_better(0.01)[0] <= 0
    assert np.abs(beliefs((5, 1, 0), 0.0).interval(0.95)).max() == 0


@pytest.mark.parametrize("counts", [(8, 3, 2), (40, 70, 10)])
def test_intervals_hold_as_much_of_the_posterior_as_they_say(counts: tuple[int, int, int]) -> None:
    lower, upper = beliefs(counts, 0.3).interval(0.95)
    drawn = draws(counts, 0.3)
    # A Beta stands for the difference; it is off by a point at the most.
    assert ((drawn >= lower[0]) & (drawn <= upper[0])).mean() == pytest.approx(0.95, abs=0.01)


@given(
    counts=COUNTS,
    share=st.floats(0.05, 1.0),
    margin=st.floats(0.0, 0.04),
    decisive=st.floats(0.0, 1.0),
)
def test_one_more_label_leaves_evidence_as_it_is_at_the_margin(
    counts: tuple[int, int, int], share: float, margin: float, decisive: float
) -> None:
    # q - p = t exactly: a bet is fair then, whatever the share of labels that tell nobody.
    needed = margin / share
    both = needed + decisive * (1 - needed)
    q, p = (both + needed) / 2, (both - needed) / 2
    before = beliefs(counts, share).log_e_better(margin)[0]
    after = [
        beliefs((counts[0] + a, counts[1] + b, counts[2] + c), share).log_e_better(margin)[0]
        for a, b, c in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    expected = np.exp(np.array(after) - before) @ [q, p, 1 - q - p]
    assert expected == pytest.approx(1, abs=1e-6)


def test_evidence_is_the_mean_of_bets() -> None:
    found = beliefs((9, 3, 4), 0.5).log_e_better(0.0)[0]

    def capital(bet: float) -> float:
        return float((1 + bet) ** 9 * (1 - bet) ** 3)

    # A grid of 32 stands for the integral over all bets.
    assert np.exp(found) == pytest.approx(integrate.quad(capital, 0, 1)[0], rel=0.05)


def test_looking_after_every_label_seldom_finds_a_challenger_that_is_no_better() -> None:
    rng = np.random.default_rng(4)
    runs, labels, alpha = 1_000, 300, 0.05
    said = rng.choice(3, size=(runs, labels), p=[0.4, 0.4, 0.2])
    wins, losses, neither = ((said == k).cumsum(axis=1).ravel().astype(float) for k in range(3))
    estimated = ChallengeBeliefs(np.full(runs * labels, 0.1), PairedLabels(wins, losses, neither))
    ever = (estimated.log_e_better(0.0) >= -np.log(alpha)).reshape(runs, labels).any(axis=1)
    # Three standard errors above what is promised.
    assert ever.sum() <= stats.binom.ppf(0.9987, runs, alpha)
    better = special.betaincc(wins + 0.5, losses + 0.5, 0.5)
    looks = (better >= 1 - alpha).reshape(runs, labels).any(axis=1)
    assert looks.mean() > 3 * alpha


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_several_equal_imputations_are_as_one(share: float) -> None:
    one = beliefs((7.0, 3.0, 1.0), share)
    alone, mixed = mixed_difference([one], 0.95), mixed_difference([one] * 3, 0.95)
    assert alone.mean[0] == pytest.approx(mixed.mean[0])
    # Quantiles of mixtures are exact to a millionth of probability.
    assert [mixed.lower[0], mixed.upper[0]] == pytest.approx([alone.lower[0], alone.upper[0]], abs=1e-5)


def test_an_even_mixture_of_two_extremes_covers_both() -> None:
    low, high = beliefs((5.0, 45.0, 0.0), 0.5), beliefs((45.0, 5.0, 0.0), 0.5)
    mixed = mixed_difference([low, high], 0.95)
    assert mixed.mean[0] == pytest.approx(0.0, abs=1e-9)
    assert mixed.lower[0] < low.mean[0] < high.mean[0] < mixed.upper[0]


@pytest.mark.parametrize("wrong", [0.02, 0.1])
@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_if_the_share_of_wrong_labels_is_at_most_the_bound_one_more_gains_nothing_on_average(
    wrong: float, margin: float
) -> None:
    """A wrong label may say the most that it can: that the challenger alone is right, not the model."""
    share, before = 0.4, (6.0, 4.0, 2.0)
    # As likely as the margin allows.
    q, p = (1 + margin / share) / 2, (1 - margin / share) / 2
    said = np.array([q + wrong, p - wrong, 0.0])
    now = beliefs(before, share).log_e_better(margin, wrong_labels=wrong)[0]
    then = [
        beliefs(tuple(np.array(before) + one), share).log_e_better(margin, wrong_labels=wrong)[0]
        for one in np.eye(3)
    ]
    assert said @ np.exp(np.array(then) - now) == pytest.approx(1.0, abs=1e-9)
    unaware = [beliefs(tuple(np.array(before) + one), share).log_e_better(margin)[0] for one in np.eye(3)]
    assert said @ np.exp(np.array(unaware) - beliefs(before, share).log_e_better(margin)[0]) > 1
