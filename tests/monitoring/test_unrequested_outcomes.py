"""Labels that nobody requested, as outcomes: one outcome per prediction, whatever its sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.config.unrequested import ChosenBy
from service.domain.cells import CellSpace
from service.domain.groupings import ALL, ByAttribute, ByClass, Everything
from service.monitoring.outcome_aggregates import (
    ABSENT,
    ABSENT_CLASS,
    ABSENT_SKIPPED,
    EXPIRED_CLASS,
    SKIPPED_CLASS,
)
from service.monitoring.outcome_rows import OutcomeRows
from service.monitoring.outcome_table import OutcomeLedger
from service.store import records
from service.store.outcome_entries import OutcomeEntry, SharedDraw
from service.store.records import EXPIRED, SKIPPED, Fact, LabelFact

SPACE = CellSpace(
    ("cat", "dog"),
    (0.5,),
    {ALL: Everything(ALL), "region": ByAttribute("region", "region"), "class": ByClass("class")},
)
EVER = 1e9
REASONS = (*ABSENT, EXPIRED_CLASS, SKIPPED_CLASS)


def entry(
    number: int,
    label: str,
    *,
    item: int = 0,
    requested: bool = True,
    of: tuple[int, int] | None = None,
    time: float | None = None,
) -> OutcomeEntry:
    """An entry about an item; `label` is a class, or why there is none."""
    region, position = ("north" if item % 2 else "south"), (1_000 * (number + 1), 0)
    drawn = (f"r{item}", f"i{item}", "region", region) if requested else ("", f"i{item}", ALL, ALL)
    at = float(item if time is None else time)
    fact = Fact(*drawn, "cat" if item % 3 else "dog", 0.4 + item % 2 / 5, {"region": region}, at, at + 0.5)
    has_class = label in ("", "cat", "dog", "yak")
    given = LabelFact(label if has_class else "", number + 1.0, "", unanswered="" if has_class else label)
    return OutcomeEntry(position, of or position, "ask" if requested else "", fact, given)


def folded(entries: Sequence[OutcomeEntry | SharedDraw], items: ChosenBy | None = "census") -> OutcomeLedger:
    ledger = OutcomeLedger(SPACE, unrequested=items)
    ledger.fold(entries)
    ledger.place()
    return ledger


def contents(ledger: OutcomeLedger) -> Any:
    """All that a ledger tells, whatever the order in which it numbers things."""
    sums = ledger.sums(at=EVER, decay=0.0, unanswered=REASONS)
    names, regions = ledger.cells.values("region")
    cells = [
        (names[regions[cell]], int(ledger.cells.classes[cell]), int(ledger.cells.bins[cell]))
        for cell in range(len(ledger.cells))
    ]
    summed = Counter(
        {
            (cells[cell], ledger.sources[source], bool(correct), int(true)): int(count)
            for cell, source, correct, true, count in zip(
                sums.cells, sums.sources, sums.correct, sums.true_classes, sums.counts, strict=True
            )
        }
    )
    columns = {}
    for name in SPACE.groupings:
        sequence = ledger.label_sequence(name, unanswered=REASONS)
        kept = (sequence.correct, sequence.unanswered, sequence.places, sequence.predicted_at)
        columns[name] = [column.tolist() for column in kept]
    ended = {reason: counts.tolist() for reason, counts in ledger.ended_by_reason().items()}
    return summed, columns, len(ledger), ledger.recent, ended


KINDS = ("requested", "unrequested", "revise", "share")
histories = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, 5),
        st.sampled_from(["cat", "dog", "yak", "", SKIPPED, EXPIRED, records.ABSENT, "lost"]),
    ),
    max_size=30,
)


def stream(history: Sequence[tuple[str, int, str]]) -> list[OutcomeEntry | SharedDraw]:
    """Entries of a stream; each item has one outcome of each kind at most."""
    entries: list[OutcomeEntry | SharedDraw] = []
    outcomes: dict[tuple[str, int], OutcomeEntry] = {}
    for number, (kind, item, label) in enumerate(history):
        if kind in ("requested", "unrequested") and (kind, item) not in outcomes:
            requested = kind == "requested"
            made = entry(number, label or "cat", item=item, requested=requested)
            outcomes[kind, item] = made
            entries.append(made)
        elif kind == "share" and ("requested", item) in outcomes:
            first = outcomes["requested", item]
            again = entry(number, "cat", item=item, time=item + 0.25 if label == "dog" else None)
            fact = Fact(*[getattr(again.fact, name) for name in Fact.__struct_fields__[:9]])
            entries.append(SharedDraw(again.position, first.position, "other", fact))
        elif outcomes:
            first = list(outcomes.values())[item % len(outcomes)]
            requested, of = not first.is_unrequested, first.position
            which = int(first.fact.item_id[1:])
            entries.append(entry(number, label, item=which, requested=requested, of=of))
    return entries


@given(histories, st.integers(1, 5), st.sampled_from(get_args(ChosenBy)))
def test_folding_piece_by_piece_is_folding_in_one_go(
    history: list[tuple[str, int, str]], size: int, items: ChosenBy
) -> None:
    entries, ledger = stream(history), OutcomeLedger(SPACE, unrequested=items)
    for first in range(0, len(entries), size):
        ledger.fold(entries[first : first + size])
        ledger.place()
    assert contents(ledger) == contents(folded(entries, items))


@given(histories, st.integers(0, 30), st.integers(1, 5))
def test_what_was_trimmed_is_as_if_it_had_never_been_read(
    history: list[tuple[str, int, str]], trimmed: int, size: int
) -> None:
    entries, ledger = stream(history), OutcomeLedger(SPACE, unrequested="census")
    for first in range(0, len(entries), size):
        ledger.fold(entries[first : first + size])
        ledger.place()
    position = (1_000 * (trimmed + 1), 0)
    ledger.forget(position)
    ledger.place()
    assert contents(ledger) == contents(folded([each for each in entries if each.position >= position]))


@given(histories)
def test_without_a_setting_unrequested_labels_do_not_exist(history: list[tuple[str, int, str]]) -> None:
    entries = stream(history)
    requested = [each for each in entries if isinstance(each, SharedDraw) or not each.is_unrequested]
    assert contents(folded(entries, None)) == contents(folded(requested, None))


def only_sum(ledger: OutcomeLedger) -> tuple[int, bool, int]:
    sums = ledger.sums(at=EVER, decay=0.0, unanswered=REASONS)
    (true,), (correct,), (count,) = sums.true_classes.tolist(), sums.correct.tolist(), sums.counts.tolist()
    return true, bool(correct), count


CASES = [
    (["cat"], ["dog"], 0),  # the requested label counts
    ([SKIPPED], ["dog"], 1),
    ([EXPIRED], ["dog"], 1),
    (["cat"], [records.ABSENT], 0),
    ([SKIPPED], [records.ABSENT], ABSENT_SKIPPED),
    (["cat", ""], ["dog"], 1),  # it is retracted
    (["cat", ""], [records.ABSENT], ABSENT_CLASS),
    ([SKIPPED, "cat"], ["dog"], 0),  # a skip is corrected
    ([SKIPPED], [records.ABSENT, "dog"], 1),  # a late label
    ([SKIPPED], ["dog", "cat"], 0),
    ([SKIPPED], ["dog", ""], ABSENT_SKIPPED),
    (["lost"], ["dog"], 1),  # a reason of a later version
    (["lost"], ["lost"], ABSENT_SKIPPED),
]


@pytest.mark.parametrize(("requested", "unrequested", "expected"), CASES)
def test_a_prediction_with_two_sources_is_one_outcome(
    requested: list[str], unrequested: list[str], expected: int
) -> None:
    steps = [("r", label) for label in requested] + [("u", label) for label in unrequested]
    orders = {order for order in permutations(range(len(steps))) if ordered(order, len(requested))}
    for order in orders:
        entries, firsts = list[OutcomeEntry](), dict[str, tuple[int, int]]()
        for number, (kind, label) in enumerate(steps[step] for step in order):
            entries.append(entry(number, label, item=1, requested=kind == "r", of=firsts.get(kind)))
            firsts.setdefault(kind, entries[-1].position)
        true, correct, count = only_sum(folded(entries))
        assert (true, count) == (expected, 1)
        assert correct == (true == 0)


def ordered(order: Sequence[int], requested: int) -> bool:
    """Whether revisions come after what they revise."""
    parts = [each for each in order if each < requested], [each for each in order if each >= requested]
    return all(part == sorted(part) for part in parts)


def test_an_unrequested_retraction_is_an_absent_label() -> None:
    first = entry(0, "cat", item=1, requested=False)
    ledger = folded([first, entry(1, "", item=1, requested=False, of=first.position)])
    assert only_sum(ledger) == (ABSENT_CLASS, False, 1)


@pytest.mark.parametrize("reason", [records.ABSENT, "lost"])
def test_an_unknown_reason_is_no_label(reason: str) -> None:
    assert len(folded([entry(0, reason, item=1, requested=False)])) == 0
    assert len(folded([entry(0, reason, item=1)])) == 0


def test_another_prediction_of_the_item_is_another_outcome() -> None:
    ledger = folded([entry(0, "cat", item=1), entry(1, "cat", item=1, requested=False, time=7.0)])
    assert len(ledger) == 2


def test_only_even_samples_count_for_every_grouping() -> None:
    entries = [entry(number, "cat", item=number, requested=False) for number in range(4)]
    for items, expected in (("census", 4), ("sampled", 4), ("unknown", 0)):
        ledger = folded(entries, items)
        assert [len(ledger.label_sequence(name).places) for name in SPACE.groupings] == [expected] * 3


def test_a_requested_label_keeps_its_place_when_the_other_one_comes() -> None:
    requested = entry(0, "cat", item=1)
    before = folded([requested]).label_sequence("region").places
    both = folded([requested, entry(5, "cat", item=1, requested=False)])
    assert both.label_sequence("region").places.tolist() == before.tolist()
    assert both.label_sequence("class").places > before  # where only the unrequested one counts


def test_unrequested_labels_stand_in_the_order_in_which_they_became_outcomes() -> None:
    entries = [entry(number, "cat", item=9 - number, requested=False) for number in range(9)]
    sequence = folded(entries).label_sequence(ALL)
    assert (sequence.places[1:] > sequence.places[:-1]).all()
    # But what is dated by them is dated by their predictions.
    assert [sequence.time_of(number) for number in range(9)] == sequence.predicted_at.tolist()


def test_unrequested_labels_are_no_ended_requests() -> None:
    ledger = folded([entry(0, SKIPPED, item=1), entry(1, records.ABSENT, item=2, requested=False)])
    assert sum(int(counts.sum()) for counts in ledger.ended_by_reason().values()) == 1
    assert len(ledger.ended_requests(10).reasons) == 1


def test_pairs_cost_no_look_at_all_rows_each(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at, count = list[int](), 200
    known = OutcomeRows.outcome_keys

    def outcome_keys(rows: OutcomeRows, chosen: slice = slice(None)) -> Any:
        looked_at.append(len(found := known(rows, chosen)))
        return found

    monkeypatch.setattr(OutcomeRows, "outcome_keys", outcome_keys)
    entries = [entry(number, "cat", item=number) for number in range(count)]
    entries += [entry(count + number, "cat", item=number, requested=False) for number in range(count)]
    assert len(folded(entries)) == count
    assert sum(looked_at) < 10 * len(entries)


def test_the_delay_of_a_label_is_the_time_from_its_prediction() -> None:
    ledger = folded(
        [
            entry(5, "cat", item=0, requested=False),
            entry(6, "dog", item=2, requested=False),
            entry(7, records.ABSENT, item=4, requested=False),
            entry(8, "cat", item=1),
        ]
    )
    assert sorted(ledger.label_delays(100)) == [5.0, 6.0]
    assert ledger.label_delays(2).tolist() == []
