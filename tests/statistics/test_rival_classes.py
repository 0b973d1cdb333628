"""Whether the truth of an item is its prediction, its rival or another class."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.annotator_prior import AnnotatorPrior
from service.statistics.rival_classes import LIKELY, RIVAL, AnswerTable, Rivals
from service.statistics.truth_chain import Answers, TruthChain

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
