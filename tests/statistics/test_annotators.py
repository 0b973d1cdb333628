"""What answers of people who err tell: closed forms at the ends; between, ranks of draws from the prior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from service.statistics.annotator_prior import AnnotatorPrior, Shared
from service.statistics.annotators import sample_truth
from service.statistics.strata_accuracy import Accuracies, CurvedAccuracy
from service.statistics.truth_chain import Answers, State, TruthChain

NEVER_ERR = AnnotatorPrior(
    ability=(40.0, 0.01), harder=(0.0, 0.01), log_difficulty=(-5.0, 0.01), log_unlike=(-5.0, 0.01)
)
GUESS = AnnotatorPrior(ability=(0.0, 0.01), log_unlike=(-5.0, 0.01))


def one_answer_each(agrees: list[bool], people: int = 4, classes: int = 2) -> Answers:
    """About every item, by one person after the other."""
    items = np.arange(len(agrees))
    return Answers(items, items % people, np.array(agrees), np.zeros_like(items), people, classes)


@pytest.mark.parametrize("classes", [2, 10])
def test_answers_of_people_who_never_err_count_as_true_classes(classes: int) -> None:
    draws = sample_truth(
        one_answer_each([True] * 30 + [False] * 10, classes=classes),
        np.random.default_rng(1),
        prior=NEVER_ERR,
        sweeps=4_000,
    )
    expected = stats.beta(31, 11)
    accuracy = draws.accuracy[:, 0]
    assert accuracy.mean() == pytest.approx(expected.mean(), abs=0.1 * expected.std())
    assert accuracy.std() == pytest.approx(expected.std(), rel=0.1)
    np.testing.assert_allclose(draws.correct, [1] * 30 + [0] * 10, atol=1e-3)


def test_answers_of_people_who_guess_tell_nothing() -> None:
    answers = one_answer_each([True] * 30 + [False] * 10)
    accuracy = sample_truth(answers, np.random.default_rng(1), prior=GUESS, sweeps=6_000).accuracy[:, 0]
    assert accuracy.mean() == pytest.approx(0.5, abs=0.05)
    assert accuracy.std() == pytest.approx(12**-0.5, rel=0.1)


def test_the_same_seed_gives_the_same_draws() -> None:
    answers = one_answer_each([True, False, True])
    one, other = (sample_truth(answers, np.random.default_rng(3), sweeps=60, warm_up=40) for _ in range(2))
    np.testing.assert_array_equal(one.accuracy, other.accuracy)
    np.testing.assert_array_equal(one.reliability, other.reliability)


def test_every_stratum_has_an_accuracy_of_its_own() -> None:
    items = np.arange(80)
    answers = Answers(items, items % 4, items % 40 < np.where(items < 40, 38, 10), items // 40, 4, 2)
    good, bad = sample_truth(answers, np.random.default_rng(1), prior=NEVER_ERR).accuracy.mean(axis=0)
    assert good == pytest.approx(39 / 42, abs=0.02)
    assert bad == pytest.approx(11 / 42, abs=0.02)


def drawn_from_the_prior(
    rng: np.random.Generator, prior: AnnotatorPrior, classes: int, strata: np.ndarray | None = None
) -> tuple[Answers, float]:
    """Answers as the model says they come about, three about every other item; and the accuracy.

    Without the accuracies of strata there is one, whose accuracy is drawn.
    """
    people, count = 6, 40
    ability, harder, log_difficulty, log_unlike, fooled = (
        rng.normal(*each)
        for each in (prior.ability, prior.harder, prior.log_difficulty, prior.log_unlike, prior.fooled)
    )
    abilities = ability + np.exp(log_unlike) * rng.standard_t(4, people)
    accuracy = rng.random()
    accuracies = np.array([accuracy]) if strata is None else strata
    of_items = np.arange(count) * len(accuracies) // count
    correct = rng.random(count) < accuracies[of_items]
    ease = np.exp(-np.exp(log_difficulty) * rng.normal(size=count) - np.where(correct, 0, harder))
    items = np.repeat(np.arange(count), [1, 3] * (count // 2))
    annotators = np.concatenate([rng.permutation(people)[:size] for size in [1, 3] * (count // 2)])
    known = np.tanh(0.5 * abilities[annotators] * ease[items])
    right = np.where(known > 0, 1 / classes + (1 - 1 / classes) * known, (1 + known) / classes)
    misled = special.expit(fooled - np.log(classes - 2)) if classes > 2 else 1.0
    agrees = rng.random(len(items)) < np.where(correct[items], right, misled * (1 - right))
    return Answers(items, annotators, agrees, of_items, people, classes), accuracy


@pytest.mark.parametrize("classes", [2, 5])
def test_the_accuracy_ranks_uniformly_among_draws_of_its_posterior(classes: int) -> None:
    # Talts et al. (2018): so it is if and only if draws are from the posterior.
    prior, ranks = AnnotatorPrior(), []
    for run in range(50):
        rng = np.random.default_rng([classes, run])
        answers, accuracy = drawn_from_the_prior(rng, prior, classes)
        draws = sample_truth(answers, rng, sweeps=200, warm_up=80).accuracy[:, 0]
        ranks.append(float((draws < accuracy).mean()))
    assert stats.kstest(ranks, "uniform").pvalue > 0.001


def test_a_person_who_guesses_is_found() -> None:
    rng = np.random.default_rng(5)
    people, count = 8, 400
    items, annotators = (
        np.repeat(np.arange(count), 2),
        rng.permuted(np.tile(np.arange(people), (count, 1)), axis=1),
    )
    annotators = annotators[:, :2].ravel()
    correct = rng.random(count) < 0.9
    right = rng.random(2 * count) < np.where(annotators == 0, 0.5, 0.95)
    answers = Answers(items, annotators, right == correct[items], np.zeros(count, np.intp), people, 2)
    reliability = sample_truth(answers, rng).reliability
    low, high = np.quantile(reliability, [0.025, 0.975], axis=0)
    assert high[0] < low[1:].min()
    assert low[0] < 0.5 < high[0]


def test_groups_around_a_curve_rank_uniformly_among_draws_of_their_posterior() -> None:
    # As above; the accuracies of two groups, one of which may differ from the curve.
    prior, ranks = AnnotatorPrior(), []
    scores, groups = np.array([0.5, 2.5, 0.5, 2.5]), np.array([0, 0, 1, 1])
    for run in range(50):
        rng = np.random.default_rng([9, run])
        curve = np.array([-0.5, 1.0, -0.9]) + np.array([1.75, 0.5, 0.8]) * rng.normal(size=3)
        deviations = np.exp(curve[2]) * rng.standard_t(3, 2)
        model = CurvedAccuracy(scores, groups, 2, centre=1.5)
        own = np.exp(curve[2]) / 2 * rng.standard_t(3, 4)
        accuracy = model.at(curve, deviations, own).strata
        answers, _ = drawn_from_the_prior(rng, prior, 2, accuracy)
        draws = sample_truth(replace(answers, accuracy=model), rng, sweeps=200, warm_up=80).accuracy
        ranks.append((draws < accuracy).mean(axis=0))
    for stratum in range(4):
        assert stats.kstest(np.array(ranks)[:, stratum], "uniform").pvalue > 0.001, stratum


def test_a_chain_goes_on_from_where_another_one_stood() -> None:
    answers = one_answer_each([True] * 30 + [False] * 10)
    chain = TruthChain(answers, AnnotatorPrior(), np.random.default_rng(1))
    for _ in range(20):
        chain.sweep()
    other = TruthChain(answers, AnnotatorPrior(), np.random.default_rng(2), start=chain.state)
    np.testing.assert_allclose(other.probability_correct(), chain.probability_correct())


@pytest.mark.parametrize(("reliability", "classes"), [(0.95, 2), (0.8, 2), (0.9, 10)])
def test_people_are_expected_to_be_as_reliable_as_is_said(reliability: float, classes: int) -> None:
    prior = AnnotatorPrior().expecting(reliability, classes)
    chain = TruthChain(one_answer_each([True] * 8, classes=classes), prior, np.random.default_rng(1))
    np.testing.assert_allclose(chain.reliability(), reliability, atol=1e-3)


def test_reliability_is_the_share_of_items_of_all_strata_and_difficulties() -> None:
    strata, abilities, rng = np.repeat([0, 1], [30, 10]), np.array([4.0, 0.5, -1.0]), np.random.default_rng(1)
    shared = Shared(ability=2.0, harder=0.8, log_difficulty=-0.4, log_unlike=-0.5, fooled=0.5)
    accuracies = Accuracies(np.array([0.9, 0.4]), np.zeros(3), np.zeros(0), np.zeros(0))
    items = np.arange(40)
    answers = Answers(items, items % 3, np.ones(40, np.bool_), strata, 3, 4)
    chain = TruthChain(answers, AnnotatorPrior(), rng, start=State(shared, abilities, accuracies))
    simulated = rng.choice(strata, 200_000)
    correct = rng.random(200_000) < accuracies.strata[simulated]
    difficulties = np.exp(shared.log_difficulty) * rng.normal(size=200_000) + np.where(
        correct, 0, shared.harder
    )
    known = np.tanh(0.5 * abilities[:, None] * np.exp(-difficulties))
    right = np.where(known > 0, 1 / 4 + 3 / 4 * known, (1 + known) / 4).mean(axis=1)
    # Five points instead of a normal distribution change it by less than 0.005.
    np.testing.assert_allclose(chain.reliability(), right, atol=0.005)


def test_gold_items_say_how_often_a_person_is_right() -> None:
    # The first of two people is wrong about a third of the gold items.
    items, count = np.arange(100), 60
    person = items % 2
    agrees = np.where((items >= count) & (person == 0) & (items % 3 == 0), False, True)
    gold = np.ones(100 - count, np.bool_)
    plain = Answers(items[:count], person[:count], agrees[:count], np.zeros(count, np.intp), 2, 5)
    with_gold = Answers(items, person, agrees, np.zeros(count, np.intp), 2, 5, gold=gold)
    before, after = (
        sample_truth(each, np.random.default_rng(1)).reliability.mean(axis=0) for each in (plain, with_gold)
    )
    assert after[0] < before[0] - 0.05
    assert after[0] < after[1] - 0.05


def test_gold_items_have_no_part_in_the_accuracy_of_a_stratum() -> None:
    items = np.arange(80)
    agrees = np.where(items < 40, items % 40 < 30, True)
    gold = np.ones(40, np.bool_)
    answers = Answers(items, items % 4, agrees, np.zeros(40, np.intp), 4, 2, gold=gold)
    draws = sample_truth(answers, np.random.default_rng(1), prior=NEVER_ERR, sweeps=4_000)
    expected = stats.beta(31, 11)
    assert draws.accuracy[:, 0].mean() == pytest.approx(expected.mean(), abs=0.1 * expected.std())
    np.testing.assert_array_equal(draws.correct[40:], gold)
