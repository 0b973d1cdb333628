"""Traffic of one model: exact sums under forward decay, so updates and merges are additions.

Cormode, Shkapenyuk, Srivastava, Xu, "Forward Decay" (ICDE 2009): a prediction made at time t weighs
exp(lambda (t - landmark)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from service.domain.arrays import Floats
from service.domain.traffic_tables import ALL_TRAFFIC, TableSpec
from service.domain.value_table import Block, ValueTable, merge_tables


class Traffic:
    """The tables of one model's traffic.

    Args:
        specs: all tables, grouped by attribute.

    Attributes:
        landmark: time in seconds at which a prediction weighs 1; minus infinity before the first one.
        tables: by attribute.
    """

    def __init__(self, specs: Sequence[TableSpec]) -> None:
        self.landmark = -np.inf
        self.tables = {
            attribute: ValueTable(list(of)) for attribute, of in groupby(specs, lambda spec: spec.attribute)
        }
        self.tables[ALL_TRAFFIC].restore([ALL_TRAFFIC], np.zeros(1))

    @property
    def whole(self) -> Block:
        """All traffic, by predicted class and score bin [1, classes * bins]."""
        return self.tables[ALL_TRAFFIC].block("class_bins")

    @property
    def predictions(self) -> int:
        """Number of predictions ever counted."""
        return int(self.whole.counts.sum())

    def move_landmark(self, landmark: float, decay: float) -> None:
        """Rescale all weights to another landmark, in seconds, at a decay of lambda in 1/s."""
        if np.isfinite(self.landmark) and landmark != self.landmark:
            for table in self.tables.values():
                table.scale(float(np.exp(decay * (self.landmark - landmark))))
        self.landmark = landmark

    def mark_flushed(self) -> None:
        """Clear the tables' marks of changes."""
        for table in self.tables.values():
            table.mark_flushed()


def merge_traffic(shards: Sequence[Traffic], specs: Sequence[TableSpec], *, decay: float) -> Traffic:
    """Traffic of all shards together, at the latest of their landmarks; `decay` is lambda in 1/s."""
    filled = [shard for shard in shards if np.isfinite(shard.landmark)]
    total = Traffic(specs)
    total.landmark = max((shard.landmark for shard in filled), default=-np.inf)
    factors = [float(np.exp(decay * (shard.landmark - total.landmark))) for shard in filled]
    for attribute, table in total.tables.items():
        parts = [shard.tables[attribute] for shard in filled]
        if parts:
            total.tables[attribute] = merge_tables(
                list(table.specs.values()), list(zip(parts, factors, strict=True))
            )
    return total


def merge_probability_sums(
    shards: Sequence[tuple[float, Mapping[int, Floats]]], decay: float
) -> dict[int, Floats]:
    """Class-probability sums of all shards together, by predicted class, at the latest landmark.

    `shards` are the landmark of each and its sums; `decay` is lambda in 1/s.
    """
    landmark = max((landmark for landmark, sums in shards if sums), default=-np.inf)
    total: dict[int, Floats] = {}
    for of_shard, sums in shards:
        for predicted, values in sums.items():
            total[predicted] = total.get(predicted, 0.0) + values * np.exp(decay * (of_shard - landmark))
    return total
