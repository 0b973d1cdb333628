"""Items of a pool that a policy labels."""

from __future__ import annotations

import numpy as np
import pytest

from service.replay.items_to_label import ADAPTIVE, RANDOM, ItemsToLabel
from service.statistics.binary.score_bins import bin_scores
from service.statistics.binary.score_mixture import MixtureFit, fit_mixture
from service.statistics.binary.semi_supervised import ScoreLearner

SIZE = 6_000


@pytest.fixture(scope="module")
def rare() -> tuple[np.ndarray, np.ndarray, MixtureFit]:
    """Scores of which one in a hundred is positive, half of these above the threshold."""
    rng = np.random.default_rng(0)
    positive = rng.random(SIZE) < 0.01
    scores = np.where(positive, rng.beta(3, 3, SIZE), rng.beta(1, 40, SIZE))
    bins = bin_scores(scores, thresholds=(0.5,))
    return scores, positive, fit_mixture(bins, np.random.default_rng(1), draws=200, unit=True)


def items(rare: tuple[np.ndarray, np.ndarray, MixtureFit], seed: int = 2) -> ItemsToLabel:
    scores, positive, mixture = rare
    learner = ScoreLearner(bin_scores(scores, thresholds=(0.5,)), mixture)
    return ItemsToLabel(learner, scores, positive, np.random.default_rng(seed))


@pytest.mark.parametrize("policy", [RANDOM, ADAPTIVE])
def test_no_item_is_labelled_twice_and_all_labels_are_counted(
    rare: tuple[np.ndarray, np.ndarray, MixtureFit], policy: str
) -> None:
    some = items(rare)
    drawn = some.draw(90, policy, "f1")
    assert len(np.unique(drawn)) == 90
    assert some.positives.sum() == rare[1][drawn].sum()
    assert some.positives.sum() + some.negatives.sum() == 90


def test_adaptive_labels_find_rare_positive_items(rare: tuple[np.ndarray, np.ndarray, MixtureFit]) -> None:
    found = [rare[1][items(rare).draw(90, policy, "f1")].sum() for policy in (RANDOM, ADAPTIVE)]
    assert found[1] > 10 * max(found[0], 1)


def test_some_adaptive_labels_are_of_low_scores(rare: tuple[np.ndarray, np.ndarray, MixtureFit]) -> None:
    drawn = items(rare).draw(90, ADAPTIVE, "recall")
    assert (rare[0][drawn] < 0.1).sum() > 10


def test_a_whole_pool_can_be_labelled(rare: tuple[np.ndarray, np.ndarray, MixtureFit]) -> None:
    scores, positive, _ = rare
    few = np.flatnonzero(scores > 0.2)[:20]
    bins = bin_scores(scores[few], thresholds=(0.5,))
    mixture = fit_mixture(bins, np.random.default_rng(1), draws=100, unit=True)
    some = ItemsToLabel(ScoreLearner(bins, mixture), scores[few], positive[few], np.random.default_rng(0))
    assert sorted(some.draw(20, ADAPTIVE, "f1")) == list(range(20))
