"""Readers of the fields of an Avro schema, for many values at once: what a field is, or that it is skipped.

A reader moves a scan behind its field in some rows, and returns what is there. It gives up rows about which
there may be more to say than a column can.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from consumers.formats.avro_rows import Lists, NotPlainError, Read, items, named_texts, optional
from consumers.formats.avro_scan import Rows, Scan, subset
from consumers.formats.columns import EXACT_SECONDS, Coded
from service.domain.arrays import Floats, Ints
from service.domain.messages import LONGEST_NAME, MOST_ATTRIBUTES

_MOST_ALIASES = 2
_MOST_FIELDS = 250
_MOST_TEXT = 16_000
_TEXT_OF_NUMBER = 40
"""Characters that a value may take as JSON with all names and symbols, besides those for its bytes.

With these bounds a value never becomes as much longer as the other decoder allows: its JSON has at most 12
characters for a byte, each alias repeats it, and 64 KiB or 64 times its length are allowed.
"""

_INT, _LONG = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
_MILLIS, _MICROS = ((-EXACT_SECONDS * unit, EXACT_SECONDS * unit) for unit in (1_000, 1_000_000))
"""Of times: those that are exact as seconds."""

_RANGES = {
    "long-timestamp-millis": _MILLIS,
    "long-timestamp-micros": _MICROS,
    "long-local-timestamp-millis": _MILLIS,
    "long-local-timestamp-micros": _MICROS,
    "int-date": (-700_000, 2_900_000),
}
_MICROSECONDS = {"long-timestamp-millis": 1_000, "long-timestamp-micros": 1}
_TYPES = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
    | {"record", "error", "enum", "array", "map", "fixed"}
)
_SIZES = {"boolean": 1, "float": 4, "double": 8}


class FieldReaders:
    """Makes readers for parts of one schema.

    Args:
        named: the types that have names.
        logical: kinds with a logical type that fastavro converts, such as `int-date`.
    """

    def __init__(self, named: Mapping[str, Any], logical: Container[str]) -> None:
        self._named = named
        self._logical = logical
        self._text = self._fields = 0
        self._copies = 1

    def note(self, name: str, aliases: int = 0) -> None:
        """Count a field that is written as JSON with its name.

        Raises:
            NotPlainError: there are too many, or they are too long.
        """
        self._fields += 1
        self._copies = max(self._copies, 1 + aliases)
        if self._fields > _MOST_FIELDS or aliases > _MOST_ALIASES:
            raise NotPlainError
        self._add_text(6 * len(name) + _TEXT_OF_NUMBER)

    def _add_text(self, characters: int) -> None:
        self._text += characters
        if self._text * self._copies > _MOST_TEXT:
            raise NotPlainError

    def text(self, schema: Any, fewest: int, most: int) -> Read:
        """Reads texts of so many characters, or symbols: `Coded`, with None where there is none."""
        kind, schema = self._resolved(schema)
        if kind == "string":
            return lambda scan, rows: scan.coded(rows, fewest, most)
        if kind == "enum":
            symbols = self._symbols(schema)
            if not all(fewest <= len(symbol or "") <= most for symbol in symbols):
                raise NotPlainError
            return lambda scan, rows: Coded(symbols, scan.longs(rows, 0, len(symbols) - 1))
        return optional(schema, lambda inner: self.text(inner, fewest, most))

    def item_id(self, schema: Any, most_bytes: int) -> Read:
        """Reads texts that are all different: where they begin, and how long they are [r]."""
        kind, schema = self._resolved(schema)
        if kind != "string":
            return optional(schema, lambda inner: self.item_id(inner, most_bytes), is_required=True)

        def read(scan: Scan, rows: Rows) -> tuple[Ints, Ints]:
            begins, lengths = scan.spans(rows)
            scan.refuse(rows, (lengths < 1) | (lengths > most_bytes))
            return begins, lengths

        return read

    def number(self, schema: Any) -> Read:
        """Reads finite numbers [r]; NaN where there is none."""
        kind, schema = self._resolved(schema)
        if kind in ("float", "double"):

            def read(scan: Scan, rows: Rows) -> Floats:
                found = scan.reals(rows, _SIZES[kind])
                scan.refuse(rows, ~np.isfinite(found))
                return found

            return read
        return optional(schema, self.number)

    def time(self, schema: Any) -> Read:
        """Reads times, in seconds since the epoch [r]; NaN where there is none."""
        kind, schema = self._resolved(schema)
        if kind in _MICROSECONDS:
            per_unit, (lowest, highest) = _MICROSECONDS[kind], _RANGES[kind]
            return lambda scan, rows: scan.longs(rows, lowest, highest) * per_unit / 1e6
        return optional(schema, self.time)

    def floats(self, schema: Any) -> Read:
        """Reads lists of two floats or more: `Lists`."""
        kind, schema = self._resolved(schema)
        if kind != "array":
            return optional(schema, self.floats)
        item, _ = self._resolved(schema["items"])
        if item not in ("float", "double"):
            raise NotPlainError
        size = _SIZES[item]

        def read(scan: Scan, rows: Rows) -> Lists:
            counts = scan.longs(rows, 0, scan.total_bytes)
            scan.refuse(rows, counts < 2)  # noqa: PLR2004 - the fewest classes
            begins, counts = scan.run(rows, counts, size)
            scan.end_of_blocks(rows)
            return Lists(begins, counts, size)

        return read

    def nothing(self, schema: Any) -> Read:
        """Accepts null alone."""
        kind, schema = self._resolved(schema)
        if kind == "null":
            return _read_null
        if not isinstance(schema, list) or "null" not in schema:
            raise NotPlainError
        place = schema.index("null")
        return lambda scan, rows: scan.longs(rows, place, place)

    def attributes(self, schema: Any) -> Read:
        """Reads texts by name: a mapping to `Coded`, with None where there is none."""
        kind, schema = self._resolved(schema)
        if kind == "map":
            before = self._text
            values = self.text(schema["values"], 0, _LONG[1])
            self._add_text((MOST_ATTRIBUTES - 1) * (self._text - before))
            return lambda scan, rows: named_texts(scan, rows, values)
        if kind != "record":
            return optional(schema, self.attributes)
        readers = {}
        for field in schema["fields"]:
            self.note(field["name"])
            readers[field["name"]] = self.text(field["type"], 0, _LONG[1])
        if not all(1 <= len(name) <= LONGEST_NAME for name in readers) or len(readers) > MOST_ATTRIBUTES:
            raise NotPlainError
        return lambda scan, rows: {name: read(scan, rows) for name, read in readers.items()}

    def skip(self, schema: Any) -> Read:
        """Reads what no column has, with the checks of the other decoder."""
        kind, schema = self._resolved(schema)
        if kind == "record":
            readers = []
            for field in schema["fields"]:
                self.note(field["name"])
                readers.append(self.skip(field["type"]))
            return lambda scan, rows: [read(scan, rows) for read in readers]
        if kind in ("array", "map"):
            return self._skip_many(kind, schema["items" if kind == "array" else "values"])
        if kind == "union":
            return optional(schema, self.skip)
        return self._skip_one(kind, schema)

    def _skip_one(self, kind: str, schema: Any) -> Read:
        if kind == "string":
            return lambda scan, rows: scan.texts(rows, scan.spans(rows))
        if kind == "enum":
            return self.text(schema, 0, _MOST_TEXT)
        if kind in _RANGES:
            lowest, highest = _RANGES[kind]
            return lambda scan, rows: scan.longs(rows, lowest, highest)
        if (read := _SKIPS.get(kind)) is None:
            size = self._fixed_size(kind, schema)
            return lambda scan, rows: scan.take(rows, size)
        return read

    def _skip_many(self, kind: str, schema: Any) -> Read:
        inner, schema = self._resolved(schema)
        # Of others an item may be longer as JSON than its bytes allow.
        if inner not in ("boolean", "int", "long", "float", "double", "bytes", "string"):
            raise NotPlainError
        if kind == "array" and inner in _SIZES:
            size = _SIZES[inner]

            def skip_run(scan: Scan, rows: Rows) -> None:
                _, counts = scan.run(rows, scan.longs(rows, 0, scan.total_bytes), size)
                scan.end_of_blocks(subset(rows, counts > 0))

            return skip_run
        name, item = self._skip_one("string", ""), self._skip_one(inner, schema)

        def skip_each(scan: Scan, rows: Rows) -> None:
            for _, members in items(scan, rows):
                if kind == "map":
                    name(scan, members)
                item(scan, members)

        return skip_each

    def _resolved(self, schema: Any) -> tuple[str, Any]:
        """The kind of a schema, with its logical type if the reader knows that, and its definition."""
        if isinstance(schema, list):
            return "union", schema
        kind = schema if isinstance(schema, str) else schema["type"]
        # As fastavro does: somebody may have called a type `long`.
        if kind not in _TYPES and kind in self._named:
            return self._resolved(self._named[kind])
        logical = "" if isinstance(schema, str) else f"{kind}-{schema.get('logicalType')}"
        return (logical if logical in self._logical else kind), schema

    def _symbols(self, schema: Mapping[str, Any]) -> list[str | None]:
        symbols: list[str | None] = list(schema["symbols"])
        if not symbols:
            raise NotPlainError
        self._add_text(max(len(symbol or "") for symbol in symbols))
        return symbols

    def _fixed_size(self, kind: str, schema: Any) -> int:
        if kind in _SIZES:
            return _SIZES[kind]
        if kind != "fixed":
            raise NotPlainError
        return int(schema["size"])


def _read_null(scan: Scan, rows: Rows) -> None:
    """A null, which takes no bytes."""


_SKIPS: Mapping[str, Read] = {
    "null": _read_null,
    "int": lambda scan, rows: scan.longs(rows, *_LONG),
    "long": lambda scan, rows: scan.longs(rows, *_LONG),
    "bytes": lambda scan, rows: scan.spans(rows),
}
