"""Outcomes without votes, where votes tell cells apart: in a cell of any vote, or in one of none."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.cells import (
    AGREE,
    CHALLENGE,
    DISAGREE,
    FORMER_GROUPING,
    MISSING,
    OTHER,
    VOTES,
    CellBounds,
    CellSpace,
    Challenge,
    Combination,
    Ensemble,
    Grouping,
)
from service.combination_directory import CombinationDirectory
from service.ledger import OutcomeLedger, Source
from service.store.facts import OutcomeEntry
from service.store.records import Fact, Given

GROUPINGS = {
    CHALLENGE: Grouping(CHALLENGE, "challenge", CHALLENGE),
    "region": Grouping("region", "attribute", attribute="region"),
}
SPACE = CellSpace(("cat", "dog"), (), GROUPINGS, challenge=Challenge("v2"))
VOTED: list[Combination] = [(OTHER, OTHER), (AGREE, "north"), (DISAGREE, "north"), (AGREE, "south")]
EVER = 1e9


def outcome(
    number: int, vote: str = "", *, region: str = "north", predicted_at: float | None = None, **fields: str
) -> OutcomeEntry:
    """Of a prediction of a cat, which carries a vote or none."""
    fact = Fact(
        request_id=f"request-{number}",
        item_id=f"item-{number}",
        grouping=fields.get("grouping", "region"),
        group="",
        predicted_class="cat",
        score=0.5,
        attributes={"region": region},
        predicted_at=number if predicted_at is None else predicted_at,
        requested_at=float(number),
        votes={"v2": vote} if vote else {},
        voters=fields.get("voters", ""),
    )
    return OutcomeEntry((number, 0), (number, 0), "a", fact, Given("cat", float(number), ""))


def placed(
    entries: list[OutcomeEntry], combinations: list[Combination], space: CellSpace = SPACE
) -> OutcomeLedger:
    ledger = OutcomeLedger(space)
    ledger.fold(entries)
    ledger.place(CombinationDirectory(space, combinations))
    return ledger


def told(ledger: OutcomeLedger, combinations: list[Combination]) -> Counter[tuple[Combination, bool]]:
    """Labels by the combination of their cell, and whether that stands for all votes."""
    sums = ledger.sums(at=EVER, decay=0.0)
    found: Counter[tuple[Combination, bool]] = Counter()
    for cell, source, count in zip(sums.cells, sums.sources, sums.counts, strict=True):
        found[combinations[cell], bool(ledger.of_any_vote[source])] += int(count)
    return found


def test_a_label_from_before_anybody_voted_is_in_a_cell_of_its_attributes_that_stands_for_all_votes() -> None:
    ledger = placed([outcome(0), outcome(1, region="south"), outcome(2, "dog")], VOTED)
    assert told(ledger, VOTED) == {
        ((AGREE, "north"), True): 1,
        ((AGREE, "south"), True): 1,
        ((DISAGREE, "north"), False): 1,
    }


def test_a_label_of_a_region_without_traffic_waits() -> None:
    ledger = placed([outcome(0, region="west")], VOTED)
    assert not told(ledger, VOTED)
    seen = [*VOTED, (AGREE, "west")]
    ledger.place(CombinationDirectory(SPACE, seen))
    assert told(ledger, seen) == {((AGREE, "west"), True): 1}


def test_where_there_is_traffic_without_votes_only_labels_from_before_stand_for_all_votes() -> None:
    seen = [*VOTED, (MISSING, "north")]
    ledger = placed([outcome(0), outcome(1, "cat"), outcome(2)], seen)
    assert told(ledger, seen) == {
        ((MISSING, "north"), True): 1,
        ((AGREE, "north"), False): 1,
        ((MISSING, "north"), False): 1,
    }


def test_where_there_is_none_a_vote_of_long_ago_takes_nothing_away() -> None:
    ledger = placed([outcome(0, "cat"), outcome(1), outcome(2)], VOTED)
    assert told(ledger, VOTED) == {((AGREE, "north"), False): 1, ((AGREE, "north"), True): 2}


def test_where_combinations_are_full_a_label_without_a_vote_still_finds_its_attributes() -> None:
    full = CellSpace(SPACE.classes, (), GROUPINGS, CellBounds(cells=len(VOTED)), challenge=SPACE.challenge)
    ledger = placed([outcome(0), outcome(1, region="west")], VOTED, full)
    assert told(ledger, VOTED) == {((AGREE, "north"), True): 1, ((OTHER, OTHER), True): 1}


def test_who_asked_is_told_of_either_kind() -> None:
    ledger = placed([outcome(0), outcome(1, "cat")], VOTED)
    assert ledger.sources == [Source(frozenset({("a", "region")}), any_vote) for any_vote in (False, True)]
    assert ledger.of_any_vote.tolist() == [False, True]
    assert ledger.asked_by("region").correct.tolist() == [True, True]


@given(
    st.lists(st.tuples(st.sampled_from(["", "cat", "dog"]), st.integers(0, 20)), max_size=20),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), max_size=6),
)
def test_piece_by_piece_and_trimmed_they_are_as_if_read_anew(
    votes: list[tuple[str, int]], steps: list[tuple[int, int, int]]
) -> None:
    entries = [outcome(n, vote, predicted_at=float(at)) for n, (vote, at) in enumerate(votes)]
    everything = [*VOTED, (MISSING, "south"), (MISSING, "north"), (DISAGREE, "south")]
    ledger, read, gone, seen = OutcomeLedger(SPACE), 0, 0, len(VOTED)
    for more, less, appeared in [*steps, (len(entries), 0, len(everything))]:
        ledger.fold(entries[read : read + more])
        read, seen = min(read + more, len(entries)), min(seen + appeared, len(everything))
        gone = min(gone + less, read)
        ledger.forget((gone, 0))
        ledger.place(CombinationDirectory(SPACE, everything[:seen]))
    anew = placed(entries[gone:], everything)
    assert told(ledger, everything) == told(anew, everything)
    cells = np.arange(SPACE.cells_per_combination * len(everything))
    kept, expected = (each.tallied("region", cells, len(cells)) for each in (ledger, anew))
    assert (kept.counts.tolist(), kept.marks.tolist()) == (expected.counts.tolist(), expected.marks.tolist())


@pytest.mark.parametrize(
    ("grouping", "voters", "even"),
    [(CHALLENGE, "v2", True), (CHALLENGE, "v1", False), (VOTES, "v2", False), ("region", "", True)],
)
def test_labels_that_were_aimed_by_other_votes_are_of_no_known_density(
    grouping: str, voters: str, even: bool
) -> None:
    ledger = placed([outcome(0, "cat", grouping=grouping, voters=voters)], VOTED)
    assert ledger.evenly_asked.tolist() == [even]
    assert [source.groupings for source in ledger.sources] == [{grouping if even else FORMER_GROUPING}]


def test_an_ensemble_is_another_one_with_other_members_or_another_class_and_not_in_another_order() -> None:
    name = Ensemble(("a", "b"), "cat").name
    assert Ensemble(("b", "a"), "cat").name == name
    assert len({name, Ensemble(("a",), "cat").name, Ensemble(("a", "b"), "dog").name}) == 3
