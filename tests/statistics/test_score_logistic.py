"""A logistic curve of labels alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from service.statistics.binary.lapses import LAPSES, LOG_PRIOR, with_lapses
from service.statistics.binary.score_bins import NEGATIVE, POSITIVE, ScoreBins, bin_scores
from service.statistics.binary.score_logistic import LogisticPrior, fit_logistic, project_logistic

PRIOR = LogisticPrior(0.3, 0.8, 0.2, 0.4)


def labelled(scores: list[float], labels: list[int]) -> ScoreBins:
    return bin_scores(np.array(scores), np.array(labels))


def logits(bins: ScoreBins) -> np.ndarray:
    return np.asarray(special.logit(bins.scores))


def test_the_evidence_is_the_integral_of_likelihood_and_prior() -> None:
    bins = labelled([0.1, 0.4, 0.6, 0.9], [NEGATIVE, POSITIVE, NEGATIVE, POSITIVE])
    # 100 nodes a side and 400 agree to seven digits; 3e-3 of the prior is beyond these limits.
    nodes, weights = special.roots_legendre(100)
    offsets, log_slopes = 0.5 + 9.5 * nodes[:, None], 0.5 + 4.5 * nodes
    curves = special.expit(offsets[..., None] + np.exp(log_slopes)[:, None] * logits(bins))
    likelihood = np.zeros((100, 100))
    for lapses, log_share in zip(LAPSES, LOG_PRIOR, strict=True):
        right = with_lapses(curves, lapses, curves.mean(axis=-1))
        likelihood += np.exp(log_share) * np.prod(np.where(bins.positives > 0, right, 1 - right), axis=-1)
    density = likelihood * stats.t.pdf(offsets, 3, PRIOR.offset, PRIOR.offset_scale)
    density *= stats.t.pdf(log_slopes, 3, PRIOR.log_slope, PRIOR.log_slope_scale)
    wanted = 9.5 * 4.5 * weights @ density @ weights
    fit = fit_logistic(bins, logits, PRIOR, np.random.default_rng(0), draws=10)
    assert fit.log_label_evidence == pytest.approx(np.log(wanted), abs=0.01)


def test_without_labels_the_draws_are_the_priors() -> None:
    bins = labelled([0.1, 0.9], [-1, -1])
    fit = fit_logistic(bins, logits, PRIOR, np.random.default_rng(0), draws=20_000)
    assert fit.log_label_evidence == pytest.approx(0, abs=1e-9)
    for drawn, centre, scale in (
        (fit.offset, PRIOR.offset, PRIOR.offset_scale),
        (np.log(fit.slope), PRIOR.log_slope, PRIOR.log_slope_scale),
    ):
        wanted = stats.t.ppf([0.1, 0.5, 0.9], 3, centre, scale)
        assert np.quantile(drawn, [0.1, 0.5, 0.9]) == pytest.approx(wanted, abs=0.05)


def test_many_labels_tell_the_curve() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(20_000)
    truth = special.expit(-1.0 + 2.0 * special.logit(scores))
    bins = bin_scores(scores, (rng.random(20_000) < truth).astype(np.int64))
    fit = fit_logistic(bins, logits, PRIOR, rng, draws=400)
    assert fit.offset.mean() == pytest.approx(-1.0, abs=0.15)
    assert fit.slope.mean() == pytest.approx(2.0, abs=0.2)


def test_a_curve_is_nearest_to_itself() -> None:
    values = np.linspace(-4, 4, 50)
    design = np.column_stack((np.ones(50), values))
    found = project_logistic(
        design, special.expit(0.7 + 1.4 * values), np.full(50, 0.02), towards=np.array([0.0, 1.0])
    )
    assert found == pytest.approx([0.7, 1.4], abs=1e-3)


def test_a_curve_near_a_step_is_steep_and_finite() -> None:
    values = np.linspace(-4, 4, 50)
    design = np.column_stack((np.ones(50), values))
    found = project_logistic(
        design, (values > 0).astype(float), np.full(50, 0.02), towards=np.array([0.0, 1.0])
    )
    assert 5 < found[1] < 500


def test_a_positive_label_among_surely_negative_scores_is_held_for_a_lapse() -> None:
    scores = np.concatenate((np.full(900, 1e-5), np.full(100, 0.99999)))
    labels = np.full(1000, -1)
    labels[:60], labels[-6:] = NEGATIVE, POSITIVE
    calm = bin_scores(scores, labels.astype(np.int64))
    labels[0] = POSITIVE
    shaken = bin_scores(scores, labels.astype(np.int64))
    rng = np.random.default_rng(0)
    before, after = (fit_logistic(bins, logits, PRIOR, rng, draws=2_000) for bins in (calm, shaken))
    assert after.lapses[:, 0].mean() > 3 * before.lapses[:, 0].mean()
    assert np.median(after.slope) == pytest.approx(np.median(before.slope), rel=0.5)


def test_bins_in_greater_number_than_the_grid_takes_tell_the_same() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(3_000)
    labels = (rng.random(3_000) < scores).astype(np.int64)
    fine, coarse = (bin_scores(scores, labels, most=most) for most in (256, 72))
    one, other = (
        fit_logistic(bins, logits, PRIOR, np.random.default_rng(1), draws=800) for bins in (fine, coarse)
    )
    assert one.slope.mean() == pytest.approx(other.slope.mean(), abs=0.05)
    assert one.log_label_evidence < 0
