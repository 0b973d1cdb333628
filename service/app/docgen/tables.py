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
    "challenge": "what the challenger says",
}

_THOUSAND: Final = 1_000


def table_lines(space: CellSpace, limit: int) -> Iterator[str]:
    """Rows, columns, size and purpose of every table, the sum, and what is not kept.

    Args:
        space: what tells the model's predictions apart.
        limit: bytes that all tables may take in one partition.
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
            f"are more than {MOST_MIX_ENTRIES:,}; lower bounds.attribute_values to keep it"
        )


def in_bytes(size: int) -> str:
    """A size in the largest unit of which there is one: `240.5 kB`."""
    told, units = float(size), ["B", "kB", "MB", "GB"]
    while told >= _THOUSAND and len(units) > 1:
        told /= _THOUSAND
        units.pop(0)
    return f"{size} B" if units[0] == "B" else f"{told:.1f} {units[0]}"


def _name(spec: TableSpec) -> str:
    return "all traffic" if spec.attribute == ALL_TRAFFIC else f"attribute {spec.attribute}"


def _without_classes(space: CellSpace, specs: tuple[TableSpec, ...]) -> list[str]:
    """Attributes whose mix of predicted classes is too large to be kept."""
    if not space.by_class:
        return []
    kept = {spec.attribute for spec in specs if spec.columns in {"classes", "class_bins"}}
    return [attribute for attribute in space.attributes if attribute not in kept]
