"""What this process knows of its own health, as fixed words that are safe to show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One part's health.

    Attributes:
        name: of the part.
        alive: whether it still turns; a process that does not is to be restarted.
        ready: whether it does its work now.
        state: a fixed word for people, never an error's text.
    """

    name: str
    alive: bool
    ready: bool
    state: str


class Health:
    """All checks of one process."""

    def __init__(self) -> None:
        self._checks: list[Callable[[], Check]] = []
        self._passing: str | None = "starting"

    def add(self, check: Callable[[], Check]) -> None:
        """Have one more part answer."""
        self._checks.append(check)

    def started(self) -> None:
        """All parts are there; from now on their checks alone decide."""
        self._passing = None

    def stopping(self) -> None:
        """It takes on nothing new: not ready from now on, though it answers to the end."""
        self._passing = "stopping"

    def checks(self) -> list[Check]:
        """The state of every part now."""
        passing = self._passing
        own = [Check("process", alive=True, ready=False, state=passing)] if passing else []
        return own + [check() for check in self._checks]
