"""Arrow streams of predictions for tests, from the fields of native messages."""

from __future__ import annotations

import json
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
