"""Outcomes as columns: the last word on an item counts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.cells import CellSpace, CombinationDirectory, Grouping
from service.ledger import OutcomeLedger
from service.store.facts import OutcomeEntry
from service.store.records import Fact

SPACE = CellSpace(
    ("cat", "dog"),
    (0.5,),
    {
        "region": Grouping("region", "attribute", attribute="region"),
        "class": Grouping("class", "predicted_class"),
    },
)
DIRECTORY = CombinationDirectory(SPACE, [("__other__",), ("north",), ("south",)])


def entry(number: int, kind: str, true_class: str) -> OutcomeEntry:
    fact = Fact(
        item_id=f"item-{number}",
        predicted_class="cat" if number % 2 else "dog",
        score=0.4 + number % 3 / 10,
        attributes={"region": "north" if number % 5 else "south"},
        predicted_at=float(number),
        requested_at=float(number),
    )
    return OutcomeEntry(f"request-{number}", kind, f"a{number % 2}", "region", "north", fact, true_class, 1.0)


def columns(entries: list[OutcomeEntry]) -> list[list[float]]:
    ledger = OutcomeLedger(SPACE)
    ledger.fold(entries)
    ledger.place(DIRECTORY)
    return [column.tolist() for column in ledger.columns()]


histories = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from(["answered", "corrected", "retracted"]),
        st.sampled_from(["cat", "dog"]),
    ),
    max_size=40,
)


@given(histories, st.integers(1, 5))
def test_folding_piece_by_piece_is_folding_in_one_go(history: list[tuple[int, str, str]], size: int) -> None:
    entries = [entry(*event) for event in history]
    ledger = OutcomeLedger(SPACE)
    for first in range(0, len(entries), size):
        ledger.fold(entries[first : first + size])
        ledger.place(DIRECTORY)
    assert [column.tolist() for column in ledger.columns()] == columns(entries)


@given(histories)
def test_only_the_last_word_on_an_item_counts(history: list[tuple[int, str, str]]) -> None:
    last = {number: (kind, true_class) for number, kind, true_class in history}
    order = dict.fromkeys(number for number, _, _ in history)
    expected = [
        float(("cat" if number % 2 else "dog") == last[number][1])
        for number in order
        if last[number][0] != "retracted"
    ]
    assert columns([entry(*event) for event in history])[1] == expected


def test_an_outcome_waits_until_its_combination_is_seen_in_traffic() -> None:
    ledger = OutcomeLedger(SPACE)
    ledger.fold([entry(1, "answered", "cat")])
    ledger.place(CombinationDirectory(SPACE, [("__other__",)]))
    assert ledger.columns().cells.size == 0
    ledger.place(DIRECTORY)
    assert ledger.columns().cells.size == 1


def test_an_outcome_of_a_class_that_the_model_no_longer_has_is_left_out() -> None:
    fact = Fact("i", "yak", 0.5, {"region": "north"}, 0.0, 0.0)
    ledger = OutcomeLedger(SPACE)
    ledger.fold([OutcomeEntry("r", "answered", "a", "region", "north", fact, "yak", 1.0)])
    ledger.place(DIRECTORY)
    assert ledger.columns().cells.size == 0


def test_who_asked_is_kept_with_the_grouping_of_then() -> None:
    ledger = OutcomeLedger(SPACE)
    ledger.fold([entry(1, "answered", "cat"), entry(2, "answered", "cat"), entry(3, "answered", "cat")])
    ledger.place(DIRECTORY)
    assert ledger.sources == [("a1", "region"), ("a0", "region")]
    assert ledger.columns().sources.tolist() == [0, 1, 0]


def test_many_outcomes_fit() -> None:
    ledger = OutcomeLedger(SPACE)
    ledger.fold(entry(number, "answered", "cat") for number in range(1_000))
    ledger.place(DIRECTORY)
    np.testing.assert_array_equal(ledger.columns().predicted_at, np.arange(1_000.0))
