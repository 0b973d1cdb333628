"""Mixtures of two distributions of scores."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import special, stats

from service.statistics.binary.score_bins import ScoreBins, bin_scores
from service.statistics.binary.score_mixture import MixtureFit, fit_mixture

SHARE, POSITIVES, NEGATIVES = 0.2, stats.beta(8, 2), stats.beta(2, 7)


def separated(count: int = 3_000) -> ScoreBins:
    """Scores of which 20% are positive."""
    rng = np.random.default_rng(0)
    positive = rng.random(count) < SHARE
    scores = np.where(
        positive, POSITIVES.rvs(count, random_state=rng), NEGATIVES.rvs(count, random_state=rng)
    )
    return bin_scores(scores)


def fitted(bins: ScoreBins, *, unit: bool = True) -> MixtureFit:
    return fit_mixture(bins, np.random.default_rng(1), draws=600, unit=unit)


@pytest.fixture(scope="module")
def fit() -> MixtureFit:
    return fitted(separated())


def test_without_a_label_the_classes_are_told_apart(fit: MixtureFit) -> None:
    bins = separated()
    truth = special.expit(
        special.logit(SHARE) + POSITIVES.logpdf(bins.scores) - NEGATIVES.logpdf(bins.scores)
    )
    # Per item: bins are of different sizes.
    error = np.average(np.abs(fit.expected - truth), weights=bins.counts)
    assert error < 0.03
    assert fit.separation > 0.6


def test_without_a_label_the_share_is_within_its_interval(fit: MixtureFit) -> None:
    shares = special.expit(fit.draws.parameters[:, 0])
    lower, upper = np.quantile(shares, [0.025, 0.975])
    assert lower < SHARE < upper


def test_scores_that_are_such_a_mixture_are_no_misfit(fit: MixtureFit) -> None:
    assert fit.distance < 0.02
    assert fit.misfit_p_value > 0.05
    # As how many scores all of them count, in the tempered likelihood.
    assert fit.share * separated().total > 2_000


def test_scores_that_are_none_are_a_misfit_and_count_for_less() -> None:
    rng = np.random.default_rng(0)
    lumps = np.concatenate([rng.normal(at, 0.01, 4_000) for at in (0.1, 0.3, 0.5, 0.7, 0.9)])
    bins = bin_scores(np.clip(lumps, 0, 1))
    found = fitted(bins)
    assert found.misfit_p_value < 0.01
    assert found.share * bins.total < 5_000


def test_classes_that_overlap_are_not_separated() -> None:
    scores = np.random.default_rng(0).beta(3, 3, 5_000)
    assert fitted(bin_scores(scores)).separation < 0.3


def test_scores_that_are_cut_off_at_the_ends_are_fitted() -> None:
    rng = np.random.default_rng(0)
    scores = np.clip(np.concatenate([rng.normal(-0.3, 0.3, 4_000), rng.normal(0.9, 0.3, 1_000)]), 0, 1)
    fit = fitted(bin_scores(scores))
    assert fit.distance < 0.03
    assert np.all(np.isfinite(fit.expected))


def test_margins_of_a_linear_machine_are_fitted() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(-2, 0.8, 4_000), rng.normal(2, 0.8, 1_000)])
    bins = bin_scores(scores, unit=False)
    fit = fitted(bins, unit=False)
    assert fit.expected @ bins.counts / bins.total == pytest.approx(0.2, abs=0.02)
    assert "logit-normal" not in (fit.negative, fit.positive)


def test_labels_do_not_change_it(fit: MixtureFit) -> None:
    bins = separated()
    labelled = fitted(dataclasses.replace(bins, positives=0.1 * bins.counts))
    assert np.array_equal(labelled.expected, fit.expected)


def test_the_same_seed_gives_the_same(fit: MixtureFit) -> None:
    assert np.array_equal(fitted(separated()).draws.parameters, fit.draws.parameters)
