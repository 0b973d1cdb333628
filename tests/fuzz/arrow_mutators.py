"""Arrow streams made of good ones: numbers of their metadata changed, and messages mixed."""

from __future__ import annotations

import struct
from functools import cache
from itertools import product
from typing import Any

import json_mutators as mutators
import pyarrow as pa
from arrow_streams import Message, stream_of, table_of

_NUMBERS = [0, 1, 2, 7, 8, 255, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, 2**60, 64, 4096]

_ROWS: list[list[dict[str, Any]]] = [
    [{"model": "m", "item_id": "a", "predicted_class": "cat", "score": 0.5}],
    [
        {
            "model": "m",
            "item_id": f"item-{number}",
            "predicted_class": "dog" if number % 2 else "cat",
            "score": 0.25 * number,
            "time": "2026-01-31T12:00:00.5+00:00" if number else None,
            "attributes": {"region": "north", "é": "x"} if number % 3 else {"device": "y"},
            "payload_uri": None if number == 2 else "s3://bucket/key",
        }
        for number in range(5)
    ],
    [
        {"model": "m", "item_id": str(n), "probabilities": [0.25, 0.75, 0.0], "payload": {"n": n}}
        for n in range(3)
    ],
    [{"model": "m", "item_id": "b", "probabilities": [0.5, 0.5, 0.0]} for _ in range(2)],
    [
        {"model": "m", "item_id": "", "predicted_class": "x" * 300, "score": float("nan")},
        {"model": "n", "item_id": None, "predicted_class": None, "score": 2.0},
        {"model": "n", "item_id": "e\u0301" * 200, "predicted_class": "", "score": None},
    ],
]


@cache
def streams() -> list[bytes]:
    """Good streams of all kinds of columns, and of bad rows."""
    found = []
    for rows, coded, as_struct, as_column in product(_ROWS, (True, False), (True, False), (True, False)):
        for floats in (pa.float64(), pa.float32(), pa.float16()):
            table = table_of(
                rows, in_dictionaries=coded, as_struct=as_struct, as_column=as_column, floats=floats
            )
            batches = table.to_batches()
            found.append(stream_of(batches))
            if floats == pa.float64():
                found.append(
                    stream_of([*batches, *table.slice(1).to_batches()] if len(rows) > 1 else batches * 2)
                )
                found += [stream_of(batches, compression="zstd")] if coded and as_column else []
    return found


@cache
def _parts() -> list[list[tuple[bytes, int]]]:
    """The messages of every good stream, each with the length of its metadata."""
    return [_parts_of(bytearray(stream)) for stream in streams()]


def _parts_of(stream: bytearray) -> list[tuple[bytes, int]]:
    found, at = [], 0
    while at < len(stream) - 8:
        one = Message(stream, at)
        found.append((bytes(stream[at : one.end]), 8 + one.number("<I", at + 4)))
        at = one.end
    return found


def arrow_stream(chooser: mutators.Chooser) -> bytes:
    """A stream; most are damaged in one or two places."""
    parts = [*mutators.pick(chooser, _parts())]
    how = chooser.below(24)
    if how == 23:
        other = mutators.pick(chooser, _parts())
        parts[chooser.below(len(parts))] = mutators.pick(chooser, other)
    elif how == 22:
        parts.insert(chooser.below(len(parts) + 1), mutators.pick(chooser, parts))
    elif how == 21:
        del parts[chooser.below(len(parts))]
    texts = [_changed(chooser, text, length) for text, length in parts]
    ending = mutators.pick(chooser, [*[b"\xff\xff\xff\xff\0\0\0\0"] * 12, b"", b"\0\0\0\0"])
    stream = b"".join(texts) + ending
    return stream[: chooser.below(len(stream) + 1)] if chooser.below(32) == 31 else stream


def _changed(chooser: mutators.Chooser, text: bytes, metadata: int) -> bytes:
    """A message with a number of its metadata, or a byte of its body, changed now and then."""
    how = chooser.below(12)
    if how < 10 or len(text) < 16:
        return text
    changed = bytearray(text)
    for _ in range(mutators.pick(chooser, [1, 1, 1, 2, 4])):
        if how == 10:
            size, layout = mutators.pick(chooser, [(1, "<B"), (2, "<H"), (4, "<I"), (8, "<Q")])
            at = 8 + chooser.below(max(1, metadata - 8))
            if at + size <= len(changed):
                number = mutators.pick(chooser, _NUMBERS) % 256**size
                struct.pack_into(layout, changed, at - at % size, number)
        else:
            changed[8 + chooser.below(len(changed) - 8)] = chooser.below(256)
    return bytes(changed)
