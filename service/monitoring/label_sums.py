"""The sums that labels count in, numbered as they come."""

from __future__ import annotations

from itertools import islice

import numpy as np

from service.domain.arrays import Flags, Indices, Ints
from service.monitoring.outcome_aggregates import SumTallies, cells_and_sources, says_correct, with_cells


class LabelSums:
    """Numbers the keys of sums, and knows how many labels count in each.

    Attributes:
        tallies: how many labels count in each, and which [sums].
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._keys: Ints = np.zeros(0, np.int64)
        self.tallies = SumTallies()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def keys(self) -> Ints:
        """Keys of all sums, in the order of their numbers [sums]."""
        if more := len(self._numbers) - len(self._keys):
            fresh = np.fromiter(islice(self._numbers, len(self._keys), None), np.int64, more)
            self._keys = np.concatenate([self._keys, fresh])
        return self._keys

    @property
    def cells(self) -> Indices:
        """Label cell of every sum [sums]."""
        return cells_and_sources(self.keys)[0]

    @property
    def sources(self) -> Indices:
        """Code of who asked, of every sum [sums]."""
        return cells_and_sources(self.keys)[1]

    @property
    def correct(self) -> Flags:
        """Of every sum, whether its predictions are right [sums]."""
        return says_correct(self.keys)

    def numbers(self, keys: Ints) -> Indices:
        """Numbers of the sums with these keys [n]; of new ones, the next numbers."""
        found, inverse = np.unique(keys, return_inverse=True)
        numbers = [self._numbers.setdefault(key, len(self._numbers)) for key in found.tolist()]
        return np.array(numbers, np.intp)[inverse.ravel()]

    def keep(self, kept: Flags, cell_count: int) -> Flags:
        """Let go of some sums, and number the others, and the cells of these, without gaps.

        Args:
            kept: which stay [sums].
            cell_count: number of label cells.

        Returns:
            Which cells stay [cells].
        """
        keys = self.keys[kept]
        cells = cells_and_sources(keys)[0]
        cells_kept: Flags = np.bincount(cells, minlength=cell_count) > 0
        renumbered = (np.cumsum(cells_kept) - 1).astype(np.int64)
        self._numbers = {key: n for n, key in enumerate(with_cells(keys, renumbered[cells]).tolist())}
        self._keys = np.zeros(0, np.int64)
        self.tallies.keep(kept)
        return cells_kept
