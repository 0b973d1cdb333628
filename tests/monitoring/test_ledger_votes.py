"""Outcomes without votes, where votes tell cells apart: in a cell of any vote, or in one of none."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.cells import (
    AGREE,
    CHALLENGE,
    DISAGREE,
    FORMER_GROUPING,
    MISSING,
    VOTES,
    CellSpace,
    Challenge,
    Ensemble,
)
from service.domain.groupings import ByAttribute, ByChallenger
from service.monitoring.label_encoding import Source
from service.monitoring.outcome_table import OutcomeLedger
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

GROUPINGS = {
    CHALLENGE: ByChallenger(CHALLENGE, CHALLENGE),
    "region": ByAttribute("region", "region"),
}
SPACE = CellSpace(("cat", "dog"), (), GROUPINGS, challenge=Challenge("v2"))
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
    return OutcomeEntry((number, 0), (number, 0), "a", fact, LabelFact("cat", float(number), ""))


def placed(entries: list[OutcomeEntry], *, votes_missing: bool = False) -> OutcomeLedger:
    ledger = OutcomeLedger(SPACE)
    ledger.fold(entries)
    ledger.place(votes_missing=votes_missing)
    return ledger


def labels_by_vote(ledger: OutcomeLedger) -> Counter[tuple[str, str, bool]]:
    """Labels by the vote and region of their cell, and whether they stand for all votes."""
    sums = ledger.sums(at=EVER, decay=0.0)
    (votes, of_vote), (regions, of_region) = (ledger.cells.values(name) for name in SPACE.attributes)
    found: Counter[tuple[str, str, bool]] = Counter()
    for cell, source, count in zip(sums.cells, sums.sources, sums.counts, strict=True):
        stands_for_all = bool(ledger.of_any_vote[source])
        found[votes[of_vote[cell]], regions[of_region[cell]], stands_for_all] += int(count)
    return found


def test_a_label_from_before_anybody_voted_stands_for_all_votes() -> None:
    ledger = placed([outcome(0), outcome(1, region="south"), outcome(2, "dog")])
    assert labels_by_vote(ledger) == {
        (MISSING, "north", True): 1,
        (MISSING, "south", True): 1,
        (DISAGREE, "north", False): 1,
    }


def test_where_there_is_traffic_without_votes_only_labels_from_before_stand_for_all_votes() -> None:
    ledger = placed([outcome(0), outcome(1, "cat"), outcome(2)], votes_missing=True)
    assert labels_by_vote(ledger) == {
        (MISSING, "north", True): 1,
        (AGREE, "north", False): 1,
        (MISSING, "north", False): 1,
    }


def test_where_there_is_none_a_vote_of_long_ago_takes_nothing_away() -> None:
    ledger = placed([outcome(0, "cat"), outcome(1), outcome(2)])
    assert labels_by_vote(ledger) == {(AGREE, "north", False): 1, (MISSING, "north", True): 2}


def test_who_asked_is_reported_of_either_kind() -> None:
    ledger = placed([outcome(0), outcome(1, "cat")])
    draws, by_value = frozenset({("a", "region")}), frozenset({"region"})
    assert ledger.sources == [Source(draws, any_vote, by_value) for any_vote in (False, True)]
    assert ledger.of_any_vote.tolist() == [False, True]
    assert ledger.label_sequence("region").correct.tolist() == [True, True]


@given(
    st.lists(st.tuples(st.sampled_from(["", "cat", "dog"]), st.integers(0, 20)), max_size=20),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans()), max_size=6),
)
def test_piece_by_piece_and_trimmed_they_are_as_if_read_again(
    votes: list[tuple[str, int]], steps: list[tuple[int, int, bool]]
) -> None:
    entries = [outcome(n, vote, predicted_at=float(at)) for n, (vote, at) in enumerate(votes)]
    ledger, read, gone = OutcomeLedger(SPACE), 0, 0
    for more, less, votes_missing in [*steps, (len(entries), 0, True)]:
        ledger.fold(entries[read : read + more])
        read = min(read + more, len(entries))
        gone = min(gone + less, read)
        ledger.forget((gone, 0))
        ledger.place(votes_missing=votes_missing)
        anew = placed(entries[gone:read], votes_missing=votes_missing)
        assert labels_by_vote(ledger) == labels_by_vote(anew)
        kept, expected = (tallied(each) for each in (ledger, anew))
        assert kept == expected


def tallied(ledger: OutcomeLedger) -> dict[tuple[str, str], tuple[int, int]]:
    """Labels of every vote and region: how many, and which."""
    (votes, of_vote), (regions, of_region) = (ledger.cells.values(name) for name in SPACE.attributes)
    found = ledger.tallies("region", np.arange(len(ledger.cells)), len(ledger.cells))
    columns = of_vote.tolist(), of_region.tolist(), found.counts.tolist(), found.marks.tolist()
    return {
        (votes[vote], regions[region]): (count, mark)
        for vote, region, count, mark in zip(*columns, strict=True)
        if count
    }


@pytest.mark.parametrize(
    ("grouping", "voters", "even"),
    [(CHALLENGE, "v2", True), (CHALLENGE, "v1", False), (VOTES, "v2", False), ("region", "", True)],
)
def test_labels_that_were_aimed_by_other_votes_are_of_no_known_density(
    grouping: str, voters: str, even: bool
) -> None:
    ledger = placed([outcome(0, "cat", grouping=grouping, voters=voters)])
    assert ledger.has_known_density.tolist() == [even]
    assert [source.groupings for source in ledger.sources] == [{grouping if even else FORMER_GROUPING}]


def test_an_ensemble_is_another_one_with_other_members_or_another_class_and_not_in_another_order() -> None:
    name = Ensemble(("a", "b"), "cat").name
    assert Ensemble(("b", "a"), "cat").name == name
    assert len({name, Ensemble(("a",), "cat").name, Ensemble(("a", "b"), "dog").name}) == 3
