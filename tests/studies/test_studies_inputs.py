"""What the items of a group are after its inputs have changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from replay_examples import plain_pool, recording

from benchmarks.studies.corruption import CORRUPTIONS, corrupted_recordings
from benchmarks.studies.inputs_items import Items
from service.domain.errors import RecordingError
from service.replay.digits import digits_recordings
from service.replay.grouping import equal_size_bins
from service.replay.recording import Recording

BEFORE, AFTER = recording([60, 50, 40]), recording([10, 20, 90], seed=1, name="after")
ITEMS = Items.of(BEFORE, [AFTER], bin_count=10, binning="equal_width")


def alone(made: Recording) -> Items:
    return Items.of(made, [], bin_count=10, binning="equal_width")


def test_without_a_change_all_items_of_the_first_recording_are_as_likely() -> None:
    assert ITEMS.accuracy(ITEMS.healthy) == pytest.approx(BEFORE.correct.mean())
    shares = np.bincount(BEFORE.predicted, minlength=3) / BEFORE.size
    np.testing.assert_allclose(ITEMS.by_class(ITEMS.healthy), shares)


def test_after_a_change_such_a_share_is_of_the_other_recording() -> None:
    change = ITEMS.of_recording("after", 1, 0.25)
    assert ITEMS.accuracy(change) == pytest.approx(0.75 * BEFORE.correct.mean() + 0.25 * AFTER.correct.mean())
    scores = ITEMS.scores_by_bin(change).sum()
    assert scores == pytest.approx(0.75 * BEFORE.scores.mean() + 0.25 * AFTER.scores.mean())


def test_the_hard_half_has_the_lowest_scores() -> None:
    chosen = ITEMS.hard("hard", 1.0).weights > 0
    scores = BEFORE.scores
    assert chosen.sum() == len(scores) / 2
    assert scores[chosen[: BEFORE.size]].max() <= scores[~chosen[: BEFORE.size]].min()


def test_of_scores_that_are_alike_the_hard_half_has_as_many_right_ones_as_there_are() -> None:
    # All right ones of a class come before its wrong ones, as in a recording that was sorted.
    items = alone(plain_pool([30, 20], [10, 40]).recording)
    hard = items.hard("hard", 1.0)
    assert items.accuracy(hard) == pytest.approx(items.accuracy(items.healthy))
    np.testing.assert_allclose(items.by_class(hard), items.by_class(items.healthy))


def test_items_that_are_mixed_in_are_as_many_as_their_share() -> None:
    whole, some = (ITEMS.hard("hard", mixed).weights for mixed in (1.0, 0.4))
    np.testing.assert_allclose(some, 0.6 * ITEMS.healthy.weights + 0.4 * whole)


def test_shifting_classes_leave_the_accuracy_as_it_was() -> None:
    change = ITEMS.classes_shift()
    assert change is not None
    assert ITEMS.accuracy(change) == pytest.approx(ITEMS.accuracy(ITEMS.healthy))
    assert change.weights.sum() == pytest.approx(1)
    shares = ITEMS.by_class(change)
    assert shares.min() == pytest.approx(0, abs=1e-12)
    assert np.abs(shares - ITEMS.by_class(ITEMS.healthy)).max() > 0.05


def test_two_classes_of_which_one_is_more_accurate_cannot_shift_without_harm() -> None:
    assert alone(recording([60, 50])).classes_shift() is None


def test_labels_turn_until_the_accuracy_is_what_it_falls_to() -> None:
    change = ITEMS.labels_alone(0.4)
    assert change is not None
    assert ITEMS.accuracy(change) == pytest.approx(0.4)
    np.testing.assert_array_equal(change.weights, ITEMS.healthy.weights)
    assert ITEMS.labels_alone(0.99) is None


def test_bins_are_as_accurate_as_their_items_before_the_change() -> None:
    for place in np.unique(ITEMS.bins[: BEFORE.size]):
        right = BEFORE.correct[ITEMS.bins[: BEFORE.size] == place]
        assert ITEMS.bin_accuracies[place] == pytest.approx(right.mean())


def test_bins_that_only_later_items_are_in_are_as_accurate_as_these_promise() -> None:
    low = plain_pool([5, 5], [1, 1], score=0.55).recording
    high = plain_pool([5, 5], [1, 1], score=0.85).recording
    items = Items.of(high, [low], bin_count=10, binning="equal_width")
    assert items.bin_accuracies[5] == pytest.approx(0.55)
    assert items.bin_accuracies[8] == pytest.approx(high.correct.mean())


def test_bins_of_as_many_items_each_hold_the_same_scores_later() -> None:
    items = Items.of(BEFORE, [BEFORE, AFTER], bin_count=7, binning="equal_size")
    known = equal_size_bins(BEFORE.scores, 7)
    np.testing.assert_array_equal(items.bins[: BEFORE.size], known)
    np.testing.assert_array_equal(items.bins[BEFORE.size : 2 * BEFORE.size], known)
    later = items.bins[2 * BEFORE.size :]
    in_order = later[np.argsort(AFTER.scores, kind="stable")]
    assert (np.diff(in_order) >= 0).all()
    assert set(later) <= set(range(7))


def test_a_recording_of_other_classes_is_refused() -> None:
    with pytest.raises(RecordingError, match="other: it has 2 classes, but model has 3"):
        Items.of(BEFORE, [recording([9, 9], name="other")], bin_count=10, binning="equal_width")


@pytest.mark.parametrize("name", list(CORRUPTIONS))
def test_corrupted_images_are_still_images_and_the_same_every_time(name: str) -> None:
    images = np.random.default_rng(0).random((20, 8, 8))
    made, again = (CORRUPTIONS[name](images, np.random.default_rng(1)) for _ in range(2))
    assert made.shape == images.shape
    assert made.min() >= 0
    assert made.max() <= 1
    np.testing.assert_array_equal(made, again)
    assert np.abs(made - images).mean() > 0.01


def test_shifted_images_are_a_pixel_to_the_right() -> None:
    images = np.random.default_rng(0).random((3, 8, 8))
    shifted = CORRUPTIONS["shift"](images, np.random.default_rng(0))
    np.testing.assert_array_equal(shifted[:, :, 1:], images[:, :, :-1])
    assert not shifted[:, :, 0].any()


@pytest.mark.parametrize("name", list(CORRUPTIONS))
def test_the_same_classifiers_of_digits_are_less_accurate_on_corrupted_images(name: str) -> None:
    for before, after in zip(digits_recordings(), corrupted_recordings(name), strict=True):
        assert before.name == after.name
        np.testing.assert_array_equal(before.labels, after.labels)
        lost = before.correct.astype(np.float64) - after.correct
        # Four standard errors.
        assert lost.mean() > 4 * lost.std() / np.sqrt(len(lost))


def test_predicted_classes_of_an_operating_threshold_are_kept() -> None:
    made = replace(BEFORE, own_predicted=(BEFORE.predicted + 1) % 3)
    assert (alone(made).predicted == made.own_predicted).all()
