"""Protobuf: values written by the descriptor of their message, and .proto texts, with parts changed."""

from __future__ import annotations

import re
import struct
from typing import Any

import json_mutators as mutators
from google.protobuf.descriptor import FieldDescriptor

_SELDOM = 250
_DEEPEST = 4
_INTEGERS = [0, 1, 2, 3, 7, 127, 128, 300, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]
_FLOATS = [0.5, 0.25, 0.75, 0.0, 1.0, -0.0, 1.0001, float("nan"), float("inf"), -1.0]
_TEXTS = [b"m", b"a", b"cat", b"dog", b"owl", b"north", b"{}", b"type.googleapis.com/Everything"]
_FIXED = {
    FieldDescriptor.TYPE_DOUBLE: "<d",
    FieldDescriptor.TYPE_FLOAT: "<f",
    FieldDescriptor.TYPE_FIXED64: "<Q",
    FieldDescriptor.TYPE_SFIXED64: "<q",
    FieldDescriptor.TYPE_FIXED32: "<I",
    FieldDescriptor.TYPE_SFIXED32: "<i",
}
_TOKEN = re.compile(r"\w+|[^\w\s]|\s+")
_WORDS = [
    *(
        "message",
        "enum",
        "oneof",
        "repeated",
        "optional",
        "map<string, string>",
        "group",
        "extensions 1 to max;",
    ),
    *(
        "reserved 1;",
        "import",
        "package",
        "option",
        "HasField",
        "{",
        "}",
        ";",
        "=",
        "0",
        "-1",
        "536870912",
        '"',
    ),
    *(
        "google.protobuf.Any",
        "google.protobuf.Timestamp",
        "Everything",
        "int64",
        "bytes",
        "syntax",
        "\x00",
        "\ud800",
    ),
]


def varint(number: int) -> bytes:
    """An unsigned integer."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def proto_value(chooser: mutators.Chooser, descriptor: Any, depth: int = 0) -> bytes:
    """Bytes of a message, which need not be valid."""
    parts = [
        _field(chooser, field, depth)
        for field in descriptor.fields
        for _ in range(mutators.pick(chooser, [0, 1, 1, 1, 2]))
    ]
    how = chooser.below(_SELDOM)
    if how == _SELDOM - 1:
        parts.append(_unknown(chooser))
    elif how == _SELDOM - 2:
        parts = parts * mutators.pick(chooser, [2, 50])
    elif how == _SELDOM - 3:
        parts.reverse()
    return b"".join(parts)


def proto_text(chooser: mutators.Chooser, text: str) -> str:
    """A .proto text with some of its words changed, dropped or doubled."""
    words = _TOKEN.findall(text)
    for _ in range(mutators.pick(chooser, [0, 1, 1, 2, 4])):
        at, how = chooser.below(len(words)), chooser.below(4)
        if how == 0:
            words[at] = mutators.pick(chooser, _WORDS)
        elif how == 1:
            words[at] = ""
        elif how == 2:
            words.insert(at, mutators.pick(chooser, _WORDS))
        else:
            words[at] = words[chooser.below(len(words))]
    return "".join(words)


def _field(chooser: mutators.Chooser, field: Any, depth: int) -> bytes:
    if field.type == FieldDescriptor.TYPE_GROUP:
        inner = b"" if depth > _DEEPEST else proto_value(chooser, field.message_type, depth + 1)
        return varint(field.number << 3 | 3) + inner + varint(field.number << 3 | 4)
    kind, content = _content(chooser, field, depth)
    if field.is_repeated and field.message_type is None and kind != 2 and chooser.below(2):
        content *= mutators.pick(chooser, [1, 3, 3, 100])
        kind, content = 2, varint(len(content)) + content
    if chooser.below(_SELDOM) == _SELDOM - 1:
        kind = chooser.below(8)
    return varint(field.number << 3 | kind) + content


def _content(chooser: mutators.Chooser, field: Any, depth: int) -> tuple[int, bytes]:
    """Wire type and content of a field."""
    if field.message_type is not None:
        inner = b"" if depth > _DEEPEST else proto_value(chooser, field.message_type, depth + 1)
        return 2, _delimited(chooser, inner)
    if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        how = chooser.below(64)
        text = mutators.pick(chooser, _TEXTS)
        if how >= 60:
            text = mutators.pick(chooser, mutators.NAMES).encode(errors="replace") if how > 60 else b"\xff"
        return 2, _delimited(chooser, text)
    if (layout := _FIXED.get(field.type)) is not None:
        is_float = layout[1] in "df"
        number: Any = mutators.pick(chooser, _FLOATS) if is_float else chooser.below(256)
        return 1 if layout[1] in "dqQ" else 5, struct.pack(layout, number)
    is_long = chooser.below(_SELDOM) == _SELDOM - 1
    return 0, b"\xff" * 10 + b"\1" if is_long else varint(mutators.pick(chooser, _INTEGERS))


def _delimited(chooser: mutators.Chooser, content: bytes) -> bytes:
    length = mutators.pick(chooser, _INTEGERS) if chooser.below(_SELDOM) == _SELDOM - 1 else len(content)
    return varint(length) + content


def _unknown(chooser: mutators.Chooser) -> bytes:
    """A field that no message has, of any wire type."""
    kind = chooser.below(8)
    number = mutators.pick(chooser, [0, 99, 15, 2**29 - 1, 2**29])
    content = mutators.pick(chooser, [b"", b"\x05", b"\x00" * 8, b"\x02ab", b"\xff" * 11, b"\x0b" * 300])
    return varint(number << 3 | kind) + content
