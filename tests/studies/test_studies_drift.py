"""Streams of labels whose accuracy drifts, and what ways of forgetting believe of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from replay_examples import plain_pool

from benchmarks.studies.drift_streams import (
    CHANGE,
    HEALTHY,
    LOOKS,
    NO_DRIFT,
    RAMP,
    SHAPES,
    TURN,
    DriftStudy,
    Followed,
    Scenario,
    streams,
)
from service.replay.workers import Workers, workers
from service.statistics.change_points import change_point_weights

POOL = plain_pool([90, 60], [10, 40])
STUDY = DriftStudy(POOL, runs=3, window=100, half_life=50, run_length=10_000, mass=0.95, seed=0)


def truth(shape: str, points: float = 10.0) -> np.ndarray:
    """Accuracy of the first group, which is 0.9 before, after every label."""
    return streams(POOL, Scenario(shape, points), 1, np.random.default_rng(0))[1][0]


@pytest.mark.parametrize("shape", [*SHAPES, NO_DRIFT])
def test_before_a_drift_groups_are_as_accurate_as_their_items(shape: str) -> None:
    assert (truth(shape)[:HEALTHY] == POOL.accuracy[0]).all()


def test_an_abrupt_drift_is_there_at_once() -> None:
    assert truth("abrupt")[HEALTHY:] == pytest.approx(0.8)


def test_a_ramp_falls_by_as_much_with_every_label_until_it_is_down() -> None:
    ramp = truth("ramp")[HEALTHY - 1 :]
    assert np.diff(ramp[: RAMP + 1]) == pytest.approx(-0.1 / RAMP)
    assert ramp[RAMP:] == pytest.approx(0.8)


def test_a_drift_that_recurs_goes_and_comes() -> None:
    turns = truth("recurring")[HEALTHY:].reshape(-1, TURN)
    assert turns[::2] == pytest.approx(0.8)
    assert turns[1::2] == pytest.approx(0.9)


def test_no_accuracy_falls_below_0() -> None:
    assert truth("abrupt", 95.0)[-1] == pytest.approx(0.0)


def test_labels_say_what_the_accuracy_of_their_moment_makes_likely() -> None:
    right, accuracy = streams(POOL, Scenario("ramp", 20.0), 400, np.random.default_rng(1))
    for group in range(2):
        said, expected = right[group::2].mean(axis=0), accuracy[group]
        # Four standard errors of the mean of all labels.
        assert said.mean() == pytest.approx(expected.mean(), abs=4 * 0.5 / np.sqrt(right[group::2].size))
        assert np.abs(said - expected).max() < 5 * 0.5 / np.sqrt(400)


def test_each_way_of_forgetting_leaves_what_its_name_says() -> None:
    right = streams(POOL, Scenario("abrupt", 20.0), 1, np.random.default_rng(2))[0]
    methods = STUDY.methods
    assert list(methods) == ["none", "last 100", "half-life 50", CHANGE]
    none, window, half_life, change = (leaves(right) for leaves in methods.values())
    assert (none[0] == 1).all()
    assert (window[0].sum(axis=1) == 100).all()
    assert (window[0][:, -100:] == 1).all()
    assert half_life[0][:, -51] == pytest.approx(0.5)
    assert not any(each[1].any() for each in (none, window, half_life))
    alone = change_point_weights(correct=right[0], sizes=np.array([right.shape[1]]), run_length=10_000)
    np.testing.assert_allclose(change[0][0], alone.factors)
    assert change[1][0] == alone.before[0]


def test_what_is_believed_without_forgetting_is_the_posterior_of_all_labels() -> None:
    scenario = Scenario("abrupt", 10.0)
    found = STUDY.run(scenario, Workers())["none"]
    assert found.mean.shape == (6, len(LOOKS))
    assert (found.labels == LOOKS).all()
    said = found.mean * (LOOKS + 1) - 0.5
    np.testing.assert_allclose(said, np.round(said), atol=1e-9)


def test_figures_depend_on_the_seed_alone_and_on_no_number_of_processes() -> None:
    study, scenario = replace(STUDY, runs=21), Scenario("ramp", 10.0)
    with workers(2) as crew:
        apart = study.run(scenario, crew)
    together = study.run(scenario, Workers())
    for method, found in together.items():
        np.testing.assert_array_equal(found.mean, apart[method].mean)
    other = replace(study, seed=1).run(scenario, Workers())
    assert (other["none"].mean != together["none"].mean).any()


def followed(lower: float, upper: float, *, accuracy: float = 0.9, healthy: float = 0.9) -> Followed:
    """One stream, at one look."""
    one = (np.array([[value]]) for value in ((lower + upper) / 2, lower, upper, 10.0, 0.0))
    return Followed(np.array([[accuracy]]), np.array([healthy]), np.array([0.005]), *one)


def test_an_interval_holds_the_truth_give_or_take_half_an_item() -> None:
    assert followed(0.85, 0.95).held() == [1.0]
    assert followed(0.904, 0.95).held() == [1.0]
    assert followed(0.906, 0.95).held() == [0.0]
    assert followed(0.8, 0.896).held() == [1.0]
    assert followed(0.8, 0.894).held() == [0.0]


def test_a_drift_is_noticed_where_the_interval_lies_below_what_was() -> None:
    assert not followed(0.8, 0.9, accuracy=0.8).noticed()
    assert followed(0.8, 0.89, accuracy=0.8).noticed()


def test_the_error_is_that_of_the_mean() -> None:
    assert followed(0.7, 0.9).squared_error() == pytest.approx(0.1**2)
