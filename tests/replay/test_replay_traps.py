"""Mistakes that are easily made with this method, and that its published code is known for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import Watch, believing, labels_told, plain_pool, pool_of, recording, replayed
from scipy import integrate, stats

from service.domain.errors import RecordingError
from service.replay.digits import digits_recordings
from service.replay.grouping import Grouper, equal_size_bins
from service.replay.measures import BinErrors, Comparisons, Identification
from service.replay.pool import Pool
from service.replay.recording import Recording, load_recording
from service.replay.study import beliefs_before
from service.statistics.comparison import rope_probabilities
from service.statistics.confusion_beliefs import ConfusionBeliefs
from service.statistics.curves import LearnedCurve
from service.statistics.policies import BayesUcbPolicy, Situation
from service.statistics.priors import FIXED_PRIORS
from service.statistics.questions import Question
from service.statistics.tasks import TASKS, EstimateConfusion, IdentifyByAccuracy

PRIORS = ("learned", *FIXED_PRIORS)


@pytest.mark.parametrize("prior", PRIORS)
def test_confusion_learns_the_true_class_and_not_the_predicted_one(prior: str) -> None:
    pool = plain_pool(right=[10, 30], wrong=[30, 10])
    beliefs = replayed(
        pool, TASKS["estimation", "confusion"](Question(pool.cells)), "random", prior=prior, runs=2
    )
    # The identity matrix, which predictions would teach, is .75 and .25 away.
    np.testing.assert_allclose(beliefs.mean(), np.tile(pool.confusion, (2, 1, 1)), atol=0.06)


def test_the_reward_of_confusion_adds_the_label_to_every_class_in_turn() -> None:
    alpha, theta = np.array([2.0, 0.5, 1.5]), np.array([0.2, 0.3, 0.5])

    def variance(parameters: np.ndarray) -> float:
        total = parameters.sum()
        return float((1 - ((parameters / total) ** 2).sum()) / (total + 1))

    expected = variance(alpha) - sum(theta[j] * variance(alpha + np.eye(3)[j]) for j in range(3))
    task = EstimateConfusion(Question(pool_of([5, 15]).cells))
    beliefs = ConfusionBeliefs(np.stack([alpha, alpha]), 1)
    found = task._reward(beliefs, np.tile(theta, (1, 2, 1)))
    np.testing.assert_allclose(found, [[0.25 * expected, 0.75 * expected]])


def test_the_posterior_mean_is_the_probability_of_the_next_class() -> None:
    alpha = np.array([[2.0, 0.5, 1.5], [1.0, 1.0, 1.0]])
    task = EstimateConfusion(Question(pool_of([5, 15]).cells))
    beliefs = ConfusionBeliefs(alpha, 1)
    np.testing.assert_allclose(task.expected(beliefs), task._reward(beliefs, beliefs.mean()))


def test_what_is_recorded_at_some_labels_is_after_exactly_so_many() -> None:
    pool = pool_of([15, 20, 10])
    watch = Watch(lambda beliefs: labels_told(beliefs).sum(axis=1).tolist())
    replayed(
        pool, TASKS["estimation", "accuracy"](Question(pool.cells)), "thompson", runs=2, measures=[watch]
    )
    assert watch.seen == [(used, [used, used]) for used in range(46)]


def test_estimate_and_truth_share_their_bins() -> None:
    made = recording([60, 50, 40])
    pool = Grouper(5, "equal_size").bins_alone(made)
    task = TASKS["estimation", "accuracy"](Question(pool.cells))
    measure = BinErrors(pool, [150])
    replayed(pool, task, "random", prior="vague", runs=2, measures=[measure])
    # With all labels and no prior the estimate is the truth.
    assert measure.result().per_run["rmse"].max() < 1e-6
    assert measure.result().per_run["ece_error_percent"].max() < 1e-4


def test_the_cells_of_labels_are_those_of_traffic() -> None:
    made = recording([60, 50, 40])
    pool = Grouper(5, "equal_size").by_predicted_class(made)
    task = TASKS["identification", "calibration"](Question(pool.cells))
    beliefs = replayed(pool, task, "random", prior="learned", runs=1)
    shares = beliefs._curve.labels[0] / pool.sizes[:, None]
    np.testing.assert_allclose(shares, pool.cells.shares)
    scores = np.zeros(shares.shape)
    np.add.at(scores, (made.predicted, pool.bins), made.scores)
    np.testing.assert_allclose(pool.cells.scores, scores / pool.bin_counts[0])


@pytest.mark.parametrize("count", [2, 5, 10])
def test_of_equally_many_items_the_highest_score_is_in_the_last_bin(count: int) -> None:
    scores = np.random.default_rng(0).permutation(np.linspace(0.2, 1.0, 100))
    bins = equal_size_bins(scores, count)
    assert bins[scores.argmax()] == count - 1
    assert bins[scores.argmin()] == 0
    assert (np.bincount(bins) == 100 // count).all()


def test_the_right_superclass_is_not_enough() -> None:
    # All predictions are of the right superclass, none is of the right class.
    probabilities = np.tile([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1]], (5, 1))
    made = Recording("model", probabilities, np.tile([1, 3], 5))
    pool = Grouper(2).by_superclass(made, {"low": [0, 1], "high": [2, 3]})
    assert pool.accuracy.tolist() == [0, 0]


def test_superclasses_are_those_of_predictions() -> None:
    probabilities = np.array([[0.7, 0.1, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1]])
    made = Recording("model", probabilities, np.array([0, 3, 3]))
    pool = Grouper(2).by_superclass(made, {"low": [0, 1], "high": [2, 3]})
    assert (pool.sizes.tolist(), pool.accuracy.tolist()) == ([2, 1], [0.5, 0])


def test_what_is_never_found_does_not_count_as_one_label() -> None:
    measure = Identification(
        lambda merit: merit, np.array([2.0, 1.0]), 1, runs=1, budget=50, rng=np.random.default_rng(0)
    )
    for used in range(51):
        measure.record(used, np.array([[1.0, 2.0]]))
    assert [float(rows[0]) for rows in measure.result().per_run.values()] == [51, 51]


def test_a_comparison_that_is_never_settled_does_not_count_as_one_label() -> None:
    pool = plain_pool(right=[90, 50], wrong=[10, 50])
    measure = Comparisons(pool, np.array([[0, 1]]), 0.05, 50)
    for used in range(51):
        measure.record(used, believing([1, 1], [1, 1]))
    found = {name: float(rows[0]) for name, rows in measure.result().per_run.items()}
    assert found == {"first": 50, "stays": 50, "never": 1}


PAIRS = [
    ((3.0, 2.0), (2.0, 2.0)),
    ((91.0, 11.0), (80.0, 22.0)),
    ((0.7, 0.4), (5.0, 0.5)),
    ((400.0, 9.0), (395.0, 8.0)),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_comparing_twice_gives_exactly_the_same(first: Any, second: Any) -> None:
    one, two = (rope_probabilities(first, second, region=0.05) for _ in range(2))
    assert one.tolist() == two.tolist()


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_comparing_is_right_to_a_millionth(first: Any, second: Any) -> None:
    one, two = stats.beta(*first), stats.beta(*second)

    def beyond(this: Any, other: Any) -> float:
        # Over the quantiles: the density may be infinite at the ends.
        found, _ = integrate.quad(
            lambda u: other.cdf(this.ppf(u) - 0.05), 0, 1, epsabs=1e-9, limit=500, points=[this.cdf(0.05)]
        )
        return float(found)

    below, above = beyond(two, one), beyond(one, two)
    found = rope_probabilities(first, second, region=0.05)
    np.testing.assert_allclose(found, [below, 1 - below - above, above], atol=1e-6)


def certain_recording() -> Recording:
    """Scores of exactly 1, of which one in ten is wrong; the other class then scores exactly 0."""
    predicted = np.arange(100) % 2
    labels = np.where(np.arange(100) % 10 == 3, 1 - predicted, predicted)
    return Recording("certain", np.eye(2)[predicted], labels)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("asked", sorted(TASKS))
def test_scores_of_one_and_zero_make_proper_beliefs(asked: tuple[str, str], prior: str) -> None:
    made = certain_recording()
    pool = Grouper(3).by_predicted_class(made)
    task = TASKS[asked](
        Question(pool.cells, costs=np.array([[0.0, 1.0], [1.0, 0.0]]), positive=np.array([0.0, 1.0]))
    )
    beliefs = beliefs_before(prior, task.kind, pool, 2)
    rewards = [
        task.sampled(beliefs, np.random.default_rng(0)),
        task.expected(beliefs),
        task.upper(beliefs, 0.975),
    ]
    assert all(np.isfinite(reward).all() for reward in rewards)
    if task.kind == "confusion":
        parameters = beliefs.parameters()
    else:
        parameters = np.stack(beliefs.matched() if task.kind == "accuracy" else [beliefs.alpha, beliefs.beta])
    assert (parameters > 0).all()


def test_a_certain_model_is_corrected_by_labels() -> None:
    made = certain_recording()
    pool = Grouper(3).by_predicted_class(made)
    task = TASKS["estimation", "accuracy"](Question(pool.cells))
    for prior in PRIORS:
        beliefs = replayed(pool, task, "random", prior=prior, runs=2)
        # 50 labels and two pseudo-labels.
        np.testing.assert_allclose(beliefs.mixture.mean(), np.tile(pool.accuracy, (2, 1)), atol=0.04)


def without_class_two() -> Recording:
    made = recording([30, 30, 30, 30])
    kept = made.predicted != 2
    return Recording("model", made.probabilities[kept], made.labels[kept])


@pytest.mark.parametrize("grouper", [Grouper(3), Grouper(3, "equal_size")])
def test_a_class_without_items_is_not_the_least_accurate(grouper: Grouper) -> None:
    pool = grouper.by_predicted_class(without_class_two())
    assert pool.names == ["0", "1", "3"]
    assert (pool.sizes > 0).all()
    assert pool.names[int(pool.accuracy.argmin())] == "3"
    assert pool.predicted.tolist() == [0, 1, 3]


def test_an_upper_confidence_bound_is_a_quantile() -> None:
    # By the mean plus the variance the second would be asked: .7 + .21 against .85 + .0002.
    beliefs = believing([2, 850], [0.5, 150])
    task = IdentifyByAccuracy(Question(plain_pool([5, 5], [5, 5]).cells, extreme="highest"))
    expected = [stats.beta(2, 0.5).ppf(0.975), stats.beta(850, 150).ppf(0.975)]
    np.testing.assert_allclose(task.upper(beliefs, 0.975), [expected])


def test_bayesian_ucb_asks_where_the_quantile_is_highest() -> None:
    # Mean plus variance: .5 + .01 and .52 + .0002; quantiles: .70 and .55.
    beliefs = believing([12, 520], [12, 480])
    task = IdentifyByAccuracy(Question(plain_pool([5, 5], [5, 5]).cells, extreme="highest"))
    situation = Situation(beliefs, np.ones((1, 2)), np.ones((1, 2), dtype=np.bool_))
    assert BayesUcbPolicy().choose(task, situation, np.random.default_rng(0)).tolist() == [[0]]


@pytest.mark.parametrize(("score", "accepted"), [(1.00001, True), (1.001, False)])
def test_a_score_above_one_is_clipped_only_if_it_is_rounding(
    tmp_path: Path, score: float, accepted: bool
) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, probabilities=[[score, 1 - score], [0.4, 0.6]], labels=[0, 1])
    if accepted:
        assert load_recording(path).probabilities[0].tolist() == [1, 0]
    else:
        with pytest.raises(RecordingError, match="a probability is not within 0 and 1"):
            load_recording(path)


def test_multiple_plays_stay_in_step_where_fewer_groups_are_left() -> None:
    pool = pool_of([1, 2, 3, 30])
    shown = Watch(lambda beliefs: labels_told(beliefs).sum(axis=1))
    task = IdentifyByAccuracy(Question(pool.cells, top_m=3))
    replayed(pool, task, "multiple_play", runs=25, measures=[shown])
    for used, labels in shown.seen:
        assert (labels == used).all()


def test_the_predicted_class_need_not_be_the_most_probable(tmp_path: Path) -> None:
    # A binary problem with an operating threshold of .3 for class 1.
    probabilities = np.array([[0.65, 0.35], [0.6, 0.4], [0.9, 0.1], [0.2, 0.8]])
    path = tmp_path / "model.npz"
    np.savez(path, probabilities=probabilities, labels=[1, 0, 0, 1], predicted=[1, 1, 0, 1])
    made = load_recording(path)
    pool = Grouper(10).by_predicted_class(made)
    assert made.scores.tolist() == [0.35, 0.4, 0.9, 0.8]
    assert pool.bins.tolist() == [3, 4, 9, 8]
    assert pool.accuracy.tolist() == [1, pytest.approx(2 / 3)]
    np.testing.assert_allclose(pool.cells.group_scores, [0.9, (0.35 + 0.4 + 0.8) / 3])
    np.testing.assert_allclose(pool.confusion, [[1, 0], [1 / 3, 2 / 3]])


def test_quantiles_are_found_where_nearly_all_mass_is_at_one() -> None:
    # Newton's steps stayed inside the bracket and came no nearer, for ever.
    digits = digits_recordings()[0]
    bins = equal_size_bins(digits.scores, 10)
    whole = Pool(digits, ["all"], np.zeros_like(bins), bins, 10)
    sample = np.random.default_rng(0).choice(digits.size, 100, replace=False)
    labels = np.bincount(bins[sample], minlength=10).astype(np.float64)
    right = np.bincount(bins[sample], digits.correct[sample].astype(np.float64), 10)
    beliefs = LearnedCurve().fit(whole.cells, labels[None, None], right[None, None]).bins()
    lower, upper = beliefs.interval(0.95)
    assert (lower <= upper).all()
    assert (upper <= 1).all()
