"""Calibration error: its mean in closed form, its interval, and the whole from facts."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.calibration import calibration_error
from service.statistics.groups import CellTraffic, Labels, assess_grouping
from service.statistics.mixture import BetaMixture

RNG = np.random.default_rng(8)
SHAPE = (3, 5)
BELIEFS = BetaMixture(np.array([0.7, 0.3]), *RNG.uniform(0.5, 40, (2, 2, 15)))
SCORES = np.tile((np.arange(5) + 0.5) / 5, (3, 1))
SHARES = RNG.dirichlet(np.ones(5), 3)


def test_its_mean_is_that_of_draws() -> None:
    found = calibration_error(beliefs=BELIEFS, scores=SCORES, shares=SHARES)
    drawn = BELIEFS.sample(np.random.default_rng(1), 200_000).reshape(-1, *SHAPE)
    expected = (SHARES * np.abs(drawn - SCORES)).sum(axis=2).mean(axis=0)
    # Four standard errors of 200,000 draws of a number in [0, 1].
    np.testing.assert_allclose(found.mean, expected, atol=4 * 0.5 / 200_000**0.5)


def test_its_interval_holds_its_mass_of_draws() -> None:
    found = calibration_error(beliefs=BELIEFS, scores=SCORES, shares=SHARES)
    drawn = BELIEFS.sample(np.random.default_rng(1), 100_000).reshape(-1, *SHAPE)
    errors = (SHARES * np.abs(drawn - SCORES)).sum(axis=2)
    lower, upper = found.interval(0.95)
    # Every component's distribution is taken for a Beta, which costs up to a point.
    assert (((lower <= errors) & (errors <= upper)).mean(axis=0) >= 0.94).all()


def test_of_a_perfectly_known_calibrated_model_it_is_near_zero() -> None:
    known = BetaMixture(np.ones(1), 1e7 * SCORES.reshape(1, -1), 1e7 * (1 - SCORES.reshape(1, -1)))
    found = calibration_error(beliefs=known, scores=SCORES, shares=SHARES)
    lower, upper = found.interval(0.95)
    assert (upper < 1e-3).all()
    assert (lower == 0).all()


def test_bins_without_traffic_do_not_matter() -> None:
    shares = np.array([[0.5, 0.5, 0.0, 0.0, 0.0]] * 3)
    changed = BetaMixture(BELIEFS.weights, BELIEFS.alpha.copy(), BELIEFS.beta)
    changed.alpha.reshape(2, 3, 5)[:, :, 2:] += 100
    one, other = (calibration_error(beliefs=b, scores=SCORES, shares=shares).mean for b in (BELIEFS, changed))
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_more_error_is_more_probably_above_a_threshold() -> None:
    found = calibration_error(beliefs=BELIEFS, scores=SCORES, shares=SHARES)
    assert (found.probability_above(0.0) >= found.probability_above(0.2)).all()
    assert found.probability_above(1.0) == pytest.approx([0, 0, 0], abs=1e-9)


def grouping_beliefs(cell_groups: np.ndarray, group_count: int) -> object:
    rng = np.random.default_rng(3)
    bins = np.tile(np.arange(5), 4)
    traffic = CellTraffic(np.linspace(1, 2, 20), np.linspace(1, 2, 20) * (bins + 0.5) / 5)
    cells = rng.integers(0, 20, 200)
    correct = (rng.random(200) < 0.75).astype(float)
    return assess_grouping(
        cell_groups=cell_groups,
        cell_bins=bins,
        group_count=group_count,
        bin_count=5,
        traffic=traffic,
        labels=Labels(cells, correct, np.ones(200), np.ones(200), np.full(200, -1)),
        prior="uniform",
    )


def test_a_group_is_the_union_of_its_cells() -> None:
    fine, coarse = (
        grouping_beliefs(np.repeat(np.arange(4), 5), 4),
        grouping_beliefs(np.repeat([0, 0, 1, 1], 5), 2),
    )
    np.testing.assert_allclose(coarse.shares, fine.shares.reshape(2, 2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(coarse.labels, fine.labels.reshape(2, 2).sum(axis=1), rtol=1e-12)
    assert coarse.labels_counted.tolist() == fine.labels_counted.reshape(2, 2).sum(axis=1).tolist()


def test_a_group_without_labels_or_traffic_gives_no_warning_and_proper_beliefs() -> None:
    believed = assess_grouping(
        cell_groups=np.array([0, 0, 1, 1]),
        cell_bins=np.array([0, 1, 0, 1]),
        group_count=2,
        bin_count=2,
        traffic=CellTraffic(np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.2, 0.8, 0.0, 0.0])),
        labels=Labels(np.empty(0, np.intp), np.empty(0), np.empty(0), np.empty(0), np.empty(0, np.intp)),
        prior="learned",
    )
    assert believed.shares.tolist() == [1.0, 0.0]
    assert np.isfinite(believed.accuracy.mean()).all()
    assert np.isfinite(believed.ece.mean).all()
