"""Where labelled predictions lie: attribute values, predicted class and score bin, numbered as they come.

Predictions that are alike in all of these are in one cell, whatever traffic there is. So the group of a label
in any grouping is a look-up, and the number of cells is bounded by that of labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

import numpy as np

from service.domain.arrays import Codes, Flags, Indices, Ints
from service.domain.cells import MISSING, CellSpace, Combination


class LabelCells:
    """Numbers combinations of attribute values, and cells, in the order in which labels bring them.

    Args:
        space: what tells the model's predictions apart.

    Attributes:
        voteless: of every combination, whether votes are missing that tell groups apart [combinations].
    """

    def __init__(self, space: CellSpace) -> None:
        self._space = space
        self._vote = None if space.voters is None else space.attributes.index(space.voters[0])
        self._combinations: dict[Combination, int] = {}
        self.voteless: Flags = np.zeros(0, np.bool_)
        self._cells: dict[int, int] = {}
        self._keys: Ints = np.zeros(0, np.int64)
        self._values: dict[str, tuple[list[str], Indices]] = {}

    def __len__(self) -> int:
        """How many cells there are."""
        return len(self._cells)

    @property
    def combination_count(self) -> int:
        """How many combinations of attribute values there are."""
        return len(self._combinations)

    def combination(self, attributes: Mapping[str, str]) -> int:
        """Number of the values that tell groups apart; of new ones, the next number."""
        raw = self._space.raw_combination(attributes)
        return self._combinations.setdefault(raw, len(self._combinations))

    def settle(self) -> None:
        """Know of combinations that came since whether votes are missing; before cells are looked up."""
        more = list(self._combinations)[len(self.voteless) :]
        if more:
            missing = [self._vote is not None and raw[self._vote] == MISSING for raw in more]
            self.voteless = np.concatenate([self.voteless, np.array(missing, np.bool_)])
            self._values.clear()

    def cells(self, combinations: Codes, classes: Codes, bins: Indices) -> Indices:
        """Cells of labelled predictions [n]; new ones get the next numbers.

        Args:
            combinations: numbers from `combination` [n].
            classes: index of the predicted class [n].
            bins: score bin [n].
        """
        keys = combinations.astype(np.int64) * len(self._space.classes) + classes
        found, inverse = np.unique(keys * self._space.bin_count + bins, return_inverse=True)
        numbers = [self._cells.setdefault(key, len(self._cells)) for key in found.tolist()]
        cells: Indices = np.array(numbers, np.intp)[inverse.ravel()]
        return cells

    @property
    def bins(self) -> Indices:
        """Score bin of every cell [cells]."""
        return (self._known_keys() % self._space.bin_count).astype(np.intp)

    @property
    def classes(self) -> Indices:
        """Index of the predicted class of every cell [cells]."""
        return (self._known_keys() // self._space.bin_count % len(self._space.classes)).astype(np.intp)

    def values(self, attribute: str) -> tuple[list[str], Indices]:
        """Values of an attribute that groupings use, and which of them every cell has [cells].

        Args:
            attribute: its name.

        Raises:
            ValueError: no grouping uses such an attribute.
        """
        position = self._space.attributes.index(attribute)
        if attribute not in self._values:
            index: dict[str, int] = {}
            numbers = [index.setdefault(raw[position], len(index)) for raw in self._combinations]
            self._values[attribute] = list(index), np.array(numbers, np.intp)
        names, of_combinations = self._values[attribute]
        per_combination = len(self._space.classes) * self._space.bin_count
        return names, of_combinations[self._known_keys() // per_combination]

    def keep(self, combinations: Flags, cells: Flags) -> None:
        """Let go of some combinations and cells, and number the others without gaps.

        Args:
            combinations: which stay; those of all cells that stay are among them [combinations].
            cells: which stay [cells].
        """
        keys, per_combination = self._known_keys()[cells], len(self._space.classes) * self._space.bin_count
        renumbered = np.cumsum(combinations) - 1
        keys = renumbered[keys // per_combination] * per_combination + keys % per_combination
        self._cells = {key: number for number, key in enumerate(keys.tolist())}
        self._combinations = {
            raw: number for number, raw in enumerate(compress(self._combinations, combinations))
        }
        self.voteless = self.voteless[combinations]
        self._keys = np.zeros(0, np.int64)
        self._values.clear()

    def _known_keys(self) -> Ints:
        if len(self._keys) < len(self._cells):
            self._keys = np.fromiter(self._cells, np.int64, len(self._cells))
        return self._keys
