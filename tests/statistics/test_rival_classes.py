"""Whether the true class of an incorrect prediction is that of its rival."""

from __future__ import annotations

import numpy as np
import pytest

from service.statistics.rival_classes import probability_of_rivals

PREDICTED, RIVAL, THIRD = 0, 1, 2


def probabilities(labels: list[list[int]], *, classes: int = 3, rivals: int = RIVAL) -> np.ndarray:
    """Of incorrect predictions with these labels, all of one group."""
    count = len(labels)
    return probability_of_rivals(
        np.repeat(np.arange(count), [len(each) for each in labels]),
        np.array([label for each in labels for label in each]),
        np.random.default_rng(0),
        predicted=np.full(count, PREDICTED),
        rivals=np.full(count, rivals),
        incorrect=np.ones(count, np.bool_),
        groups=np.zeros(count, np.intp),
        class_count=classes,
    )


def test_labels_of_the_predicted_class_leave_the_share_of_the_group() -> None:
    many = [[RIVAL, RIVAL]] * 150 + [[THIRD, THIRD]] * 50
    found = probabilities([*many, [PREDICTED]])
    # Two standard deviations of a share of 200 are 0.06.
    assert found[-1] == pytest.approx(0.75, abs=0.07)


def test_two_people_who_agree_decide() -> None:
    found = probabilities([[RIVAL, RIVAL]] * 30 + [[THIRD, THIRD]] * 30)
    assert found[:30].min() > 0.9
    assert found[30:].max() < 0.1


def test_people_who_contradict_one_another_decide_less() -> None:
    agree = [[RIVAL, RIVAL]] * 20 + [[THIRD, THIRD]] * 20
    contradict = [[RIVAL, THIRD]] * 40
    alone = [[RIVAL], [THIRD]]
    sure, unsure = probabilities([*agree, *alone])[-2:], probabilities([*contradict, *agree, *alone])[-2:]
    assert unsure[0] < sure[0]
    assert unsure[1] > sure[1]


def test_items_that_few_labels_tell_of_are_like_most_of_the_group() -> None:
    found = probabilities([[RIVAL, RIVAL]] * 60 + [[RIVAL, THIRD]])
    assert found[-1] > 0.9


def test_with_many_classes_a_label_of_the_rival_says_more() -> None:
    labels = [[RIVAL, THIRD]] * 3 + [[RIVAL]]
    assert probabilities(labels, classes=50)[-1] > probabilities(labels)[-1]


def test_a_class_that_the_model_has_no_more_is_one_of_the_others() -> None:
    found = probabilities([[7], [8], [7, 8], [RIVAL]])
    assert np.isfinite(found).all()
    assert (found[:3] < found[3]).all()


def test_without_an_incorrect_prediction_there_is_nothing_to_tell() -> None:
    found = probability_of_rivals(
        np.array([0]),
        np.array([PREDICTED]),
        np.random.default_rng(0),
        predicted=np.array([PREDICTED]),
        rivals=np.array([-1]),
        incorrect=np.array([False]),
        groups=np.array([0]),
        class_count=3,
    )
    assert np.isfinite(found).all()
