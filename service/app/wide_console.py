"""The console of commands whose output may go to a file or another program."""

from __future__ import annotations

import os
from typing import Final

from rich.console import Console

_UNBOUNDED: Final = 1_000
"""Columns: more than any table has."""


def wide_console() -> Console:
    """A console as wide as the terminal, or as COLUMNS says; without either, nothing is wrapped."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNBOUNDED
    return console
