"""Bad input made from good: what broken producers send, and what attackers would.

Everything is drawn through one `Chooser`, so hypothesis, a coverage-guided fuzzer and a seeded generator
all steer the same mutators, and what they find can be recognised by its bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Chooser(Protocol):
    """Where choices come from."""

    def below(self, count: int) -> int:
        """A number from 0 to count - 1."""


class Seeded:
    """Choices of a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def below(self, count: int) -> int:
        return self._rng.randrange(count)


class Scripted:
    """Choices that bytes spell out; 0 when they are used up. A fuzzer changes the bytes."""

    def __init__(self, script: bytes) -> None:
        self._script = script
        self._at = 0

    def below(self, count: int) -> int:
        size = 1 if count <= 256 else 3
        taken = self._script[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "little") % count


def pick(chooser: Chooser, options: Sequence[T]) -> T:
    return options[chooser.below(len(options))]


BASES: list[dict[str, Any]] = [
    {"model": "m", "item_id": "a", "predicted_class": "cat", "score": 0.5},
    {"model": "m", "item_id": "b", "probabilities": [0.25, 0.75, 0.0]},
    {
        "model": "n",
        "item_id": "c",
        "predicted_class": "cat",
        "score": 1,
        "attributes": {"region": "north", "device": "x"},
        "time": "2026-01-31T12:00:00Z",
        "payload": {"pixels": [[0, 1.5, None, True, "é"]]},
        "votes": {"first": "dog"},
    },
    {"model": "m", "item_id": "d", "predicted_class": "owl", "score": 0.9, "payload_uri": "s3://bucket/key"},
    {"request_id": "r-a", "model": "m", "item_id": "a", "true_class": "dog", "annotator": "ana"},
    {
        "request_id": "r-b",
        "model": "m",
        "item_id": "b",
        "kind": "skip",
        "time": "2026-01-31T12:00:00.5+05:30",
    },
    {"request_id": "r-a", "model": "m", "item_id": "a", "kind": "correction", "true_class": "owl"},
    {"request_id": "r-a", "model": "m", "item_id": "a", "kind": "retraction"},
]

KEYS = sorted({key for base in BASES for key in base} | {"colour", "", "Model", "\ufeffmodel"})

NAMES = [
    "",
    "m",
    "m" * 128,
    "m" * 129,
    "x" * 10_000,
    "{}",
    "{m}:",
    "m}{n",
    "__other__",
    "__missing__",
    "all",
    "\x00",
    "\x1b[31m",
    "a\nb\r\n# HELP evil 1\nevil 1",
    'quote" back\\slash',
    "<script>alert(1)</script>",
    "'\"><img src=x onerror=alert(1)>",
    "{{7*7}}${7*7}",
    "\u202eright\u202c",
    "\u2028",
    "\ufeff",
    "\ufffe\uffff",
    "\U0001f600" * 64,
    "e\u0301" * 100,
    "%s%n%d",
    "../../etc/passwd",
    "a b",
    "*",
    "\x7f\x80\x9f",
]
"""Text that some later consumer of a name might stumble over."""

TIMES = [
    "2026-01-31T12:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59-14:00",
    "9999-12-31T23:59:59.999999Z",
    "1970-01-01T00:00:00Z",
    "2026-01-31T12:00:00",
    "2026-01-31T23:59:60Z",
    "2026-01-31T12:00:00+23:59",
    "-2026-01-31T12:00:00Z",
    "1700000000",
]

NUMBERS = [
    b"0",
    b"1",
    b"-0",
    b"1e999999",
    b"-1e999999",
    b"1e-999999",
    b"0." + b"3" * 1_000,
    b"1" + b"0" * 10_000,
    b"1." + b"0" * 5_000 + b"1",
    b"9" * 5_000 + b"e-5000",
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"0x10",
    b"01",
    b".5",
    b"1.",
    b"+1",
    b"1e",
    b"9223372036854775808",
    b"18446744073709551616",
    b"5e-324",
    b"1.0001",
    b"1.00010001",
]

VALUES = [
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'"\\u0000"',
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b'"\x00"',
    b'"\\q"',
    b'"',
    b"[1,]",
    b"[[[[[[[[[[1]]]]]]]]]]",
    b'{"a":{"a":{"a":{"a":1}}}}',
    b'{"a":1,"a":2}',
    b"[0.5,0.5]",
    b"[0.5,null,0.5]",
    b"[0.3333333,0.3333333,0.3333334]",
    b"nul",
    b"",
]

_WRAPS: list[Callable[[bytes], bytes]] = [
    lambda text: b"\xef\xbb\xbf" + text,
    lambda text: text.decode(errors="replace").encode("utf-16"),
    lambda text: text.decode(errors="replace").encode("utf-32-le"),
    lambda text: b" \t\r\n" + text + b"\n ",
    lambda text: text + b"\x00",
    lambda text: b"\x00" + text,
    lambda text: text + text,
    lambda text: b"[" + text + b"]",
    lambda text: b"[" + text + b",]",
    lambda text: b"[[" + text + b"]]",
    lambda text: b'{"model":' + text + b"}",
    lambda text: json.dumps(text.decode(errors="replace")).encode(),
]


