"""One shard of a model's facts: the traffic and the pools that came through one topic partition.

A shard lives in the memory of the partition's one owner and is written back whole. It holds

- traffic: per cell a count, a weight sum and a weighted score sum under forward decay, so an
  update is an addition and shards merge by adding (Cormode, Shkapenyuk, Srivastava, Xu, "Forward
  Decay", ICDE 2009);
- pools: per group of every grouping that asks for labels, the items that it may ask about next
  (`service/pool.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from service.pool import Pools

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]
UInt64s = npt.NDArray[np.uint64]

MAX_EXPONENT = 300.0
"""The landmark moves before exp(lambda (t - landmark)) exceeds e^300; doubles overflow at e^709."""


@dataclass
class Candidates:
    """Predictions of one batch as columns [n], ready to be added to a shard."""

    cells: Indices
    classes: Indices
    scores: Floats
    times: Floats
    """Seconds since the epoch."""
    item_hashes: UInt64s
    """From `PoolKey.item_hashes`."""
    groups: Mapping[str, tuple[Sequence[str], Indices]]
    """By pool id: names of the grouping's groups, and the position of every prediction's group among them."""
    record: Callable[[int], bytes]
    """Encodes the pool record of one row; called only for rows that enter a pool."""
    probabilities: tuple[Indices, Floats] | None = None
    """Rows of this batch that carry class probabilities [m], and these [m, classes]."""


@dataclass
class Traffic:
    """Traffic per cell; arrays are [cells].

    Attributes:
        landmark: time in seconds at which a prediction weighs 1.
        counts: predictions ever seen.
        weights: sums of exp(lambda (t - landmark)).
        score_sums: weighted sums of scores.
    """

    landmark: float
    counts: Ints
    weights: Floats
    score_sums: Floats

    @classmethod
    def empty(cls, cells: int, landmark: float = -np.inf) -> Traffic:
        """No traffic; the first prediction sets the landmark."""
        return cls(landmark, np.zeros(cells, np.int64), np.zeros(cells), np.zeros(cells))

    def rescaled(self, landmark: float, decay: float) -> Traffic:
        """The same traffic, with weights told at another landmark."""
        if self.landmark == landmark or not np.isfinite(self.landmark):
            return Traffic(landmark, self.counts, self.weights, self.score_sums)
        factor = np.exp(decay * (self.landmark - landmark))
        return Traffic(landmark, self.counts, self.weights * factor, self.score_sums * factor)

    def resized(self, cells: int) -> Traffic:
        """The same traffic, with room for more cells."""
        more = max(0, cells - len(self.counts))
        return Traffic(
            self.landmark,
            np.pad(self.counts, (0, more)),
            np.pad(self.weights, (0, more)),
            np.pad(self.score_sums, (0, more)),
        )


def merge_traffic(shards: Sequence[Traffic], decay: float, cells: int) -> Traffic:
    """Traffic of all shards together: exact, whatever partition an item came through.

    Args:
        shards: traffic of each shard, with landmarks of their own.
        decay: lambda in 1/s.
        cells: number of cells of the result.
    """
    landmark = max((shard.landmark for shard in shards), default=-np.inf)
    total = Traffic.empty(cells, landmark)
    for shard in shards:
        part = shard.rescaled(landmark, decay).resized(cells)
        total.counts += part.counts
        total.weights += part.weights
        total.score_sums += part.score_sums
    return total


def merge_probability_sums(
    shards: Sequence[tuple[float, Mapping[int, Floats]]], decay: float
) -> dict[int, Floats]:
    """Class-probability sums of all shards together, told at the latest landmark.

    Args:
        shards: landmark of each shard, and its sums by predicted class.
        decay: lambda in 1/s.
    """
    landmark = max((landmark for landmark, sums in shards if sums), default=-np.inf)
    total: dict[int, Floats] = {}
    for told_at, sums in shards:
        for predicted, values in sums.items():
            total[predicted] = total.get(predicted, 0.0) + values * np.exp(decay * (told_at - landmark))
    return total


class Shard:
    """The facts of one model from one topic partition, as its owner holds them.

    Args:
        next_offset: offset of the first record that is not in the shard.
        traffic: traffic per cell.
        pools: of the groupings that ask for labels.
        noise: Gumbel noise of items [n] in a grouping's pool, by pool id and their hashes.
        decay: lambda in 1/s.
        probability_sums: per predicted class, its weighted class-probability sums, at the
            traffic's landmark.

    Attributes:
        stored_by: id of the flush that wrote what Redis holds; empty where none did.
        next_flush: id of the flush to come, the same however often it is tried.
    """

    def __init__(
        self,
        *,
        next_offset: int,
        traffic: Traffic,
        pools: Pools,
        noise: Callable[[str, UInt64s], Floats],
        decay: float,
        probability_sums: dict[int, Floats] | None = None,
    ) -> None:
        self.next_offset = next_offset
        self.stored_by = ""
        self.next_flush = ""
        self.traffic = traffic
        self.pools = pools
        self.probability_sums = probability_sums or {}
        self.changed_classes: set[int] = set()
        self.changed = False
        self._decay = decay
        self._noise = noise

    def add(self, batch: Candidates, cell_count: int) -> None:
        """Add predictions to traffic and pools; the order within and between batches does not matter.

        Args:
            batch: the predictions.
            cell_count: cells of the model by now; arrays grow to it.
        """
        if cell_count > len(self.traffic.counts):
            self.traffic = self.traffic.resized(cell_count)
        if not len(batch.cells):
            return
        self.changed = True
        self._move_landmark(float(batch.times.max()))
        weights = np.exp(self._decay * (batch.times - self.traffic.landmark))
        np.add.at(self.traffic.counts, batch.cells, 1)
        np.add.at(self.traffic.weights, batch.cells, weights)
        np.add.at(self.traffic.score_sums, batch.cells, weights * batch.scores)
        if batch.probabilities is not None:
            self._add_probabilities(batch, weights)
        self._fill_pools(batch)

    def mark_flushed(self) -> None:
        """Forget what had changed since the last flush."""
        self.changed = False
        self.pools.mark_flushed()
        self.changed_classes.clear()

    def _move_landmark(self, latest: float) -> None:
        landmark = self.traffic.landmark
        if not np.isfinite(landmark):
            self.traffic = self.traffic.rescaled(latest, self._decay)
        elif self._decay * (latest - landmark) > MAX_EXPONENT:
            factor = np.exp(self._decay * (landmark - latest))
            self.traffic = self.traffic.rescaled(latest, self._decay)
            self.probability_sums = {c: sums * factor for c, sums in self.probability_sums.items()}
            self.changed_classes.update(self.probability_sums)

    def _add_probabilities(self, batch: Candidates, weights: Floats) -> None:
        if batch.probabilities is None:
            return
        rows, probabilities = batch.probabilities
        classes = batch.classes[rows]
        present, where = np.unique(classes, return_inverse=True)
        # One row a predicted class, one column a prediction: a product is the weighted sum of each class.
        members = sparse.csr_array((weights[rows], (where, np.arange(len(rows)))))
        for predicted, sums in zip(present.tolist(), members @ probabilities, strict=True):
            self.probability_sums[predicted] = self.probability_sums.get(predicted, 0.0) + sums
            self.changed_classes.add(predicted)

    def _fill_pools(self, batch: Candidates) -> None:
        recency = self._decay * batch.times
        for pool_id, (names, groups) in batch.groups.items():
            row = self.pools.groupings[pool_id].row
            present, where = np.unique(groups, return_inverse=True)
            rows = np.array([row(names[group]) for group in present.tolist()], np.intp)[where.ravel()]
            priorities = recency + self._noise(pool_id, batch.item_hashes)
            self.pools.offer(
                pool_id, rows=rows, priorities=priorities, hashes=batch.item_hashes, record=batch.record
            )
