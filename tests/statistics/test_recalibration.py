"""Maps from scores to probabilities."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import special

from service.statistics.binary.score_bins import bin_scores
from service.statistics.binary.score_mixture import MixtureFit
from service.statistics.binary.semi_supervised import ScorePosterior, learn_scores
from service.statistics.recalibration import FORMS, Form, recalibrate

BINS = bin_scores(np.random.default_rng(0).beta(0.7, 0.7, 3_000))


@cache
def mixture() -> MixtureFit:
    return learn_scores(BINS, np.random.default_rng(0)).mixture


def believed(log_odds: np.ndarray) -> ScorePosterior:
    return ScorePosterior(BINS, special.expit(log_odds), {"calibrated": 1.0}, mixture())


def straight(offsets: np.ndarray, slopes: np.ndarray) -> ScorePosterior:
    return believed(offsets[:, None] + slopes[:, None] * special.logit(BINS.scores))


@pytest.mark.parametrize("form", FORMS)
def test_scores_that_are_right_are_left_as_they_are(form: Form) -> None:
    found = recalibrate(straight(np.zeros(50), np.ones(50)), form)
    assert found.probability.mean == pytest.approx(BINS.scores, abs=1e-3)
    assert np.interp([0.25, 0.75], found.scores, found.probability.mean) == pytest.approx(
        [0.25, 0.75], abs=0.01
    )


def test_a_logistic_curve_is_reported_by_its_coefficients() -> None:
    rng = np.random.default_rng(0)
    found = recalibrate(straight(rng.normal(0.5, 0.2, 200), rng.normal(2.0, 0.1, 200)), "platt")
    offset, slope = found.coefficients["offset"], found.coefficients["slope"]
    assert (offset.mean, slope.mean) == (pytest.approx(0.5, abs=0.05), pytest.approx(2.0, abs=0.05))
    assert offset.upper - offset.lower == pytest.approx(4 * 0.2, rel=0.15)


def test_a_beta_map_bends_at_both_ends_by_itself() -> None:
    log_odds = 0.3 + 0.5 * np.log(BINS.scores) - 2.0 * np.log1p(-BINS.scores)
    found = recalibrate(believed(np.tile(log_odds, (20, 1))), "beta")
    assert [each.mean for each in found.coefficients.values()] == pytest.approx([0.3, 0.5, 2.0], abs=0.01)


def test_an_isotonic_map_rises() -> None:
    waves = 3 * np.sin(20 * BINS.scores) + 4 * BINS.scores
    found = recalibrate(believed(np.tile(waves, (20, 1))), "isotonic")
    assert np.all(np.diff(found.probability.mean) >= 0)
    # It keeps what is expected in all.
    assert BINS.counts @ found.probability.mean == pytest.approx(BINS.counts @ special.expit(waves))


def test_labels_of_an_overconfident_classifier_pull_the_map_to_the_middle() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.beta(0.8, 0.8, 4_000)
    scores = special.expit(2.5 * special.logit(probabilities))
    labels = np.where(np.arange(4_000) < 300, rng.random(4_000) < probabilities, -1)
    posterior = learn_scores(bin_scores(scores, labels.astype(np.int64)), rng)
    found = recalibrate(posterior, "platt")
    truth = special.expit(special.logit(np.array([0.02, 0.98])) / 2.5)
    assert np.interp([0.02, 0.98], found.scores, found.probability.mean) == pytest.approx(truth, abs=0.08)


def test_beta_calibration_is_for_probabilities_alone() -> None:
    rng = np.random.default_rng(0)
    posterior = learn_scores(bin_scores(rng.normal(size=300), unit=False), rng, draws=50, unit=False)
    with pytest.raises(ValueError, match="take platt or isotonic"):
        recalibrate(posterior, "beta")
    assert recalibrate(posterior, "platt").probability.mean.shape == posterior.bins.scores.shape
