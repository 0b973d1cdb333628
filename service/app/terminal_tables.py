"""Texts and tables of the terminal, with names from messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from unicodedata import category

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

FAILED: Final = "bold red"
"""Style of what misses a target."""

_STYLE: Final[dict[str, Any]] = {
    "box": SIMPLE_HEAD,
    "padding": (0, 1, 0, 0),
    "show_edge": False,
    "title_justify": "left",
}


def text(words: str, style: str = "") -> Text:
    """Words with names from messages, with terminal control characters replaced."""
    return Text("".join("\N{REPLACEMENT CHARACTER}" if category(c)[0] == "C" else c for c in words), style)


def table(title: str, name: str, numbers: Iterable[str], texts: Iterable[str] = ()) -> Table:
    """An empty table: a column of names, then columns of numbers, then columns of text."""
    found = Table(title=f"\n{title}", **_STYLE)
    found.add_column(name, overflow="fold", min_width=8)
    for heading in numbers:
        found.add_column(heading, justify="right", no_wrap=True)
    for heading in texts:
        found.add_column(heading, min_width=12)
    return found
