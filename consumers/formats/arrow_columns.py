"""Rows of Arrow records as columns, without an object per row.

Records of one schema are read together, so that each costs little more than the check of its messages.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from consumers.formats.arrow_messages import check_messages
from consumers.formats.arrow_stream import ArrowRows, Dictionaries, codes_of, places_of, rows_of
from consumers.formats.columns import Coded, ModelColumns, Texts, are_exact
from consumers.formats.open_inference import MOST_WRITTEN
from service.domain.arrays import Floats, Ints
from service.domain.errors import BadMessage
from service.domain.messages import (
    LONGEST_CLASS,
    LONGEST_ITEM_ID,
    LONGEST_NAME,
    LONGEST_URI,
    MOST_ATTRIBUTES,
)

_CODE_BITS = 32


def decode_columns(values: Sequence[bytes]) -> tuple[ModelColumns, Ints] | None:
    """The rows of records that begin with the same schema, and how many each record has.

    Returns:
        None if a record has no rows, or one of them may be invalid: native JSON gives the reason.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import
    except ImportError:
        return None
    try:
        batches = _batches(pa, values)
        (batch,) = _joined(pa, [batch for of_value in batches for batch in of_value])
        dictionaries = Dictionaries()
        rows = rows_of(batch, dictionaries)
        counts = np.array([sum(batch.num_rows for batch in of_value) for of_value in batches])
        shared = np.add.reduceat(_shared_bytes(rows, dictionaries), np.cumsum(counts) - counts)
        most = MOST_WRITTEN * np.array([len(value) for value in values])
        columns = None if (shared > most).any() else _columns(rows)
    except (BadMessage, pa.ArrowException, struct.error, OSError, ValueError, OverflowError):
        return None
    return None if columns is None else (columns, counts)


def _batches(pa: Any, values: Sequence[bytes]) -> list[list[Any]]:
    """The batches of every record, checked completely.

    Raises:
        BadMessage, pyarrow.ArrowException, ValueError: a record is invalid, or must be read by itself.
    """
    for value in values:
        check_messages(value)
    found = []
    schema = pa.ipc.open_stream(values[0]).schema
    options = pa.ipc.IpcReadOptions(included_fields=places_of(pa, schema))
    for value in values:
        batches = [batch for batch in pa.ipc.open_stream(value, options=options) if batch.num_rows]
        if not batches or sum(_dictionary_bytes(pa, batch) for batch in batches) > len(value):
            raise ValueError("no rows, or columns and batches share a long dictionary")
        for batch in batches:
            # Codes within their dictionaries, offsets within the buffers, texts in UTF-8.
            batch.validate(full=True)
        found.append(batches)
    return found


def _joined(pa: Any, batches: Sequence[Any]) -> Any:
    """The one batch of the rows of all; a struct of attributes becomes a column for each.

    Raises:
        pyarrow.ArrowException: there are nulls in a dictionary, and several batches.
    """
    table = pa.Table.from_batches(batches).flatten()
    if len(batches) == 1:
        return table.to_batches()
    # Codes of all dictionaries together may need more bits than those of each.
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and field.type.index_type.bit_width < _CODE_BITS:
            wide = pa.dictionary(pa.int32(), field.type.value_type)
            table = table.set_column(at, field.with_type(wide), table.column(at).cast(wide))
    return table.unify_dictionaries().combine_chunks().to_batches()


def _dictionary_bytes(pa: Any, batch: Any) -> int:
    """Bytes of the dictionaries of all columns, which are read once for each."""
    length = 0
    for column in batch.columns:
        parts = [column]
        if pa.types.is_struct(column.type):
            column.validate()
            parts = column.flatten()
        length += sum(p.dictionary.get_total_buffer_size() for p in parts if hasattr(p, "dictionary"))
    return length


