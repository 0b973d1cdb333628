"""One shard of a model's facts: the traffic and the pool that came through one topic partition.

A shard lives in the memory of the partition's one owner and is written back whole. It holds

- traffic: per cell a count, a weight sum and a weighted score sum under forward decay, so an
  update is an addition and shards merge by adding (Cormode, Shkapenyuk, Srivastava, Xu, "Forward
  Decay", ICDE 2009);
- the pool: per cell the `slots` items of highest priority, priority = lambda t + Gumbel noise. Keeping
  the highest is an exact sample without replacement, weighted exp(lambda t) (the Gumbel-top-k trick;
  Efraimidis and Spirakis 2006 in the log domain). The noise is a keyed hash of the item id, so the
  sample is the same on replay, merges over shards, and cannot be steered from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]
UInt64s = npt.NDArray[np.uint64]

MAX_EXPONENT = 300.0
"""The landmark moves before exp(lambda (t - landmark)) exceeds e^300; doubles overflow at e^709."""


def gumbel_noise(hashes: UInt64s) -> Floats:
    """Standard Gumbel variates [n] from uniform 64-bit hashes [n].

    The top 53 bits make u in (0, 1); -log(-log(1 - u)) keeps full precision where the variate is large.
    """
    uniform = ((hashes >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return -np.log(-np.log1p(-uniform))


@dataclass
class Candidates:
    """Predictions of one batch as columns [n], ready to be added to a shard."""

    cells: Indices
    classes: Indices
    scores: Floats
    times: Floats
    """Seconds since the epoch."""
    item_hashes: UInt64s
    record: Callable[[int], bytes]
    """Encodes the pool record of one row; called only for rows that enter the pool."""
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


@dataclass
class Pool:
    """The pooled items of one shard; arrays are [cells, slots].

    Invariant: an empty slot has priority -inf; no item hash stands twice in a cell.
    """

    priorities: Floats
    item_hashes: UInt64s
    lowest: Floats = field(init=False)
    """Lowest priority of each cell [cells]: what a newcomer must exceed."""

    def __post_init__(self) -> None:
        self.lowest = self.priorities.min(axis=1, initial=np.inf)

    @classmethod
    def empty(cls, cells: int, slots: int) -> Pool:
        """A pool without items."""
        return cls(np.full((cells, slots), -np.inf), np.zeros((cells, slots), np.uint64))

    def resized(self, cells: int) -> Pool:
        """The same pool, with room for more cells."""
        more = max(0, cells - len(self.priorities))
        return Pool(
            np.pad(self.priorities, ((0, more), (0, 0)), constant_values=-np.inf),
            np.pad(self.item_hashes, ((0, more), (0, 0))),
        )

    def offer(self, cells: Indices, priorities: Floats, item_hashes: UInt64s) -> tuple[Indices, Indices]:
        """Keep each of some items [n] that is among its cell's highest.

        An item that comes twice, or is there already, keeps the highest of its priorities.

        Returns:
            Which items were kept [k], and the slot of each within its cell [k].
        """
        items = np.flatnonzero(priorities > self.lowest[cells])
        if not items.size:
            return items, items
        items = items[np.lexsort((-priorities[items], item_hashes[items], cells[items]))]
        again = (np.diff(cells[items]) == 0) & (np.diff(item_hashes[items]) == 0)
        items = np.delete(items, np.flatnonzero(again) + 1)

        there = (self.item_hashes[cells[items]] == item_hashes[items, None]) & (
            self.priorities[cells[items]] > -np.inf
        )
        known = there.any(axis=1)
        kept, slots = self._raise(items[known], there[known].argmax(axis=1), cells, priorities)
        entered, taken = self._enter(items[~known], cells, priorities)
        kept, slots = np.concatenate((kept, entered)), np.concatenate((slots, taken))
        self.item_hashes[cells[kept], slots] = item_hashes[kept]
        changed = cells[kept]
        self.lowest[changed] = self.priorities[changed].min(axis=1)
        return kept, slots

    def _raise(
        self, items: Indices, slots: Indices, cells: Indices, priorities: Floats
    ) -> tuple[Indices, Indices]:
        """Raise the priority of items that are there already, where theirs is higher now."""
        higher = priorities[items] > self.priorities[cells[items], slots]
        items, slots = items[higher], slots[higher]
        self.priorities[cells[items], slots] = priorities[items]
        return items, slots

    def _enter(self, items: Indices, cells: Indices, priorities: Floats) -> tuple[Indices, Indices]:
        """Put items that are not there yet in the place of lower ones.

        The k-th highest newcomer of a cell takes the k-th lowest slot if it is higher than what is there:
        then the highest of both remain.
        """
        items = items[np.lexsort((-priorities[items], cells[items]))]
        present, firsts, where = np.unique(cells[items], return_index=True, return_inverse=True)
        ranks = np.arange(len(items)) - firsts[where]
        inside = ranks < self.priorities.shape[1]
        items, where, ranks = items[inside], where[inside], ranks[inside]
        slots = np.argsort(self.priorities[present], axis=1)[where, ranks]
        higher = priorities[items] > self.priorities[cells[items], slots]
        items, slots = items[higher], slots[higher]
        self.priorities[cells[items], slots] = priorities[items]
        return items, slots

    def free(self, cell: int, slot: int, item_hash: np.uint64) -> None:
        """Empty a slot whose item was drawn, unless another item has taken it meanwhile."""
        if self.item_hashes[cell, slot] == item_hash:
            self.priorities[cell, slot] = -np.inf
            self.lowest[cell] = -np.inf


class Shard:
    """The facts of one model from one topic partition, as its owner holds them.

    Args:
        next_offset: offset of the first record that is not in the shard.
        traffic: traffic per cell.
        pool: pooled items per cell.
        decay: lambda in 1/s.
        probability_sums: per predicted class, its weighted class-probability sums, at the
            traffic's landmark.
    """

    def __init__(
        self,
        *,
        next_offset: int,
        traffic: Traffic,
        pool: Pool,
        decay: float,
        probability_sums: dict[int, Floats] | None = None,
    ) -> None:
        self.next_offset = next_offset
        self.traffic = traffic
        self.pool = pool
        self.probability_sums = probability_sums or {}
        self.changed_slots: dict[int, bytes] = {}
        self.changed_classes: set[int] = set()
        self.changed = False
        self._decay = decay

    @property
    def slots(self) -> int:
        """Pool slots per cell."""
        return int(self.pool.priorities.shape[1])

    def add(self, batch: Candidates, cell_count: int) -> None:
        """Add predictions to traffic and pool; the order within and between batches does not matter.

        Args:
            batch: the predictions.
            cell_count: cells of the model by now; arrays grow to it.
        """
        if cell_count > len(self.traffic.counts):
            self.traffic = self.traffic.resized(cell_count)
            self.pool = self.pool.resized(cell_count)
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
        self._fill_pool(batch)

    def free_drawn(self, drawn: Sequence[tuple[int, int]]) -> None:
        """Empty the slots whose items were drawn: pairs of (slot number in the shard, item hash)."""
        for number, item_hash in drawn:
            cell, slot = divmod(number, self.slots)
            self.pool.free(cell, slot, np.uint64(item_hash))

    def mark_flushed(self) -> None:
        """Forget what had changed since the last flush."""
        self.changed = False
        self.changed_slots.clear()
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

    def _fill_pool(self, batch: Candidates) -> None:
        priorities = self._decay * batch.times + gumbel_noise(batch.item_hashes)
        kept, slots = self.pool.offer(batch.cells, priorities, batch.item_hashes)
        numbers = batch.cells[kept] * self.slots + slots
        for number, row in zip(numbers.tolist(), kept.tolist(), strict=True):
            self.changed_slots[number] = batch.record(row)
