"""Traffic as fields of a Redis hash: pages of rows, so that a flush writes what has changed and nothing else.

Parts of a field's name are separated by NUL:

- `names`, attribute, page: msgpack of the names of 128 rows, and what each may have missed before (float64);
- `rows`, attribute, columns, meaning, page: of about 4 KB of rows the counts (int64), and where the table
  keeps them weights and score sums (float64).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from service.domain.traffic import Traffic
from service.domain.traffic_tables import ALL_TRAFFIC, TableSpec
from service.domain.value_table import Block

PAGE_BYTES = 4_096
NAMES_PER_PAGE = 128

_NAMES, _ROWS, _BETWEEN = "names", "rows", "\0"


class _NamesPage(msgspec.Struct, array_like=True):
    names: list[str]
    missed: bytes


def _rows_per_page(spec: TableSpec) -> int:
    return max(1, PAGE_BYTES // spec.row_bytes)


def changed_pages(traffic: Traffic) -> Iterator[tuple[bytes, bytes]]:
    """Field and value of every page with a row that has changed since the last flush."""
    for attribute, table in traffic.tables.items():
        names = table.names
        if attribute != ALL_TRAFFIC:
            for page in sorted({row // NAMES_PER_PAGE for row in table.changed_names}):
                part = slice(page * NAMES_PER_PAGE, (page + 1) * NAMES_PER_PAGE)
                missed = table.missed[: len(table)][part].astype("<f8").tobytes()
                value = msgspec.msgpack.encode(_NamesPage(names[part], missed))
                yield _field(_NAMES, attribute, str(page)), value
        changed = np.flatnonzero(table.changed[: len(table)])
        for columns, spec in table.specs.items():
            size, block = _rows_per_page(spec), table.block(columns)
            for page in np.unique(changed // size).tolist():
                part = slice(page * size, (page + 1) * size)
                yield _field(_ROWS, attribute, columns, spec.meaning, str(page)), _packed(block.part(part))


def stored_traffic(
    specs: Sequence[TableSpec], landmark: bytes | None, fields: Mapping[bytes, bytes]
) -> tuple[Traffic, set[bytes]]:
    """Traffic of one shard as it is stored, and fields that belong to no table.

    The latter are of attributes that no grouping uses any more, or of other score bins.

    Args:
        specs: all tables of the model.
        landmark: as it is stored; None where nothing is.
        fields: all fields of the hash.
    """
    traffic = Traffic(specs)
    if landmark is not None:
        traffic.landmark = float(landmark)
    pages: dict[tuple[str, ...], dict[int, bytes]] = defaultdict(dict)
    for name in fields:
        *of, page = name.decode().split(_BETWEEN)
        pages[tuple(of)][int(page)] = name
    for attribute, table in traffic.tables.items():
        if attribute != ALL_TRAFFIC:
            stored = [fields[name] for _, name in sorted(pages.pop((_NAMES, attribute), {}).items())]
            named = [msgspec.msgpack.decode(value, type=_NamesPage) for value in stored]
            missed = np.frombuffer(b"".join(page.missed for page in named), "<f8")
            table.restore([name for page in named for name in page.names], missed)
        for columns, spec in table.specs.items():
            size, block = _rows_per_page(spec), table.blocks[columns]
            for number, name in pages.pop((_ROWS, attribute, columns, spec.meaning), {}).items():
                _unpack(block, spec, number * size, fields[name])
        table.mark_flushed()
    return traffic, {name for of in pages.values() for name in of.values()}


def stored_predictions(fields: Mapping[bytes, bytes]) -> int:
    """Predictions that a shard has counted, whatever its tables are, from all fields of the hash."""
    whole = _field(_ROWS, ALL_TRAFFIC, "class_bins", "")
    # A third of a weighted table's page are counts.
    return sum(
        int(np.frombuffer(value, "<i8", len(value) // 24).sum())
        for name, value in fields.items()
        if name.startswith(whole)
    )


def _field(*parts: str) -> bytes:
    return _BETWEEN.join(parts).encode()


def _packed(block: Block) -> bytes:
    kinds = (block.counts, "<i8"), (block.weights, "<f8"), (block.score_sums, "<f8")
    return b"".join([column.astype(kind, copy=False).tobytes() for column, kind in kinds])


def _unpack(block: Block, spec: TableSpec, first: int, value: bytes) -> None:
    count = len(value) // spec.row_bytes
    part = slice(first, first + count)
    numbers = count * spec.width
    block.counts[part] = np.frombuffer(value, "<i8", numbers).reshape(count, spec.width)
    if spec.is_weighted:
        weights, score_sums = np.frombuffer(value, "<f8", offset=8 * numbers).reshape(2, count, spec.width)
        block.weights[part], block.score_sums[part] = weights, score_sums
