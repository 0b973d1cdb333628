"""How many values of an attribute have groups of their own, and how much traffic has none (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.cells import OTHER, CellSpace
from service.domain.traffic import Traffic
from service.domain.value_table import RESERVED


@dataclass(frozen=True)
class AttributeTraffic:
    """Values of one attribute.

    Attributes:
        values: that have a group of their own.
        limit: most values that have one, in each partition.
        other_share: share of recent traffic, by decayed weight, in `__other__`.
    """

    values: int
    limit: int
    other_share: float


def attribute_traffic(space: CellSpace, traffic: Traffic) -> dict[str, AttributeTraffic]:
    """Values of every attribute that groupings use, by name; votes are none.

    Args:
        space: what tells the model's predictions apart.
        traffic: of all its shards.
    """
    found = {}
    for attribute in space.attributes:
        if space.voters is not None and attribute == space.voters[0]:
            continue
        table = traffic.tables[attribute]
        totals = table.totals()
        weight = float(totals.sum())
        other = float(totals[table.rows[OTHER]]) if OTHER in table.rows else 0.0
        found[attribute] = AttributeTraffic(
            values=len(table.rows.keys() - RESERVED),
            limit=space.bounds.attribute_values,
            other_share=other / weight if weight > 0 else 0.0,
        )
    return found
