"""What labels by score are worth, and how requests follow it."""

from __future__ import annotations

import numpy as np
import pytest
from snapshots import performance

from service.monitoring.score_gains import ScoreGains

NAMES = ["[0,0.1)", "[0.1,0.3)", "[0.3,0.5)", "[0.5,0.7)", "[0.7,0.9)", "[0.9,1]"]


@pytest.fixture(scope="module")
def gains() -> ScoreGains:
    return performance(20).gains


def test_every_score_bin_has_the_worth_of_a_label_and_its_labels(gains: ScoreGains) -> None:
    assert list(gains.gains) == list(gains.labels) == NAMES
    assert sum(gains.labels.values()) == pytest.approx(20)
    assert min(gains.gains.values()) >= 0


def test_uncertain_scores_are_worth_more_than_sure_ones(gains: ScoreGains) -> None:
    assert max(gains.gains[name] for name in NAMES[1:5]) > gains.gains[NAMES[0]]


def test_precision_needs_labels_of_low_scores_least() -> None:
    found = {aim: performance(20, aim=aim).gains.gains for aim in ("precision", "recall")}
    shares = {aim: each[NAMES[1]] / max(each.values()) for aim, each in found.items()}
    assert shares["precision"] < 0.5 * shares["recall"]


def test_groups_are_in_the_order_that_is_asked_for_and_unknown_ones_are_worth_nothing(
    gains: ScoreGains,
) -> None:
    some = gains.of(["[0.9,1]", "unknown", "[0,0.1)"], np.zeros(3))
    assert np.array_equal(some.gains, [[gains.gains["[0.9,1]"], 0.0, gains.gains["[0,0.1)"]]])
    assert some.labels[0, 1] == 0


def test_labels_that_came_since_the_learning_diminish_the_worth_as_requests_in_flight_do(
    gains: ScoreGains,
) -> None:
    learned = np.array([gains.labels[name] for name in NAMES])
    now = learned.copy()
    now[2] += 3
    in_flight = gains.of(NAMES, learned)
    for _ in range(3):
        in_flight.expect(np.array([2]))
    answered = gains.of(NAMES, now)
    assert answered.gains == pytest.approx(in_flight.gains)
    assert answered.labels == pytest.approx(in_flight.labels)


def test_labels_that_count_less_than_at_the_learning_change_nothing(gains: ScoreGains) -> None:
    learned = np.array([gains.labels[name] for name in NAMES])
    fewer = gains.of(NAMES, 0.9 * learned)
    assert np.array_equal(fewer.gains, gains.of(NAMES, learned).gains)
