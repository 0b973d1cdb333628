"""Checks all messages of an Arrow IPC stream that anybody may have written, before pyarrow decodes any.

Metadata is in flatbuffers, whose parts may share their bytes, and buffers may overlap in the same way. So a
short stream can describe very much, unless what it describes is compared with its length. Fields have the
numbers of Message.fbs and Schema.fbs in Arrow's "Serialization and IPC".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import lru_cache
from operator import add
from typing import Any, NamedTuple, NoReturn

import numpy as np

from service.domain.errors import BadMessage

CONTINUATION = b"\xff\xff\xff\xff"
"""The first bytes of every message."""

MOST_MESSAGES = 1_000
MOST_FIELDS = 512
_MOST_SCHEMA_BYTES = 131_072
_KNOWN_BYTES = 4_096


class _Kind(IntEnum):
    """What a message is."""

    SCHEMA, DICTIONARY_BATCH, RECORD_BATCH = 1, 2, 3


_V5 = 4
"""The metadata version since Arrow 1.0; older ones hide compression in another place."""

_Read = Callable[[bytes, int], tuple[Any, ...]]

_U8, _U16, _U32 = (struct.Struct(kind).unpack_from for kind in ("<B", "<H", "<I"))
_I16, _I32, _I64 = (struct.Struct(kind).unpack_from for kind in ("<h", "<i", "<q"))
_OFFSET_BYTES = 4


class _Message(NamedTuple):
    """What the metadata of a message says.

    Attributes:
        kind: of the message.
        body_bytes: length of its body.
        rows: of its batch.
        buffers_end: where the last of its buffers ends in the body.
        buffer_bytes: length of all buffers together.
    """

    kind: int
    body_bytes: int
    rows: int = 0
    buffers_end: int = 0
    buffer_bytes: int = 0


def check_messages(value: bytes) -> None:
    """Refuse a stream that does not end with the value, or would take much more memory than its length.

    Raises:
        BadMessage: it is such a stream.
        struct.error, ValueError: metadata ends too early.
    """
    rows = 0
    for number, message in enumerate(_messages(value)):
        if number == MOST_MESSAGES:
            _refuse(f"there are more than {MOST_MESSAGES} messages: write more rows in a batch")
        if (message.kind == _Kind.SCHEMA) != (number == 0):
            _refuse("a stream must be a schema, then dictionaries and record batches")
        # Every row has an item id, which takes a byte at least; a column of nulls takes nothing.
        if not 0 <= message.rows <= len(value):
            _refuse("there are more rows than the value has bytes")
        if max(message.buffers_end, message.buffer_bytes) > message.body_bytes:
            _refuse("buffers overlap, or lie outside of their message")
        if message.kind == _Kind.RECORD_BATCH:
            rows += message.rows
        if rows > len(value):
            _refuse("there are more rows than the value has bytes")


def _refuse(why: str) -> NoReturn:
    raise BadMessage("invalid_arrow", why)


def _messages(value: bytes) -> Iterator[_Message]:
    at = 0
    while True:
        begin = at + 8
        if len(value) < begin:
            _refuse("the stream is cut off, or was not closed")
        if not value.startswith(CONTINUATION, at):
            _refuse("a message does not begin where the one before it ends")
        length = _I32(value, at + 4)[0]
        if not length:
            break
        data = value[begin : begin + max(length, 0)]
        message = _known_message(data) if len(data) <= _KNOWN_BYTES else _message(data)
        at = begin + length + message.body_bytes
        if message.body_bytes < 0 or at > len(value):
            _refuse("the stream is cut off")
        yield message
    if begin != len(value):
        _refuse("something follows the end of the stream: write one stream in a record")


def _message(data: bytes) -> _Message:
    """What metadata says that is in order by itself."""
    message = int(_U32(data)[0])
    if _number(_I16, data, message, 0) != _V5:
        _refuse("the metadata version must be V5, that of Arrow 1.0 and later")
    if _metadata_length(data, message, 4) > len(data):
        _refuse("the metadata of a message is longer than the message")
    kind, header = _number(_U8, data, message, 1), _child(data, message, 2)
    body = _number(_I64, data, message, 3)
    match kind:
        case _Kind.SCHEMA:
            _check_schema(data)
            return _Message(kind, body)
        case _Kind.RECORD_BATCH:
            return _batch(data, kind, header, body)
        case _Kind.DICTIONARY_BATCH:
            if _number(_U8, data, header, 2):
                _refuse("dictionary deltas are not supported: write dictionaries as a whole")
            return _batch(data, kind, _child(data, header, 1), body)
    return _refuse("a stream must be a schema, then dictionaries and record batches")


_known_message = lru_cache(maxsize=256)(_message)
"""The same of short metadata, much of which comes again in the next record."""


def _check_schema(data: bytes) -> None:
    schema = _child(data, int(_U32(data)[0]), 2)
    if len(data) > _MOST_SCHEMA_BYTES:
        _refuse(f"the schema, with its metadata, is over {_MOST_SCHEMA_BYTES} bytes")
    waiting = _tables(data, schema, 1)
    texts = _metadata_length(data, schema, 2)
    fields = 0
    while waiting:
        if fields + len(waiting) > MOST_FIELDS:
            _refuse(f"there are more than {MOST_FIELDS} columns and fields in them")
        field = waiting.pop()
        fields += 1
        texts += _text_length(data, field, 0) + _metadata_length(data, field, 6)
        if texts > len(data):
            break
        waiting += _tables(data, field, 5)
    if texts > len(data):
        _refuse("the names and metadata of columns are longer than the schema")


def _batch(data: bytes, kind: int, batch: int, body: int) -> _Message:
    if _field(data, batch, 3):
        _refuse("the buffers are compressed: let the producer compress records instead")
    rows = _number(_I64, data, batch, 0)
    if not (buffers := _child(data, batch, 2)):
        return _Message(kind, body, rows)
    count = int(_U32(data, buffers)[0])
    numbers = struct.unpack_from(f"<{2 * count}q", data, buffers + 4)
    if min(numbers, default=0) < 0:
        _refuse("buffers overlap, or lie outside of their message")
    ends = map(add, numbers[::2], numbers[1::2])
    return _Message(kind, body, rows, max(ends, default=0), sum(numbers[1::2]))


def _metadata_length(data: bytes, table: int, number: int) -> int:
    """Bytes of all keys and values in a field, each counted as often as it occurs."""
    length = 0
    for pair in _tables(data, table, number):
        length += _OFFSET_BYTES + _text_length(data, pair, 0) + _text_length(data, pair, 1)
        if length > len(data):
            break
    return length


def _text_length(data: bytes, table: int, number: int) -> int:
    text = _child(data, table, number)
    return int(_U32(data, text)[0]) if text else 0


def _tables(data: bytes, table: int, number: int) -> list[int]:
    """Where the tables are that a field lists."""
    if not (vector := _child(data, table, number)):
        return []
    begin, count = vector + _OFFSET_BYTES, int(_U32(data, vector)[0])
    offsets: list[int] = np.frombuffer(data, "<u4", count, begin).tolist()
    return [begin + _OFFSET_BYTES * place + offset for place, offset in enumerate(offsets)]


def _number(read: _Read, data: bytes, table: int, number: int) -> int:
    """The integer in a field; 0 if it is absent."""
    at = _field(data, table, number)
    found: int = read(data, at)[0] if at else 0
    return found


def _field(table: bytes, at: int, number: int) -> int:
    """Where a field of a flatbuffer's table is; 0 if it is absent."""
    vtable = at - _I32(table, at)[0]
    entry = 4 + 2 * number
    if vtable < 0 or entry >= _U16(table, vtable)[0]:
        return 0
    offset: int = _U16(table, vtable + entry)[0]
    return at + offset if offset else 0


def _child(table: bytes, at: int, number: int) -> int:
    """Where the table, text or list is that a field refers to; 0 if it is absent."""
    field = _field(table, at, number)
    return field + int(_U32(table, field)[0]) if field else 0
