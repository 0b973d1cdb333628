"""How fields of Avro are read in many rows at once that not every row has, or that have several items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from consumers.formats.avro_scan import Rows, Scan, subset
from consumers.formats.columns import Coded
from service.domain.arrays import Flags, Indices, Ints
from service.domain.messages import LONGEST_NAME, MOST_ATTRIBUTES

_MOST_ITEMS = 64
"""Of an array or a map that is read item by item."""

Read = Callable[[Scan, Rows], Any]
"""Moves a scan behind a field in some rows, and returns what is there."""


class NotPlainError(Exception):
    """The schema has what only the other decoder reads."""


@dataclass(frozen=True)
class Lists:
    """Lists of floats in some rows [r].

    Attributes:
        begins: where each begins.
        counts: how many are in it; 0 where there is none.
        size: of one, in bytes.
    """

    begins: Ints
    counts: Ints
    size: int


def optional(schema: Any, make: Callable[[Any], Read], *, is_required: bool = False) -> Read:
    """A reader of null or something else; with `is_required`, rows with null are given up."""
    if not isinstance(schema, list) or len(schema) != 2 or "null" not in schema:  # noqa: PLR2004
        raise NotPlainError
    place = 1 - schema.index("null")
    read = make(schema[place])

    def read_optional(scan: Scan, rows: Rows) -> Any:
        is_present = scan.longs(rows, 0, 1) == place
        if is_required:
            scan.refuse(rows, ~is_present)
            return read(scan, rows)
        if is_present.all():
            return read(scan, rows)
        return _spread(read(scan, subset(rows, is_present)), is_present)

    return read_optional


def _spread(found: Any, is_present: Flags) -> Any:
    """What was found in some rows, with nothing in the others."""
    match found:
        case Coded(names, codes):
            return Coded([*names, None], _filled(codes, is_present, len(names)))
        case Lists(begins, counts, size):
            return Lists(_filled(begins, is_present, 0), _filled(counts, is_present, 0), size)
        case dict():
            return {name: _spread(each, is_present) for name, each in found.items()}
        case np.ndarray() if found.dtype == np.float64:
            return _filled(found, is_present, np.nan)
    return None


def _filled(found: Any, is_present: Flags, missing: float) -> Any:
    filled = np.full(len(is_present), missing, found.dtype)
    filled[is_present] = found
    return filled


def items(scan: Scan, rows: Rows) -> Iterator[tuple[Indices, Rows]]:
    """For every place in the arrays or maps of some rows: which of these have one [m], and as rows [m]."""
    counts = scan.longs(rows, 0, _MOST_ITEMS)
    for place in range(int(counts.max(initial=0))):
        has_more = counts > place
        yield np.flatnonzero(has_more), subset(rows, has_more)
    scan.end_of_blocks(subset(rows, counts > 0))


def named_texts(scan: Scan, rows: Rows, read_value: Read) -> dict[str, Coded]:
    """The entries of maps of texts, by name; gives up rows that have a name twice, or one too many."""
    columns: dict[str, tuple[Ints, list[str | None]]] = {}
    for within, members in items(scan, rows):
        names, values = scan.coded(members, 1, LONGEST_NAME), read_value(scan, members)
        is_odd = np.ones(len(within), np.bool_)
        for code, name in enumerate(names.names):
            if not name or (name not in columns and len(columns) == MOST_ATTRIBUTES):
                continue
            codes, texts = columns.setdefault(name, (np.full(scan.count(rows), -1), []))
            has_name = names.codes == code
            places = within[has_name]
            is_odd[has_name] = codes[places] >= 0
            codes[places] = values.codes[has_name] + len(texts)
            texts += values.names
        scan.refuse(members, is_odd)
    return {
        name: Coded([*texts, None], np.where(codes < 0, len(texts), codes))
        for name, (codes, texts) in columns.items()
    }
