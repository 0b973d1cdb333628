"""Tables of a model's traffic, as `credence check` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from service.domain.cells import CellSpace
from service.domain.traffic_tables import (
    ALL_TRAFFIC,
    MOST_MIX_ENTRIES,
    Columns,
    TableSpec,
    most_table_bytes,
    tables,
)

_COLUMNS: Final[dict[Columns, str]] = {
    "class_bins": "predicted class and score bin",
    "bins": "score bin",
    "classes": "predicted class",
    "challenge": "prediction of the challenger",
}

_THOUSAND: Final = 1_000


def table_lines(space: CellSpace, limit: int) -> Iterator[str]:
    """Rows, columns, size and purpose of every table, their sum, and what is not kept.

    All tables of one partition may take `limit` bytes.
    """
    specs = tables(space)
    for spec in specs:
        yield (
            f"table of {_name(spec)}: up to {spec.rows:,} {'row' if spec.rows == 1 else 'rows'} x "
            f"{spec.width:,} columns ({_COLUMNS[spec.columns]}), {in_bytes(spec.most_bytes)}; "
            f"for {spec.purpose}"
        )
    yield (
        f"all tables: up to {in_bytes(most_table_bytes(space))} a partition "
        f"(bounds.table_bytes: {in_bytes(limit)})"
    )
    for attribute in _without_classes(space, specs):
        rows, classes = space.bounds.attribute_values, len(space.classes)
        yield (
            f"warning: no drift of predicted classes by {attribute}: {rows:,} values x {classes:,} classes "
            f"exceed {MOST_MIX_ENTRIES:,}; to enable it, lower bounds.attribute_values"
        )


def in_bytes(size: int) -> str:
    """A size in its largest unit: `240.5 kB`."""
    number, units = float(size), ["B", "kB", "MB", "GB"]
    while number >= _THOUSAND and len(units) > 1:
        number /= _THOUSAND
        units.pop(0)
    return f"{size} B" if units[0] == "B" else f"{number:.1f} {units[0]}"


def _name(spec: TableSpec) -> str:
    return "all traffic" if spec.attribute == ALL_TRAFFIC else f"attribute {spec.attribute}"


def _without_classes(space: CellSpace, specs: tuple[TableSpec, ...]) -> list[str]:
    """Attributes whose mix of predicted classes is too large to be kept."""
    if not space.by_class:
        return []
    kept = {spec.attribute for spec in specs if spec.columns in {"classes", "class_bins"}}
    return [attribute for attribute in space.attributes if attribute not in kept]
