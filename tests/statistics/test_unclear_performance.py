"""Performance of a classifier where the class of some items may be any."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from service.statistics.binary.performance import (
    Performance,
    Target,
    choose_threshold,
    performance,
)
from service.statistics.binary.score_bins import bin_scores
from service.statistics.binary.score_mixture import fit_mixture
from service.statistics.binary.semi_supervised import ScorePosterior, learn_scores, pooled_posterior

SCORES = np.linspace(0.05, 0.95, 8)
MEASURES = ("precision", "recall", "f1", "false_positive_rate")


@pytest.fixture(scope="module")
def posterior() -> ScorePosterior:
    return learn_scores(bin_scores(SCORES), np.random.default_rng(0), draws=20)


def drawn(posterior: ScorePosterior, share: float) -> tuple[Performance, Performance]:
    """Of the same draws: the performance if all classes are known, and if those of a share are not."""
    unclear = np.full(posterior.probabilities.shape, share)
    plain = performance(posterior, np.random.default_rng(1), scope="population")
    return plain, performance(posterior, np.random.default_rng(1), scope="population", unclear=unclear)


@pytest.mark.parametrize("name", MEASURES)
def test_the_two_halves_of_the_draws_are_the_extremes_over_all_classes(
    posterior: ScorePosterior, name: str
) -> None:
    plain, found = drawn(posterior, 0.3)
    items = -np.diff(plain.called, axis=1)[0]
    known = 0.7 * -np.diff(plain.right, axis=1)[0]
    values = []
    for classes in itertools.product((0.0, 1.0), repeat=len(items)):
        positive = known + 0.3 * items * np.array(classes)
        right = np.append(np.cumsum(positive[::-1])[::-1], 0.0)
        each = Performance(plain.thresholds, plain.called[:1], right[None], right[:1], plain.items[:1])
        values.append(getattr(each, name)[0, :-1])
    of_draw = getattr(found, name)[[0, len(plain.items)], :-1]
    assert_allclose(of_draw.min(axis=0), np.min(values, axis=0), atol=1e-9)
    assert_allclose(of_draw.max(axis=0), np.max(values, axis=0), atol=1e-9)


def test_the_prevalence_is_between_none_and_all_positive(posterior: ScorePosterior) -> None:
    plain, found = drawn(posterior, 0.3)
    assert_allclose(found.prevalence, np.concatenate((0.7 * plain.prevalence, 0.7 * plain.prevalence + 0.3)))


def test_if_no_class_is_unclear_both_halves_are_the_plain_draws(posterior: ScorePosterior) -> None:
    plain, found = drawn(posterior, 0.0)
    for name in MEASURES:
        assert_allclose(getattr(found, name), np.tile(getattr(plain, name), (2, 1)))


def test_curves_go_through_the_points_of_their_thresholds(posterior: ScorePosterior) -> None:
    _, found = drawn(posterior, 0.3)
    for row in (0, -1):
        recalls, precision = found.recall[row, :-1], found.precision[row, :-1]
        # Recall grows as the threshold falls, in either extreme.
        assert (np.diff(recalls) <= 1e-12).all()
        for recall, expected in zip(recalls, precision, strict=True):
            at = found.precision_at_recall(np.array([recall]))[row, 0]
            assert at == pytest.approx(expected, rel=1e-6)


def test_a_threshold_is_chosen_by_both_extremes(posterior: ScorePosterior) -> None:
    plain, found = drawn(posterior, 0.5)
    target = Target(recall=0.9)
    sure, unsure = choose_threshold(plain, target), choose_threshold(found, target)
    at = int(np.argmin(np.abs(plain.thresholds - 0.5)))
    assert unsure.probability[at] >= 0.5 * sure.probability[at]
    assert unsure.cost.upper[at] > sure.cost.upper[at]


def test_the_mixture_of_imputations_has_all_their_draws(posterior: ScorePosterior) -> None:
    bins = bin_scores(SCORES)
    mixture = fit_mixture(bins, np.random.default_rng(0), draws=600, unit=True)
    other = learn_scores(bins, np.random.default_rng(2), draws=20, mixture=mixture)
    both = pooled_posterior([posterior, other])
    assert_allclose(both.probabilities[::2], posterior.probabilities)
    assert_allclose(both.probabilities[1::2], other.probabilities)
    assert sum(both.weights.values()) == pytest.approx(1)
