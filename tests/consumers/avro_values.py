"""Avro values of any schema for tests, written in all ways that the specification allows, and damaged."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

ENUM = {"type": "enum", "name": "Kind", "symbols": ["cat", "dog", "owl"]}
FIXED = {"type": "fixed", "name": "Four", "size": 4}
HUGE, SMALLEST = 2**63 - 1, -(2**63)

PRIMITIVES = ("boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL: tuple[dict[str, Any], ...] = (
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "unknown"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
)


def varint(number: int, *, longer: int = 0) -> bytes:
    """An integer, in more bytes than it needs if that is asked for."""
    folded = (number << 1) ^ (number >> 63)
    out = bytearray()
    while folded > 0x7F:
        out.append(folded & 0x7F | 0x80)
        folded >>= 7
    out.append(folded)
    for _ in range(longer):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def text(content: bytes) -> bytes:
    return varint(len(content)) + content


@st.composite
def numbers(draw: st.DrawFn, number: int) -> bytes:
    """An integer, now and then in more bytes than it needs."""
    return varint(number, longer=draw(st.sampled_from([0] * 90 + [1, 3, 9])))


@st.composite
def blocks(draw: st.DrawFn, items: list[bytes]) -> bytes:
    """Items of an array or a map, in one block or several, which may begin with their size."""
    at, out = 0, b""
    while at < len(items):
        count = draw(st.sampled_from([len(items)] * 29 + [1])) if len(items) > 1 else 1
        block = items[at : at + count]
        content = b"".join(block)
        if draw(RARELY):
            out += varint(-len(block)) + varint(len(content)) + content
        else:
            out += varint(len(block)) + content
        at += count
    return out + b"\0"


COMMON_TEXTS = st.text(st.sampled_from("abc7_\0é€\U0001f600"), min_size=1, max_size=9).map(str.encode)
ODD_TEXTS = st.sampled_from(
    [
        b"",
        b"dog",
        b"7",
        b"x" * 64,
        b"x" * 65,
        b"y" * 129,
        b"z" * 257,
        "ü".encode() * 128,
        b"\xff",
        b"\xe2\x82",
    ]
)
ODD_FLOATS = st.floats(width=32) | st.sampled_from([math.nan, math.inf, -math.inf])
COMMON_FLOATS = st.floats(0, 1, width=32)
LONGS = st.integers(SMALLEST, HUGE) | st.integers(-70, 70)
COMMON_TIMES = st.integers(1_700_000_000_000_000, 1_900_000_000_000_000)
ODD_TIMES = st.integers(-(10**18), 10**18)
RARELY = st.sampled_from([False] * 19 + [True])


@st.composite
def contents(draw: st.DrawFn, schema: Any) -> bytes:  # noqa: C901, PLR0911, PLR0912 - one case for each kind
    """Any value of a schema."""
    if isinstance(schema, list):
        branches = [branch for branch, kind in enumerate(schema) for _ in range(1 if kind == "null" else 4)]
        branch = draw(st.sampled_from(branches))
        return draw(numbers(branch)) + draw(contents(schema[branch]))
    kind = schema if isinstance(schema, str) else schema["type"]
    logical = "" if isinstance(schema, str) else schema.get("logicalType", "")
    match kind:
        case "null":
            return b""
        case "boolean":
            return draw(st.sampled_from([b"\0", b"\1", b"\1", b"\7"]))
        case "int" if logical == "date":
            return varint(draw(st.integers(-800_000, 3_000_000)))
        case "int" | "long":
            time = ODD_TIMES if draw(RARELY) else COMMON_TIMES
            number = draw(time) // (1 if "micros" in logical else 1_000) if logical else draw(LONGS)
            return draw(numbers(number))
        case "float":
            return struct.pack("<f", draw(ODD_FLOATS if draw(RARELY) else COMMON_FLOATS))
        case "double":
            return struct.pack("<d", draw(ODD_FLOATS if draw(RARELY) else COMMON_FLOATS))
        case "bytes":
            return text(draw(st.binary(max_size=5)))
        case "string":
            return text(draw(ODD_TEXTS if draw(RARELY) else COMMON_TEXTS))
        case "enum":
            return draw(numbers(draw(st.sampled_from([0, 1, 2] * 9 + [-1, 3]))))
        case "fixed":
            return draw(st.binary(min_size=schema["size"], max_size=schema["size"]))
        case "array":
            items = draw(st.lists(contents(schema["items"]), max_size=4))
            return draw(blocks(items))
        case "map":
            names = st.sampled_from([b"region", b"camera", b"\xc3\xbc"] * 9 + [b"", b"n" * 129])
            pairs = draw(st.lists(st.tuples(names, contents(schema["values"])), max_size=3))
            return draw(blocks([text(name) + value for name, value in pairs]))
    return b"".join([draw(contents(field["type"])) for field in schema["fields"]])


@st.composite
def or_null(draw: st.DrawFn, schema: Any) -> Any:
    """A type, or the union of it and null."""
    if isinstance(schema, list) or schema == "null":
        return schema
    return draw(st.sampled_from([schema, ["null", schema], [schema, "null"]]))


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """A schema of predictions, with other fields among those of the contract."""
    names = [f"other{number}" for number in range(draw(st.integers(0, 3)))]
    fields = [{"name": name, "type": draw(others())} for name in names]
    for name, (usual, rare) in ROLES.items():
        is_there = RARELY if name in ("payload", "votes", "probability") else st.booleans()
        if name in ("model", "item_id") or draw(is_there):
            kind = draw(st.sampled_from(rare if rare and draw(RARELY) else usual))
            field = {"name": name, "type": draw(or_null(kind))}
            if draw(RARELY):
                field = field | {"name": f"renamed_{name}", "aliases": [name, "another"]}
            fields.append(field)
    fields = draw(st.permutations(fields))
    schema = {"type": "record", "name": "Prediction", "fields": fields}
    return _with_own_names(schema, iter(range(1_000)))


def _with_own_names(schema: Any, numbers: Iterator[int]) -> Any:
    """A schema in which no two types have the same name."""
    if isinstance(schema, list):
        return [_with_own_names(branch, numbers) for branch in schema]
    if isinstance(schema, str):
        return schema
    parts = {key: _with_own_names(schema[key], numbers) for key in ("items", "values") if key in schema}
    if "fields" in schema:
        parts["fields"] = [
            field | {"type": _with_own_names(field["type"], numbers)} for field in schema["fields"]
        ]
    if "name" in schema:
        parts["name"] = f"Type{next(numbers)}"
    return schema | parts


ROLES: Mapping[str, tuple[list[Any], list[Any]]] = {
    "model": (["string", ENUM], []),
    "item_id": (["string"], [ENUM]),
    "predicted_class": (["string", ENUM], ["bytes"]),
    "score": (["double", "float"], ["long", "string"]),
    "probabilities": (
        [{"type": "array", "items": kind} for kind in ("double", "float")],
        [{"type": "array", "items": kind} for kind in ("int", ["null", "double"])],
    ),
    "attributes": (
        [
            {"type": "map", "values": "string"},
            {"type": "map", "values": ["null", "string"]},
            {"type": "map", "values": ENUM},
            {
                "type": "record",
                "name": "Attributes",
                "fields": [
                    {"name": "region", "type": "string"},
                    {"name": "camera", "type": ["string", "null"]},
                    {"name": "size", "type": ENUM},
                ],
            },
        ],
        [{"type": "map", "values": "long"}],
    ),
    "time": ([LOGICAL[0], LOGICAL[1]], [LOGICAL[2], "string", "long"]),
    "payload": ([["null", "string"], "null", ["null", "string", "bytes"]], ["string", "bytes"]),
    "payload_uri": (["string"], ["bytes"]),
    "votes": ([["null", {"type": "map", "values": "string"}]], [{"type": "map", "values": "string"}]),
    "probability": (["double"], ["string"]),
}
"""Types of the fields of the contract that columns can have, and others that somebody may use."""


@st.composite
def others(draw: st.DrawFn) -> Any:
    """The type of a field that no prediction has."""
    one = st.sampled_from([*PRIMITIVES, *PRIMITIVES, "null", ENUM, FIXED, *LOGICAL[:5]])
    if draw(RARELY):
        one = st.sampled_from([*LOGICAL, ["null", "int", "string"]])
    item = one if draw(RARELY) else st.sampled_from(PRIMITIVES)
    record = {
        "type": "record",
        "name": "Record",
        "fields": [{"name": "a", "type": draw(one)}, {"name": "b", "type": draw(one.flatmap(or_null))}],
    }
    many = [{"type": "array", "items": draw(item)}, {"type": "map", "values": draw(item)}]
    return draw(or_null(draw(one | st.sampled_from([*many, record]))))


@st.composite
def damaged(draw: st.DrawFn, value: bytes) -> bytes:
    """A value that was cut, continued or changed."""
    at = draw(st.integers(0, len(value)))
    match draw(st.integers(0, 3)):
        case 0:
            return value[:at]
        case 1:
            return value + draw(st.binary(min_size=1, max_size=3))
        case 2:
            inserted = draw(st.sampled_from(HOSTILE) | st.binary(min_size=1, max_size=3))
            return value[:at] + inserted + value[at + draw(st.integers(0, 3)) :]
    return value[:at] + draw(st.sampled_from(HOSTILE)) + value[at:]


HOSTILE = [varint(n) for n in (2**62, HUGE, SMALLEST, -1, -2, 2**31, 1_000_000, 65)] + [
    b"\xff" * 9 + b"\x02",
    b"\xff" * 10 + b"\x01",
    b"\x80" * 12 + b"\0",
    b"\x82\0",
]
