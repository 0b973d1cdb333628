"""Labels by item, with who gave them and how fast."""

from __future__ import annotations

import pytest

from service.monitoring.item_labels import ItemLabels
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

REQUESTED_AT = 1_800_000_000.0


def entry(
    number: int, *, of: int | None = None, true_class: str = "cat", after: float = 60.0
) -> OutcomeEntry:
    """The label of an item, or what revises one, so long after the request."""
    fact = Fact(f"r{number}", "i", "all", "all", "cat", 0.9, {}, REQUESTED_AT - 9, REQUESTED_AT)
    label = LabelFact(true_class, REQUESTED_AT + after, "ana")
    return OutcomeEntry((number, 0), (number if of is None else of, 0), "ask", fact, label)


def delays(*entries: OutcomeEntry) -> list[float]:
    labels = ItemLabels(["cat", "dog"])
    for each in entries:
        if each.of == each.position:
            labels.add([each])
        else:
            labels.revise(each)
    return labels.given(at=REQUESTED_AT + 1e6).delays.tolist()


def test_a_label_has_the_time_since_its_request() -> None:
    assert delays(entry(1, after=60.0), entry(2, after=90.0)) == [60.0, 90.0]


def test_a_label_from_a_clock_that_is_late_took_no_time() -> None:
    assert delays(entry(1, after=-5.0)) == [0.0]


def test_a_correction_does_not_change_how_fast_the_first_answer_was() -> None:
    assert delays(entry(1, after=60.0), entry(2, of=1, true_class="dog", after=9_000.0)) == [60.0]


@pytest.mark.parametrize("true_class", ["dog", ""])
def test_what_revises_a_label_is_a_change(true_class: str) -> None:
    labels = ItemLabels(["cat", "dog"])
    labels.add([entry(1)])
    before = labels.changes
    labels.revise(entry(2, of=1, true_class=true_class))
    assert labels.changes > before
