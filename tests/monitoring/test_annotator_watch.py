"""What is known of people is kept current beside the rounds."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import numpy as np
import pytest
from deferred_jobs import Later

from benchmarks.several_labels import (
    NOW,
    People,
    World,
    outcomes,
    predictions,
    settings_of,
    traffic_of,
)
from service.monitoring import annotator_watch
from service.monitoring.annotator_watch import AnnotatorWatch
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.store.outcome_entries import OutcomeEntry, SharedDraw
from service.store.records import LabelFact

WORLD = World(labels=30)
SETTINGS = settings_of(WORLD, labels_per_item={"most": 2})
SPACE = SETTINGS.cell_space("m")
ITEMS = predictions(WORLD, np.random.default_rng(1))
TRAFFIC = traffic_of(ITEMS, SPACE, WORLD)
ENTRIES = outcomes(ITEMS, np.arange(60), People(WORLD, np.random.default_rng(2)), SPACE)[0]
REST = 30.0


class Watched:
    """A watch, and a ledger that counts how often all labels are gathered."""

    def __init__(self, entries: list[OutcomeEntry | SharedDraw]) -> None:
        self.later = Later()
        self.gathered = 0
        self.ledger = self._ledger()
        self.add(entries)
        self.watch = AnnotatorWatch("m", SETTINGS.models["m"], self.later, rest_seconds=REST)

    def _ledger(self) -> OutcomeLedger:
        watched = self

        class Counted(OutcomeLedger):
            def labelled_items(self, *, at: float) -> Any:
                watched.gathered += 1
                return super().labelled_items(at=at)

        return Counted(SPACE, may_err=True)

    def add(self, entries: list[OutcomeEntry | SharedDraw]) -> None:
        self.ledger.fold(entries)
        self.ledger.place()

    def refresh(self, after: float) -> None:
        index = GroupIndex(SPACE, TRAFFIC, self.ledger.cells)
        self.watch.refresh(index, self.ledger, now=NOW + after)

    @property
    def labels(self) -> int:
        """Labels that what is known comes from."""
        return 0 if self.watch.learned is None else int(self.watch.learned.truth.labels.sum())


def labels_in(entries: list[OutcomeEntry]) -> int:
    return len([entry for entry in entries if entry.of == entry.position])


def test_the_first_learning_is_within_the_round() -> None:
    watched = Watched(ENTRIES)
    watched.refresh(0)
    assert watched.later.waiting == []
    assert watched.labels == labels_in(ENTRIES)


def test_the_first_learning_uses_few_items_and_all_of_them_follow_in_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(annotator_watch, "_FIRST_LEARNED_FROM", 20)
    watched = Watched(ENTRIES)
    watched.refresh(0)
    first = watched.labels
    assert 20 <= first < labels_in(ENTRIES)
    watched.refresh(1)
    assert watched.labels == first
    watched.later.run()
    watched.refresh(2)
    assert watched.labels == labels_in(ENTRIES)


def test_while_no_label_changes_labels_are_not_gathered() -> None:
    watched = Watched(ENTRIES)
    for after in range(5):
        watched.refresh(after * 2 * REST)
    assert watched.gathered == 1
    assert watched.later.waiting == []


def test_a_new_label_is_learned_from_after_the_rest() -> None:
    watched = Watched(ENTRIES[:-10])
    watched.refresh(0)
    watched.refresh(1)
    watched.add(ENTRIES[-10:])
    watched.refresh(2)
    watched.later.run()
    watched.refresh(3)
    assert watched.labels == labels_in(ENTRIES)
    watched.refresh(3 + REST)
    assert watched.later.waiting == []


def test_a_retracted_label_is_no_longer_known_of() -> None:
    watched = Watched(ENTRIES)
    watched.refresh(0)
    last = ENTRIES[-1]
    retraction = replace_entry(last, "")
    watched.add([retraction])
    watched.refresh(1)
    watched.later.run()
    watched.refresh(2)
    assert watched.labels == labels_in(ENTRIES) - 1


def test_once_all_labels_are_retracted_nothing_is_known() -> None:
    watched = Watched(ENTRIES)
    watched.refresh(0)
    number = itertools.count(1)
    for entry in ENTRIES:
        revision = replace_entry(entry, "")
        milliseconds, sequence = revision.position
        watched.add([msgspec.structs.replace(revision, position=(milliseconds + next(number), sequence))])
    watched.refresh(1)
    watched.refresh(1 + REST)
    assert watched.watch.learned is None
    # What comes then is learned from within the round again.
    watched.add([msgspec.structs.replace(ENTRIES[0], position=(10**6, 0), of=(10**6, 0), item=None)])
    watched.refresh(2 + 2 * REST)
    assert (watched.labels, watched.later.waiting) == (1, [])


def test_two_processes_learn_the_same_from_the_same_labels() -> None:
    first, second = Watched(ENTRIES), Watched(ENTRIES)
    first.refresh(0)
    second.refresh(100)
    assert first.watch.learned is not None
    assert second.watch.learned is not None
    np.testing.assert_array_equal(
        first.watch.learned.truth.reliability, second.watch.learned.truth.reliability
    )


def test_a_label_counts_once_however_often_its_item_is_predicted() -> None:
    again = [
        SharedDraw(
            (10**6 + number, 0),
            ENTRIES[0].position,
            "ask",
            msgspec.structs.replace(ENTRIES[0].fact, predicted_at=NOW + number),
        )
        for number in range(1, 20)
    ]
    watched = Watched([*ENTRIES, *again])
    watched.refresh(0)
    assert watched.labels == labels_in(ENTRIES)


def test_labels_of_another_ledger_are_learned_from() -> None:
    watched = Watched(ENTRIES)
    watched.refresh(0)
    watched.ledger = watched._ledger()  # as if the stream was read again
    watched.add(ENTRIES[:40])
    watched.refresh(1)
    watched.later.run()
    watched.refresh(2)
    assert watched.labels == labels_in(ENTRIES[:40])


def test_without_labels_nothing_is_learned() -> None:
    watched = Watched([])
    watched.refresh(0)
    assert watched.watch.learned is None


def replace_entry(entry: OutcomeEntry, true_class: str) -> OutcomeEntry:
    """What revises an entry."""
    milliseconds, sequence = ENTRIES[-1].position
    return OutcomeEntry(
        (milliseconds + 1, sequence),
        entry.position,
        entry.assessment,
        entry.fact,
        LabelFact(true_class, entry.label.time, entry.label.annotator, entry.label.vendor),
    )
