"""Performance at every threshold."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.statistics.binary.performance import Performance, performance
from service.statistics.binary.score_bins import UNLABELLED, ScoreBins, bin_scores
from service.statistics.binary.score_mixture import MixtureFit, fit_mixture
from service.statistics.binary.semi_supervised import ScorePosterior, learn_scores
from service.statistics.estimate import Estimate, MedianEstimate

RECALLS = np.linspace(0.05, 1, 20)


def known(probabilities: np.ndarray, bins: ScoreBins, *, draws: int = 300) -> ScorePosterior:
    """A posterior that is sure of the probability in every bin."""
    mixture = some_mixture()
    return ScorePosterior(bins, np.tile(probabilities, (draws, 1)), {"calibrated": 1.0}, mixture)


@cache
def some_mixture() -> MixtureFit:
    scores = bin_scores(np.random.default_rng(0).beta(2, 3, 200))
    return learn_scores(scores, np.random.default_rng(0)).mixture


def items(count: int = 2_000, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.5, 0.8, count)
    return scores, (rng.random(count) < scores).astype(np.int64)


def evaluated(count: int = 2_000, **options: str) -> Performance:
    bins = bin_scores(items(count)[0])
    return performance(known(bins.scores, bins), np.random.default_rng(1), **options)


def test_once_all_is_labelled_nothing_is_uncertain() -> None:
    scores, labels = items()
    bins = bin_scores(scores, labels)
    estimated = performance(known(np.full(len(bins.counts), 0.5), bins), np.random.default_rng(0))
    for threshold in (0.2, 0.5, 0.9):
        at = estimated.nearest(threshold)
        called = scores >= estimated.thresholds[at]
        assert estimated.precision[:, at] == pytest.approx(labels[called].mean())
        assert estimated.recall[:, at] == pytest.approx(labels[called].sum() / labels.sum())
        assert estimated.false_positive_rate[:, at] == pytest.approx(
            1 - (~called & (labels == 0)).sum() / (labels == 0).sum()
        )
        wanted = 2 * labels[called].sum() / (called.sum() + labels.sum())
        assert estimated.f1[:, at] == pytest.approx(wanted)
    assert estimated.prevalence == pytest.approx(labels.mean())


@given(st.integers(1, 300), st.integers(0, 1_000))
def test_laws_of_every_threshold(count: int, seed: int) -> None:
    bins = bin_scores(items(count, seed=seed)[0], most=32)
    estimated = performance(known(bins.scores, bins, draws=20), np.random.default_rng(seed))
    assert np.all(estimated.right <= estimated.called)
    assert np.all(np.diff(estimated.called, axis=1) <= 0)
    assert np.all(estimated.called[:, 0] == count)
    assert np.all(np.isnan(estimated.precision[:, -1]))
    assert np.allclose(estimated.precision[:, 0], estimated.prevalence)
    some = estimated.positives > 0
    assert np.all(estimated.recall[some, 0] == 1)
    assert np.all(np.isnan(estimated.recall[~some]))


def test_the_population_is_less_certain_than_the_sample() -> None:
    scores, labels = items(300)
    bins = bin_scores(scores, labels)
    spread = {}
    for scope in ("sample", "population"):
        estimated = performance(known(bins.scores, bins), np.random.default_rng(1), scope=scope)
        spread[scope] = estimated.prevalence.std()
    assert spread["sample"] == 0
    assert spread["population"] > 0.005


def test_of_many_items_sample_and_population_are_the_same() -> None:
    sample, population = (evaluated(200_000, scope=scope) for scope in ("sample", "population"))
    assert sample.precision.mean(axis=0)[:-5] == pytest.approx(
        population.precision.mean(axis=0)[:-5], abs=0.02
    )


@pytest.mark.parametrize(("threshold", "called"), [(0.2, 4), (0.3, 4), (0.35, 3), (0.9, 1), (0.95, 0)])
def test_a_threshold_calls_positive_what_reaches_it(threshold: float, called: int) -> None:
    bins = bin_scores(np.array([0.3, 0.4, 0.7, 0.9]), thresholds=[threshold])
    estimated = performance(known(bins.scores, bins, draws=2), np.random.default_rng(0))
    assert np.all(estimated.called[:, estimated.nearest(threshold)] == called)


def test_precision_at_a_recall_is_that_of_the_threshold_where_it_is_reached() -> None:
    estimated = evaluated()
    for row in range(5):
        # The highest of those thresholds that reach the same recall.
        at = np.flatnonzero(estimated.right[row] == estimated.right[row, 60])[-1]
        found = estimated.precision_at_recall(estimated.recall[row, [at]])[row]
        assert found == pytest.approx(estimated.precision[row, at])


def test_all_items_must_be_called_positive_to_miss_none_of_a_classifier_that_guesses() -> None:
    bins = bin_scores(np.linspace(0, 1, 5_000))
    estimated = performance(known(np.full(len(bins.counts), 0.3), bins), np.random.default_rng(0))
    assert estimated.precision_at_recall(RECALLS).mean(axis=0) == pytest.approx(0.3, abs=0.03)
    assert estimated.recall_at_false_positive_rate(RECALLS).mean(axis=0) == pytest.approx(RECALLS, abs=0.03)


def test_a_draw_without_positive_items_has_no_recall() -> None:
    bins = bin_scores(np.full(10, 0.5), np.zeros(10, np.int64))
    estimated = performance(known(np.array([0.5]), bins, draws=3), np.random.default_rng(0))
    assert np.all(np.isnan(estimated.precision_at_recall(RECALLS)))
    assert np.all(np.isnan(Estimate.of(estimated.recall, 0.9).mean))


def test_an_estimate_leaves_out_draws_that_say_nothing() -> None:
    draws = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    estimated = Estimate.of(draws, 0.5)
    assert estimated.mean == pytest.approx([2.0, np.nan], nan_ok=True)
    assert estimated.lower == pytest.approx([1.5, np.nan], nan_ok=True)
    assert estimated.upper == pytest.approx([2.5, np.nan], nan_ok=True)


def test_a_curve_leaves_out_draws_that_say_nothing() -> None:
    draws = np.array([[1.0, np.nan], [2.0, np.nan], [6.0, np.nan], [np.nan, np.nan]])
    estimated = MedianEstimate.of(draws, 0.5)
    assert estimated.median == pytest.approx([2.0, np.nan], nan_ok=True)
    assert estimated.lower == pytest.approx([1.5, np.nan], nan_ok=True)
    assert estimated.upper == pytest.approx([4.0, np.nan], nan_ok=True)


def test_no_other_curve_has_less_area_to_the_draws() -> None:
    draws = np.random.default_rng(0).beta(8, 1, (400, 30))
    estimated = MedianEstimate.of(draws, 0.95).median
    for other in (draws.mean(axis=0), estimated + 0.01, estimated - 0.01):
        assert np.abs(draws - estimated).mean() < np.abs(draws - other).mean()


def test_weighted_items_count_their_weight() -> None:
    scores = items(50)[0]
    bins = bin_scores(scores, weights=np.full(50, 2.5))
    estimated = performance(known(bins.scores, bins), np.random.default_rng(0))
    assert estimated.called[0, 0] == pytest.approx(125)
    assert estimated.positives.mean() == pytest.approx(2.5 * scores.sum(), rel=0.05)


def test_labels_narrow_the_band() -> None:
    scores, labels = items()
    mixture = fit_mixture(bin_scores(scores), np.random.default_rng(0), draws=600, unit=True)
    widths = []
    for count in (0, 200):
        estimated = np.where(np.arange(len(scores)) < count, labels, UNLABELLED)
        posterior = learn_scores(
            bin_scores(scores, estimated), np.random.default_rng(1), draws=200, mixture=mixture
        )
        band = Estimate.of(
            performance(posterior, np.random.default_rng(0)).precision_at_recall(RECALLS), 0.95
        )
        widths.append(float((band.upper - band.lower).mean()))
    assert widths[1] < widths[0] / 2
