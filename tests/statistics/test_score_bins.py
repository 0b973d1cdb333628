"""Scores in bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from service.statistics.binary.score_bins import NEGATIVE, POSITIVE, UNLABELLED, bin_scores

SCORES = arrays(np.float64, st.integers(1, 400), elements=st.floats(0, 1, allow_subnormal=False))


def seeded(count: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.beta(0.4, 1.2, count), rng.choice([UNLABELLED, NEGATIVE, POSITIVE], count)


@given(SCORES, st.integers(2, 60))
def test_every_item_is_in_the_bin_between_whose_edges_its_score_is(scores: np.ndarray, most: int) -> None:
    bins = bin_scores(scores, most=most)
    place = np.searchsorted(bins.edges, scores, side="right")
    assert np.array_equal(np.bincount(place, minlength=len(bins.counts)), bins.counts)
    assert np.all(np.diff(bins.edges) > 0)


@given(SCORES)
def test_a_bins_score_is_the_mean_of_its_items(scores: np.ndarray) -> None:
    bins = bin_scores(scores, most=20)
    assert (bins.counts * bins.scores).sum() == pytest.approx(scores.sum(), abs=1e-9)


def test_labels_are_counted_where_their_items_are() -> None:
    scores, labels = seeded(5_000)
    bins = bin_scores(scores, labels, most=64)
    place = np.searchsorted(bins.edges, scores, side="right")
    for found, word in ((bins.positives, POSITIVE), (bins.negatives, NEGATIVE)):
        assert np.array_equal(np.bincount(place[labels == word], minlength=len(bins.counts)), found)
    assert bins.unlabelled.sum() == (labels == UNLABELLED).sum()


def test_a_million_scores_make_no_more_bins_than_wanted() -> None:
    bins = bin_scores(seeded(1_000_000)[0])
    assert 200 < len(bins.counts) <= 257
    assert bins.counts[-20:].max() == 1


def test_equal_scores_share_a_bin() -> None:
    bins = bin_scores(np.repeat([0.0, 0.5, 1.0], [700, 2, 300]))
    assert list(bins.counts) == [700, 2, 300]
    assert list(bins.scores) == [0.0, 0.5, 1.0]


def test_an_item_of_weight_three_is_as_three_items() -> None:
    scores = seeded(60)[0]
    weights = np.random.default_rng(1).integers(1, 4, 60)
    weighted = bin_scores(scores, weights=weights.astype(float), most=1_000)
    repeated = bin_scores(np.repeat(scores, weights), most=1_000)
    assert np.array_equal(weighted.counts, repeated.counts)
    assert np.array_equal(weighted.edges, repeated.edges)


def test_a_threshold_has_an_edge_of_its_own() -> None:
    scores = seeded(10_000)[0]
    bins = bin_scores(scores, thresholds=[0.123_456], most=16)
    assert np.any(np.isclose(bins.edges, scores[scores >= 0.123_456].min(), rtol=0, atol=0))


def test_merged_bins_hold_what_their_parts_held() -> None:
    scores, labels = seeded(4_000)
    bins = bin_scores(scores, labels)
    merged = bins.merged(32)
    assert len(merged.counts) <= 32
    for name in ("counts", "positives", "negatives"):
        assert getattr(merged, name).sum() == getattr(bins, name).sum()
    assert np.array_equal(np.histogram(scores, [0, *merged.edges, 2])[0], merged.counts)


def test_scores_that_cannot_be_told_apart_from_an_end_are_joined() -> None:
    bins = bin_scores(np.array([0.0, 1e-15, 1e-14, 0.5, 1 - 1e-15, 1.0]), most=100)
    joined = bins.resolved(1e-12)
    assert list(joined.counts) == [3, 1, 2] or list(joined.counts) == [3, 3]
    assert joined.counts.sum() == 6


def test_any_real_scores_are_placed_between_their_ends() -> None:
    bins = bin_scores(np.array([-7.0, 0.0, 4.0]), unit=False)
    assert np.all((bins.positions > 0) & (bins.positions < 1))
    assert np.all(np.diff(bins.positions) > 0)


@pytest.mark.parametrize(
    ("scores", "found"),
    [([], "there must be some"), ([0.5, np.nan], "finite"), ([0.5, 1.01], "probabilities")],
)
def test_what_is_no_score_is_refused(scores: list[float], found: str) -> None:
    with pytest.raises(ValueError, match=found):
        bin_scores(np.array(scores))


def test_a_label_may_count_for_nothing() -> None:
    bins = bin_scores(
        np.array([0.5, 0.6]), np.array([POSITIVE, NEGATIVE]), label_weights=np.array([1.0, 0.0])
    )
    assert (bins.positives.sum(), bins.negatives.sum()) == (1, 0)
