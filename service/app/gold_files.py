"""Reads the files of gold items: predictions with a further column, the true class."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import Final

from consumers.formats.native import decode_prediction
from consumers.validation import PredictionChecks, payload_text
from service.app.files.cells import to_text
from service.app.files.opening import STANDARD_INPUT, format_of, open_rows
from service.app.files.prediction_rows import PredictionRows
from service.app.files.records import Record
from service.app.files.rows import BadCell, Row, UnusableFileError
from service.config.settings import Settings
from service.domain.errors import BadMessage, ConfigurationError
from service.store.records import GoldItem, PoolRecord

MOST_GOLD_ITEMS: Final = 10_000
"""Items of one file, all of which are in memory."""

_TRUE_CLASS: Final = "true_class"
_MOST_PROBLEMS: Final = 10


def read_gold(settings: Settings) -> dict[str, list[GoldItem]]:
    """The gold items of every model that has some.

    Raises:
        ConfigurationError: a file cannot be used; it names the line, and quotes nothing of it.
    """
    found: dict[str, list[GoldItem]] = {}
    problems: list[tuple[str, str]] = []
    for name, model in settings.models.items():
        if (gold := model.labels_per_item.gold) is None:
            continue
        at = f"models.{name}.labels_per_item.gold.file"
        try:
            reader = _GoldReader(settings, name, gold.file)
            found[name] = list(reader.items())
            problems += [(at, problem) for problem in reader.problems[:_MOST_PROBLEMS]]
        except UnusableFileError as error:
            problems.append((at, str(error)))
    if problems:
        raise ConfigurationError(problems)
    return found


class _GoldReader:
    """Reads one file; `problems` are those of its rows, after all `items` were read."""

    def __init__(self, settings: Settings, model: str, path: str) -> None:
        self.problems: list[str] = []
        self._bounds = settings.bounds
        self._path = path
        self._classes = settings.models[model].classes
        self._rows = PredictionRows(settings, renamed=(), model=model)
        self._checks = PredictionChecks(self._classes, payload_bytes=settings.bounds.payload_bytes)

    def items(self) -> Iterator[GoldItem]:
        """The items.

        Raises:
            UnusableFileError: the file cannot be read, or has no items or too many.
        """
        kind = format_of(self._path)
        if kind is None or self._path == STANDARD_INPUT:
            raise UnusableFileError(self._path, "the name must end with .jsonl, .csv or .parquet")
        seen = set[str]()
        row_bytes = 4 * self._bounds.message_bytes
        with open_rows(self._path, kind=kind, delimiter=",", row_bytes=row_bytes, used=self._used) as table:
            self._rows.begin(table, self._path)
            if table.columns is not None and _TRUE_CLASS not in table.columns:
                raise UnusableFileError(self._path, f"there is no column {_TRUE_CLASS}")
            for number, row in enumerate(table.rows, start=1):
                if number > MOST_GOLD_ITEMS:
                    raise UnusableFileError(self._path, f"more than {MOST_GOLD_ITEMS:,} items")
                try:
                    item = self._item(row)
                    if item.record.item_id in seen:
                        raise BadCell("item_id", "an earlier row has the same item")
                except BadMessage as error:
                    column = f"{error.column}: " if isinstance(error, BadCell) else ""
                    self.problems.append(f"{table.unit} {row.number:,}: {column}{error.detail}")
                    continue
                seen.add(item.record.item_id)
                yield item
        if not seen and not self.problems:
            raise UnusableFileError(self._path, "no items")

    def _used(self, available: Collection[str]) -> Collection[str]:
        return {*self._rows.used(available), *({_TRUE_CLASS} & {*available})}

    def _item(self, row: Row) -> GoldItem:
        ((_, made),) = self._rows.make([row], time.time())
        if isinstance(made, BadMessage):
            raise made
        if not isinstance(made, Record):
            raise TypeError(f"a prediction became {type(made).__name__}")
        if (cell := row.cells.get(_TRUE_CLASS)) is None:
            raise BadCell(_TRUE_CLASS, "it is missing", reason="missing_field")
        true_class = to_text(cell, _TRUE_CLASS)
        if true_class not in self._classes:
            raise BadCell(_TRUE_CLASS, "not a class of the model", reason="unknown_class")
        prediction = decode_prediction(made.value)
        predicted, score = self._checks.check(prediction)
        # Attributes and votes are in no request, and say nothing of who labels.
        record = PoolRecord(
            item_id=prediction.item_id,
            predicted_class=self._classes[predicted],
            score=score,
            time=0.0,
            attributes={},
            payload=payload_text(prediction.payload),
            payload_uri=prediction.payload_uri or "",
        )
        return GoldItem(record, true_class)
