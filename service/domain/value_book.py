"""Codes of attribute values and of their combinations, so that most work is done on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np

from service.domain.arrays import Indices

_NEW = -1


class ValueBook:
    """Numbers the values of every attribute, and their combinations, from 0 on.

    `name_value` gives the name under which a value of the attribute at some position is counted; None stands
    for a missing value. It is called once for each value. `generation` grows when the book is cleared.
    """

    def __init__(self, name_value: Callable[[int, str | None], str], attribute_count: int) -> None:
        self._name_value = name_value
        self._attribute_count = attribute_count
        self.generation = 0
        self._reset()

    def _reset(self) -> None:
        self._numbers: list[dict[str | None, int]] = [{} for _ in range(self._attribute_count)]
        self._names: list[list[str]] = [[] for _ in range(self._attribute_count)]
        self._named: list[dict[str, int]] = [{} for _ in range(self._attribute_count)]
        self._values = np.zeros((0, self._attribute_count), np.intp)
        self._length = 0

    def __len__(self) -> int:
        """Number of combinations."""
        return self._length

    def add(self, columns: Sequence[Sequence[str | None]]) -> range:
        """Add combinations, given the values of every attribute [n]; their numbers [n]."""
        first, self._length = self._length, self._length + len(columns[0])
        if self._length > len(self._values):
            self._values = np.pad(self._values, ((0, self._length), (0, 0)))
        for position, values in enumerate(columns):
            self._values[first : self._length, position] = self.encode(position, values)
        return range(first, self._length)

    def clear(self) -> None:
        """Forget everything, and number from 0 again."""
        self.generation += 1
        self._reset()

    def values(self, combinations: Indices) -> Indices:
        """Value numbers of some combinations [n, attributes]."""
        return self._values[combinations]

    def names(self, position: int) -> list[str]:
        """Names of an attribute's values, by number; values of one name share a number."""
        return self._names[position]

    @property
    def entries(self) -> int:
        """How many values of all attributes have numbers."""
        return sum(map(len, self._numbers))

    def encode(self, position: int, values: Sequence[str | None]) -> Indices:
        """Numbers of values [n] of the attribute at some position; new values get numbers [n]."""
        numbers = self._numbers[position]
        found = np.fromiter(map(numbers.get, values, repeat(_NEW)), np.intp, len(values))
        for at in np.flatnonzero(found == _NEW).tolist():
            value = values[at]
            if value not in numbers:
                name, names = self._name_value(position, value), self._names[position]
                numbers[value] = self._named[position].setdefault(name, len(names))
                if numbers[value] == len(names):
                    names.append(name)
            found[at] = numbers[value]
        return found
