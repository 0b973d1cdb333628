"""Digits whose images change in one group of ten: what shows without labels, and what labels confirm."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from benchmarks.studies.corruption import corrupted_recordings
from benchmarks.studies.inputs_items import Change, Items
from benchmarks.studies.inputs_labelled import WAYS, LabelStream, Way
from benchmarks.studies.inputs_watched import (
    CHANGING,
    HEALTHY,
    Stream,
    Watched,
    watch,
)
from service.domain.traffic_marks import SLOTS_PER_WINDOW
from service.replay.digits import digits_recordings
from service.statistics.drift import drift_label_shares

GROUPS, RUNS = 10, 8
PREDICTIONS = 100
LOGISTIC, NAIVE_BAYES = 0, 1
EVENLY, EVENLY_AIMED, ESTIMATION, *_ = WAYS


@cache
def items(classifier: int) -> Items:
    after = corrupted_recordings("noise")[classifier]
    return Items.of(digits_recordings()[classifier], [after], bin_count=10, binning="equal_width")


def noise(classifier: int) -> Change:
    return items(classifier).of_recording("noise", 1, 1.0)


@cache
def streams(classifier: int, name: str) -> list[Watched]:
    made = items(classifier)
    changes = (made.healthy, noise(classifier), made.classes_shift(), silent(classifier))
    (change,) = (each for each in changes if each is not None and each.name == name)
    return [watch(Stream(made, change, GROUPS, (3, run))) for run in range(RUNS)]


def silent(classifier: int) -> Change:
    made = items(classifier)
    change = made.labels_alone(made.accuracy(noise(classifier)))
    assert change is not None
    return change


def confirmed(change: Change, way: Way, seen: list[Watched]) -> np.ndarray:
    """Looks from the change to the first one at which evidence tells it; those of the whole time if none."""
    labels = LabelStream(items(LOGISTIC), change, GROUPS, PREDICTIONS, alpha=0.05)
    found = labels.ask(way, seen, (5,)).confirmed[HEALTHY:, :, CHANGING]
    return np.where(found.any(axis=0), found.argmax(axis=0), len(found))


@pytest.mark.parametrize("classifier", [LOGISTIC, NAIVE_BAYES])
def test_noisy_images_of_a_group_have_drifted_within_a_window(classifier: int) -> None:
    for seen in streams(classifier, "noise"):
        assert seen.flagged("any")[HEALTHY : HEALTHY + SLOTS_PER_WINDOW, CHANGING].any()


@pytest.mark.parametrize("classifier", [LOGISTIC, NAIVE_BAYES])
@pytest.mark.parametrize("name", ["no change", "labels alone"])
def test_traffic_whose_inputs_stay_never_drifts(classifier: int, name: str) -> None:
    for seen in streams(classifier, name):
        assert not seen.flagged("any").any()


def test_scores_promise_what_a_moderately_confident_classifier_reaches() -> None:
    made = items(LOGISTIC)
    promised = made.by_bin(noise(LOGISTIC)) @ made.bin_accuracies
    assert promised == pytest.approx(made.accuracy(noise(LOGISTIC)), abs=0.02)


def test_scores_of_an_overconfident_classifier_promise_what_it_reached_before() -> None:
    made = items(NAIVE_BAYES)
    promised = made.by_bin(noise(NAIVE_BAYES)) @ made.bin_accuracies
    assert promised > made.accuracy(made.healthy) - 0.02
    assert made.accuracy(noise(NAIVE_BAYES)) < made.accuracy(made.healthy) / 2


def test_aimed_labels_confirm_the_noise_sooner_than_labels_that_are_spread_evenly() -> None:
    seen = streams(LOGISTIC, "noise")
    evenly, aimed = (confirmed(noise(LOGISTIC), way, seen) for way in (EVENLY, EVENLY_AIMED))
    # The aimed group gets 28% of the labels in place of 10%, which is worth far more than chance makes.
    assert aimed.mean() < 0.8 * evenly.mean()


def test_classes_that_shift_without_harm_drift_and_are_not_confirmed() -> None:
    harmless = items(LOGISTIC).classes_shift()
    assert harmless is not None
    seen = streams(LOGISTIC, "classes shift")
    for each in seen:
        assert each.flagged("classes")[-1, CHANGING]
        assert not each.flagged("scores").any()
        shares = drift_label_shares(each.drift_scores[-1], each.flagged("any")[-1])
        assert shares is not None
        assert shares[CHANGING] == 1
    labels = LabelStream(items(LOGISTIC), harmless, GROUPS, PREDICTIONS, alpha=0.05)
    found = labels.ask(EVENLY_AIMED, seen, (5,)).confirmed.any(axis=(0, 2))
    # Of one stream in twenty at the most: of eight, three would be by chance in fewer than one of a hundred.
    assert found.sum() < 3


def test_what_no_input_shows_is_a_disagreement_of_labels_and_scores() -> None:
    change = silent(LOGISTIC)
    labels = LabelStream(items(LOGISTIC), change, GROUPS, PREDICTIONS, alpha=0.05)
    below = labels.ask(ESTIMATION, streams(LOGISTIC, change.name), (5,)).below_expected
    assert (below[-1, :, CHANGING] > 0.95).mean() > 0.5
    assert np.median(below[-1, :, CHANGING + 1 :]) < 0.9
