"""Agreement and speed of people, from the labels of a model's items."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.monitoring.label_quality import LabelQuality, label_quality
from service.monitoring.label_truth import KnownItems, LabelledItems

PREDICTED = 0
PEOPLE = [("acme", "ana"), ("acme", "ben"), ("beta", "cem")]


def labelled_items(*items: dict[int, int], **columns: Any) -> LabelledItems:
    """Items whose labels are given as class by person, in their order."""
    labels = [(at, person, label) for at, each in enumerate(items) for person, label in each.items()]
    of, given, classes = np.array(labels).T
    return LabelledItems(
        rows=np.arange(len(items)),
        cells=np.zeros(len(items), np.intp),
        predicted=np.full(len(items), PREDICTED),
        scores=np.full(len(items), 0.9),
        items=of,
        people=given,
        classes=classes,
        as_given=np.asarray(columns.get("as_given", classes)),
        delays=np.asarray(columns.get("delays", np.full(len(of), 60.0))),
        original=np.asarray(columns.get("original", np.ones(len(items), np.bool_))),
    )


def quality_of(
    *items: dict[int, int],
    least: int = 1,
    people: Any = PEOPLE,
    gold: KnownItems | None = None,
    **columns: Any,
) -> LabelQuality:
    """Of such items, and perhaps of gold items."""
    labelled, rng = labelled_items(*items, **columns), np.random.default_rng(1)
    return label_quality(labelled, people, least=least, mass=0.95, rng=rng, gold=gold)


def test_items_whose_first_label_is_the_predicted_class_stand_for_those_with_one_label() -> None:
    found = quality_of({0: 0, 1: 0}, {0: 0}, {0: 0}, {0: 1, 1: 0})
    assert found.agreement is not None
    assert found.agreement[1] == pytest.approx(3 / 4)
    assert found.shared_items == 2


def test_an_item_stands_for_those_whose_first_label_said_the_same_before_it_was_corrected() -> None:
    # The first label of the last item differed, and was corrected once the second one had said so.
    labels = {0: 0, 1: 0}, {0: 0}, {0: 0}, {0: 0, 1: 0}, {0: 0, 1: 1}
    plain = quality_of(*labels)
    corrected = quality_of(*labels, as_given=[0, 0, 0, 0, 1, 0, 0, 1])
    assert plain.agreement is not None
    assert corrected.agreement is not None
    assert plain.agreement[1] == pytest.approx(2 / 3)
    assert corrected.agreement[1] == pytest.approx((4 / 2 * 1 + 1) / 5)


def test_a_third_label_that_was_asked_for_because_two_differ_does_not_count() -> None:
    with_third = quality_of({0: 0, 1: 0}, {0: 1, 1: 0, 2: 0})
    without = quality_of({0: 0, 1: 0}, {0: 1, 1: 0})
    assert with_third.agreement == without.agreement
    assert with_third.people["beta", "cem"].agreement is None


def test_a_third_label_that_every_item_gets_counts() -> None:
    found = quality_of({0: 0, 1: 0, 2: 0}, {0: 1, 1: 0, 2: 0}, least=3)
    assert found.agreement is not None
    assert found.agreement[1] == pytest.approx((1 + 1 / 3) / 2)


def test_there_is_no_agreement_if_no_item_with_the_predicted_class_is_labelled_again() -> None:
    found = quality_of({0: 0}, {0: 1, 1: 0})
    assert found.agreement is None
    assert found.alpha is None
    assert {each.agreement for each in found.people.values()} == {None}


def test_one_person_alone_agrees_with_nobody() -> None:
    found = quality_of({0: 0}, {0: 1}, people=PEOPLE[:1])
    assert found.agreement is None
    assert [*found.people] == PEOPLE[:1]


def test_if_all_agree_there_is_an_interval_of_agreement_and_alpha_is_1() -> None:
    found = quality_of({0: 0, 1: 0}, {0: 1, 1: 1}, {2: 0, 1: 0})
    assert found.agreement is not None
    assert found.agreement[0] < found.agreement[1] == found.agreement[2] == 1.0
    assert found.alpha is not None
    assert found.alpha[0] < found.alpha[1] == found.alpha[2] == 1.0


def test_a_further_prediction_of_an_item_does_not_repeat_its_labels() -> None:
    found = quality_of({0: 0, 1: 0}, {0: 1, 1: 0}, {0: 1, 1: 0}, original=[True, True, False])
    assert found.shared_items == 2


def test_a_class_that_the_model_does_not_have_is_a_class_like_others() -> None:
    found = quality_of({0: 0, 1: 0}, {0: 7, 1: 7}, {0: 1, 1: 7})
    assert found.agreement is not None
    assert found.agreement[1] == pytest.approx(2 / 3)


def test_answer_times_are_medians_by_person_and_by_vendor() -> None:
    found = quality_of({0: 0, 1: 0}, {0: 0, 2: 0}, {1: 0}, delays=[10.0, 30.0, 20.0, 5.0, 40.0])
    assert {name: each.answer_seconds for (_, name), each in found.people.items()} == {
        "ana": 15.0,
        "ben": 35.0,
        "cem": 5.0,
    }
    assert {name: each.answer_seconds for name, each in found.vendors.items()} == {"acme": 25.0, "beta": 5.0}


def test_a_vendor_with_a_new_name_is_another_vendor() -> None:
    found = quality_of({0: 0, 1: 0}, people=[("acme", "ana"), ("acme-2", "ana")])
    assert [*found.vendors] == ["acme", "acme-2"]
    assert len(found.people) == 2


def test_people_without_a_name_count() -> None:
    found = quality_of({0: 0}, {0: 0}, people=[("", "")])
    assert [*found.people] == [("", "")]


def gold_of(*items: tuple[int, dict[int, int]], people: Any = PEOPLE) -> KnownItems:
    """Gold items: the true class, and the labels."""
    labelled = labelled_items(*(labels for _, labels in items))
    return KnownItems(labelled, np.array([true for true, _ in items]), people)


def test_the_share_wrong_is_that_of_first_labels_about_gold_items_by_person_and_vendor() -> None:
    gold = gold_of((0, {0: 0}), (0, {0: 1, 1: 1}), (1, {1: 1}), (1, {2: 0}))
    found = quality_of({0: 0}, {1: 0}, gold=gold)
    ana, acme = found.people["acme", "ana"], found.vendors["acme"]
    assert (ana.gold_labels, acme.gold_labels, found.vendors["beta"].gold_labels) == (2, 3, 1)
    assert ana.gold_wrong is not None
    assert acme.gold_wrong is not None
    lower, share, upper = acme.gold_wrong
    assert share == pytest.approx(1 / 3)
    assert 0 < lower < share < upper < 1
    assert ana.gold_wrong[1] == 0.5


def test_who_labelled_gold_items_alone_is_known_too() -> None:
    gold = gold_of((0, {0: 0}), people=[("gamma", "gil")])
    found = quality_of({0: 0}, gold=gold)
    gil = found.people["gamma", "gil"]
    assert (gil.gold_labels, gil.agreement, gil.answer_seconds) == (1, None, 60.0)
    assert gil.gold_wrong is not None
    assert gil.gold_wrong[:2] == (0.0, 0.0)
    assert found.people["acme", "ana"].gold_wrong is None


def test_gold_items_have_no_part_in_agreement() -> None:
    gold = gold_of(*[(0, {0: 0, 1: 1, 2: 1})] * 20)
    assert (
        quality_of({0: 0, 1: 0}, {0: 0, 1: 0}, gold=gold).agreement
        == quality_of({0: 0, 1: 0}, {0: 0, 1: 0}).agreement
    )
