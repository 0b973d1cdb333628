"""Whatever a table holds, `credence init` refuses it in words, or proposes what the loader accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import uncommented

from service.app.files.rows import Row, Table, UnusableFileError
from service.app.proposal.commented_yaml import Entry, commented, document
from service.app.proposal.heading import heading
from service.app.proposal.profile import profile_rows
from service.app.proposal.propose import Proposal, Wishes, propose
from service.config.document import parse_document
from service.config.loader import settings_of
from service.domain.errors import ConfigurationError

NAMES = st.one_of(
    st.sampled_from(
        ["item_id", "predicted_class", "score", "label", "time", "probabilities", "class", "id", "yes"]
    ),
    st.sampled_from(
        ["attributes", "votes", "probability.a", "probability.b", "score_0", "score_1", "payload"]
    ),
    st.text(max_size=8),
)
VALUES = st.one_of(
    st.none(),
    st.sampled_from(
        ["a", "b", "0", "1", "0.5", "yes", "null", "2026-01-31", "[0.5, 0.5]", '{"a": "b"}', "#:"]
    ),
    st.text(max_size=5),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.lists(st.floats(0, 1), max_size=3),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    st.binary(max_size=3),
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows of any values; often with what predictions need, so that a proposal follows."""
    columns = draw(st.lists(NAMES, max_size=6, unique=True))
    rows = draw(st.lists(st.fixed_dictionaries(dict.fromkeys(columns, VALUES)), min_size=1, max_size=12))
    if draw(st.booleans()):
        classes = st.sampled_from(draw(st.lists(st.text(min_size=1, max_size=4), min_size=2, max_size=4)))
        needed = st.fixed_dictionaries({"predicted_class": classes, "score": st.floats(0, 1)})
        rows = [row | draw(needed) for row in rows]
        columns = [*dict.fromkeys([*columns, "predicted_class", "score"])]
    return columns, rows


def proposal_of(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> tuple[Proposal, str]:
    numbered = (
        Row(number, {name: cell for name, cell in row.items() if cell is not None})
        for number, row in enumerate(rows, 1)
    )
    table = Table(columns, numbered, "row")
    profile = profile_rows(table, "a file", most_rows=None, model=None, model_column="model")
    proposal = propose(profile, Wishes({}, within_days=30.0))
    return proposal, commented(
        proposal.entries, heading=heading(profile, proposal, path="a file", config="c.yaml")
    )


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_any_table_is_refused_in_words_or_becomes_a_valid_configuration(
    table: tuple[list[str], list[dict[str, Any]]],
) -> None:
    try:
        proposal, text = proposal_of(*table)
    except (ConfigurationError, UnusableFileError):
        return
    assert settings_of(parse_document(text, "text"), "text", {}) == proposal.settings
    assert uncommented(text) == []


KEYS = st.text(min_size=1, max_size=6)
COMMENTS = st.lists(st.text(min_size=1, max_size=150).filter(str.strip), min_size=1, max_size=2)
SCALARS = st.one_of(
    st.text(max_size=8), st.integers(), st.booleans(), st.none(), st.lists(st.text(max_size=4))
)


def entries(depth: int) -> st.SearchStrategy[tuple[Entry, ...]]:
    values: st.SearchStrategy[Any] = SCALARS
    if depth:
        values = st.one_of(SCALARS, entries(depth - 1))
    entry = st.builds(Entry, KEYS, values, COMMENTS)
    return st.lists(entry, min_size=1, max_size=3, unique_by=lambda each: each.key).map(tuple)


@given(entries(2), COMMENTS)
def test_commented_yaml_holds_what_its_entries_hold(
    given_entries: tuple[Entry, ...], above: list[str]
) -> None:
    text = commented(given_entries, heading=above)
    assert parse_document(text, "text").content == document(given_entries)
    assert uncommented(text) == []


@pytest.mark.parametrize("key", ["yes", "1", "null", "a: b", "#", "-", "é\u2028"])
def test_a_key_that_yaml_would_take_for_something_else_stays_text(key: str) -> None:
    assert parse_document(commented([Entry(key, 1, ["why"])], heading=["a"]), "text").content == {key: 1}
