"""Fingerprints of groupings: they differ where a name means another partition, and nowhere else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.cells import (
    CHALLENGE,
    SCORE_BIN,
    VOTES,
    CellBounds,
    CellSpace,
    Challenge,
    Ensemble,
    definitions,
)
from service.domain.groupings import (
    ALL,
    ByAttribute,
    ByChallenger,
    ByClass,
    ByPositiveScore,
    ByScore,
    BySuperclass,
    ByVotes,
    Everything,
    Grouping,
)

CLASSES = ("cat", "dog", "owl", "hen")
EDGES = (0.5,)
superclasses = st.fixed_dictionaries({name: st.sampled_from(["a", "b", "c", "d"]) for name in CLASSES})


def definition(
    grouping: Grouping, classes: tuple[str, ...] = CLASSES, edges: tuple[float, ...] = EDGES
) -> bytes:
    return definitions(CellSpace(classes, edges, {grouping.name: grouping}))[grouping.name]


def by_superclass(shown: Mapping[str, str]) -> bytes:
    return definition(BySuperclass("kind", superclasses=shown))


def together(shown: Mapping[str, str]) -> set[frozenset[str]]:
    """Which classes are in a group together."""
    return {frozenset(c for c in CLASSES if shown[c] == shown[name]) for name in CLASSES}


@given(superclasses, superclasses)
def test_superclasses_are_the_same_where_the_same_classes_are_together(
    first: dict[str, str], second: dict[str, str]
) -> None:
    assert (by_superclass(first) == by_superclass(second)) == (together(first) == together(second))


@given(superclasses, st.permutations(CLASSES))
def test_the_order_of_a_map_and_of_classes_makes_no_difference(
    shown: dict[str, str], order: list[str]
) -> None:
    again = BySuperclass("kind", superclasses={name: shown[name] for name in order})
    assert definition(again, classes=tuple(order)) == by_superclass(shown)


def test_another_attribute_another_kind_and_other_superclasses_are_another_partition() -> None:
    found = [
        definition(ByAttribute("place", "region")),
        definition(ByAttribute("place", "device")),
        definition(ByClass("place")),
        definition(BySuperclass("place", superclasses=dict.fromkeys(CLASSES, "animal"))),
        definition(BySuperclass("place", superclasses={name: name for name in CLASSES})),
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("grouping", [ByScore(SCORE_BIN), ByPositiveScore("p")])
def test_other_edges_are_other_groups_by_score_alone(grouping: Grouping) -> None:
    region = ByAttribute("region", "region")
    assert definition(grouping, edges=(0.4,)) != definition(grouping)
    assert definition(region, edges=(0.4,)) == definition(region)


def test_which_of_two_classes_is_the_positive_one_leaves_the_bins_what_they_are() -> None:
    cat, dog = (ByPositiveScore("p", positive=name) for name in ("cat", "dog"))
    assert definition(cat, ("cat", "dog")) == definition(dog, ("cat", "dog"))


def test_what_a_grouping_is_called_and_what_is_bounded_make_no_difference() -> None:
    groupings = {name: ByAttribute(name, "region") for name in ("place", "region")}
    shown = definitions(CellSpace(CLASSES, EDGES, groupings, CellBounds(100, 5, 9)))
    assert shown["place"] == shown["region"] == definition(groupings["region"])


def test_there_is_none_where_a_name_means_but_one_thing_or_votes_tell() -> None:
    groupings = {ALL: Everything(ALL), VOTES: ByVotes(VOTES, VOTES)}
    pooled = CellSpace(CLASSES, EDGES, groupings, ensemble=Ensemble(("v2",), "cat"))
    challenged = {CHALLENGE: ByChallenger(CHALLENGE, CHALLENGE)}
    space = CellSpace(CLASSES, EDGES, challenged, challenge=Challenge("v2"))
    assert {*definitions(pooled).values(), *definitions(space).values()} == {b""}


@pytest.mark.parametrize(
    ("grouping", "by"),
    [
        (ByAttribute("g", "region"), "region"),
        (ByClass("g"), None),
        (ByScore("g"), [0.5]),
        (
            BySuperclass("g", superclasses={"owl": "b", "dog": "p", "hen": "b", "cat": "p"}),
            [["cat", "dog"], ["hen", "owl"]],
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Grouping) else "",
)
def test_it_is_the_beginning_of_a_hash_that_any_process_computes(grouping: Grouping, by: object) -> None:
    expected = hashlib.sha256(json.dumps([grouping.kind, by]).encode()).digest()
    assert definition(grouping) == expected[:4]
