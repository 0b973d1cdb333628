"""The tables of docs/choosing.md are those that its command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import choosing
from benchmarks.choosing import found

PAGE = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["by_budget", "by_half_life", "by_drop"])
def test_the_page_has_the_table_that_is_computed(name: str) -> None:
    table = getattr(choosing, name)().markdown()
    assert "\n".join(line for line in table.splitlines() if line.startswith("|")) in PAGE


def test_four_times_the_budget_takes_about_two_fifths_of_the_time() -> None:
    for groups in choosing.GROUPS:
        ratio = found(groups, 200).alert.median / found(groups, 50).alert.median
        assert 0.3 <= ratio <= 0.45
