"""docs/security.md names tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([a-z_]+/[a-z_]+\.py)::(test_[a-z0-9_]+|\*)`", PAGE)


def named_in(name: str) -> set[str]:
    """Names of the tests in a module."""
    tree = ast.parse((ROOT / "tests" / name).read_text(encoding="utf-8"))
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize(("module", "test"), sorted(set(NAMED)))
def test_every_test_that_the_page_names_is_there(module: str, test: str) -> None:
    found = named_in(module)
    assert any(name.startswith("test_") for name in found) if test == "*" else test in found


def test_every_line_of_what_nobody_can_do_names_a_test() -> None:
    at = [i for i, line in enumerate(PAGE.splitlines()) if re.match(r"\| (?:it|he) cannot \|", line)]
    assert len(at) == 5, "producer, sender, vendor, network, insider"
    for start in at:
        rows = []
        for line in PAGE.splitlines()[start + 2 :]:
            if not line.startswith("|"):
                break
            rows.append(line)
        assert rows
        assert all(".py::" in row for row in rows), rows
