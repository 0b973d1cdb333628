"""Smooth curves of P(positive), learned by strata of scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from service.statistics.binary.score_process import (
    CurvePrior,
    Hypothesis,
    Labels,
    ScoreProcess,
)

VALUES = np.linspace(-3, 3, 13)
SIDE = 0.4
PRIOR = CurvePrior("calibrated", 0.3, 0.8, 1.0, 0.4, length=2.0, weight=1.0)


def process(*sigmas: float, prior: CurvePrior = PRIOR, values: np.ndarray = VALUES) -> ScoreProcess:
    return ScoreProcess([Hypothesis(values, prior)], values >= 0, sigmas)


def none(size: int = len(VALUES)) -> Labels:
    return Labels(np.zeros(size), np.zeros(size))


def test_without_labels_the_curve_is_as_expected() -> None:
    found = process(0.2).draw(none(), np.random.default_rng(0), count=4_000).log_odds
    assert found.mean(axis=0) == pytest.approx(0.3 + VALUES, abs=0.15)
    spread = np.sqrt(0.8**2 + 0.4**2 * VALUES**2 + 0.2**2 + SIDE**2)
    assert found.std(axis=0) == pytest.approx(spread, rel=0.1)


def test_deviations_leave_the_mean_probability_where_the_curve_has_it() -> None:
    certain = PRIOR._replace(offset_deviation=1e-3, slope_deviation=1e-3)
    found = process(2.0, prior=certain).draw(none(), np.random.default_rng(0), count=20_000).log_odds
    assert special.expit(found).mean(axis=0) == pytest.approx(special.expit(0.3 + VALUES), abs=0.03)


def test_one_stratum_has_the_posterior_of_quadrature() -> None:
    one = process(0.5, values=np.array([1.0]))
    found = one.draw(Labels(np.array([3.0]), np.array([9.0])), np.random.default_rng(0), count=20_000)
    variance = 0.5**2 + SIDE**2
    mean = 1.3 * np.sqrt(1 + np.pi * variance / 8)
    prior = stats.norm(min(mean, 1.3 + variance / 2), np.sqrt(0.8**2 + 0.4**2 + variance))

    def density(f: float) -> float:
        return float(prior.pdf(f) * special.expit(f) ** 3 * special.expit(-f) ** 9)

    total = integrate.quad(density, -10, 10)[0]
    expected = integrate.quad(lambda f: f * density(f), -10, 10)[0] / total
    square = integrate.quad(lambda f: (f - expected) ** 2 * density(f), -10, 10)[0] / total
    assert found.log_odds.mean() == pytest.approx(expected, abs=0.02)
    assert found.log_odds.std() == pytest.approx(np.sqrt(square), rel=0.03)


def test_labels_of_high_scores_leave_open_what_is_far_below() -> None:
    positives = np.zeros(len(VALUES))
    positives[-3:] = 40
    labels = Labels(positives, np.zeros(len(VALUES)))
    rough = process(2.0).draw(labels, np.random.default_rng(0), count=2_000).log_odds.std(axis=0)
    smooth = process(0.2).draw(labels, np.random.default_rng(0), count=2_000).log_odds.std(axis=0)
    assert rough[0] > 1.5 * smooth[0]


def test_hypotheses_are_weighted_by_how_probable_they_made_the_labels() -> None:
    up, down = PRIOR._replace(slope=2.0), PRIOR._replace(name="reversed", slope=-2.0)
    both = ScoreProcess([Hypothesis(VALUES, up), Hypothesis(VALUES, down)], VALUES >= 0, (0.2,))
    positives = np.where(VALUES > 0, 8.0, 0.0)
    weights = both.draw(Labels(positives, 8 - positives), np.random.default_rng(0), count=100).weights
    assert weights["calibrated"] > 0.99
    assert sum(weights.values()) == pytest.approx(1)


def test_a_fit_that_starts_from_the_last_one_is_the_same() -> None:
    rng = np.random.default_rng(0)
    first = Labels(rng.integers(0, 3, 13).astype(float), rng.integers(0, 3, 13).astype(float))
    second = Labels(first.positives + 1, first.negatives + 2)
    warm = process(0.5, 1.0)
    warm.draw(first, np.random.default_rng(1), count=10)
    again = warm.draw(second, np.random.default_rng(2), count=500).log_odds
    cold = process(0.5, 1.0).draw(second, np.random.default_rng(2), count=500).log_odds
    np.testing.assert_allclose(again, cold, atol=1e-3)


def test_many_labels_are_followed_wherever_they_lead() -> None:
    truth = 0.05 + 0.4 * (np.arange(13) % 2)
    labels = Labels(10_000 * truth, 10_000 * (1 - truth))
    found = process(2.0).draw(labels, np.random.default_rng(0), count=500).log_odds
    assert special.expit(found).mean(axis=0) == pytest.approx(truth, abs=0.02)


def test_sums_on_either_side_follow_the_labels_where_the_curve_is_of_a_wrong_shape() -> None:
    values = np.linspace(-3, 3, 26)
    truth = special.expit(0.6 * values + np.sign(values))
    found = process(0.2, values=values).draw(
        Labels(200 * truth, 200 * (1 - truth)), np.random.default_rng(0), count=2_000
    )
    means = special.expit(found.log_odds).mean(axis=0)
    for side in (values < 0, values >= 0):
        assert means[side].mean() == pytest.approx(truth[side].mean(), abs=0.005)
