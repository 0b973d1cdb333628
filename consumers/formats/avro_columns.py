"""Values of Avro as columns, many at a time, without an object for each.

A value of which anything is unusual is given up, and decoded like any other record: so both ways accept the
same predictions, and refuse them for the same reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consumers.formats.avro_fields import FieldReaders
from consumers.formats.avro_rows import Lists, NotPlainError, Read
from consumers.formats.avro_scan import Scan
from consumers.formats.columns import Coded, ModelColumns
from service.domain.arrays import Floats, Indices
from service.domain.messages import LONGEST_CLASS, LONGEST_ITEM_ID, LONGEST_NAME, LONGEST_URI

_FEWEST_ROWS = 20
"""Of a model: columns of fewer cost more than objects."""

_READERS: Mapping[str, Callable[[FieldReaders, Any], Read]] = {
    "model": lambda readers, schema: readers.text(schema, 1, LONGEST_NAME),
    "item_id": lambda readers, schema: readers.item_id(schema, LONGEST_ITEM_ID),
    "predicted_class": lambda readers, schema: readers.text(schema, 1, LONGEST_CLASS),
    "score": lambda readers, schema: readers.number(schema),
    "probability": lambda readers, schema: readers.number(schema),
    "probabilities": lambda readers, schema: readers.floats(schema),
    "attributes": lambda readers, schema: readers.attributes(schema),
    "time": lambda readers, schema: readers.time(schema),
    "payload": lambda readers, schema: readers.nothing(schema),
    "payload_uri": lambda readers, schema: readers.text(schema, 1, LONGEST_URI),
    "votes": lambda readers, schema: readers.nothing(schema),
}
"""How the fields are read to which the other decoder pays attention."""

_NEEDED = ("model", "item_id")
_UNREAD = frozenset({"prediction"})
"""A record to which the other decoder pays attention, although no prediction has it."""


@dataclass(frozen=True, eq=False)
class PlainPredictions:
    """What could be read of some values [n].

    Attributes:
        rows: by model, indices of the values that are plainly valid [r].
    """

    rows: Mapping[str, Indices]
    _scan: Scan
    _found: Mapping[str, Any]

    def columns(self, model: str, rows: Indices) -> ModelColumns:
        """Some of a model's rows [r]."""
        found, count = self._found, len(self._scan.is_plain)
        missing, unknown = Coded.missing(count), np.full(count, np.nan)
        begins, lengths = found["item_id"]
        attributes: Mapping[str, Coded] = found.get("attributes", {})
        return ModelColumns(
            model=model,
            item_ids=self._scan.texts(rows, (begins[rows], lengths[rows])),
            classes=_some(found.get("predicted_class", missing), rows),
            scores=found.get("score", unknown)[rows],
            probabilities=_matrix(self._scan, found.get("probabilities"), rows),
            times=found.get("time", unknown)[rows],
            payload_uris=_some(found.get("payload_uri", missing), rows),
            attributes={name: _some(column, rows) for name, column in attributes.items()},
        )


class AvroColumns:
    """Reads values of one schema.

    Args:
        schema: of a record, as fastavro has parsed it.
        named: types that have names, in it and in what it refers to.
        logical: kinds with a logical type that fastavro converts, such as `int-date`.

    Raises:
        NotPlainError: no value of it can be read so.
    """

    def __init__(self, schema: Any, named: Mapping[str, Any], logical: Container[str]) -> None:
        readers = FieldReaders(named, logical)
        self._readers: list[tuple[str, Read]] = []
        for field, roles in _fields(schema):
            readers.note(field["name"], len(field.get("aliases") or ()))
            if len(roles) > 1 or not _UNREAD.isdisjoint(roles):
                raise NotPlainError
            make = _READERS[roles[0]] if roles else FieldReaders.skip
            self._readers.append((roles[0] if roles else "", make(readers, field["type"])))
        if not {role for role, _ in self._readers}.issuperset(_NEEDED):
            raise NotPlainError

    def read(self, values: Sequence[bytes], begin: int) -> PlainPredictions:
        """What is in values, each of which is longer than `begin`, where it begins."""
        scan = Scan(values, begin)
        found = {role: read(scan, None) for role, read in self._readers}
        scan.texts(None, found["item_id"])
        scan.finish()
        rows = _rows_by_model(scan, found["model"], found.get("probabilities"))
        return PlainPredictions(rows, scan, found)


def _fields(schema: Any) -> list[tuple[Any, list[str]]]:
    """The fields of a record, each with the names under which the other decoder uses it."""
    if not isinstance(schema, dict) or schema["type"] != "record":
        raise NotPlainError
    fields = schema["fields"]
    place_of = {field["name"]: place for place, field in enumerate(fields)}
    if len(place_of) < len(fields):
        raise NotPlainError
    for place, field in enumerate(fields):
        for alias in field.get("aliases") or ():
            place_of.setdefault(alias, place)
    used = _READERS.keys() | _UNREAD
    return [
        (field, [name for name in used if place_of.get(name) == place]) for place, field in enumerate(fields)
    ]


def _rows_by_model(scan: Scan, models: Coded, lists: Lists | None) -> dict[str, Indices]:
    """The plain rows of models that have some, all of which have as many probabilities."""
    plain = np.flatnonzero(scan.is_plain)
    rows_of: dict[str, Indices] = {}
    for code, count in zip(*np.unique(models.codes[plain], return_counts=True), strict=True):
        if count < _FEWEST_ROWS or (model := models.names[code]) is None:
            continue
        rows = plain if count == len(plain) else plain[models.codes[plain] == code]
        if lists is not None:
            widths, counts = np.unique(lists.counts[rows], return_counts=True)
            rows = rows[lists.counts[rows] == widths[counts.argmax()]]
            if (matrix := _matrix(scan, lists, rows)) is not None:
                rows = rows[np.isfinite(matrix).all(axis=1)]
        rows_of[model] = rows
    return rows_of


def _matrix(scan: Scan, lists: Lists | None, rows: Indices) -> Floats | None:
    """The lists of some rows, which are equally long; None if they have none."""
    width = 0 if lists is None or not len(rows) else int(lists.counts[rows[0]])
    return scan.matrix(lists.begins[rows], lists.size, width) if lists and width else None


def _some(texts: Coded, rows: Indices) -> Coded:
    return Coded(texts.names, texts.codes[rows])
