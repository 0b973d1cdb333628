"""What few labels and many scores tell together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy import special

from service.statistics.binary.score_bins import NEGATIVE, UNLABELLED, ScoreBins, bin_scores
from service.statistics.binary.score_mixture import MixtureFit, fit_mixture
from service.statistics.binary.semi_supervised import WAYS, ScorePosterior, learn_scores


def labelled(scores: np.ndarray, probabilities: np.ndarray, known: int, *, unit: bool = True) -> ScoreBins:
    rng = np.random.default_rng(5)
    truth = rng.random(len(scores)) < probabilities
    labels = np.where(np.arange(len(scores)) < known, truth, UNLABELLED)
    return bin_scores(scores, labels.astype(np.int64), unit=unit)


def learnt(bins: ScoreBins, *, unit: bool = True, mixture: MixtureFit | None = None) -> ScorePosterior:
    return learn_scores(bins, np.random.default_rng(1), draws=300, unit=unit, mixture=mixture)


@cache
def alone(drawn: Callable[[int], tuple[np.ndarray, np.ndarray]], count: int) -> MixtureFit:
    """Fit to so many scores without labels, shared by tests that label some of them."""
    bins = bin_scores(drawn(count)[0])
    return fit_mixture(bins, np.random.default_rng(2), draws=600, unit=True)


def error(posterior: ScorePosterior, truth: np.ndarray) -> float:
    """Mean over items of how far the mean probability is off."""
    return float(
        np.average(np.abs(posterior.probabilities.mean(axis=0) - truth), weights=posterior.bins.counts)
    )


COUNT = 4_000


def overlapping(count: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    """One lump of scores, whose classes differ by nothing but the order."""
    logits = np.random.default_rng(0).normal(0, 1.0, count)
    return special.expit(logits), special.expit(1.7 * logits)


def two_lumps(count: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    """Underconfident scores in two lumps."""
    rng = np.random.default_rng(0)
    positive = rng.random(count) < 0.15
    scores = np.where(positive, rng.beta(12, 8, count), rng.beta(8, 20, count))
    odds = np.log(0.15 / 0.85) + 4 * np.log(scores) + 12 * -np.log1p(-scores)
    odds += special.betaln(8, 20) - special.betaln(12, 8)
    return scores, special.expit(odds)


def test_weights_are_shares() -> None:
    weights = learnt(labelled(*overlapping(), 20), mixture=alone(overlapping, COUNT)).weights
    assert sum(weights.values()) == pytest.approx(1)
    assert set(weights) == set(WAYS)


def test_of_classes_that_overlap_the_mixture_is_not_believed() -> None:
    posterior = learnt(labelled(*overlapping(), 50), mixture=alone(overlapping, COUNT))
    assert posterior.weights["informed"] < 0.1
    assert error(posterior, special.expit(1.7 * special.logit(posterior.bins.scores))) < 0.08


def test_of_classes_that_are_separated_the_mixture_shows_what_labels_do_not() -> None:
    scores, probabilities = two_lumps()
    posterior = learnt(labelled(scores, probabilities, 40))
    truth = np.interp(posterior.bins.scores, np.sort(scores), probabilities[np.argsort(scores)])
    assert error(posterior, truth) < 0.03


def test_without_a_label_it_shows_how_unsure_it_is() -> None:
    posterior = learnt(labelled(*overlapping(), 0), mixture=alone(overlapping, COUNT))
    shares = posterior.probabilities @ posterior.bins.counts / posterior.bins.total
    lower, upper = np.quantile(shares, [0.025, 0.975])
    assert lower < 0.5 < upper
    assert upper - lower > 0.2


def test_many_labels_overrule_scores_that_lie() -> None:
    scores = np.random.default_rng(0).beta(0.6, 0.6, 3_000)
    lying = 0.05 + 0.1 * scores
    posterior = learnt(labelled(scores, lying, 400))
    assert error(posterior, 0.05 + 0.1 * posterior.bins.scores) < 0.04


def test_the_way_with_most_of_the_weight_is_named() -> None:
    posterior = learnt(labelled(*overlapping(), 300), mixture=alone(overlapping, COUNT))
    weights = posterior.weights
    named = max(weights, key=lambda name: weights[name])
    assert posterior.model == (named if weights[named] > 0.8 else "average")


def test_margins_are_learnt_too() -> None:
    rng = np.random.default_rng(0)
    margins = rng.normal(-1, 2, 3_000)
    posterior = learnt(labelled(margins, special.expit(2 * margins), 100, unit=False), unit=False)
    assert error(posterior, special.expit(2 * posterior.bins.scores)) < 0.06


@pytest.fixture(scope="module")
def fresh() -> ScorePosterior:
    """Posterior with a fit of its own to the scores."""
    return learnt(labelled(*two_lumps(1_000), 20))


def test_the_same_seed_gives_the_same(fresh: ScorePosterior) -> None:
    again = learnt(labelled(*two_lumps(1_000), 20))
    assert np.array_equal(fresh.probabilities, again.probabilities)


@pytest.mark.parametrize("threshold", [-1e9, 1e9])
def test_a_threshold_far_from_all_margins_is_no_trouble(threshold: float) -> None:
    margins = np.random.default_rng(0).normal(size=300)
    bins = bin_scores(margins, (margins > 0).astype(np.int64), thresholds=(threshold,), unit=False)
    found = learn_scores(bins, np.random.default_rng(0), draws=50, unit=False, threshold=threshold)
    assert np.all(np.isfinite(found.probabilities))


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_two_items_are_enough_to_learn_from(threshold: float) -> None:
    bins = bin_scores(np.array([0.2, 0.9]), thresholds=(threshold,))
    found = learn_scores(bins, np.random.default_rng(0), draws=50, threshold=threshold)
    assert found.probabilities.shape == (50, 2)
    assert np.all(np.isfinite(found.probabilities))


@pytest.mark.parametrize("top", [0.0, 1e-6, 0.02, 0.1, 0.3])
def test_negative_labels_of_low_scores_alone_tell_of_few_positive_items(top: float) -> None:
    scores = top * np.random.default_rng(0).random(800)
    labels = np.where(np.arange(800) < 10, NEGATIVE, UNLABELLED)
    posterior = learnt(bin_scores(scores, labels))
    shares = posterior.probabilities @ posterior.bins.counts / posterior.bins.total
    assert np.quantile(shares, 0.025) < 0.02
    assert np.quantile(shares, 0.5) < 0.15


def test_scores_by_themselves_may_be_learned_before(fresh: ScorePosterior) -> None:
    found = learnt(labelled(*two_lumps(1_000), 20), mixture=alone(two_lumps, 1_000))
    assert found.probabilities.mean(axis=0) == pytest.approx(fresh.probabilities.mean(axis=0), abs=0.1)
