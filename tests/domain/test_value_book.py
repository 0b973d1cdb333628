"""Combinations of attribute values keep their numbers, and values of one name share one."""

from __future__ import annotations

import numpy as np

from service.domain.value_book import ValueBook


def test_combinations_keep_their_numbers_while_more_are_added() -> None:
    book = ValueBook(lambda _, value: str(value), 2)
    rows = [(str(i % 7), None if i % 3 else "x") for i in range(200)]
    numbers = [n for at in range(0, 200, 9) for n in book.add(list(zip(*rows[at : at + 9], strict=True)))]
    assert numbers == list(range(200))
    assert len(book) == 200
    values = book.values(np.arange(200))
    assert [
        tuple(book.names(position)[number] for position, number in enumerate(row)) for row in values.tolist()
    ] == [(str(first), str(second)) for first, second in rows]


def test_values_of_one_name_share_a_number() -> None:
    book = ValueBook(lambda _, value: str(value)[:3], 1)
    book.add([["abcd", "xyz", "abce", "abc"]])
    assert book.values(np.arange(4)).ravel().tolist() == [0, 1, 0, 0]
    assert book.names(0) == ["abc", "xyz"]
    book.clear()
    assert len(book) == 0
    assert list(book.add([["new"]])) == [0]
