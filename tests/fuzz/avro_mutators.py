"""Avro: values written by a schema, and schemas, in which some parts are not what they should be."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import json_mutators as mutators
from json_trees import tree

_SELDOM = 250
_INTEGERS = [
    *(0, 1, 2, 3, -1, 7, 63, 64, -64, -65, 1_000, 20_489, 1_769_860_800_000, 1_769_860_800_000_000),
    *(
        2**31 - 1,
        -(2**31),
        2**31,
        2**62,
        2**63 - 1,
        -(2**63),
        2**63,
        -62_135_596_800_000,
        253_402_300_800_000,
    ),
]
_FLOATS = [0.0, 0.5, 0.25, 0.75, 1.0, -0.0, 1.0001, 1e-300, 1e300, float("nan"), float("inf"), -1.0]
_TEXTS = [b"m", b"a", b"cat", b"dog", b"owl", b"north", b"{}", b'{"a":1}', b"\xc3\xa9"]


def avro_value(chooser: mutators.Chooser, schema: Any, named: Mapping[str, Any] | None = None) -> bytes:
    """Bytes of a value of a schema, which need not be valid."""
    named = {} if named is None else named
    if chooser.below(_SELDOM) == _SELDOM - 1:
        return mutators.pick(chooser, [b"", b"\x00", b"\xff" * 10, b"\x80" * 3, b"\x01\x02\x03\x04"])
    if isinstance(schema, list):
        at = chooser.below(len(schema) + 1)
        if at == len(schema):  # mostly the last branch that is no null
            at -= 1
        branch = varint(at if chooser.below(_SELDOM) < _SELDOM - 1 else mutators.pick(chooser, _INTEGERS))
        return branch + avro_value(chooser, schema[at], named)
    if isinstance(schema, dict):
        return _complex(chooser, schema, {**named, schema.get("name", ""): schema})
    if schema in named:
        return avro_value(chooser, named[schema], named)
    return _primitive(chooser, schema)


def avro_schema(chooser: mutators.Chooser, base: Any) -> str:
    """Text of a schema like another one, with parts of it changed."""
    return tree(chooser, base, seldom=_SELDOM).decode(errors="replace")


def varint(number: int) -> bytes:
    """An integer in the zigzag encoding, of whatever length it needs."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


def _complex(chooser: mutators.Chooser, schema: Mapping[str, Any], named: Mapping[str, Any]) -> bytes:
    kind = schema["type"]
    if kind == "record":
        return b"".join(avro_value(chooser, field["type"], named) for field in schema["fields"])
    if kind == "enum":
        return varint(mutators.pick(chooser, [*[0, 1] * 20, len(schema["symbols"]), -1]))
    if kind == "fixed":
        return bytes(chooser.below(256) for _ in range(schema["size"]))
    if kind in ("array", "map"):
        return _blocks(chooser, schema, named)
    return avro_value(chooser, kind, named)


def _blocks(chooser: mutators.Chooser, schema: Mapping[str, Any], named: Mapping[str, Any]) -> bytes:
    found = b""
    for _ in range(mutators.pick(chooser, [0, 1, 1, 1, 2])):
        count = mutators.pick(chooser, [1, 2, 3, 3])
        items = [
            (_text(chooser) if schema["type"] == "map" else b"")
            + avro_value(chooser, schema.get("items", schema.get("values")), named)
            for _ in range(count)
        ]
        content = b"".join(items)
        how = chooser.below(_SELDOM)
        if how == _SELDOM - 1:
            count = mutators.pick(chooser, _INTEGERS)
        sized = chooser.below(4) == 3
        found += varint(-count) + varint(len(content)) if sized else varint(count)
        found += content
    return found + b"\0"


def _primitive(chooser: mutators.Chooser, kind: Any) -> bytes:
    if kind in ("int", "long"):
        return varint(mutators.pick(chooser, _INTEGERS))
    if kind in ("float", "double"):
        number = mutators.pick(chooser, _FLOATS)
        return struct.pack("<d", number) if kind == "double" else struct.pack("<f", min(number, 1e30))
    if kind == "boolean":
        return mutators.pick(chooser, [b"\0", b"\1"] * 20 + [b"\2"])
    return _text(chooser) if kind in ("string", "bytes") else b""


def _text(chooser: mutators.Chooser) -> bytes:
    how = chooser.below(64)
    text = mutators.pick(chooser, _TEXTS)
    if how >= 60:
        text = mutators.pick(chooser, mutators.NAMES).encode(errors="replace") if how > 60 else b"\xff"
    length = mutators.pick(chooser, _INTEGERS) if chooser.below(_SELDOM) == _SELDOM - 1 else len(text)
    return varint(length) + text
