"""Records of a schema registry that can be read as columns, among those of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from consumers.formats.arrow import is_declared
from consumers.formats.avro_columns import PlainPredictions
from consumers.formats.columns import ModelColumns
from consumers.formats.decode_errors import guarded
from consumers.formats.event_headers import Headers, fits_event
from consumers.formats.native import decode_predictions
from consumers.formats.registered import PREFIX_BYTES, RegisteredValues, is_registered
from service.domain.arrays import Indices
from service.domain.errors import BadMessage

_FEWEST = 64
"""Records that are read as columns: a few are read faster one by one."""

_MOST_BYTES = 16_000_000
"""Of the values together, which are copied."""

_SAMPLED = 8
"""One in so many records is looked at, to learn which schema most of them have."""

_SHORTEST_RUN = 200
"""Records of a run of columns, on average: of shorter ones each part costs more than it saves."""

_FEW_PARTS = 16
"""Of a run and a model each; if there are more, they must have as many records as are worth a part."""

_MOST_OTHERS = 10
"""One in so many records, at most, is decoded to see whether it is refused."""

Rewrite = Callable[[Headers, bytes], bytes | None]
Error = tuple[int, int | None, BadMessage]


@dataclass(frozen=True, eq=False)
class PlainRecords:
    """Records of a batch [n] that are columns.

    Attributes:
        runs: where successive records begin and end that are all columns or refused, or of which none is.
    """

    runs: Sequence[tuple[int, int]]
    _found: PlainPredictions
    _places: Indices
    _errors: Sequence[Error]

    def parts(self, begin: int, end: int) -> list[tuple[ModelColumns, Indices, list[None], list[Error]]]:
        """Predictions of a run, by model: these, the places of their records, that none is in an array [r].

        The first one has the errors of the run; there is none if no record of it is columns.
        """
        errors = [error for error in self._errors if begin <= error[0] < end]
        found: list[tuple[ModelColumns, Indices, list[None], list[Error]]] = []
        for model, rows in self._found.rows.items():
            places = self._places[rows]
            first, last = np.searchsorted(places, (begin, end)).tolist()
            if first < last:
                columns = self._found.columns(model, rows[first:last])
                found.append((columns, places[first:last], [None] * len(columns), [] if found else errors))
        return found


def plain_records(
    registered: RegisteredValues,
    rewrite: Rewrite,
    records: Sequence[Any],
    values: Sequence[bytes],
    places: Sequence[int],
) -> PlainRecords | None:
    """Those of a batch's records that can be read as columns; None if they are too few.

    Args:
        registered: reads values.
        rewrite: gives the native JSON of a record's value.
        records: of the batch.
        values: theirs.
        places: of records that are values of one schema, and nothing else.

    Raises:
        Unavailable: the registry cannot be asked now; try again.
    """
    columns = registered.columns(values[places[0]][:PREFIX_BYTES])
    if columns is None:
        return None
    found = columns.read([values[place] for place in places], PREFIX_BYTES)
    is_settled, of_columns = np.zeros(len(values), np.bool_), np.array(places)
    for rows in found.rows.values():
        is_settled[of_columns[rows]] = True
    if np.count_nonzero(is_settled) < _FEWEST:
        return None
    others = of_columns[~is_settled[of_columns]].tolist()
    errors: list[Error] = []
    if len(others) * _MOST_OTHERS <= len(values):
        for place in others:
            if (error := _refusal(rewrite, records[place].headers, values[place])) is not None:
                errors.append((place, None, error))
                is_settled[place] = True
    bounds = [0, *(np.flatnonzero(is_settled[1:] != is_settled[:-1]) + 1).tolist(), len(values)]
    if len(bounds) - 1 > max(1, len(values) // _SHORTEST_RUN):
        return None
    if (len(bounds) - 1) * len(found.rows) > max(_FEW_PARTS, len(values) // _FEWEST):
        return None
    return PlainRecords(list(pairwise(bounds)), found, of_columns, errors)


def _refusal(rewrite: Rewrite, headers: Headers, value: bytes) -> BadMessage | None:
    try:
        [(_, found)] = decode_predictions(guarded(rewrite, headers, value) or b"")
    except BadMessage as error:
        return error
    return found if isinstance(found, BadMessage) else None


def places_of_one_schema(
    records: Sequence[Any], values: Sequence[bytes], *, message_bytes: int, event_type: str
) -> Sequence[int]:
    """Places of records that are values of the most frequent schema, and nothing else; none if too few."""
    if len(values) < _FEWEST or sum(map(len, values)) > _MOST_BYTES:
        return []
    ((prefix, _),) = Counter([value[:PREFIX_BYTES] for value in values[::_SAMPLED]]).most_common(1)
    if not is_registered(prefix) or len(prefix) < PREFIX_BYTES:
        return []
    headers = [record.headers or () for record in records]
    candidates: Sequence[int] = range(len(values))
    if any(headers) or max(map(len, values)) > message_bytes:
        candidates = [
            place
            for place, value in enumerate(values)
            if len(value) <= message_bytes
            and fits_event(headers[place], event_type)
            and not is_declared(headers[place])
        ]
    places = [place for place in candidates if values[place].startswith(prefix)]
    return places if len(places) >= _FEWEST else []
