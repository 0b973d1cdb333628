"""Name and default of the task challenge, which has no options of its own."""

from __future__ import annotations

from typing import Final

TASK: Final = "challenge"

MARGIN: Final = 0.01
"""Difference of accuracies that does not matter."""
