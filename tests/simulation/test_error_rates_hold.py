"""Gaps of error rates are confirmed with half the labels of random sampling, and seldom if there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.arriving_traffic import confirmed as confirmed_of_traffic
from benchmarks.arriving_traffic import confirmed_limit, null_traffic
from benchmarks.error_rates import (
    ALPHA,
    COVERED,
    DIFFERENT,
    NULLS,
    RATE,
    World,
    confirmed,
    coverage,
    make_items,
)
from service.statistics.rates.evidence import LIMITS
from service.statistics.rates.gaps import log_e_any_difference
from service.statistics.rates.label_evidence import Capital, LabelEvidence


@pytest.mark.parametrize("name", list(DIFFERENT))
def test_labels_aimed_at_a_gap_confirm_it_with_about_half_of_the_labels(name: str) -> None:
    taken = {way: confirmed(DIFFERENT[name], 0.05, way, runs=40).mean() for way in ("aimed", "plain")}
    # By the benchmark it is less than half; the ratio of two means of 40 runs is known to about 15%.
    assert taken["aimed"] < 0.65 * taken["plain"]


@pytest.mark.parametrize("name", list(NULLS))
def test_few_runs_ever_confirm_a_gap_that_is_not_there(name: str) -> None:
    world, difference = NULLS[name]
    false = np.isfinite(confirmed(world, difference, "aimed", runs=100, budget=300))
    # A thousandth of the tests would fail at a rate of alpha.
    assert false.sum() <= stats.binom.ppf(0.999, 100, ALPHA)


@pytest.mark.parametrize("case", COVERED, ids=[name for name, *_ in COVERED])
def test_joint_intervals_cover_the_rates_of_all_groups(case: tuple[str, World, float]) -> None:
    _, world, honest = case
    found = np.array([coverage(world, honest, 100, np.random.default_rng((1, run))) for run in range(40)])
    # Of 40 runs a coverage of 95% is below 82% once in a thousand.
    assert (found[:, :-1].mean(axis=0) >= 0.82).all()


@pytest.mark.parametrize("moves", [False, True], ids=["shares that stay", "shares that move"])
def test_few_runs_ever_confirm_a_gap_of_traffic_that_arrives_meanwhile(*, moves: bool) -> None:
    world, difference = NULLS["equal, strong scores"]
    rng = np.random.default_rng(7)
    traffic = null_traffic(make_items(world, rng), RATE, first=300, per_label=5, moves=moves, rng=rng)
    found = confirmed_of_traffic(traffic, RATE, difference, runs=40, budget=150, alpha=ALPHA, rng=rng)
    # A thousandth of the tests would fail at a rate of alpha.
    assert np.isfinite(found).sum() <= stats.binom.ppf(0.999, 40, ALPHA)


def test_few_runs_ever_confirm_a_limit_that_is_chosen_after_looking() -> None:
    world, _ = NULLS["equal, strong scores"]
    true = world.false_positive[0]
    rng = np.random.default_rng(9)
    traffic = null_traffic(make_items(world, rng), RATE, first=300, per_label=5, moves=False, rng=rng)
    kept = LIMITS[true <= LIMITS]  # no group is beyond any of them
    found = confirmed_limit(traffic, RATE, kept, runs=40, budget=150, alpha=ALPHA, rng=rng)
    # A thousandth of the tests would fail at a rate of alpha.
    assert np.isfinite(found).sum() <= stats.binom.ppf(0.999, 40, ALPHA)


def test_few_runs_ever_confirm_a_gap_of_groups_that_appear_one_by_one() -> None:
    runs, most, looks, limits = 100, 10, 40, LIMITS[::4]
    # Groups differ by exactly what is allowed, and each appears after 240 labels of those before it.
    shares = [0.7 * np.array([1 - rate, rate]) for rate in (0.4, 0.3)]
    shares = [np.append(negative, (0.09, 0.21)) for negative in shares]
    rng, ever = np.random.default_rng(8), np.zeros(runs, np.bool_)
    capital = Capital(*np.zeros((2, runs * most, len(limits), 6)))
    for look in range(looks):
        groups = min(2 + look // 4, most)
        labels = np.zeros((runs, most, 2, 2))
        for group in range(groups):
            labels[:, group] = rng.multinomial(60 // groups, shares[group % 2], runs).reshape(runs, 2, 2)
        every = labels.reshape(runs * most, 2, 2)
        capital += Capital.of_sample(RATE, limits, every, np.zeros((runs * most, 2)))
        evidence = LabelEvidence.of(RATE, limits, capital)
        sides = (
            side.reshape(runs, most, -1)[:, :groups] for side in (evidence.log_e_above, evidence.log_e_below)
        )
        ever |= log_e_any_difference(LabelEvidence(RATE, limits, *sides), 0.1) >= -np.log(ALPHA)
    # A thousandth of the tests would fail at a rate of alpha.
    assert ever.sum() <= stats.binom.ppf(0.999, runs, ALPHA)
