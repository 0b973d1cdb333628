"""Mixtures of two distributions of scores."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import special, stats

from service.statistics.binary.score_bins import UNLABELLED, ScoreBins, bin_scores
from service.statistics.binary.score_mixture import MixtureFit, UnlabelledFit, fit_mixture, fit_unlabelled

SHARE, POSITIVES, NEGATIVES = 0.2, stats.beta(8, 2), stats.beta(2, 7)


def separated(count: int = 3_000, *, known: int = 0, seed: int = 0) -> ScoreBins:
    """Scores of which 20% are positive, and the labels of some."""
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < SHARE
    scores = np.where(
        positive, POSITIVES.rvs(count, random_state=rng), NEGATIVES.rvs(count, random_state=rng)
    )
    labels = np.where(np.arange(count) < known, positive, UNLABELLED).astype(np.int64)
    return bin_scores(scores, labels)


def unlabelled_fit(bins: ScoreBins, *, unit: bool = True) -> UnlabelledFit:
    return fit_unlabelled(bins, np.random.default_rng(1), draws=600, unit=unit)


def fitted(bins: ScoreBins, unlabelled: UnlabelledFit | None = None) -> MixtureFit:
    rng = np.random.default_rng(2)
    return fit_mixture(bins, unlabelled or unlabelled_fit(bins), rng, draws=600)


@cache
def separated_alone() -> UnlabelledFit:
    """The fit to the scores of `separated`, whichever of them are labelled."""
    return unlabelled_fit(separated())


@pytest.fixture(scope="module")
def fit() -> MixtureFit:
    return fitted(separated(), separated_alone())


def test_without_a_label_the_classes_are_told_apart(fit: MixtureFit) -> None:
    bins = separated()
    truth = special.expit(
        special.logit(SHARE) + POSITIVES.logpdf(bins.scores) - NEGATIVES.logpdf(bins.scores)
    )
    found = fit.probabilities
    # Per item: bins are of different sizes.
    error = np.average(np.abs(found.mean(axis=0) - truth), weights=bins.counts)
    assert error < 0.03
    assert fit.separation > 0.6


def test_without_a_label_the_share_is_within_its_interval(fit: MixtureFit) -> None:
    bins = separated()
    shares = fit.probabilities @ bins.counts / bins.total
    lower, upper = np.quantile(shares, [0.025, 0.975])
    assert lower < SHARE < upper


def test_scores_that_are_such_a_mixture_are_no_misfit(fit: MixtureFit) -> None:
    assert fit.distance < 0.02
    assert fit.misfit_p_value > 0.05
    # As how many scores all of them count, in the tempered likelihood.
    assert separated_alone().share * separated().total > 2_000


def test_scores_that_are_none_are_a_misfit_and_count_for_less() -> None:
    rng = np.random.default_rng(0)
    lumps = np.concatenate([rng.normal(at, 0.01, 4_000) for at in (0.1, 0.3, 0.5, 0.7, 0.9)])
    bins = bin_scores(np.clip(lumps, 0, 1))
    unlabelled = unlabelled_fit(bins)
    assert fitted(bins, unlabelled).misfit_p_value < 0.01
    assert unlabelled.share * bins.total < 5_000


def test_classes_that_overlap_are_not_separated() -> None:
    scores = np.random.default_rng(0).beta(3, 3, 5_000)
    assert fitted(bin_scores(scores)).separation < 0.3


def test_no_label_is_no_evidence(fit: MixtureFit) -> None:
    assert fit.log_label_evidence == 0


def test_labels_as_expected_are_more_probable_than_their_opposites() -> None:
    bins = separated(known=40)
    right = fitted(bins, separated_alone())
    swapped = ScoreBins(bins.edges, bins.scores, bins.counts, bins.negatives, bins.positives)
    assert right.log_label_evidence > -25
    assert fitted(swapped, separated_alone()).log_label_evidence < right.log_label_evidence - 40


@pytest.mark.parametrize("seed", range(3))
def test_labels_are_never_more_probable_than_sure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.beta(1, 8, 1_000) if seed else 0.3 * rng.random(800)
    labels = np.where(np.arange(len(scores)) < 20, 0, UNLABELLED)
    assert fitted(bin_scores(scores, labels)).log_label_evidence <= 0


def test_ten_negative_labels_make_no_mixture_sure() -> None:
    scores = 0.3 * np.random.default_rng(0).random(800)
    labels = np.where(np.arange(800) < 10, 0, UNLABELLED)
    # What a uniform belief about the highest of the scores would make of them, and some more.
    assert -12 < fitted(bin_scores(scores, labels)).log_label_evidence < 0


def test_the_draws_that_are_left_of_many_labels_are_reported() -> None:
    bins = separated(12_000, known=8_000)
    fit = fitted(bins)
    different = len(np.unique(fit.probabilities[:, len(bins.counts) // 2]))
    assert different > 100
    assert fit.draws.effective < 2 * different


def test_the_separation_is_that_of_the_scores_alone(fit: MixtureFit) -> None:
    assert fitted(separated(known=50)).separation == fit.separation


def test_scores_that_are_cut_off_at_the_ends_are_fitted() -> None:
    rng = np.random.default_rng(0)
    scores = np.clip(np.concatenate([rng.normal(-0.3, 0.3, 4_000), rng.normal(0.9, 0.3, 1_000)]), 0, 1)
    fit = fitted(bin_scores(scores))
    assert fit.distance < 0.03
    assert np.all(np.isfinite(fit.probabilities))


def test_margins_of_a_linear_machine_are_fitted() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(-2, 0.8, 4_000), rng.normal(2, 0.8, 1_000)])
    bins = bin_scores(scores, unit=False)
    fit = fitted(bins, unlabelled_fit(bins, unit=False))
    shares = fit.probabilities @ bins.counts / bins.total
    assert shares.mean() == pytest.approx(0.2, abs=0.02)
    assert "logit-normal" not in (fit.negative, fit.positive)


def test_the_same_seed_gives_the_same() -> None:
    one, other = fitted(separated(known=10)), fitted(separated(known=10), separated_alone())
    assert np.array_equal(one.probabilities, other.probabilities)
    assert one.log_label_evidence == other.log_label_evidence
