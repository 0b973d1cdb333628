"""An item that is drawn more than once is labelled once, and its label counts for every draw."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ledger import EVER, contents, folded, outcome, revision, stream

from service.domain.cells import FORMER_GROUPING
from service.monitoring.label_encoding import Source
from service.monitoring.outcome_table import OutcomeLedger
from service.store.outcome_entries import OutcomeEntry, SharedDraw


def drawn_again(
    number: int, of: OutcomeEntry, *, grouping: str = "class", at: float | None = None, predicted: str = ""
) -> SharedDraw:
    """A further draw of an item; of another prediction of it, where a time is given."""
    fact = msgspec.structs.replace(
        of.fact,
        grouping=grouping,
        group="cat",
        predicted_at=of.fact.predicted_at if at is None else at,
        predicted_class=predicted or of.fact.predicted_class,
        definition=b"",
    )
    return SharedDraw((number // 2, number % 2), of.position, "other", fact)


def source_of(ledger: OutcomeLedger) -> list[Source]:
    return [ledger.sources[code] for code in ledger.sums(at=EVER, decay=0.0).sources.tolist()]


def test_the_label_of_an_item_that_two_groupings_drew_counts_once() -> None:
    first = outcome(1, "cat")
    ledger = folded([first, drawn_again(2, first)])
    assert len(ledger) == 1
    assert ledger.sums(at=EVER, decay=0.0).counts.tolist() == [1]


def test_the_label_of_an_item_that_two_groupings_drew_is_of_both_samples() -> None:
    first, second = outcome(1, "cat"), outcome(3, "dog")
    ledger = folded([first, second, drawn_again(4, first)])
    assert len(ledger.label_sequence("region").correct) == 2
    assert len(ledger.label_sequence("class").correct) == 1
    assert {frozenset({("a1", "region"), ("other", "class")}), frozenset({("a1", "region")})} == {
        source.draws for source in source_of(ledger)
    }


def test_a_later_prediction_of_a_labelled_item_is_an_outcome_with_the_same_label() -> None:
    first = outcome(1, "cat", predicted="cat")
    ledger = folded([first, drawn_again(2, first, at=50.0, predicted="dog")])
    assert len(ledger) == 2
    assert sorted(ledger.labels_since(0.0)[1].tolist()) == [False, True]


@pytest.mark.parametrize("later", [None, 50.0])
def test_a_correction_reaches_every_draw(later: float | None) -> None:
    first = outcome(1, "cat", predicted="cat")
    ledger = folded([first, drawn_again(2, first, at=later), revision(3, first, "dog")])
    assert not ledger.labels_since(0.0)[1].any()


@pytest.mark.parametrize("later", [None, 50.0])
def test_a_retracted_label_counts_for_no_draw(later: float | None) -> None:
    first = outcome(1, "cat")
    before = folded([first, drawn_again(2, first, at=later), revision(3, first, "")])
    after = folded([first, revision(2, first, ""), drawn_again(3, first, at=later)])
    assert len(before) == len(after) == 0


def test_a_draw_whose_outcome_the_stream_has_dropped_says_nothing() -> None:
    first = outcome(1, "cat")
    ledger = folded([outcome(3, "dog"), drawn_again(4, first)])
    assert len(ledger) == 1
    assert [source.groupings for source in source_of(ledger)] == [{"region"}]


def test_a_label_of_a_grouping_that_is_gone_counts_if_another_one_drew_it_too() -> None:
    gone = outcome(1, "cat")
    gone = msgspec.structs.replace(gone, fact=msgspec.structs.replace(gone.fact, definition=b"gone"))
    assert [s.groupings for s in source_of(folded([gone]))] == [{FORMER_GROUPING}]
    ledger = folded([gone, drawn_again(2, gone)])
    assert [s.groupings for s in source_of(ledger)] == [{"class"}]
    assert ledger.has_known_density[ledger.sums(at=EVER, decay=0.0).sources].all()


@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 5)), st.sampled_from(["cat", "dog", "yak", ""])),
        max_size=20,
    ),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30), st.booleans()), max_size=6),
    st.integers(1, 5),
)
def test_draws_folded_piece_by_piece_give_the_same_as_in_one_go(
    history: list[tuple[int | None, str]], draws: list[tuple[int, int, bool]], size: int
) -> None:
    outcomes = stream(history)
    entries: list[OutcomeEntry | SharedDraw] = list(outcomes)
    firsts = [entry for entry in outcomes if entry.of == entry.position]
    if firsts:
        for number, (of, at, same) in enumerate(draws):
            chosen = firsts[of % len(firsts)]
            entries.append(drawn_again(1_000 + number, chosen, at=None if same else 100.0 + at))
    once, piecewise = folded(entries), folded([])
    for first in range(0, len(entries), size):
        piecewise.fold(entries[first : first + size])
    np.testing.assert_array_equal(sorted(known_labels(once)), sorted(known_labels(piecewise)))


def known_labels(ledger: OutcomeLedger) -> list[str]:
    ledger.place()
    return [repr(row) for row in contents(ledger)[0].items()]


def test_a_later_prediction_of_an_item_counts_no_more_once_the_stream_has_dropped_its_outcome() -> None:
    first, second = outcome(1, "cat"), outcome(3, "dog")
    later = drawn_again(4, first, at=50.0)
    ledger = folded([first, second, later])
    ledger.forget(second.position)
    ledger.place()
    assert contents(ledger) == contents(folded([second, later]))
