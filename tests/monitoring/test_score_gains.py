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
    some = gains.of(["[0.9,1]", "unknown", "[0,0.1)"])
    assert np.array_equal(some.gains, [[gains.gains["[0.9,1]"], 0.0, gains.gains["[0,0.1)"]]])
    assert some.labels[0, 1] == 0


def test_labels_that_came_since_the_learning_lower_the_worth_of_further_ones() -> None:
    learned = ScoreGains({"low": 1.0, "high": 1.0}, {"low": 3.0, "high": 3.0}, {"low": 3, "high": 3})
    now = learned.after({"low": 3, "high": 7})
    assert now.gains == {"low": 1.0, "high": pytest.approx(0.25)}
    assert now.labels == {"low": 3.0, "high": 7.0}


def test_labels_that_came_since_count_like_requests_in_flight() -> None:
    learned = ScoreGains({"low": 1.0}, {"low": 3.0}, {"low": 3})
    expected = learned.of(["low"])
    expected.expect(np.array([0]))
    assert learned.after({"low": 4}).of(["low"]).gains == pytest.approx(expected.gains)


def test_labels_that_the_stream_has_dropped_do_not_raise_the_worth_of_further_ones() -> None:
    learned = ScoreGains({"low": 1.0}, {"low": 3.0}, {"low": 3})
    assert learned.after({"low": 1}).gains == {"low": 1.0}
