"""Makes predictions of rows, and finds those that the consumer would refuse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from consumers.formats.native import WirePrediction
from consumers.formats.records import decode_records
from consumers.prediction_times import FUTURE_SECONDS
from consumers.validation import PredictionChecks
from service.app.files.columns import ATTRIBUTE, PROBABILITY, VOTE, Columns, listed
from service.app.files.prediction_columns import ALL_FIELDS, PredictionColumns, grouped_attributes
from service.app.files.records import Envelopes, Made, Models, Record, json_of
from service.app.files.rows import Row, Table, UnusableFileError
from service.config.settings import Settings
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE

_MOST_FINDINGS = 1_000
"""Rows of JSON lines may each have other columns; the columns of so many are remembered."""

_LONGEST_FINDING = 4_096
"""Of the names of a row's columns, in characters; longer ones are not remembered."""


class PredictionRows:
    """Makes the predictions of one file.

    Args:
        settings: the configuration.
        renamed: options `FIELD=COLUMN` of the command line.
        model: of rows that name none.

    Raises:
        ConfigurationError: an option is not valid.
    """

    def __init__(self, settings: Settings, *, renamed: Iterable[str], model: str | None) -> None:
        self._columns = Columns.parse(renamed, ALL_FIELDS, prefixed=True)
        self._models = Models(settings, self._columns, model)
        self._settings = settings
        self._checks = {
            name: PredictionChecks(model.classes, payload_bytes=settings.bounds.payload_bytes)
            for name, model in settings.models.items()
        }
        self._found: dict[tuple[str, tuple[str, ...] | None], PredictionColumns | BadMessage] = {}
        self._available: Sequence[str] | None = None
        self._envelopes = Envelopes(PREDICTION_TYPE)
        self._too_early = self._too_late = 0

    def used(self, available: Collection[str]) -> Collection[str]:
        """Those of the columns of a file that are read."""
        used = {self._columns.of(field) for field in ALL_FIELDS}
        used |= {column for column in self._columns.renamed.values() if column}
        for model in self._settings.models.values():
            used |= set(grouped_attributes(model))
        return {name for name in available if name in used or name.startswith((ATTRIBUTE, VOTE, PROBABILITY))}

    def column_of(self, field: str) -> str:
        """The column of a field; empty if the file says its columns, and has none of it."""
        return self._columns.in_file(field, self._available)

    def begin(self, table: Table, source: str) -> None:
        """Check the columns of the file, if it says them before its rows.

        Raises:
            UnusableFileError: a column is missing, or there twice.
        """
        self._available = table.columns
        if (available := table.columns) is None:
            return
        self._columns.check(available, source, used=self.used(available))
        item = self._columns.of("item_id")
        if item not in available:
            raise self._columns.missing_error("item_id", available, source)
        has_probabilities = self._columns.of("probabilities") in available or self._columns.of_names(
            PROBABILITY, available
        )
        for field in ("predicted_class", "score"):
            if self._columns.of(field) not in available and not has_probabilities:
                raise self._columns.missing_error(field, available, source)
        if self._models.default is not None and self._columns.of("model") not in available:
            found = self._find(self._models.default, None)
            if isinstance(found, BadMessage):
                raise UnusableFileError(source, found.detail)

    def make(self, rows: Sequence[Row], now: float) -> Iterator[tuple[Row, Made]]:
        """What each row becomes, in order; `now` in seconds since the epoch."""
        made = [self._record(row, now) for row in rows]
        records = [one for one, _ in made if isinstance(one, Record)]
        decoded = decode_records(records, message_bytes=self._settings.bounds.message_bytes, formats=())
        refused = {id(records[place]): error for place, _, error in decoded.errors}
        predictions = {
            id(records[place]): prediction
            for place, prediction in zip(decoded.places, decoded.predictions, strict=True)
        }
        for row, (one, model) in zip(rows, made, strict=True):
            if isinstance(one, BadMessage):
                yield row, one
            elif (error := refused.get(id(one))) is not None:
                yield row, error
            else:
                yield row, self._checked(one, model, predictions[id(one)], now)

    def notes(self) -> list[str]:
        """What the user should know of the file, in sentences."""
        notes = []
        if self._available is not None:
            found = [each for each in self._found.values() if isinstance(each, PredictionColumns)]
            used = set[str]().union(*(each.used for each in found)) | {self._columns.of("model")}
            if unused := [name for name in self._available if name not in used]:
                notes.append(f"columns that are not sent: {listed(unused)}")
            notes += [
                f"no column has attribute {name}; these predictions count in group __missing__"
                for name in dict.fromkeys(name for each in found for name in each.missing)
            ]
        hours = self._settings.bounds.lateness_hours
        if self._too_early:
            notes.append(
                f"{self._too_early:,} predictions are over {hours:g} h old, and count as {hours:g} h old; "
                "bounds.lateness_hours is the limit"
            )
        if self._too_late:
            notes.append(f"{self._too_late:,} predictions have a time in the future, and count as of now")
        return notes

    def _record(self, row: Row, now: float) -> tuple[Record | BadMessage, str]:
        """A record that is not checked yet, and the model that it is of."""
        if row.problem is not None:
            return row.problem, ""
        try:
            model = self._models.of(row)
            found = self._find(model, tuple(row.cells) if self._available is None else None)
            if isinstance(found, BadMessage):
                return found, model
            values = found.values(row.cells)
            value = json_of({"model": model} | values)
        except BadMessage as error:
            return error, ""
        key = values.get("item_id", "").encode()
        return Record(key, value, self._envelopes.headers(now)), model

    def _find(self, model: str, own: tuple[str, ...] | None) -> PredictionColumns | BadMessage:
        """The columns of a model's predictions: a row's own ones, or those of the whole file."""
        key = model, own
        if key in self._found:
            return self._found[key]
        found: PredictionColumns | BadMessage
        try:
            available = self._available or () if own is None else own
            found = PredictionColumns.find(self._columns, self._settings.models[model], available)
        except BadMessage as error:
            found = error
        if own is None or sum(map(len, own)) <= _LONGEST_FINDING:
            if len(self._found) >= _MOST_FINDINGS:
                self._found.clear()
            self._found[key] = found
        return found

    def _checked(self, record: Record, model: str, prediction: WirePrediction, now: float) -> Made:
        try:
            self._checks[model].check(prediction)
        except BadMessage as error:
            return error
        if prediction.time is not None:
            made_at = prediction.time.timestamp()
            self._too_early += made_at < now - self._settings.bounds.lateness_seconds
            self._too_late += made_at > now + FUTURE_SECONDS
        return record
