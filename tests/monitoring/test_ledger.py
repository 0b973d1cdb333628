"""Outcomes as columns: the last word on an item counts, and what the stream let go of counts no more."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.domain.cells import CellSpace
from service.domain.groupings import ByAttribute, ByClass
from service.domain.request_order import requested_at
from service.monitoring.outcome_aggregates import SumTallies
from service.monitoring.outcome_table import LabelSequence, OutcomeLedger
from service.monitoring.recent_outcomes import RECENT
from service.store.outcome_entries import OutcomeEntry, SharedDraw
from service.store.records import Fact, LabelFact

SPACE = CellSpace(
    ("cat", "dog"),
    (0.5,),
    {
        "region": ByAttribute("region", "region"),
        "class": ByClass("class"),
    },
)
EVER = 1e9


def outcome(number: int, true_class: str, *, predicted: str = "", region: str = "") -> OutcomeEntry:
    """The first entry of an item; two stand at the same millisecond."""
    fact = Fact(
        request_id=f"request-{number}",
        item_id=f"item-{number}",
        grouping="region",
        group="north" if number % 5 else "south",
        predicted_class=predicted or ("cat" if number % 2 else "dog"),
        score=0.4 + number % 3 / 10,
        attributes={"region": region or ("north" if number % 5 else "south")},
        predicted_at=float(number),
        requested_at=float(number),
    )
    position = (number // 2, number % 2)
    return OutcomeEntry(position, position, f"a{number % 2}", fact, LabelFact(true_class, float(number), ""))


def revision(number: int, of: OutcomeEntry, true_class: str) -> OutcomeEntry:
    """An entry that revises an outcome; without a class, a retraction."""
    label = LabelFact(true_class, float(number), "")
    return OutcomeEntry((number // 2, number % 2), of.of, of.assessment, of.fact, label)


def stream(history: list[tuple[int | None, str]]) -> list[OutcomeEntry]:
    """Entries of a stream: an outcome, or a revision of the one so many outcomes ago."""
    entries: list[OutcomeEntry] = []
    outcomes: list[OutcomeEntry] = []
    for number, (back, true_class) in enumerate(history):
        if back is None or not outcomes:
            outcomes.append(outcome(number, true_class or "cat"))
            entries.append(outcomes[-1])
        else:
            entries.append(revision(number, outcomes[-1 - back % len(outcomes)], true_class))
    return entries


def folded(entries: Sequence[OutcomeEntry | SharedDraw]) -> OutcomeLedger:
    ledger = OutcomeLedger(SPACE)
    ledger.fold(entries)
    ledger.place()
    return ledger


def places_of(ledger: OutcomeLedger) -> list[tuple[str, int, int]]:
    """Region, predicted class and score bin of every label cell."""
    names, regions = ledger.cells.values("region")
    columns = regions.tolist(), ledger.cells.classes.tolist(), ledger.cells.bins.tolist()
    return [(names[region], predicted, number) for region, predicted, number in zip(*columns, strict=True)]


def contents(ledger: OutcomeLedger, at: float = EVER) -> Any:
    """All that a ledger tells, whatever the order in which it numbers who asked."""
    sums, places = ledger.sums(at=at, decay=0.0), places_of(ledger)
    estimated = Counter(
        {
            (places[cell], ledger.sources[source], bool(correct), int(true), float(fresh)): int(count)
            for cell, source, correct, true, count, fresh, *_ in zip(*vars(sums).values(), strict=True)
        }
    )
    columns = [column.tolist() for column in ledger.labels_since(0.0)]
    return estimated, len(ledger), columns, ledger.recent, ledger.first_label_at, ledger.last_label_at


def columns_of(labels: LabelSequence) -> list[list[Any]]:
    """Labels one by one."""
    return [column.tolist() for column in vars(labels).values()]


def tallies_of(found: SumTallies) -> list[tuple[int, int]]:
    return list(zip(found.counts.tolist(), found.marks.tolist(), strict=True))


histories = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 5)), st.sampled_from(["cat", "dog", "yak", ""])),
    max_size=40,
)


@given(histories, st.integers(1, 5))
def test_folding_piece_by_piece_is_folding_in_one_go(
    history: list[tuple[int | None, str]], size: int
) -> None:
    entries = stream(history)
    ledger = OutcomeLedger(SPACE)
    for first in range(0, len(entries), size):
        ledger.fold(entries[first : first + size])
        ledger.place()
    assert contents(ledger) == contents(folded(entries))


@given(histories)
def test_only_the_last_word_on_an_item_counts(history: list[tuple[int | None, str]]) -> None:
    entries = stream(history)
    last = {entry.of: entry for entry in entries}
    expected = [
        entry.fact.predicted_class == entry.label.true_class
        for entry in last.values()
        if entry.label.true_class
    ]
    ledger = folded(entries)
    assert ledger.labels_since(0.0)[1].tolist() == expected
    assert len(ledger) == len(expected)


@given(histories, st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=12))
# An outcome is revised before and after it is let go of, and another one of the same millisecond stays.
@example(history=[(None, "cat"), (None, "cat"), (1, "dog"), (1, "")], steps=[(3, 1), (1, 1)])
@example(history=[(None, "cat"), (0, ""), (0, "dog")], steps=[(1, 0), (1, 1), (1, 1)])
# Who asked first is gone when codes are given again.
@example(history=[(None, "cat")] * 6, steps=[(4, 0), (2, 3), (0, 1)])
def test_a_process_that_runs_on_while_its_stream_is_trimmed_knows_what_a_new_one_reads(
    history: list[tuple[int | None, str]], steps: list[tuple[int, int]]
) -> None:
    entries = stream(history)
    ledger = OutcomeLedger(SPACE)
    read = gone = 0
    for more, trimmed in steps:
        ledger.fold(entries[read : read + more])
        read = min(len(entries), read + more)
        gone = min(gone + trimmed, max(0, read - 1))
        ledger.forget(entries[gone].position if entries else (0, 0))
        ledger.place()
        assert contents(ledger) == contents(folded(entries[gone:read]))


@given(histories, st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=12))
def test_tallies_are_of_the_labels_that_count_whatever_was_corrected_or_trimmed(
    history: list[tuple[int | None, str]], steps: list[tuple[int, int]]
) -> None:
    entries, ledger = stream(history), OutcomeLedger(SPACE)
    read = gone = 0
    for more, trimmed in steps:
        ledger.fold(entries[read : read + more])
        read = min(len(entries), read + more)
        gone = min(gone + trimmed, max(0, read - 1))
        ledger.forget(entries[gone].position if entries else (0, 0))
        ledger.place()
        labels, count = ledger.label_sequence("region"), len(ledger.cells)
        expected = SumTallies(count)
        expected.add(labels.cells, labels.marks)
        assert tallies_of(ledger.tallies("region", np.arange(count), count)) == tallies_of(expected)
        fresh = folded(entries[gone:read])
        again = fresh.label_sequence("region")
        assert columns_of(replace(labels, cells=labels.cells * 0)) == columns_of(
            replace(again, cells=again.cells * 0)
        )
        there, then = places_of(ledger), places_of(fresh)
        assert [there[cell] for cell in labels.cells] == [then[cell] for cell in again.cells]
        assert ledger.first_requests() == fresh.first_requests()


@given(histories)
def test_a_tally_shows_labels_that_say_something_else(history: list[tuple[int | None, str]]) -> None:
    found = {}
    entries = stream(history)
    for count in range(len(entries) + 1):
        ledger = folded(entries[:count])
        labels = ledger.label_sequence("region")
        (estimated,) = tallies_of(ledger.tallies("region", np.zeros(len(ledger.cells), np.intp), 1))
        said = list(zip(labels.marks.tolist(), labels.correct.tolist(), strict=True))
        assert found.setdefault(estimated, said) == said


def test_groups_are_tallied_of_some_cells_and_labels_told_of_some() -> None:
    ledger = folded([outcome(number, "cat") for number in range(10)])
    south = np.array([region == "south" for region, *_ in places_of(ledger)])
    labels = ledger.label_sequence("region", south)
    assert [requested_at(place) for place in labels.places.tolist()] == [0.0, 5.0]
    estimated = ledger.tallies("region", np.where(south, 0, 1), 1)
    assert tallies_of(estimated) == [(2, int(labels.marks.sum()))]
    assert not ledger.tallies("class", np.zeros(len(south), np.intp), 1).counts.any()


def test_outcomes_of_then_are_reported_as_if_later_labels_had_not_come() -> None:
    entries = [outcome(number, "cat") for number in range(10)]
    then, only = folded(entries).outcomes(at=6.0), folded(entries[:7]).outcomes(at=6.0)
    assert [n for n in tallies_of(then.tallies) if n[0]] == tallies_of(only.tallies)
    np.testing.assert_array_equal(then.sums >= 0, np.arange(10) < 7)


def test_what_age_alone_leaves_is_reported_beside_what_changes_leave() -> None:
    ledger, factors = folded([outcome(number, "cat") for number in range(10)]), np.linspace(0.1, 1, 10)
    whole = ledger.sums(at=30.0, decay=0.1)
    np.testing.assert_array_equal(whole.whole, whole.freshness)
    changed = ledger.sums(at=30.0, decay=0.1, factors=factors)
    np.testing.assert_array_equal(changed.whole, whole.freshness)
    assert changed.freshness.sum() == pytest.approx(factors @ np.exp(-0.1 * (30.0 - np.arange(10))))


def test_memory_is_bounded_by_what_the_stream_holds_whatever_has_come_and_gone() -> None:
    ledger = OutcomeLedger(SPACE)
    sizes = []
    tracemalloc.start()
    for begin in range(0, 40_000, 100):
        # Every outcome has a region of its own, so that tables of values would grow too.
        regions = [f"region-{number}" for number in range(begin, begin + 100)]
        ledger.fold([outcome(begin + i, "cat", region=name) for i, name in enumerate(regions)])
        ledger.forget((max(0, begin - 900) // 2, 0))
        ledger.place()
        assert len(ledger) <= 1_000
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # Tables are tidied up each time that as many outcomes have gone as there are.
    assert max(sizes[300:]) <= 1.1 * max(sizes[30:60])


def test_an_outcome_counts_in_the_next_place_whatever_the_traffic() -> None:
    ledger = OutcomeLedger(SPACE)
    ledger.fold([outcome(1, "cat", region="nowhere")])
    assert ledger.sums(at=EVER, decay=0.0).cells.size == 0
    assert len(ledger) == 1
    ledger.place()
    assert ledger.sums(at=EVER, decay=0.0).cells.size == 1


def test_cells_of_labels_that_are_gone_are_numbered_no_more() -> None:
    ledger = folded([outcome(number, "cat", region=f"region-{number}") for number in range(20)])
    ledger.forget((8, 0))
    assert [region for region, *_ in places_of(ledger)] == [f"region-{number}" for number in range(16, 20)]
    assert ledger.cells.combination_count == 4


def test_an_outcome_of_a_class_that_the_model_no_longer_has_is_left_out() -> None:
    assert folded([outcome(1, "yak", predicted="yak")]).sums(at=EVER, decay=0.0).cells.size == 0


def test_a_true_class_that_the_model_does_not_have_makes_a_prediction_wrong() -> None:
    sums = folded([outcome(1, "yak")]).sums(at=EVER, decay=0.0)
    assert (sums.correct.tolist(), sums.true_classes.tolist()) == ([0.0], [-1])


def test_who_asked_is_kept_with_the_grouping_of_then() -> None:
    ledger = folded([outcome(number, "cat") for number in (1, 2, 3)])
    assert [source.draws for source in ledger.sources] == [{("a1", "region")}, {("a0", "region")}]
    sums = ledger.sums(at=EVER, decay=0.0)
    assert np.bincount(sums.sources, weights=sums.counts).tolist() == [2, 1]


def test_labels_given_later_than_asked_about_do_not_count() -> None:
    ledger = folded([outcome(number, "cat") for number in range(10)])
    assert ledger.sums(at=6.0, decay=0.0).counts.sum() == 7
    assert ledger.sums(at=-1.0, decay=0.0).counts.sum() == 0


def test_freshness_is_what_forgetting_leaves_of_every_label_and_no_more_than_all_of_it() -> None:
    entries = [outcome(number, "cat") for number in (10, 20, 70)]
    sums = folded(entries).sums(at=30.0, decay=0.1)
    assert sums.freshness.sum() == pytest.approx(np.exp(-2) + np.exp(-1))
    ahead = folded([outcome(7, "cat")]).sums(at=EVER, decay=0.0)
    assert ahead.freshness.tolist() == [1.0]


def test_labels_are_reported_one_by_one_from_a_time_on() -> None:
    ledger = folded([outcome(number, "cat") for number in range(10)])
    given_at, correct = ledger.labels_since(7.0)
    assert given_at.tolist() == [7.0, 8.0, 9.0]
    assert correct.tolist() == [True, False, True]


def test_the_outcomes_that_came_last_are_kept_as_they_came() -> None:
    entries = [outcome(number, "cat") for number in range(RECENT + 10)]
    corrected = revision(RECENT + 10, entries[20], "dog")
    ledger = folded([*entries, corrected])
    expected = [corrected, *(entry for entry in reversed(entries) if entry is not entries[20])]
    assert ledger.recent == expected[:RECENT]


def test_many_outcomes_fit() -> None:
    ledger = folded([outcome(number, "cat") for number in range(1_000)])
    np.testing.assert_array_equal(ledger.labels_since(0.0)[0], np.arange(1_000.0))
