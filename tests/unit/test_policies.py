"""One contract for every policy and every task, and what each is for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from service.assessment import beta
from service.assessment.mixture import BetaMixture
from service.assessment.policies import POLICIES, Situation, ThompsonPolicy
from service.assessment.tasks import TASKS, EstimateAccuracy, LeastAccurate


def beliefs(right: list[float], wrong: list[float]) -> BetaMixture:
    return BetaMixture(np.ones(1), np.array([right]), np.array([wrong]))


def situation(count: int = 4, **changes: object) -> Situation:
    options = {
        "beliefs": beliefs([8.0, 3.0, 5.0, 1.0][:count], [1.0, 3.0, 1.0, 1.0][:count]),
        "shares": np.array([0.4, 0.3, 0.2, 0.1][:count]),
        "pending": np.zeros(count),
        "available": np.ones(count, dtype=bool),
    }
    return Situation(**(options | changes))


every_pair = pytest.mark.parametrize(
    ("policy", "task"),
    [
        pytest.param(POLICIES[policy](), TASKS[task](1), id=f"{policy}-{task[0]}")
        for policy, task in itertools.product(POLICIES, TASKS)
    ],
)


@every_pair
def test_it_chooses_as_many_groups_as_asked(policy: object, task: object) -> None:
    assert len(policy.choose(task, situation(), 7, np.random.default_rng(1))) == 7


@every_pair
def test_it_chooses_only_groups_that_have_something_to_label(policy: object, task: object) -> None:
    available = np.array([False, True, False, True])
    chosen = policy.choose(task, situation(available=available), 40, np.random.default_rng(1))
    assert set(chosen) <= {1, 3}


@every_pair
def test_it_chooses_nothing_when_there_is_nothing_to_label(policy: object, task: object) -> None:
    assert (
        policy.choose(task, situation(available=np.zeros(4, dtype=bool)), 5, np.random.default_rng(1)) == []
    )


@every_pair
def test_the_same_seed_gives_the_same_choice(policy: object, task: object) -> None:
    first, second = (policy.choose(task, situation(), 20, np.random.default_rng(9)) for _ in range(2))
    assert first == second


@every_pair
def test_it_leaves_the_situation_as_it_was(policy: object, task: object) -> None:
    given = situation()
    policy.choose(task, given, 20, np.random.default_rng(9))
    assert given.pending.tolist() == [0, 0, 0, 0]


def test_random_is_proportional_to_traffic() -> None:
    chosen = POLICIES["random"]().choose(LeastAccurate(), situation(), 4_000, np.random.default_rng(3))
    assert stats.chisquare(np.bincount(chosen, minlength=4), 4_000 * situation().shares).pvalue > 1e-3


def test_thompson_asks_the_least_accurate_group_as_often_as_it_is_likely_the_worst() -> None:
    given = situation()
    chosen = [
        ThompsonPolicy().choose(LeastAccurate(), given, 1, np.random.default_rng(seed))[0]
        for seed in range(3_000)
    ]
    worst = given.beliefs.sample(np.random.default_rng(0), 200_000).argmin(axis=1)
    expected = np.bincount(worst, minlength=4) / 200_000
    np.testing.assert_allclose(np.bincount(chosen, minlength=4) / 3_000, expected, atol=4 * 0.5 / 3_000**0.5)


def test_requests_in_flight_turn_the_choice_to_other_groups() -> None:
    equal = {"beliefs": beliefs([5.0, 5.0], [5.0, 5.0]), "shares": np.array([0.5, 0.5])}

    def share_of_first(pending: list[float]) -> float:
        given = situation(2, **equal, pending=np.array(pending))
        chosen = [
            ThompsonPolicy().choose(EstimateAccuracy(), given, 1, np.random.default_rng(s))[0]
            for s in range(300)
        ]
        return chosen.count(0) / 300

    assert share_of_first([0.0, 0.0]) == pytest.approx(0.5, abs=0.12)
    assert share_of_first([30.0, 0.0]) < 0.05


def test_a_step_for_the_top_m_asks_m_different_groups() -> None:
    for seed in range(50):
        chosen = ThompsonPolicy().choose(LeastAccurate(top_m=3), situation(), 3, np.random.default_rng(seed))
        assert len(set(chosen)) == 3


def test_the_reward_of_estimation_is_the_expected_drop_of_variance() -> None:
    alpha, other, theta = np.array([3.0, 0.7]), np.array([2.0, 9.0]), np.array([0.4, 0.1])
    reward = EstimateAccuracy().reward(
        beliefs=beliefs(list(alpha), list(other)), sampled=theta, shares=np.array([0.8, 0.2])
    )
    after = theta * stats.beta.var(alpha + 1, other) + (1 - theta) * stats.beta.var(alpha, other + 1)
    np.testing.assert_allclose(reward, [0.8, 0.2] * (stats.beta.var(alpha, other) - after), rtol=1e-12)


def test_the_reward_of_estimation_averages_to_the_drop_that_beliefs_expect() -> None:
    alpha, other = np.array([6.0]), np.array([2.0])
    mean = beta.mean(alpha, other)
    reward = EstimateAccuracy().reward(beliefs=beliefs([6.0], [2.0]), sampled=mean, shares=np.ones(1))
    # One label explains Var / (n + 1) of a Beta's variance, n = alpha + beta.
    np.testing.assert_allclose(reward, beta.variance(alpha, other) / 9, rtol=1e-12)