def deep(depth: int, kind: int) -> bytes:
    """JSON, or nearly, that is nested so deeply."""
    if kind == 0:
        return b"[" * depth + b"]" * depth
    if kind == 1:
        return b'{"a":' * depth + b"1" + b"}" * depth
    return b"[" * depth


def text_value(chooser: Chooser) -> bytes:
    """JSON of some value, or what a careless producer takes for it."""
    kind = chooser.below(8)
    if kind <= 2:
        return json.dumps(pick(chooser, NAMES), ensure_ascii=bool(chooser.below(2))).encode(errors="replace")
    if kind == 3:
        return json.dumps(pick(chooser, TIMES)).encode()
    if kind == 4:
        return pick(chooser, NUMBERS)
    if kind == 5:
        return deep(pick(chooser, [3, 200, 900, 1_100, 5_000]), chooser.below(3))
    if kind == 6:
        pairs = (
            json.dumps(pick(chooser, NAMES)).encode() + b":" + json.dumps(pick(chooser, NAMES)).encode()
            for _ in range(pick(chooser, [1, 2, 5, 65]))
        )
        return b"{" + b",".join(pairs) + b"}"
    return pick(chooser, VALUES)


def message(chooser: Chooser) -> bytes:
    """A message: a good one with some of its keys changed, dropped, doubled or added."""
    base = pick(chooser, BASES)
    parts = [(key, json.dumps(value).encode()) for key, value in base.items()]
    for _ in range(pick(chooser, [0, 0, 1, 1, 2, 4])):
        how = chooser.below(4)
        at = chooser.below(max(1, len(parts)))
        if how == 0 and parts:
            parts[at] = (parts[at][0], text_value(chooser))
        elif how == 1 and parts:
            del parts[at]
        elif how == 2:
            parts.append((pick(chooser, KEYS), text_value(chooser)))
        elif parts:
            parts.append((pick(chooser, KEYS), parts[at][1]))
    return b"{" + b",".join(json.dumps(key).encode() + b":" + text for key, text in parts) + b"}"


def value(chooser: Chooser) -> bytes:
    """A record's value: a message, an array of them, or what is left of one."""
    kind = chooser.below(10)
    if kind <= 4:
        text = message(chooser)
    elif kind <= 6:
        elements = [
            message(chooser) if chooser.below(3) else text_value(chooser)
            for _ in range(pick(chooser, [0, 1, 2, 5, 20]))
        ]
        text = b"[" + b",".join(elements) + b"]"
    elif kind == 7:
        text = (
            b"[" + b",".join([pick(chooser, [b"0", b"{}", b"null", b"[]"])] * pick(chooser, [10, 500])) + b"]"
        )
    elif kind == 8:
        text = text_value(chooser)
    else:
        text = bytes(chooser.below(256) for _ in range(chooser.below(40)))
    return damaged(chooser, text)


def damaged(chooser: Chooser, text: bytes) -> bytes:
    """Mostly the same text; sometimes cut off, with bytes changed, or wrapped in what does not belong."""
    for _ in range(pick(chooser, [0, 0, 0, 1, 1, 2])):
        how = chooser.below(6)
        at = chooser.below(len(text) + 1)
        byte = bytes([chooser.below(256)])
        if how == 0:
            text = text[:at]
        elif how == 1:
            text = text[:at] + byte + text[at + 1 :]
        elif how == 2:
            text = text[:at] + byte + text[at:]
        elif how == 3:
            text = text[:at] + text[at + 1 :]
        elif how == 4:
            end = at + chooser.below(16)
            text = text[:end] + text[at:end] + text[end:]
        else:
            text = pick(chooser, _WRAPS)(text)
    return text


HEADERS: list[tuple[str, bytes | None]] = [
    ("ce_specversion", b"1.0"),
    ("ce_specversion", b"0.3"),
    ("ce_specversion", None),
    ("ce_type", b"dev.credence.prediction.v1"),
    ("ce_type", b"dev.credence.label.v1"),
    ("ce_type", None),
    ("ce_type", b"\xff"),
    *[("ce_time", time.encode()) for time in TIMES],
    ("ce_time", b"\xff\xfe"),
    ("ce_time", b""),
    ("ce_time", None),
    ("ce_time", b"2" * 10_000),
    ("credence-reason", b"spoofed"),
    ("", b""),
    ("\x00", b"\x00"),
    ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
]

TIMESTAMPS_MS = [1_800_000_000_000, 1_799_999_999_999, 0, -1, -(2**63), 2**63 - 1, 1, 253_402_300_800_000]


def headers(chooser: Chooser) -> list[tuple[str, bytes | None]]:
    """Headers of a record; most have none."""
    return [pick(chooser, HEADERS) for _ in range(pick(chooser, [0, 0, 0, 1, 1, 3]))]


def timestamp_ms(chooser: Chooser) -> int:
    """A record's timestamp; most are plausible."""
    return pick(chooser, TIMESTAMPS_MS) if chooser.below(4) == 0 else TIMESTAMPS_MS[0]
