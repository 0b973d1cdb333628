"""Policies: one contract for every policy and task, and what each policy promises of its own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from service.domain.assessments import METRICS
from service.domain.assessments import Policy as PolicyName
from service.statistics.beliefs import AccuracyBeliefs
from service.statistics.bin_beliefs import BinBeliefs
from service.statistics.confusion_beliefs import ConfusionBeliefs
from service.statistics.laplace import Cells
from service.statistics.mixture import BetaMixture
from service.statistics.policies import (
    NONE,
    POLICIES,
    BayesUcbPolicy,
    CertifyPolicy,
    EpsilonGreedyPolicy,
    MultiplePlayPolicy,
    Policy,
    RandomPolicy,
    Situation,
    ThompsonPolicy,
    TopTwoPolicy,
    highest,
)
from service.statistics.questions import Question, Task
from service.statistics.tasks import TASKS

GROUPS, BINS, CLASSES = 4, 3, 4
SHARES = np.array([0.4, 0.3, 0.2, 0.1])
CELLS = Cells(np.full((GROUPS, BINS), 1 / BINS), np.tile([0.3, 0.6, 0.9], (GROUPS, 1)), SHARES)
COSTS = np.arange(GROUPS * CLASSES, dtype=float).reshape(GROUPS, CLASSES)
PAIR = np.array([3, 1])
POSITIVE = np.array([0.05, 0.3, 0.6, 0.9])
MULTIPLE = ("multiple_play", "epsilon_greedy", "bayes_ucb")
"""Policies that name as many groups at a step as are looked for."""


def parameters(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.uniform(1, 9, shape), rng.uniform(1, 9, shape)


def beliefs_for(task: Task[Any], runs: int) -> Any:
    if task.kind == "accuracy":
        return AccuracyBeliefs.fixed(*parameters(GROUPS), runs)
    if task.kind == "bins":
        return BinBeliefs(CELLS, *parameters(GROUPS, BINS), runs)
    return ConfusionBeliefs(parameters(GROUPS, CLASSES)[0], runs)


def make(task: tuple[str, str], top_m: int = 1, **changes: Any) -> Task[Any]:
    return TASKS[task](Question(CELLS, top_m=top_m, costs=COSTS, pair=PAIR, positive=POSITIVE, **changes))


def situation(
    task: Task[Any], runs: int = 1, available: np.ndarray | None = None, **changes: Any
) -> Situation:
    """As the service and replays make it: only groups that the task finds relevant are available."""
    there = np.ones((runs, GROUPS), dtype=bool) if available is None else np.tile(available, (runs, 1))
    relevant = task.relevant(runs)
    if relevant is not None:
        there &= relevant
    weights = np.tile(SHARES, (runs, 1))
    return Situation(
        **({"beliefs": beliefs_for(task, runs), "weights": weights, "available": there} | changes)
    )


every_pair = pytest.mark.parametrize(
    ("policy", "key"),
    [
        pytest.param(policy, key, id=f"{policy}-{'-'.join(key)}")
        for policy, key in itertools.product(POLICIES, TASKS)
    ],
)

every_search = pytest.mark.parametrize(
    ("policy", "key"),
    [
        pytest.param(policy, key, id=f"{policy}-{'-'.join(key)}")
        for policy, key in itertools.product(POLICIES, TASKS)
        if key[0] == "identification"
    ],
)


def choose(policy: str, key: tuple[str, str], seed: int, *, runs: int = 1, **changes: Any) -> np.ndarray:
    task = make(key, changes.pop("top_m", 1))
    return POLICIES[policy]().choose(task, situation(task, runs, **changes), np.random.default_rng(seed))


def test_what_can_be_configured_is_what_there_is() -> None:
    planned = {("ensemble", "precision"), ("challenge", "accuracy")}  # whose labels no policy chooses
    estimated = {(task, metric) for task, metrics in METRICS.items() for metric in metrics}
    assert estimated - planned == set(TASKS)
    assert set(PolicyName.__args__) == set(POLICIES)


@every_pair
def test_a_step_names_a_group_of_every_run(policy: str, key: tuple[str, str]) -> None:
    assert choose(policy, key, 1, runs=5).shape == (5, 1)


@every_search
def test_a_step_of_a_search_names_one_group_or_as_many_as_are_looked_for(
    policy: str, key: tuple[str, str]
) -> None:
    found = choose(policy, key, 1, runs=50, top_m=3)
    assert found.shape == (50, 3 if policy in MULTIPLE else 1)
    assert all(len(set(row)) == len(row) for row in found.tolist())


@every_pair
def test_only_groups_that_have_something_to_label_are_named(policy: str, key: tuple[str, str]) -> None:
    chosen = choose(policy, key, 1, runs=200, available=np.array([False, True, False, True]))
    assert set(chosen.ravel().tolist()) <= {1, 3}


@every_pair
def test_none_is_named_where_nothing_is_left(policy: str, key: tuple[str, str]) -> None:
    assert (choose(policy, key, 1, runs=3, available=np.zeros(GROUPS, dtype=bool)) == NONE).all()


@every_search
def test_where_fewer_are_left_than_looked_for_all_of_them_can_be_named(
    policy: str, key: tuple[str, str]
) -> None:
    available = np.array([False, True, False, True])
    chosen = choose(policy, key, 1, runs=100, top_m=3, available=available)
    assert set(chosen[chosen != NONE].tolist()) == {1, 3}
    assert (chosen[:, 0] != NONE).all()


@every_pair
def test_the_same_seed_names_the_same_groups(policy: str, key: tuple[str, str]) -> None:
    first, second = (choose(policy, key, 9, runs=40) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@every_pair
def test_groups_that_are_not_relevant_are_never_named(policy: str, key: tuple[str, str]) -> None:
    chosen = choose(policy, key, 2, runs=300)
    if key[0] == "comparison":
        assert set(chosen.ravel().tolist()) <= set(PAIR.tolist())
    assert chosen.min() >= 0


@every_pair
def test_choosing_leaves_beliefs_as_they_were(policy: str, key: tuple[str, str]) -> None:
    task = make(key)
    given = situation(task, 3)
    before = task.expected(given.beliefs).copy()
    POLICIES[policy]().choose(task, given, np.random.default_rng(1))
    np.testing.assert_array_equal(task.expected(given.beliefs), before)


@every_pair
def test_a_run_chooses_as_often_together_with_others_as_alone(policy: str, key: tuple[str, str]) -> None:
    together = choose(policy, key, 3, runs=2_000)[:, 0]
    task = make(key)
    given = situation(task)  # which choosing leaves as it was
    seeds = map(np.random.default_rng, range(400))
    alone = np.array([POLICIES[policy]().choose(task, given, rng)[0, 0] for rng in seeds])
    first, second = (np.bincount(chosen, minlength=GROUPS) / len(chosen) for chosen in (together, alone))
    # Five standard errors of a share of 400, over 44 pairs and four groups.
    np.testing.assert_allclose(first, second, atol=5 * 0.5 / 400**0.5)


@pytest.mark.parametrize("key", [key for key in TASKS if make(key).kind == "accuracy"], ids="-".join)
def test_what_one_run_knows_changes_no_other(key: tuple[str, str]) -> None:
    task = make(key)
    alpha, beta = parameters(2, 1, GROUPS)
    pair = AccuracyBeliefs(BetaMixture(np.ones((2, 1)), alpha, beta))
    for run in range(2):
        single = AccuracyBeliefs(
            BetaMixture(np.ones((1, 1)), alpha[run : run + 1].copy(), beta[run : run + 1].copy())
        )
        np.testing.assert_allclose(task.expected(pair)[run], task.expected(single)[0], rtol=1e-12)
        np.testing.assert_allclose(task.upper(pair, 0.975)[run], task.upper(single, 0.975)[0], rtol=1e-12)


def test_ties_are_settled_by_chance_each_as_likely() -> None:
    reward = np.tile([1.0, 2.0, 2.0, 2.0], (6_000, 1))
    for count in (1, 2):
        chosen = highest(reward, np.ones(reward.shape, dtype=bool), count, np.random.default_rng(4))
        found = np.bincount(chosen.ravel(), minlength=4)
        assert found[0] == 0
        assert stats.chisquare(found[1:]).pvalue > 1e-3


def test_highest_names_the_highest_first() -> None:
    reward = np.array([[0.1, 0.9, 0.5, 0.7]])
    every = np.ones((1, 4), dtype=bool)
    assert highest(reward, every, 3, np.random.default_rng(1)).tolist() == [[1, 3, 2]]


def test_random_is_proportional_to_weights() -> None:
    task = make(("identification", "accuracy"))
    chosen = RandomPolicy().choose(task, situation(task, 4_000), np.random.default_rng(3))
    assert stats.chisquare(np.bincount(chosen[:, 0], minlength=4), 4_000 * SHARES).pvalue > 1e-3


def worst(size: int = 200_000, count: int = 1) -> np.ndarray:
    """How often each group is among the lowest, by draws."""
    drawn = np.random.default_rng(0).beta(*parameters(GROUPS), (size, GROUPS))
    return np.bincount(np.argsort(drawn, axis=1)[:, :count].ravel(), minlength=GROUPS) / size


def test_thompson_asks_the_least_accurate_group_as_often_as_it_is_likely_the_worst() -> None:
    chosen = choose("thompson", ("identification", "accuracy"), 6, runs=20_000)[:, 0]
    # Four standard errors of 20,000 choices.
    np.testing.assert_allclose(np.bincount(chosen, minlength=4) / 20_000, worst(), atol=4 * 0.5 / 20_000**0.5)


def test_thompson_asks_each_of_the_top_m_as_often() -> None:
    chosen = choose("thompson", ("identification", "accuracy"), 6, runs=20_000, top_m=2)[:, 0]
    found = np.bincount(chosen, minlength=4) / 20_000
    np.testing.assert_allclose(found, worst(count=2) / 2, atol=4 * 0.5 / 20_000**0.5)


def test_multiple_play_names_all_of_the_top_m() -> None:
    chosen = choose("multiple_play", ("identification", "accuracy"), 6, runs=20_000, top_m=2)
    found = np.bincount(chosen.ravel(), minlength=4) / 20_000
    np.testing.assert_allclose(found, worst(count=2), atol=4 * 0.5 / 20_000**0.5)
    assert isinstance(POLICIES["multiple_play"](), MultiplePlayPolicy)


@pytest.mark.parametrize("key", list(TASKS), ids="-".join)
def test_top_two_that_never_resamples_is_thompson(key: tuple[str, str]) -> None:
    task = make(key)
    policies: list[Policy] = [TopTwoPolicy(resample=0.0), ThompsonPolicy()]
    one, other = (
        np.bincount(p.choose(task, situation(task, 8_000), np.random.default_rng(i))[:, 0], minlength=4)
        for i, p in enumerate(policies)
    )
    np.testing.assert_allclose(one / 8_000, other / 8_000, atol=4 * (2 * 0.25 / 8_000) ** 0.5)


def test_top_two_that_always_resamples_asks_the_strongest_rival() -> None:
    sure = AccuracyBeliefs.fixed(
        np.array([100.0, 900.0, 980.0, 990.0]), np.array([900.0, 100.0, 20.0, 10.0]), 500
    )
    task = make(("identification", "accuracy"))
    given = situation(task, 500, beliefs=sure)
    chosen = TopTwoPolicy(resample=1.0).choose(task, given, np.random.default_rng(1))
    assert set(chosen[:, 0].tolist()) == {1}


def test_epsilon_greedy_asks_the_best_but_for_epsilon() -> None:
    task = make(("identification", "accuracy"))
    given = situation(task, 20_000)
    best = int(task.expected(given.beliefs)[0].argmax())
    for epsilon in (0.0, 0.1, 1.0):
        chosen = EpsilonGreedyPolicy(epsilon).choose(task, given, np.random.default_rng(1))[:, 0]
        assert np.mean(chosen == best) == pytest.approx(1 - epsilon * 3 / 4, abs=4 * 0.5 / 20_000**0.5)


def test_bayes_ucb_goes_by_a_quantile_and_not_by_mean_and_variance() -> None:
    # The first has the larger mean and variance of error, the second the higher quantile of it: it is skewed.
    alpha, beta = np.array([1.5, 3.0]), np.array([1.0, 1.2])
    ends = stats.beta.ppf(0.025, alpha, beta)
    task = TASKS["identification", "accuracy"](
        Question(Cells(np.ones((2, 1)), np.full((2, 1), 0.5), np.full(2, 0.5)))
    )
    believed = AccuracyBeliefs.fixed(alpha, beta, 1)
    given = Situation(believed, np.full((1, 2), 0.5), np.ones((1, 2), dtype=bool))
    np.testing.assert_allclose(task.upper(believed, 0.975)[0], -ends, rtol=1e-9)
    chosen = BayesUcbPolicy().choose(task, given, np.random.default_rng(1))
    assert chosen[0, 0] == ends.argmin()


def test_a_label_that_is_expected_turns_estimation_to_other_groups() -> None:
    task = TASKS["estimation", "accuracy"](
        Question(Cells(np.ones((2, 1)), np.full((2, 1), 0.5), np.full(2, 0.5)))
    )

    def share_of_first(in_flight: int) -> float:
        believed = AccuracyBeliefs.fixed(np.full(2, 5.0), np.full(2, 5.0), 1_000)
        for _ in range(in_flight):
            believed.expect(np.zeros(1_000, dtype=np.intp))
        given = Situation(believed, np.full((1_000, 2), 0.5), np.ones((1_000, 2), dtype=bool))
        return float(np.mean(ThompsonPolicy().choose(task, given, np.random.default_rng(1)) == 0))

    assert share_of_first(0) == pytest.approx(0.5, abs=4 * 0.5 / 1_000**0.5)
    assert share_of_first(30) < 0.05


def certify(labels_left: list[float], available: np.ndarray | None = None) -> int:
    task = make(("estimation", "accuracy"))
    given = situation(task, 1, available, labels_left=np.array([labels_left]))
    return int(CertifyPolicy().choose(task, given, np.random.default_rng(1))[0, 0])


def test_certify_asks_where_a_certificate_lacks_most_labels() -> None:
    assert certify([5.0, 40.0, 0.0, 8.0]) == 1


def test_certify_asks_groups_that_may_miss_their_target_first() -> None:
    assert certify([5.0, 40.0, np.inf, 8.0]) == 2


def test_certify_skips_groups_without_items() -> None:
    assert certify([5.0, 40.0, 0.0, 8.0], np.array([True, False, True, True])) == 3


def test_certify_asks_nothing_once_no_label_is_lacking() -> None:
    assert certify([0.0, 0.0, 0.0, 0.0]) == NONE


def test_a_requested_label_counts_as_one_less_that_a_certificate_lacks() -> None:
    task = make(("estimation", "accuracy"))
    given = situation(task, 1, labels_left=np.array([[5.0, np.inf, 0.0, 8.0]]))
    for group in (0, 1, 2, 3, 3):
        given.expect(np.array([group]))
    assert given.labels_left is not None
    assert given.labels_left.tolist() == [[4.0, np.inf, 0.0, 6.0]]
