"""Arrow streams of predictions for tests, from the fields of native messages."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

TIME = pa.timestamp("us", "UTC")


def written(table: Any, **options: Any) -> bytes:
    """A table as an IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def table_of(
    rows: Sequence[Mapping[str, Any]],
    *,
    in_dictionaries: bool = True,
    as_struct: bool = False,
    as_column: bool = False,
    floats: Any = None,
) -> Any:
    """The columns of some messages.

    Args:
        rows: the messages.
        in_dictionaries: whether classes and attributes are dictionary-encoded.
        as_struct: whether attributes are one column, a struct.
        as_column: whether the model is a column, and not in the metadata.
        floats: the type of scores and probabilities; float64 by default.
    """
    floats = floats or pa.float64()
    metadata = None if as_column else {"model": rows[0]["model"]}
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        if name == "attributes":
            columns |= _attributes([value or {} for value in values], in_dictionaries, as_struct)
        elif name == "probabilities":
            width = max(len(value or ()) for value in values)
            columns[name] = pa.array(values, pa.list_(floats, width))
        elif name == "score":
            columns[name] = pa.array(values, floats)
        elif name == "time":
            moments = [None if value is None else datetime.fromisoformat(value) for value in values]
            columns[name] = pa.array(moments, TIME)
        elif name == "payload":
            texts = [None if value is None else json.dumps(value) for value in values]
            columns[name] = pa.array(texts, pa.string())
        elif name != "model" or as_column:
            array = pa.array(values, pa.string())
            is_coded = in_dictionaries and name in ("model", "predicted_class")
            columns[name] = array.dictionary_encode() if is_coded else array
    return pa.table(columns).replace_schema_metadata(metadata)


def _attributes(rows: Sequence[Mapping[str, str]], in_dictionaries: bool, as_struct: bool) -> dict[str, Any]:
    names = dict.fromkeys(name for row in rows for name in row)
    arrays = [pa.array([row.get(name) for row in rows], pa.string()) for name in names]
    if in_dictionaries:
        arrays = [array.dictionary_encode() for array in arrays]
    if as_struct:
        return {"attributes": pa.StructArray.from_arrays(arrays, list(names))}
    return {f"attributes.{name}": array for name, array in zip(names, arrays, strict=True)}


def stream_of(batches: Sequence[Any], **options: Any) -> bytes:
    """Record batches as an IPC stream, each with the dictionaries that it has."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


class Message:
    """One message of a stream, whose metadata can be changed in place.

    Attributes:
        root: where the table of the message is in the stream.
        end: where the message ends in the stream.
        kind: of the header: 1 of a schema, 2 of a dictionary, 3 of a record batch.
        header: where the table of this is in the stream.
    """

    def __init__(self, stream: bytearray, at: int) -> None:
        self.stream = stream
        self.root = self.follow(at + 8)
        body = self.field(self.root, 3)
        length = self.number("<I", at + 4) + (self.number("<q", body) if body else 0)
        self.end = at + 8 + length
        self.kind, self.header = stream[self.field(self.root, 1)], self.child(self.root, 2)

    def number(self, kind: str, at: int) -> int:
        """The number at a place of the stream."""
        return int(struct.unpack_from(kind, self.stream, at)[0])

    def follow(self, at: int) -> int:
        """Where the offset at a place leads."""
        return at + self.number("<I", at)

    def field(self, table: int, number: int) -> int:
        """Where a field of a table is; 0 if it is absent."""
        vtable = table - self.number("<i", table)
        entry = 4 + 2 * number
        offset = self.number("<H", vtable + entry) if entry < self.number("<H", vtable) else 0
        return table + offset if offset else 0

    def child(self, table: int, number: int) -> int:
        """Where the table or list is that a field refers to."""
        return self.follow(self.field(table, number))

    def buffers(self) -> list[int]:
        """Where offset and length of every buffer of a record batch are, 16 bytes together."""
        vector = self.child(self.header, 2)
        return [vector + 4 + 16 * place for place in range(self.number("<I", vector))]


def messages(stream: bytearray) -> list[Message]:
    """All messages of a stream, without the end mark."""
    found, at = [], 0
    while at < len(stream) - 8:
        found.append(Message(stream, at))
        at = found[-1].end
    return found
