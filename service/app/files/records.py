"""Records of Kafka that are made from rows, and what rows of both kinds have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any, Protocol
from uuid import uuid4

import msgspec

from service.app.files.cells import to_text
from service.app.files.columns import Columns
from service.app.files.rows import BadCell, Row, Table
from service.config.settings import Settings
from service.domain.errors import BadMessage, misuse
from service.domain.messages import cloudevents_headers

_SOURCE = "/credence/files"


@dataclass(frozen=True)
class Record:
    """One record, as Kafka is to have it.

    Attributes:
        unrequested: whether it is a label without a request.
        beside: the same label without a request, which is sent too.
    """

    key: bytes
    value: bytes
    headers: Sequence[tuple[str, bytes]]
    unrequested: bool = False
    beside: Record | None = None


@dataclass(frozen=True)
class NotRequested:
    """The label of a row that nobody has requested."""


Made = Record | BadMessage | NotRequested
"""What a row becomes."""


class RowMaker(Protocol):
    """Makes records of rows."""

    def used(self, available: Collection[str]) -> Collection[str]:
        """Those of the columns of a file that are read."""

    def column_of(self, field: str) -> str:
        """The column of a field; empty if the file says its columns, and has none of it."""

    def begin(self, table: Table, source: str) -> None:
        """Check the columns of the file, if it says them before its rows.

        Raises:
            UnusableFileError: a column is missing.
        """

    def make(self, rows: Sequence[Row], now: float) -> Iterator[tuple[Row, Made]]:
        """What each row becomes, in order; `now` in seconds since the epoch.

        Raises:
            Unavailable: Redis is needed, and does not answer.
        """

    def notes(self) -> list[str]:
        """What the user should know of the file, in sentences."""


class Envelopes:
    """Makes the headers of records; each has an id of its own."""

    def __init__(self, event_type: str) -> None:
        self._event_type = event_type
        self._run = uuid4().hex
        self._numbers = count(1)

    def headers(self, now: float) -> list[tuple[str, bytes]]:
        """CloudEvents headers of one record that is sent now."""
        return cloudevents_headers(
            event_type=self._event_type,
            event_id=f"{self._run}-{next(self._numbers)}",
            source=_SOURCE,
            time=datetime.fromtimestamp(now, UTC),
        )


class Models:
    """Which model a row is of: the one that it names, else that of the command line, else the only one.

    Raises:
        ConfigurationError: the command line names a model that is not configured.
    """

    def __init__(self, settings: Settings, columns: Columns, model: str | None) -> None:
        if model is not None and model not in settings.models:
            known = ", ".join(sorted(settings.models))
            raise misuse(model, f"unknown model; configured: {known}")
        self._models = settings.models
        self._column = columns.of("model")
        self._given = model
        self.default = model or (next(iter(settings.models)) if len(settings.models) == 1 else None)

    def of(self, row: Row) -> str:
        """Name of the model of a row.

        Raises:
            BadMessage: the row names none, one that is not configured, or another one than the command line.
        """
        column = self._column or "model"
        cell = None if self._column is None else row.cells.get(self._column)
        if cell is None:
            if self.default is None:
                raise BadCell(column, "the row names no model; say --model", reason="missing_field")
            return self.default
        name = to_text(cell, column)
        if self._given is not None and name != self._given:
            raise BadCell(column, "the row is of another model than --model", reason="other_model")
        if name not in self._models:
            raise BadCell(column, "the configuration has no model of this name", reason="unknown_model")
        return name


def json_of(fields: Mapping[str, Any]) -> bytes:
    """JSON of a message, without fields that are missing."""
    return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})
