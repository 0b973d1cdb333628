"""What labels do to the requests of an item, as the recount of trials has it."""

from __future__ import annotations

import pytest
from label_history import ItemHistory


def labels_of(*said: str) -> list[tuple[int, dict[str, str]]]:
    """Opinion and label, from texts such as `2 ben answer dog`: the same text is the same label."""
    found = []
    for text in said:
        opinion, annotator, kind, true_class = (*text.split(), "")[:4]
        label = {"kind": kind, "true_class": true_class, "annotator": annotator, "time": text}
        found.append((int(opinion), label))
    return found


@pytest.mark.parametrize(
    ("labels", "entries", "refused"),
    [
        (["1 ana answer cat"], ["0 ana cat"], [None]),
        (["1 ana answer cat", "1 ana answer cat"], ["0 ana cat"], [None, None]),
        (["1 ana answer cat", "1 ben answer cat"], ["0 ana cat"], [None, None]),
        (["1 ana answer cat", "1 ana answer dog"], ["0 ana cat"], [None, "conflicting_label"]),
        (["1 ana answer cat", "1 ana correction dog"], ["0 ana cat", "0 ana dog"], [None, None]),
        (["1 ana answer cat", "1 ana retraction"], ["0 ana cat", "0 ana "], [None, None]),
        (
            ["1 ana answer cat", "1 ana retraction", "1 ana correction dog"],
            ["0 ana cat", "0 ana ", "0 ana dog"],
            [None, None, None],
        ),
        (["1 ana skip", "1 ana answer cat"], ["0 ana skipped"], [None, "conflicting_label"]),
        (["1 ana skip", "1 ana correction cat"], ["0 ana skipped", "0 ana cat"], [None, None]),
        (["1 ana retraction"], [], ["nothing_to_retract"]),
        (["1 ana answer cat", "2 ben answer dog"], ["0 ana cat", "1 ben dog"], [None, None]),
        (["1 ana answer cat", "2 ana answer dog"], ["0 ana cat"], [None, "same_annotator"]),
        (
            ["1 ana answer cat", "1 eve correction dog", "2 eve answer dog"],
            ["0 ana cat", "0 eve dog"],
            [None, None, "same_annotator"],
        ),
        (
            ["1 ana answer cat", "2 ben answer dog", "1 ana correction dog"],
            ["0 ana cat", "1 ben dog", "0 ana dog"],
            [None, None, None],
        ),
        (
            ["1 ana answer cat", "2 ben skip", "2 ben correction dog"],
            ["0 ana cat", "1 ben dog"],
            [None, None, None],
        ),
        (
            ["1 ana answer cat", "2 ben skip", "2 ana correction dog"],
            ["0 ana cat"],
            [None, None, "same_annotator"],
        ),
    ],
)
def test_labels_do_to_their_item_what_the_contract_says(
    labels: list[str], entries: list[str], refused: list[str | None]
) -> None:
    history = ItemHistory()
    assert [history.take(*label) for label in labels_of(*labels)] == refused
    assert [f"{entry.number} {entry.annotator} {entry.true_class}" for entry in history.entries] == entries


def test_a_label_that_comes_too_late_is_refused_and_the_first_expiry_is_an_outcome() -> None:
    history = ItemHistory()
    assert history.is_open(1)
    history.expire(1)
    assert [history.take(*label) for label in labels_of("1 ana answer cat")] == ["expired_request"]
    assert [entry.true_class for entry in history.entries] == ["expired"]


def test_that_the_second_request_of_an_item_expires_is_no_outcome() -> None:
    history = ItemHistory()
    assert [history.take(*label) for label in labels_of("1 ana answer cat")] == [None]
    assert history.is_open(2)
    history.expire(2)
    assert history.events == ["answered", "expired"]
    assert history.labels() == [("ana", "cat")]


def test_a_corrected_label_stays_with_who_gave_it_and_a_retracted_one_does_not_count() -> None:
    history = ItemHistory()
    said = [
        "1 ana answer cat",
        "1 eve correction dog",
        "2 ben answer owl",
        "2 ben retraction",
        "3 leo answer owl",
    ]
    for label in labels_of(*said):
        history.take(*label)
    assert history.labels() == [("ana", "dog"), ("leo", "owl")]
