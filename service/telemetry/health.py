"""Health of this process, in fixed words that are safe to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One part's health.

    Attributes:
        name: of the part.
        alive: if not, the process must be restarted.
        ready: whether the part does its work now.
        state: a fixed word for people, never the text of an error.
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
        self._models: Callable[[], Mapping[str, str]] = dict

    def add(self, check: Callable[[], Check]) -> None:
        """Add the check of a part."""
        self._checks.append(check)

    def report_models(self, statuses: Callable[[], Mapping[str, str]]) -> None:
        """Report the status of models, by name, too. It decides nothing: a sick model is no sick process."""
        self._models = statuses

    def models(self) -> Mapping[str, str]:
        """The status of every model that this process watches."""
        return self._models()

    def started(self) -> None:
        """All parts have started; from now on only their checks decide."""
        self._passing = None

    def stopping(self) -> None:
        """The process stops: it is not ready from now on, but answers to the end."""
        self._passing = "stopping"

    def checks(self) -> list[Check]:
        """The state of every part now."""
        passing = self._passing
        own = [Check("process", alive=True, ready=False, state=passing)] if passing else []
        return own + [check() for check in self._checks]
