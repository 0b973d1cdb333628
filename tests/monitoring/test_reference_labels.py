"""Which labels are of the reference of a group, and which are compared with it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.monitoring.reference_labels import split_labels

LEFT = np.array([2.0, 3.0, 0.0])


def split(groups: list[int], suspected: list[bool]) -> tuple[list[bool], list[bool]]:
    found = split_labels(np.array(groups, np.intp), np.array(suspected, np.bool_), LEFT)
    return found.then.tolist(), found.now.tolist()


def test_the_first_labels_are_the_reference_and_the_others_are_compared_with_it() -> None:
    then, now = split([0, 0, 0, 0], [False] * 4)
    assert then == [True, True, False, False]
    assert now == [False, False, True, True]


def test_labels_requested_under_suspicion_are_neither_until_the_reference_is_complete() -> None:
    then, now = split([0] * 5, [False, True, True, False, True])
    assert then == [True, False, False, True, False]
    assert now == [False, False, False, False, True]


def test_a_group_with_a_complete_reference_has_no_more_labels_of_it() -> None:
    assert split([2, 2], [False, True]) == ([False, False], [True, True])


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30))
def test_each_group_is_split_as_if_it_were_alone(labels: list[tuple[int, bool]]) -> None:
    labels = sorted(labels, key=lambda one: one[0])
    then, now = split([group for group, _ in labels], [suspected for _, suspected in labels])
    for place, (group, suspected) in enumerate(labels):
        fitting = sum(one == (group, False) for one in labels[:place])
        assert now[place] == (fitting >= LEFT[group])
        assert then[place] == (not suspected and fitting < LEFT[group])
