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
        self._starting: str | None = "starting"

    def add(self, check: Callable[[], Check]) -> None:
        """Have one more part answer."""
        self._checks.append(check)

    def started(self) -> None:
        """All parts are there; from now on their checks alone decide."""
        self._starting = None

    def checks(self) -> list[Check]:
        """The state of every part now."""
        start = [Check("process", alive=True, ready=False, state=self._starting)] if self._starting else []
        return start + [check() for check in self._checks]
