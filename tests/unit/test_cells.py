"""Cells make up groups, and their number is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.cells import MISSING, OTHER, VOTES, CellBounds, CellSpace, Ensemble, Grouping, escape_reserved
from service.combination_directory import CombinationDirectory

EDGES = tuple(i / 10 for i in range(1, 10))


BOUNDS = CellBounds()


def space(bounds: CellBounds = BOUNDS, *, attributes: tuple[str, ...] = ("region",)) -> CellSpace:
    groupings = {
        "all": Grouping("all", "all"),
        "score_bin": Grouping("score_bin", "score_bin"),
        "class": Grouping("class", "predicted_class"),
        "kind": Grouping("kind", "superclass", superclasses={"cat": "pet", "dog": "pet", "owl": "bird"}),
    }
    groupings |= {name: Grouping(name, "attribute", attribute=name) for name in attributes}
    return CellSpace(("cat", "dog", "owl"), EDGES, groupings, bounds)


@pytest.mark.parametrize(
    ("score", "expected"), [(0.0, 0), (0.0999, 0), (0.1, 1), (0.5, 5), (0.8999, 8), (0.9, 9), (1.0, 9)]
)
def test_a_score_on_an_edge_belongs_to_the_upper_bin_and_one_to_the_last(score: float, expected: int) -> None:
    assert space().bins(np.array([score])).tolist() == [expected]


@given(
    number=st.integers(0, 2),
    class_index=st.integers(0, 2),
    score=st.floats(0, 1),
    name=st.sampled_from(["all", "score_bin", "class", "kind", "region"]),
)
def test_every_cell_lies_in_the_group_of_its_own_values(
    number: int, class_index: int, score: float, name: str
) -> None:
    cells = space()
    combinations = [(OTHER,), ("north",), ("south",)]
    cell = cells.cells(
        combinations=np.array([number]), classes=np.array([class_index]), scores=np.array([score])
    )[0]
    names, groups = cells.groups(name, combinations)
    class_name = cells.classes[class_index]
    expected = {
        "all": "all",
        "class": class_name,
        "kind": {"cat": "pet", "dog": "pet", "owl": "bird"}[class_name],
        "region": combinations[number][0],
    }
    if name == "score_bin":
        assert groups[cell] == cells.bins(np.array([score]))[0]
    else:
        assert names[groups[cell]] == expected[name]


def test_cells_of_different_values_are_different() -> None:
    cells = space()
    number, class_index, score_bin = np.meshgrid(np.arange(4), np.arange(3), np.arange(10), indexing="ij")
    found = cells.cells(
        combinations=number.ravel(), classes=class_index.ravel(), scores=(score_bin.ravel() + 0.5) / 10
    )
    assert sorted(found.tolist()) == list(range(4 * 3 * 10))


def test_a_model_without_class_groupings_has_no_cells_by_class() -> None:
    cells = CellSpace(("a", "b"), EDGES, {"region": Grouping("region", "attribute", attribute="region")})
    assert cells.cells_per_combination == 10


def test_an_attribute_that_is_absent_is_a_value_of_its_own() -> None:
    assert space().raw_combination({}) == (MISSING,)


def test_an_over_long_value_is_folded() -> None:
    assert space(CellBounds(attribute_length=3)).raw_combination({"region": "north"}) == (OTHER,)


def test_values_beyond_the_bound_of_an_attribute_are_folded() -> None:
    directory = CombinationDirectory(space(CellBounds(attribute_values=2)))
    for value in ("a", "b", "c", "a"):
        directory.append(directory.fold((value,)))
    assert directory.combinations == [(OTHER,), ("a",), ("b",)]


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvwxyz")), max_size=60),
    st.integers(30, 300),
)
def test_cells_never_exceed_their_bound(raw: list[tuple[str, str]], bound: int) -> None:
    cells = space(CellBounds(cells=bound), attributes=("region", "device"))
    directory = CombinationDirectory(cells)
    for combination in raw:
        directory.append(directory.fold(combination))
    assert len(directory) * cells.cells_per_combination <= bound


@given(st.lists(st.sampled_from("abcdefgh"), max_size=40))
def test_a_folded_combination_stays_where_it_was_first_counted(raw: list[str]) -> None:
    directory = CombinationDirectory(space(CellBounds(attribute_values=3)))
    first: dict[str, int] = {}
    for value in raw:
        number = directory.append(directory.fold((value,)))
        assert first.setdefault(value, number) == number


def test_a_fingerprint_tells_whether_cells_mean_the_same() -> None:
    assert space().fingerprint(16, 7.0) == space().fingerprint(16, 7.0)
    others = [space(CellBounds(cells=999)), space(attributes=("region", "device"))]
    assert len({s.fingerprint(16, 7.0) for s in (space(), *others)}) == 3
    assert space().fingerprint(16, 7.0) != space().fingerprint(16, 8.0)


def voted(bounds: CellBounds, *attributes: str) -> CellSpace:
    """Two members and the ensemble: eight patterns; ten cells a combination."""
    groupings = {VOTES: Grouping(VOTES, "votes", VOTES)}
    groupings |= {name: Grouping(name, "attribute", attribute=name) for name in attributes}
    return CellSpace(("cat", "dog"), EDGES, groupings, bounds, Ensemble(("a", "b"), "cat"))


def everything(cells: CellSpace, values: int) -> CombinationDirectory:
    """All patterns, each with so many values of every other attribute."""
    directory = CombinationDirectory(cells)
    patterns = [*(f"{number:03b}" for number in range(8)), MISSING]
    for pattern in patterns:
        for value in range(values):
            raw = tuple(pattern if name == VOTES else str(value) for name in cells.attributes)
            directory.append(directory.fold(raw))
    return directory


@pytest.mark.parametrize(("attributes", "values", "wanted"), [((), 1, 10), (("region",), 12, 9 * 13 + 1)])
def test_votes_are_kept_where_there_is_room_for_all_combinations(
    attributes: tuple[str, ...], values: int, wanted: int
) -> None:
    enough = voted(CellBounds(cells=10 * wanted, attribute_values=12), *attributes)
    assert enough.combinations_wanted == wanted
    assert not enough.votes_may_fold
    # Values beyond those that are told apart are one more.
    assert len(everything(enough, values + 5)) == wanted
    assert voted(CellBounds(cells=10 * wanted - 1, attribute_values=12), *attributes).votes_may_fold


def test_votes_are_folded_where_more_patterns_are_than_values_of_an_attribute() -> None:
    assert not voted(CellBounds(attribute_values=9)).votes_may_fold
    assert voted(CellBounds(attribute_values=8)).votes_may_fold


def test_without_an_ensemble_there_are_no_votes_to_fold() -> None:
    assert not space(CellBounds(cells=1)).votes_may_fold


RESERVED_LIKE = st.builds(
    lambda n, name: "\\" * n + name, st.integers(0, 3), st.sampled_from([OTHER, MISSING])
)


@given(st.lists(st.one_of(RESERVED_LIKE, st.text(max_size=9)), unique=True))
def test_values_from_outside_stay_different_and_are_never_reserved_names(values: list[str]) -> None:
    escaped = [escape_reserved(value) for value in values]
    assert len(set(escaped)) == len(values)
    assert not {OTHER, MISSING} & set(escaped)


def test_a_plain_value_stays_as_it_is() -> None:
    assert [escape_reserved(value) for value in ("north", "\\", "\\a")] == ["north", "\\", "\\a"]
