"""Reads an Arrow IPC stream that anybody may have written: checked completely before anything is used."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.domain.arrays import Bytes, Flags, Ints
from service.domain.errors import BadMessage

ATTRIBUTE_PREFIX = "attributes."
_FIELDS = ("model", "item_id", "predicted_class", "payload", "payload_uri", "score", "probabilities", "time")
_TEXTS = frozenset(_FIELDS[:5])

_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2
_U16, _U32, _I32, _I64 = (struct.Struct(kind).unpack_from for kind in ("<H", "<I", "<i", "<q"))


@dataclass(frozen=True, eq=False)
class ArrowRows:
    """The rows of a stream, whose buffers were checked.

    Attributes:
        count: of the rows.
        model: from the metadata of the schema, if it is there.
        fields: pyarrow's arrays by field of a prediction [n] each.
        attributes: the same by attribute.
    """

    count: int
    model: str | None
    fields: Mapping[str, Any]
    attributes: Mapping[str, Any]

    def text_buffers(self, array: Any) -> tuple[Bytes, Ints]:
        """The bytes of an array of texts without nulls, and where each begins and the last ends [n + 1]."""
        import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import

        if not array.type.equals(pa.string()):
            array = array.cast(pa.string())
        _, bounds, data = array.buffers()
        offsets = np.frombuffer(bounds, np.int32, self.count + 1, 4 * array.offset).astype(np.int64)
        return np.frombuffer(data or b"", np.uint8), offsets

    def microseconds(self) -> tuple[Ints, Flags] | None:
        """Times since the epoch, and which are missing [n] each; None without a column of timestamps."""
        import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import

        array = self.fields.get("time")
        if array is None or not pa.types.is_timestamp(array.type):
            return None
        stamps = array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.int64())
        is_missing: Flags = stamps.is_null().to_numpy(zero_copy_only=False)
        return stamps.fill_null(0).to_numpy(), is_missing


def read_stream(value: bytes) -> ArrowRows:
    """The rows of a record's value.

    Raises:
        BadMessage: pyarrow is not installed, the value is no valid stream, or a column has a wrong type.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import
    except ImportError:
        raise BadMessage(
            "arrow_not_installed", "reading Arrow needs pyarrow; run: pip install 'credence[arrow]'"
        ) from None
    try:
        _check_messages(pa.ipc.MessageReader.open_stream(value), len(value))
        table = pa.ipc.open_stream(value).read_all()
        # Offsets within the buffers, codes within their dictionaries, texts in UTF-8.
        table.validate(full=True)
        table = table.combine_chunks()
        return _rows(pa, table)
    except (pa.ArrowException, struct.error, OSError, ValueError, OverflowError) as error:
        # Its message may quote content.
        raise BadMessage("invalid_arrow", f"not a valid Arrow IPC stream ({type(error).__name__})") from None


def _check_messages(messages: Any, value_bytes: int) -> None:
    """Refuse what takes much more memory than its length."""
    rows = 0
    for message in messages:
        data = message.metadata.to_pybytes()
        root = _U32(data)[0]
        kind, batch = _field(data, root, 1), _child(data, root, 2)
        is_dictionary = bool(kind) and data[kind] == _DICTIONARY_BATCH
        if not kind or data[kind] not in (_RECORD_BATCH, _DICTIONARY_BATCH):
            continue
        if is_dictionary:
            batch = _child(data, batch, 1)
        if _field(data, batch, 3):
            raise BadMessage(
                "invalid_arrow", "the buffers are compressed: let the producer compress records instead"
            )
        at = _field(data, batch, 0)
        length = _I64(data, at)[0] if at else 0
        rows += 0 if is_dictionary else length
        # Every row has an item id, which takes a byte at least; a column of nulls takes nothing.
        if not 0 <= length <= value_bytes or rows > value_bytes:
            raise BadMessage("invalid_arrow", "there are more rows than the value has bytes")


def _field(table: bytes, at: int, number: int) -> int:
    """Where a field of a flatbuffer's table is; 0 if it is absent.

    Fields have the numbers of Message.fbs in Arrow's "Serialization and IPC".
    """
    vtable = at - _I32(table, at)[0]
    entry = 4 + 2 * number
    if vtable < 0 or entry >= _U16(table, vtable)[0]:
        return 0
    offset: int = _U16(table, vtable + entry)[0]
    return at + offset if offset else 0


def _child(table: bytes, at: int, number: int) -> int:
    """Where the table is that a field refers to; 0 if it is absent."""
    field = _field(table, at, number)
    return field + int(_U32(table, field)[0]) if field else 0


def _rows(pa: Any, table: Any) -> ArrowRows:
    fields: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        if name in _FIELDS:
            _add(fields, name, array, name)
        elif name == "attributes" and pa.types.is_struct(array.type):
            for child, values in zip(array.type, array.flatten(), strict=True):
                _add(attributes, child.name, values, "attributes")
        elif name == "attributes":
            raise _type_error("attributes", "a struct of utf8, or columns attributes.<name>")
        elif name.startswith(ATTRIBUTE_PREFIX):
            _add(attributes, name.removeprefix(ATTRIBUTE_PREFIX), array, "attributes")
    _check_types(pa, fields, attributes)
    model = (table.schema.metadata or {}).get(b"model")
    return ArrowRows(table.num_rows, None if model is None else model.decode(), fields, attributes)


def _add(found: dict[str, Any], name: str, array: Any, where: str) -> None:
    if name in found:
        raise BadMessage("invalid_arrow", f"{where}: two columns have the same name")
    found[name] = array


def _check_types(pa: Any, fields: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
    types = pa.types
    for name, array in [*fields.items(), *(("attributes", each) for each in attributes.values())]:
        kind = array.type
        if name in _TEXTS or name == "attributes":
            kind = kind.value_type if types.is_dictionary(kind) else kind
            if not (types.is_string(kind) or types.is_large_string(kind)):
                raise _type_error(name, "utf8, or a dictionary of utf8")
        elif name == "score" and not types.is_floating(kind):
            raise _type_error(name, "a float")
        elif name == "time" and not (types.is_timestamp(kind) and kind.tz):
            raise _type_error(name, "a timestamp with a time zone")
        elif name == "probabilities" and not (
            (types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))
            and types.is_floating(kind.value_type)
        ):
            raise _type_error(name, "a fixed-size list of floats")


def _type_error(name: str, expected: str) -> BadMessage:
    return BadMessage("invalid_arrow", f"{name}: the type must be {expected}")