def _shared_bytes(rows: ArrowRows, dictionaries: Dictionaries) -> Ints:
    """Bytes of the texts of every row that others may share [n]: of a dictionary, the model, and names."""
    shared = np.full(rows.count, rows.shared_bytes, np.int64)
    for array, lengths in dictionaries.uses:
        shared += np.append(lengths, 0)[codes_of(array)]
    return shared


def _columns(rows: ArrowRows) -> ModelColumns | None:
    """The same rows as columns; None if one may be invalid, or they are of several models."""
    if len(rows.attributes) > MOST_ATTRIBUTES:
        return None
    model, item_ids = _model(rows), _item_ids(rows)
    classes = _coded(rows, rows.fields.get("predicted_class"))
    uris = _coded(rows, rows.fields.get("payload_uri"))
    scores, is_usable = _scores(rows)
    times, are_times = _times(rows)
    spread, is_spread = _probabilities(rows)
    attributes = {name: rows.coded(column) for name, column in rows.attributes.items()}
    payload = rows.fields.get("payload")
    if (
        model is None
        or item_ids is None
        or not (is_usable and are_times and is_spread)
        or not _are_short(classes, LONGEST_CLASS)
        or not _are_short(uris, LONGEST_URI)
        or not all(1 <= len(name) <= LONGEST_NAME for name in attributes)
        or (payload is not None and payload.null_count < rows.count)
    ):
        return None
    return ModelColumns(
        model=model,
        item_ids=item_ids,
        classes=classes,
        scores=scores,
        probabilities=spread,
        times=times,
        payload_uris=uris,
        attributes=attributes,
    )


def _model(rows: ArrowRows) -> str | None:
    """The one model of all rows; None if there are several, or it is no name."""
    column = rows.fields.get("model")
    found: set[str | None] = {rows.model}
    if column is not None:
        coded = rows.coded(column)
        found = {coded.names[code] for code in np.unique(coded.codes).tolist()}
    name = found.pop()
    return name if not found and name and len(name) <= LONGEST_NAME else None


def _item_ids(rows: ArrowRows) -> Texts | None:
    array = rows.fields.get("item_id")
    # Texts of a dictionary may be long, and repeated by every row.
    if array is None or array.null_count or hasattr(array, "dictionary"):
        return None
    data, bounds = rows.text_buffers(array)
    lengths = np.diff(bounds)
    # In bytes: an id of fewer characters may have more, and is left to the native decoder.
    if lengths.min() < 1 or lengths.max() > LONGEST_ITEM_ID:
        return None
    return Texts(data, bounds)


def _coded(rows: ArrowRows, array: Any) -> Coded:
    return Coded.missing(rows.count) if array is None else rows.coded(array)


def _are_short(texts: Coded, longest: int) -> bool:
    return all(name is None or 1 <= len(name) <= longest for name in texts.names)


def _scores(rows: ArrowRows) -> tuple[Floats, bool]:
    array = rows.fields.get("score")
    if array is None:
        return np.full(rows.count, np.nan), True
    scores: Floats = array.to_numpy(zero_copy_only=False).astype(np.float64)
    return scores, int(np.count_nonzero(~np.isfinite(scores))) == array.null_count


def _times(rows: ArrowRows) -> tuple[Floats, bool]:
    """Times in seconds, and whether all of them are exact."""
    if (found := rows.microseconds()) is None:
        return np.full(rows.count, np.nan), True
    stamps, is_missing = found
    times = np.where(is_missing, np.nan, stamps / 1e6)
    return times, are_exact(times)


def _probabilities(rows: ArrowRows) -> tuple[Floats | None, bool]:
    array = rows.fields.get("probabilities")
    if array is None:
        return None, True
    width = getattr(array.type, "list_size", 0)
    if width < 2 or array.null_count:  # noqa: PLR2004 - the fewest classes
        return None, array.null_count == rows.count
    flat = array.flatten()
    values: Floats = flat.to_numpy(zero_copy_only=False).astype(np.float64).reshape(rows.count, width)
    return values, bool(np.isfinite(values).all())
