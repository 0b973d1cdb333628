"""Whether the truth of an item is its prediction, its rival or another class."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from service.statistics.annotator_prior import LOG_WEIGHTS, POINTS, AnnotatorPrior, Shared, probability_right
from service.statistics.rival_classes import LIKELY, RIVAL, AnswerTable, Rivals
from service.statistics.strata_accuracy import Accuracies
from service.statistics.truth_chain import Answers, State, TruthChain

PREDICTED, OTHER, THIRD = 0, 1, 2


def rivals_of(labels: list[list[int]], rivals: int = OTHER) -> tuple[np.ndarray, np.ndarray, Rivals]:
    """Item and class of every answer, and the rivals; all items are of one group."""
    items = np.repeat(np.arange(len(labels)), [len(each) for each in labels])
    classes = np.array([label for each in labels for label in each])
    same = np.zeros(len(labels), np.intp)
    found = Rivals.of(items, classes, predicted=same, rivals=same + rivals, groups=same, group_count=1)
    return items, classes, found


def incorrect_ones(labels: list[list[int]], classes: int = 3) -> np.ndarray:
    """Mean probability of rival and likely class, if predictions are incorrect [2, N]."""
    items, given, rivals = rivals_of(labels)
    people = np.concatenate([np.arange(len(each)) for each in labels])
    strata = np.zeros(len(labels), np.intp)
    answers = Answers(items, people, given == PREDICTED, strata, people.max() + 1, classes, rivals=rivals)
    chain = TruthChain(answers, AnnotatorPrior(), np.random.default_rng(1))
    found = []
    for _ in range(200):
        chain.sweep()
        found.append(chain.probability_of_truths()[:2])
    return np.mean(found[50:], axis=0)


def test_two_people_who_agree_decide() -> None:
    rival, likely = incorrect_ones([[OTHER, OTHER]] * 20 + [[THIRD, THIRD]] * 20)
    assert rival[:20].min() > 0.9
    assert likely[20:].min() > 0.9


def test_items_that_no_answer_tells_of_have_the_share_of_their_group() -> None:
    rival, _ = incorrect_ones([[OTHER, OTHER]] * 75 + [[THIRD, THIRD]] * 25 + [[PREDICTED]])
    # Two standard deviations of a share of 100 are 0.09.
    assert rival[-1] == pytest.approx(0.75, abs=0.1)


def test_with_many_classes_the_truth_may_be_one_that_no_answer_is() -> None:
    rival, likely = incorrect_ones([[OTHER, OTHER], [3, 3], [PREDICTED]] * 10, classes=20)
    assert rival[0] > 0.8
    assert likely[1] > 0.8
    assert rival[2] + likely[2] < 0.9


@pytest.mark.parametrize("classes", [2, 3, 4, 20])
def test_probabilities_of_wrong_answers_sum_to_one(classes: int) -> None:
    table = AnswerTable.of(0.7, classes, has_rivals=classes > 2)
    # About an item without a rival: the predicted class, or another one.
    np.testing.assert_allclose(table.if_wrong[:2, [0, 4]].sum(axis=1), 1)
    if classes > 2:
        # Once each: prediction, rival and likely class; all other classes alike.
        counts = np.array([1, 1, 1, classes - 3])
        np.testing.assert_allclose(table.if_wrong[:3, :4] @ counts, 1)


def test_the_likely_class_is_that_of_most_other_answers() -> None:
    *_, rivals = rivals_of([[THIRD, 3, 3], [OTHER], [PREDICTED]], rivals=OTHER)
    assert rivals.likely.tolist() == [3, -1, -1]
    assert (rivals.answers == LIKELY).tolist() == [False, True, True, False, False]
    assert (rivals.answers == RIVAL).tolist() == [False, False, False, True, False]


def test_a_group_of_few_items_is_not_left_at_an_end() -> None:
    *_, rivals = rivals_of([[OTHER]] * 4)
    rng = np.random.default_rng(1)
    drawn = [rivals.draw_shares(np.full(4, RIVAL), rng)[0] for _ in range(2_000)]
    # Between Beta(4 + 2 m, 2 (1 - m)) with m near 1, and a uniform prior: Beta(5, 1) has the mean 0.83.
    assert 0.8 < np.mean(drawn) < 0.97


def test_without_a_rival_classes_are_not_looked_at() -> None:
    items, _, rivals = rivals_of([[THIRD], [PREDICTED]], rivals=-1)
    assert not rivals.has_rival.any()
    weights = np.exp(rivals.log_weights(np.array([0.5]), 3))
    np.testing.assert_allclose(weights[:, items], [[1, 1], [1, 1], [0, 0]], atol=1e-9)


def test_the_share_of_rivals_that_are_right_is_that_of_true_classes_if_nobody_errs() -> None:
    # One label each: of 10 incorrect predictions of the first group 7 are the rival, of 6 of the other one 1.
    never_err = AnnotatorPrior(
        ability=(40.0, 0.01), harder=(0.0, 0.01), log_difficulty=(-5.0, 0.01), log_unlike=(-5.0, 0.01)
    )
    classes = np.array([OTHER] * 7 + [THIRD] * 3 + [PREDICTED] * 4 + [OTHER] + [THIRD] * 5)
    items, same = np.arange(20), np.zeros(20, np.intp)
    groups = np.repeat([0, 1], [14, 6])
    rivals = Rivals.of(items, classes, predicted=same, rivals=same + OTHER, groups=groups, group_count=2)
    answers = Answers(items, items % 4, classes == PREDICTED, same, 4, 3, rivals=rivals)
    chain = TruthChain(answers, never_err, np.random.default_rng(1))
    drawn = []
    for _ in range(3_000):
        chain.sweep()
        drawn.append(chain.state.rivals)
    # Beta-binomial by the mean m of the prior, which is one of 20; two pseudo-items.
    won, lost, means = np.array([7, 1]), np.array([3, 5]), (np.arange(20)[:, None] + 0.5) / 20
    alpha, beta = 2 * means + won, 2 * (1 - means) + lost
    logs = (special.betaln(alpha, beta) - special.betaln(2 * means, 2 * (1 - means))).sum(axis=1)
    expected = special.softmax(logs) @ (alpha / (alpha + beta))
    # Standard deviations are 0.13, and draws nearly independent: three errors are below 0.01.
    np.testing.assert_allclose(np.mean(drawn[10:], axis=0), expected, atol=0.01)


def test_shares_of_rivals_rank_uniformly_among_draws_of_their_posterior() -> None:
    # Talts et al. (2018). One or two labels of people who err about every item; four classes.
    ranks = []
    for run in range(30):
        rng = np.random.default_rng([4, run])
        share, answers = drawn_from_the_prior(rng)
        chain = TruthChain(answers, AnnotatorPrior(), rng)
        below = []
        for sweep in range(180):
            chain.sweep()
            if sweep < 60:
                chain.adapt()
            else:
                below.append(chain.state.rivals[0] < share)
        ranks.append(np.mean(below))
    assert stats.kstest(ranks, "uniform").pvalue > 0.001


def drawn_from_the_prior(rng: np.random.Generator) -> tuple[float, Answers]:
    """The share of rivals that are right, and labels of 40 items; all as the model says they come about."""
    prior, count, people, classes = AnnotatorPrior(), 40, 5, 4
    ability, harder, log_difficulty, log_unlike, fooled = (
        rng.normal(*each)
        for each in (prior.ability, prior.harder, prior.log_difficulty, prior.log_unlike, prior.fooled)
    )
    abilities, accuracy = ability + np.exp(log_unlike) * rng.standard_t(4, people), rng.random()
    mean = (rng.integers(20) + 0.5) / 20
    share = float(rng.beta(2 * mean, 2 * (1 - mean)))
    misled = special.expit(fooled - np.log(classes - 2))
    items, annotators, given = [], [], []
    for item in range(count):
        is_rival = rng.random() < share
        truth = PREDICTED if rng.random() < accuracy else OTHER if is_rival else int(rng.integers(2, classes))
        ease = np.exp(-np.exp(log_difficulty) * rng.normal() - (0.0 if truth == PREDICTED else harder))
        for person in rng.permutation(people)[: 1 + item % 2].tolist():
            label = truth
            if rng.random() >= probability_right(abilities[person] * ease, classes):
                misleading = OTHER if truth == PREDICTED else PREDICTED
                others = [each for each in range(classes) if each not in (truth, misleading)]
                label = misleading if rng.random() < misled else int(rng.choice(others))
            items.append(item)
            annotators.append(person)
            given.append(label)
    where, labels, same = np.array(items), np.array(given), np.zeros(count, np.intp)
    rivals = Rivals.of(where, labels, predicted=same, rivals=same + OTHER, groups=same, group_count=1)
    agrees = labels == PREDICTED
    return share, Answers(where, np.array(annotators), agrees, same, people, classes, rivals=rivals)


@pytest.mark.parametrize("classes", [3, 4, 6])
def test_probabilities_of_true_classes_are_those_of_all_classes_tried_one_by_one(classes: int) -> None:
    labels = [[OTHER], [PREDICTED], [THIRD], [OTHER, PREDICTED, THIRD], [THIRD, THIRD, PREDICTED]]
    items, given, rivals = rivals_of(labels)
    people = np.concatenate([np.arange(len(each)) for each in labels])
    strata = np.zeros(len(labels), np.intp)
    answers = Answers(items, people, given == PREDICTED, strata, 3, classes, rivals=rivals)
    abilities, accuracy, share, shared = (
        np.array([3.0, 1.5, 2.0]),
        0.8,
        0.6,
        Shared(2.0, 0.7, -0.3, -0.5, 0.4),
    )
    accuracies = Accuracies(np.array([accuracy]), np.zeros(3), np.zeros(0), np.zeros(0))
    state = State(shared, abilities, accuracies, np.array([share]))
    chain = TruthChain(answers, AnnotatorPrior(), np.random.default_rng(1), start=state)
    misled = special.expit(shared.fooled - np.log(classes - 2))
    for item, of_item in enumerate(labels):
        of_classes = np.zeros(classes)
        for truth in range(classes):
            before = (1 - accuracy) * (1 - share) / (classes - 2)
            before = {PREDICTED: accuracy, OTHER: (1 - accuracy) * share}.get(truth, before)
            misleading = OTHER if truth == PREDICTED else PREDICTED
            for point, log_weight in zip(POINTS, LOG_WEIGHTS, strict=True):
                harder = 0.0 if truth == PREDICTED else shared.harder
                right = probability_right(
                    abilities * np.exp(-np.exp(shared.log_difficulty) * point - harder), classes
                )
                each = before * np.exp(log_weight)
                for person, label in enumerate(of_item):
                    wrong = misled if label == misleading else (1 - misled) / (classes - 2)
                    each *= right[person] if label == truth else (1 - right[person]) * wrong
                of_classes[truth] += each
        of_classes /= of_classes.sum()
        assert chain.probability_correct()[item] == pytest.approx(of_classes[PREDICTED])
        if THIRD in of_item:
            expected = of_classes[[OTHER, THIRD]] / of_classes[1:].sum()
            np.testing.assert_allclose(chain.probability_of_truths()[:2, item], expected)
