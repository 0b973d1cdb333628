"""Decodes a batch of records in parts: as columns where their formats allow it, and else as objects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
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
        """Predictions of successive records that can be read together, in order."""
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
        for _, group in groupby(self._columnar(begin, end), _layout):
            members = list(group)
            end = begin + len(members)
            match members[0]:
                case None:
                    yield self._objects(begin, end)
                case bytes():
                    yield from self._arrow(begin, end)
                case ResponseRows():
                    rows = [each for each in members if isinstance(each, ResponseRows)]
                    counts = np.array([each.count for each in rows])
                    yield DecodedColumns.of(response_columns.join(rows), counts, begin)
            begin = end

    def _columnar(self, begin: int, end: int) -> Iterator[bytes | ResponseRows | None]:
        """Of every record the schema, if it is an Arrow stream, or its rows, if it is a response."""
        responses = [each for each in self.formats if isinstance(each, OpenInference)]
        for record, value in zip(self.records[begin:end], self.values[begin:end], strict=True):
            found: bytes | ResponseRows | None = None
            if len(value) <= self.message_bytes:
                found = schema_of(record.headers, value)
                for each in responses if found is None and value.startswith(b"{") else ():
                    found = _or_none(each.rows, record.headers, value)
            yield found

    def _arrow(self, begin: int, end: int) -> Iterator[Part]:
        """Arrow records of one schema."""
        together = _or_none(decode_columns, self.values[begin:end])
        if together is not None:
            yield DecodedColumns.of(*together, begin)
        elif end == begin + 1:
            yield self._objects(begin, end)
        else:
            for at in range(begin, end):
                yield from self._arrow(at, at + 1)

    def _objects(self, begin: int, end: int) -> DecodedRecords:
        records, values = self.records[begin:end], self.values[begin:end]
        return decode_each(records, values, self.message_bytes, self.formats).moved(begin)


def _layout(found: bytes | ResponseRows | None) -> Hashable:
    return found.layout if isinstance(found, ResponseRows) else found


def _or_none(
    decode: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result | None:
    """What a decoder to columns returns; None for records that are decoded like any other, for the reason."""
    try:
        return guarded(decode, *args, **kwargs)
    except BadMessage:
        return None
