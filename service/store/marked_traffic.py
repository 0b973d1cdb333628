"""Traffic of a model by event time: counts of earlier times, read from the marks of its shards.

A consumer writes a mark with the flush that stores what it had counted by then, and never changes it
(`service/domain/traffic_marks.py`). So a process reads and merges the marks of a time once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from service.domain.traffic import Traffic
from service.domain.traffic_counts import TrafficCounts, merge_counts
from service.domain.traffic_marks import Mark, Timeline, open_mark
from service.store.connection import Connection, ModelStore
from service.store.keys import ModelKeys

MarkedCounts = Mapping[float, TrafficCounts]
"""Predictions of all shards that arrived before a time, by that time."""


def newest_prediction(prediction: bytes | None, record: bytes | None) -> float:
    """Arrival of the newest prediction of a shard, by its fields; minus infinity if no time is known."""
    # Shards from before there were marks have the time of the newest record alone.
    return float(prediction or record or -math.inf)


def shard_timeline(fields: Collection[bytes], *, newest: float, predictions: int) -> tuple[Mark, ...]:
    """The marks of a shard, ascending, its present counts as the last one.

    Marks that have counted more are of other score bins, or of a shard that was lost. None of them counts.

    Args:
        fields: of its marks.
        newest: arrival of its newest prediction.
        predictions: that it has counted.
    """
    marks = sorted(filter(None, map(Mark.parse, map(bytes.decode, fields))))
    if any(mark.predictions > predictions for mark in marks):
        marks = []
    return (*marks, open_mark(newest, predictions))


@dataclass
class _Known:
    """Counts at one time, and the marks that they are of."""

    marks: Mapping[int, Mark]
    counts: TrafficCounts


@dataclass(frozen=True)
class MarkedTraffic:
    """Traffic as it was read, with its timeline.

    Attributes:
        timeline: of all shards.
        shards: their traffic, by partition.
    """

    timeline: Timeline
    shards: Mapping[int, Traffic]
    _counts: dict[int, TrafficCounts] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        partitions: Sequence[int],
        shards: Sequence[Traffic],
        newest: Sequence[float],
        fields: Sequence[Collection[bytes]],
    ) -> MarkedTraffic:
        """From every partition's traffic, the arrival of its newest prediction and the fields of marks."""
        timelines = [
            shard_timeline(names, newest=arrival, predictions=shard.predictions)
            for shard, arrival, names in zip(shards, newest, fields, strict=True)
        ]
        return cls(
            Timeline(dict(zip(partitions, timelines, strict=True))),
            dict(zip(partitions, shards, strict=True)),
        )

    def counts_now(self, partition: int) -> TrafficCounts:
        """The present counts of a shard."""
        if partition not in self._counts:
            self._counts[partition] = TrafficCounts.of(self.shards[partition])
        return self._counts[partition]


class MarkReader(ModelStore):
    """Reads counts of earlier times of one model."""

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        super().__init__(connection, keys)
        self._known: dict[float, _Known] = {}

    def counts_at(self, traffic: MarkedTraffic, times: Collection[float]) -> MarkedCounts:
        """Counts at some times; those times are left out whose marks have gone.

        What no call asks for is forgotten.
        """
        known, self._known = self._known, {}
        for time in times:
            marks = traffic.timeline.marks_at(time)
            if marks is None:
                continue
            found = known.get(time)
            if found is None or found.marks != marks:
                counts = self._read(traffic, marks)
                if counts is None:
                    continue
                found = _Known(marks, counts)
            self._known[time] = found
        return {time: found.counts for time, found in self._known.items()}

    def _read(self, traffic: MarkedTraffic, marks: Mapping[int, Mark]) -> TrafficCounts | None:
        """Merged counts of all shards; None if a mark has gone since the names of marks were read."""
        stored = [(partition, mark) for partition, mark in marks.items() if math.isfinite(mark.until)]
        with self._connection.pipeline(transaction=False) as pipeline:
            for partition, mark in stored:
                pipeline.hmget(self._keys.marks(partition), mark.field())
            packed = [value for (value,) in pipeline.execute()]
        if None in packed:
            return None
        parts = dict(
            zip((partition for partition, _ in stored), map(TrafficCounts.unpack, packed), strict=True)
        )
        return merge_counts([parts[p] if p in parts else traffic.counts_now(p) for p in sorted(marks)])
