"""Reads the estimates of a trial from the API that its status page uses."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

from service.demo.metrics import fetch
from service.serving.documents.group_measures import GroupState
from service.serving.documents.groups import GroupTable
from service.serving.documents.models import ModelState
from service.serving.web.api import API_PATH

_MOST_AT_ONCE: Final = 1_000


class Readings:
    """Estimates of one model of a Credence on this machine.

    Args:
        port: of the status page.
        model: its name.
    """

    def __init__(self, port: int, model: str) -> None:
        self._port = port
        self._path = f"{API_PATH}/models/{quote(model)}"

    def state(self) -> ModelState | None:
        """The latest state of the model; None before the first round."""
        text = self._read(self._path)
        return None if text is None else ModelState.model_validate_json(text)

    def groups(self, grouping: str) -> list[GroupState]:
        """All groups of a grouping, by name; none before it has traffic."""
        found: list[GroupState] = []
        while True:
            query = urlencode(
                {
                    "grouping": grouping,
                    "sort": "group",
                    "order": "asc",
                    "limit": _MOST_AT_ONCE,
                    "offset": len(found),
                }
            )
            text = self._read(f"{self._path}/groups?{query}")
            if text is None:
                return found
            table = GroupTable.model_validate_json(text)
            found += table.groups
            if len(found) >= table.total or not table.groups:
                return found

    def _read(self, path: str) -> str | None:
        return fetch(self._port, path, accept="application/json")
