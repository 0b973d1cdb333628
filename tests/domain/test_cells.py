"""What tells predictions apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.cells import MISSING, OTHER, CellBounds, CellSpace, escape_reserved
from service.domain.groupings import ByAttribute, ByClass, ByScore, BySuperclass, Everything

EDGES = tuple(i / 10 for i in range(1, 10))


BOUNDS = CellBounds()


def space(bounds: CellBounds = BOUNDS, *, attributes: tuple[str, ...] = ("region",)) -> CellSpace:
    groupings = {
        "all": Everything("all"),
        "score_bin": ByScore("score_bin"),
        "class": ByClass("class"),
        "kind": BySuperclass("kind", superclasses={"cat": "pet", "dog": "pet", "owl": "bird"}),
    }
    groupings |= {name: ByAttribute(name, name) for name in attributes}
    return CellSpace(("cat", "dog", "owl"), EDGES, groupings, bounds)


@pytest.mark.parametrize(
    ("score", "expected"), [(0.0, 0), (0.0999, 0), (0.1, 1), (0.5, 5), (0.8999, 8), (0.9, 9), (1.0, 9)]
)
def test_a_score_on_an_edge_belongs_to_the_upper_bin_and_one_to_the_last(score: float, expected: int) -> None:
    assert space().bins(np.array([score])).tolist() == [expected]


def test_an_attribute_that_is_absent_is_a_value_of_its_own() -> None:
    assert space().raw_combination({}) == (MISSING,)


def test_an_over_long_value_is_folded() -> None:
    assert space(CellBounds(attribute_length=3)).raw_combination({"region": "north"}) == (OTHER,)


def test_a_fingerprint_shows_whether_stored_offsets_mean_the_same() -> None:
    assert space().fingerprint(16, 7.0) == space().fingerprint(16, 7.0)
    assert space().fingerprint(16, 7.0) != space().fingerprint(16, 8.0)
    assert replace(space(), classes=("cat", "dog")).fingerprint(16, 7.0) != space().fingerprint(16, 7.0)


def test_what_only_changes_tables_leaves_the_fingerprint() -> None:
    others = [space(CellBounds(attribute_values=9)), space(attributes=("region", "device"))]
    assert {other.fingerprint(16, 7.0) for other in others} == {space().fingerprint(16, 7.0)}


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
