"""Tables: what is printed is what was measured."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from service.replay.tables import Table

TABLE = Table(
    title="predictions[v2], estimation of accuracy",
    corner="method",
    columns=("50", "100"),
    rows=[("one", (12.0, 3.0)), ("other", (7.0, None))],
    marked=frozenset(["50"]),
    notes=("5 runs.",),
)


def printed(table: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(table.rich())
    return out.getvalue()


def test_brackets_of_a_name_are_no_markup() -> None:
    assert "predictions[v2]" in printed(TABLE)


@pytest.mark.parametrize("part", ["12.00", "7.00", "5 runs.", "other"])
def test_the_terminal_shows_names_figures_and_notes(part: str) -> None:
    assert part in printed(TABLE)


def test_the_best_of_a_marked_column_is_bold_in_markdown() -> None:
    lines = TABLE.markdown().splitlines()
    assert "| one | 12.00 | 3.00 |" in lines
    assert "| other | **7.00** | - |" in lines


def test_the_document_holds_the_figures_as_they_are() -> None:
    assert TABLE.document()["rows"] == [
        {"method": "one", "50": 12.0, "100": 3.0},
        {"method": "other", "50": 7.0, "100": None},
    ]
