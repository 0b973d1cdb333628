"""Decodes a batch of records in parts: as columns where their formats allow it, and else as objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ParamSpec, TypeVar

import numpy as np

from consumers.formats import response_columns
from consumers.formats.arrow import schema_of
from consumers.formats.arrow_columns import decode_columns
from consumers.formats.columns import ModelColumns, Texts
from consumers.formats.decode_errors import guarded
from consumers.formats.mapped_topic import MappedTopic
from consumers.formats.messages import TopicMessages
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import DecodedRecords, Format, Formats, decode_alone, decode_each
from consumers.formats.registered_records import PlainRecords
from consumers.formats.response_columns import ResponseRows
from service.domain.arrays import Floats, Indices, Ints
from service.domain.errors import BadMessage

_FEW_PARTS = 16
_FEWEST_ROWS, _FEWEST_BYTES = 64, 4_096
"""Of a part of columns, if there are more than a few: each part costs as much as some hundred objects."""

_MOST_PIECES = 8
"""In which Arrow records of one schema are tried, if one of them must be read by itself."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class DecodedColumns:
    """Predictions of records of a columnar format; the attributes are those of `DecodedRecords`."""

    predictions: ModelColumns
    places: Indices
    elements: Indices | Sequence[None]
    errors: Sequence[tuple[int, int | None, BadMessage]] = ()

    @classmethod
    def of(cls, columns: ModelColumns, lengths: Ints, first: int) -> DecodedColumns:
        """Predictions of successive records of these lengths, the first of which has this index."""
        begins = np.cumsum(lengths) - lengths
        return cls(
            columns,
            np.repeat(np.arange(first, first + len(lengths)), lengths),
            np.arange(len(columns)) - np.repeat(begins, lengths),
        )

    def texts(self, place: int, elements: Sequence[int]) -> list[bytes]:
        """Native JSON of some rows of the record at an index."""
        first = int(np.searchsorted(self.places, place))
        return [self.predictions.native(first + element) for element in elements]

    @property
    def item_ids(self) -> Texts:
        """Of the predictions [n]."""
        return self.predictions.item_ids

    @property
    def times(self) -> Floats:
        """That the predictions claim, in seconds since the epoch; NaN where there is none [n]."""
        return self.predictions.times

    def rows_by_model(self) -> dict[str, Indices]:
        """Indices of the one model's predictions [n]."""
        return {self.predictions.model: np.arange(len(self.predictions))}


Part = DecodedRecords | DecodedColumns
"""Predictions of some of a batch's records."""


def decode_parts(records: Sequence[Any], *, message_bytes: int, formats: Formats) -> list[Part]:
    """Check the headers of a batch of records, and parse their values, of `message_bytes` at most.

    Records of a columnar format become columns, as many together as can be. Such a record of which a single
    prediction may be invalid is decoded like any other, by `decode_records`.
    """
    values = [record.value or b"" for record in records]
    if isinstance(formats, MappedTopic):
        return [decode_each(records, values, message_bytes, formats).moved(0)]
    if (decoded := decode_alone(records, values, message_bytes)) is not None:
        return [decoded.moved(0)]
    return list(_Batch(records, values, message_bytes, formats).parts())


@dataclass(frozen=True)
class _Batch:
    """Records of several formats, and their values [n]."""

    records: Sequence[Any]
    values: Sequence[bytes]
    message_bytes: int
    formats: Sequence[Format]

    def parts(self) -> Iterator[Part]:
        """Predictions of records that can be read together; those of a model are in order."""
        plain = self._plain_records()
        for begin, end in [(0, len(self.records))] if plain is None else plain.runs:
            of_run = [] if plain is None else plain.parts(begin, end)
            yield from (DecodedColumns(*part) for part in of_run)
            if not of_run:
                yield from self._in_turn(begin, end)

    def _plain_records(self) -> PlainRecords | None:
        """Those of a schema registry, if most are read as columns."""
        for each in self.formats:
            if isinstance(each, TopicMessages):
                return _or_none(
                    each.plain_records, self.records, self.values, message_bytes=self.message_bytes
                )
        return None

    def _in_turn(self, begin: int, end: int) -> Iterator[Part]:
        """Parts of successive records, each of one kind."""
        found = [self._columnar(place) for place in range(begin, end)]
        runs = _runs(found)
        if len(runs) > _FEW_PARTS:
            for first, last in runs:
                if not self._is_worth_a_part(found[first:last], begin + first, begin + last):
                    found[first:last] = [None] * (last - first)
            runs = _runs(found)
        for first, last in runs:
            rows = [each for each in found[first:last] if isinstance(each, ResponseRows)]
            columns = _or_none(response_columns.join, rows) if rows else None
            if columns is not None:
                yield DecodedColumns.of(columns, np.array([each.count for each in rows]), begin + first)
            elif found[first] is None or rows:
                yield self._objects(begin + first, begin + last)
            else:
                least_bytes = self._bytes(begin + first, begin + last) // _MOST_PIECES
                yield from self._arrow(begin + first, begin + last, least_bytes=least_bytes)

    def _columnar(self, place: int) -> bytes | ResponseRows | None:
        """The schema of an Arrow stream, or the rows of a response; None of any other record."""
        headers, value = self.records[place].headers, self.values[place]
        if len(value) > self.message_bytes:
            return None
        if (schema := schema_of(headers, value)) is not None or not value.startswith(b"{"):
            return schema
        responses = (each for each in self.formats if isinstance(each, OpenInference))
        return next((_or_none(each.rows, headers, value) for each in responses), None)

    def _bytes(self, begin: int, end: int) -> int:
        return sum(map(len, self.values[begin:end]))

    def _is_worth_a_part(self, found: Sequence[bytes | ResponseRows | None], begin: int, end: int) -> bool:
        """Whether records have so many predictions that columns cost less than objects."""
        if isinstance(found[0], ResponseRows):
            return sum(each.count for each in found if isinstance(each, ResponseRows)) >= _FEWEST_ROWS
        return self._bytes(begin, end) >= _FEWEST_BYTES

    def _arrow(self, begin: int, end: int, *, least_bytes: int) -> Iterator[Part]:
        """Parts of Arrow records of one schema: of halves, if some must be read by themselves."""
        if self._bytes(begin, end) < least_bytes:
            yield self._objects(begin, end)
        elif (together := _or_none(decode_columns, self.values[begin:end])) is not None:
            yield DecodedColumns.of(*together, begin)
        elif end == begin + 1:
            yield self._objects(begin, end)
        else:
            half = (begin + end) // 2
            yield from self._arrow(begin, half, least_bytes=least_bytes)
            yield from self._arrow(half, end, least_bytes=least_bytes)

    def _objects(self, begin: int, end: int) -> DecodedRecords:
        records, values = self.records[begin:end], self.values[begin:end]
        return decode_each(records, values, self.message_bytes, self.formats).moved(begin)


def _runs(found: Sequence[bytes | ResponseRows | None]) -> list[tuple[int, int]]:
    """Where successive records of one kind begin and end."""
    runs, begin = [], 0
    for _, members in groupby(found, lambda one: one.layout if isinstance(one, ResponseRows) else one):
        runs.append((begin, begin + len(list(members))))
        begin = runs[-1][1]
    return runs


def _or_none(
    decode: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result | None:
    """What a decoder to columns returns; None for records that are decoded like any other, for the reason."""
    try:
        return guarded(decode, *args, **kwargs)
    except BadMessage:
        return None
