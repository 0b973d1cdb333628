"""The task of narrowing a measure, and the policy that asks where that is expected to succeed."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.laplace import Cells
from service.statistics.narrowing import LabelGains, NarrowMeasure
from service.statistics.policies import AdaptivePolicy, Situation
from service.statistics.questions import Question

SHARES = np.array([0.5, 0.3, 0.2])
TASK = NarrowMeasure(Question(Cells(np.ones((3, 1)), np.full((3, 1), 0.5), SHARES)))


def situation(*gains: float, available: tuple[bool, ...] = (True, True, True)) -> Situation:
    beliefs = LabelGains(np.array([gains]), np.array([[0.0, 3.0, 9.0]]))
    return Situation(beliefs, SHARES[None], np.array([available]))


def chosen(some: Situation, count: int = 4_000) -> np.ndarray:
    rng = np.random.default_rng(0)
    named = [int(AdaptivePolicy().choose(TASK, some, rng)[0, 0]) for _ in range(count)]
    return np.bincount(named, minlength=3) / count


def test_nine_labels_of_ten_are_where_one_is_worth_most_and_others_are_random() -> None:
    assert chosen(situation(1.0, 5.0, 2.0)) == pytest.approx(0.1 * SHARES + [0, 0.9, 0], abs=0.02)


def test_a_group_without_items_is_not_chosen() -> None:
    assert chosen(situation(1.0, 5.0, 2.0, available=(True, False, True)), 200)[1] == 0


def test_a_label_is_worth_less_after_another_and_least_where_there_were_few() -> None:
    some = situation(1.0, 1.0, 1.0)
    for group in range(3):
        some.expect(np.array([group]))
    assert some.beliefs.gains[0].tolist() == pytest.approx([1 / 4, (4 / 5) ** 2, (10 / 11) ** 2])


def test_every_view_of_the_reward_is_what_was_learned() -> None:
    beliefs = situation(1.0, 5.0, 2.0).beliefs
    for seen in (TASK.sampled(beliefs, np.random.default_rng(0)), TASK.upper(beliefs, 0.9)):
        assert seen.tolist() == TASK.expected(beliefs).tolist() == [[1.0, 5.0, 2.0]]
