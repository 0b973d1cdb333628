"""One shard of a model's facts: the traffic and the pools that came through one topic partition.

A shard is in the memory of the partition's one owner, which writes changes to Redis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from service.domain.arrays import Floats, Indices, UInt64s
from service.domain.cells import CHALLENGE, OTHER, CellSpace
from service.domain.pending_joins import JoinColumns, PendingJoins
from service.domain.pool import Pools
from service.domain.traffic import Traffic
from service.domain.traffic_counts import TrafficCounts
from service.domain.traffic_marks import ShardMarks
from service.domain.traffic_tables import CHALLENGE_COLUMNS, Columns
from service.domain.value_book import ValueBook
from service.domain.value_strata import ValueStrata

MAX_EXPONENT = 300.0
"""The landmark moves before exp(lambda (t - landmark)) exceeds e^300; doubles overflow at e^709."""

_NONE = -1


@dataclass
class Candidates:
    """Predictions of one batch as columns [n], ready to be added to a shard.

    Attributes:
        book: numbers attribute values.
        values: number of the value of every attribute in the book [n, attributes].
        classes: index of the predicted class.
        bins: score bin.
        scores: in [0, 1].
        times: when each was predicted, seconds since the epoch.
        arrivals: when the record of each arrived, seconds since the epoch; the producer cannot backdate it.
        item_hashes: from `PoolKey.item_hashes`.
        record: encodes the pool record of one row; called only for rows that enter a pool.
        probabilities: rows of this batch with class probabilities [m], and these [m, classes].
        join: of a model that takes unrequested labels.
    """

    book: ValueBook
    values: Indices
    classes: Indices
    bins: Indices
    scores: Floats
    times: Floats
    arrivals: Floats
    item_hashes: UInt64s
    record: Callable[[int], bytes]
    probabilities: tuple[Indices, Floats] | None = None
    join: JoinColumns | None = None

    def part(self, begin: int, end: int) -> Candidates:
        """The columns of some of the predictions."""
        of = slice(begin, end)
        probabilities = None
        if self.probabilities is not None:
            members, values = self.probabilities
            within = (members >= begin) & (members < end)
            probabilities = (members[within] - begin, values[within]) if within.any() else None
        return Candidates(
            self.book,
            self.values[of],
            self.classes[of],
            self.bins[of],
            self.scores[of],
            self.times[of],
            self.arrivals[of],
            self.item_hashes[of],
            lambda at: self.record(begin + at),
            probabilities,
        )


class Shard:
    """The facts of one model from one topic partition, in its owner's memory.

    Args:
        next_offset: offset of the first record that is not in the shard.
        pools: of the groupings that request labels.
        pool_groupings: these groupings, by pool id.
        noise: Gumbel noise of items [n] in a grouping's pool, by pool id and their hashes.
        decay: rate at which traffic loses weight, 1/s.
        draw_decay: rate at which pooled items lose weight in draws, 1/s.
        marks: of what was counted when slots of event time began.
        newest_record: time of the newest record up to the next offset, seconds since the epoch; minus
            infinity before the first one.
        probability_sums: weighted class-probability sums by predicted class, at the traffic's landmark.
        clipped: how many predictions ever had a time that was replaced by a bound, by direction.
        joins: where predictions wait for unrequested labels; None if the model takes none.

    Attributes:
        is_stored: whether Redis holds the shard.
        stored_by: id of the flush that wrote the shard in Redis; empty if there is none.
        next_flush: id of the next flush, the same for all its attempts.
        drawn_seen: how many drawn items, counted since the shard began, are taken out of its pools.
    """

    def __init__(
        self,
        space: CellSpace,
        *,
        next_offset: int,
        traffic: Traffic,
        pools: Pools,
        pool_groupings: Mapping[str, str],
        noise: Callable[[str, UInt64s], Floats],
        decay: float,
        draw_decay: float,
        marks: ShardMarks,
        newest_record: float = -np.inf,
        probability_sums: dict[int, Floats] | None = None,
        clipped: dict[str, int] | None = None,
        joins: PendingJoins | None = None,
    ) -> None:
        self.next_offset = next_offset
        self.newest_record = newest_record
        self.is_stored = False
        self.stored_by = ""
        self.next_flush = ""
        self.drawn_seen = 0
        self.traffic = traffic
        self.pools = pools
        self.marks = marks
        self.probability_sums = probability_sums or {}
        self.clipped = clipped or {}
        self.joins = joins
        self.changed_classes: set[int] = set()
        self.changed = False
        self._decay = decay
        self._draw_decay = draw_decay
        self._noise = noise
        self._attributes = space.attributes
        self._bin_count = space.bin_count
        self._selected = _NONE
        if space.selections is not None:
            self._selected = space.classes.index(space.selections.positive)
        class_groups = {pool_id: space.class_groups(name) for pool_id, name in pool_groupings.items()}
        self._class_pools = {
            pool_id: groups for pool_id, groups in class_groups.items() if groups is not None
        }
        self._value_pools = {
            pool_id: ValueStrata.of_grouping(space, name)
            for pool_id, name in pool_groupings.items()
            if class_groups[pool_id] is None
        }
        self._generation = _NONE
        self._rows: list[Indices] = []

    def add(self, batch: Candidates) -> None:
        """Add predictions to traffic and pools.

        The result does not depend on the order within and between batches, as long as no attribute has more
        values than its bound.
        """
        if not len(batch.classes):
            return
        self.changed = True
        if self.joins is not None and batch.join is not None:
            self.joins.offer(batch.join, batch.arrivals)
        begin = 0
        for end, mark in self.marks.advance(batch.arrivals, self.traffic.predictions):
            if end > begin:
                self._count(batch.part(begin, end))
            self.marks.added[mark] = TrafficCounts.of(self.traffic)
            begin = end
        self._count(batch.part(begin, len(batch.classes)) if begin else batch)

    def _count(self, batch: Candidates) -> None:
        self._move_landmark(float(batch.times.max()))
        weights = np.exp(self._decay * (batch.times - self.traffic.landmark))
        rows = self._value_rows(batch, weights)
        columns: dict[Columns, Indices] = {
            "class_bins": batch.classes * self._bin_count + batch.bins,
            "bins": batch.bins,
            "classes": batch.classes,
            "selected_bins": (batch.classes == self._selected) * self._bin_count + batch.bins,
        }
        if CHALLENGE in rows:
            of_row = [CHALLENGE_COLUMNS.index(name) for name in self.traffic.tables[CHALLENGE].names]
            columns["challenge"] = np.array(of_row, np.intp)[rows[CHALLENGE]]
        for attribute, table in self.traffic.tables.items():
            of_table = rows.get(attribute)
            if of_table is None:
                of_table = np.zeros(len(batch.classes), np.intp)
            for kind, block in table.blocks.items():
                block.add(of_table, columns[kind], weights, batch.scores)
            table.changed[of_table] = True
        if batch.probabilities is not None:
            members, probabilities = batch.probabilities
            self._add_probabilities(batch.classes[members], probabilities, weights[members])
        self._fill_pools(batch, rows)

    def count_clipped(self, direction: str, count: int) -> None:
        """Count predictions that were added with a clipped time."""
        if count:
            self.clipped[direction] = self.clipped.get(direction, 0) + count

    def mark_flushed(self) -> None:
        """Clear all marks of changes since the last flush."""
        self.changed = False
        self.traffic.mark_flushed()
        self.marks.mark_flushed()
        self.pools.mark_flushed()
        self.changed_classes.clear()

    def _move_landmark(self, latest: float) -> None:
        landmark = self.traffic.landmark
        if not np.isfinite(landmark):
            self.traffic.move_landmark(latest, self._decay)
        elif self._decay * (latest - landmark) > MAX_EXPONENT:
            factor = np.exp(self._decay * (landmark - latest))
            self.traffic.move_landmark(latest, self._decay)
            self.probability_sums = {c: sums * factor for c, sums in self.probability_sums.items()}
            self.changed_classes.update(self.probability_sums)

    def _value_rows(self, batch: Candidates, weights: Floats) -> dict[str, Indices]:
        """Row of every prediction in the table of each attribute, by attribute [n]."""
        if not self._attributes:
            return {}
        if self._generation != batch.book.generation:
            self._rows = [np.zeros(0, np.intp) for _ in self._attributes]
            self._generation = batch.book.generation
        found = {}
        for position, attribute in enumerate(self._attributes):
            column, rows_by_value = batch.values[:, position], self._rows[position]
            if (more := len(batch.book.names(position)) - len(rows_by_value)) > 0:
                rows_by_value = self._rows[position] = np.pad(rows_by_value, (0, more), constant_values=_NONE)
            rows = rows_by_value[column]
            if (rows == _NONE).any():
                self._place(attribute, column, rows_by_value, batch.book.names(position), weights)
                rows = rows_by_value[column]
                # A value without a row of its own may get one the next time.
                rows[rows == _NONE] = self.traffic.tables[attribute].rows.get(OTHER, _NONE)
            found[attribute] = rows
        return found

    def _place(
        self, attribute: str, values: Indices, rows_by_value: Indices, names: list[str], weights: Floats
    ) -> None:
        """Find rows of a batch's values [n] in an attribute's table; new values get rows.

        Fills in the row of every value, -1 if it has none [values].
        """
        table = self.traffic.tables[attribute]
        present = np.unique(values)
        unplaced = present[rows_by_value[present] == _NONE]
        if len(unplaced) <= table.room:  # no value is displaced, so the others keep their rows
            present = unplaced
        sums = np.asarray(np.bincount(values, weights=weights), np.float64)
        displaced = table.place([names[value] for value in present.tolist()], sums[present])
        if displaced:
            rows_by_value[:] = _NONE
            for pool_id, pooled in self._value_pools.items():
                if pooled.by.attribute == attribute:
                    for stratum in range(len(pooled)):
                        folded = [pooled.name(value, stratum) for value in displaced]
                        self.pools.fold(pool_id, folded, pooled.name(OTHER, stratum))
        rows_by_value[present] = [table.rows.get(names[value], _NONE) for value in present.tolist()]

    def _add_probabilities(self, classes: Indices, probabilities: Floats, weights: Floats) -> None:
        from scipy import sparse  # noqa: PLC0415 - slow to import, and needed where probabilities are summed

        present, where = np.unique(classes, return_inverse=True)
        # A row for each predicted class and a column for each prediction: a product sums by class.
        members = sparse.csr_array((weights, (where, np.arange(len(where)))))
        for predicted, sums in zip(present.tolist(), members @ probabilities, strict=True):
            self.probability_sums[predicted] = self.probability_sums.get(predicted, 0.0) + sums
            self.changed_classes.add(predicted)

    def _fill_pools(self, batch: Candidates, value_rows: Mapping[str, Indices]) -> None:
        recency = self._draw_decay * batch.arrivals
        for pool_id, pool in self.pools.groupings.items():
            if pool_id in self._class_pools:
                names, by_class = self._class_pools[pool_id]
                groups = by_class[batch.classes, batch.bins]
                name_of: Callable[[int], str] = names.__getitem__
            else:
                pooled = self._value_pools[pool_id]
                rows = value_rows[pooled.by.attribute]
                values = self.traffic.tables[pooled.by.attribute].names
                groups = pooled.numbers(rows, batch.classes, batch.bins)
                name_of = partial(pooled.name_among, values)
            present, where = np.unique(groups, return_inverse=True)
            rows = np.array([pool.row(name_of(group)) for group in present.tolist()], np.intp)[where.ravel()]
            priorities = recency + self._noise(pool_id, batch.item_hashes)
            self.pools.offer(
                pool_id, rows=rows, priorities=priorities, hashes=batch.item_hashes, record=batch.record
            )
