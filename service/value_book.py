"""Attribute values by number, as one process has met them: so that most of the work is done on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.intp]

_NEW = -1


class ValueBook:
    """Numbers the values of every attribute, and combinations of them.

    Args:
        name_value: name under which a value of the attribute at some position is counted; None stands for a
            missing value. Called once for each value.
        attribute_count: number of attributes.

    Attributes:
        generation: grows when all numbers begin again.
    """

    def __init__(self, name_value: Callable[[int, str | None], str], attribute_count: int) -> None:
        self._name_value = name_value
        self._attribute_count = attribute_count
        self.generation = 0
        self._begin()

    def _begin(self) -> None:
        self._numbers: list[dict[str | None, int]] = [{} for _ in range(self._attribute_count)]
        self._names: list[list[str]] = [[] for _ in range(self._attribute_count)]
        self._values = np.zeros((0, self._attribute_count), np.intp)

    def __len__(self) -> int:
        """How many combinations there are."""
        return len(self._values)

    def add(self, columns: Sequence[Sequence[str | None]]) -> range:
        """Numbers of further combinations [n].

        Args:
            columns: of every attribute the values [n].
        """
        found = [self._numbered(position, values) for position, values in enumerate(columns)]
        first = len(self)
        self._values = np.concatenate([self._values, np.stack(found, axis=1)])
        return range(first, len(self))

    def clear(self) -> None:
        """Begin again with number 0."""
        self.generation += 1
        self._begin()

    def values(self, combinations: Indices) -> Indices:
        """Numbers of the values of some combinations [n, attributes]."""
        return self._values[combinations]

    def names(self, position: int) -> list[str]:
        """Names of an attribute's values, by their numbers; several values may have one name."""
        return self._names[position]

    def _numbered(self, position: int, values: Sequence[str | None]) -> Indices:
        numbers = self._numbers[position]
        found = np.fromiter(map(numbers.get, values, repeat(_NEW)), np.intp, len(values))
        for at in np.flatnonzero(found == _NEW).tolist():
            value = values[at]
            if value not in numbers:
                numbers[value] = len(numbers)
                self._names[position].append(self._name_value(position, value))
            found[at] = numbers[value]
        return found
