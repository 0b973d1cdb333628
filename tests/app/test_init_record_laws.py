"""Whatever the records of a topic hold, `credence init` refuses them in words, or maps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import Init

NAMES = st.one_of(
    st.sampled_from(["id", "label", "score", "ts", "probs", "model", "output", "a b", "it's", "$", "é"]),
    st.text(max_size=4),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(0, 1),
    st.integers(),
    st.sampled_from([10**400, 1_769_860_800, 1_769_860_800_000, "1769860800", "2026-01-31T12:00:00Z", "cat"]),
    st.text(max_size=5),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def records(draw: st.DrawFn) -> list[Any]:
    """Records with what a mapping needs, of which anything may be replaced, and further fields."""
    found: list[Any] = []
    for number in range(draw(st.integers(1, 12))):
        needed = {"id": f"i{number}", "label": draw(st.sampled_from(["cat", "dog"])), "score": 0.9}
        found.append(draw(st.one_of(st.just(needed), VALUES)))
        if isinstance(found[-1], dict):
            found[-1] = found[-1] | draw(st.dictionaries(NAMES, VALUES, max_size=2))
    return found


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(found=records())
def test_any_records_end_in_a_mapping_that_is_valid_or_in_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], found: list[Any]
) -> None:
    init = Init(tmp_path, capsys)
    path = tmp_path / "records.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in found), encoding="utf-8")
    # A configuration is read back before it is printed.
    proposed = init(path, "--topic", "scores")
    assert proposed.code in {0, 1, 2}
    assert bool(proposed.text) == (proposed.code == 0)
    assert proposed.error.startswith("credence: ") or not proposed.error
