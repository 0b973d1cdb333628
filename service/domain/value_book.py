"""Attribute values by number, as one process has met them: so that most of the work is done on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np

from service.domain.arrays import Indices

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
        self._named: list[dict[str, int]] = [{} for _ in range(self._attribute_count)]
        self._values = np.zeros((0, self._attribute_count), np.intp)
        self._length = 0

    def __len__(self) -> int:
        """How many combinations there are."""
        return self._length

    def add(self, columns: Sequence[Sequence[str | None]]) -> range:
        """Numbers of further combinations [n].

        Args:
            columns: of every attribute the values [n].
        """
        first, self._length = self._length, self._length + len(columns[0])
        if self._length > len(self._values):
            self._values = np.pad(self._values, ((0, self._length), (0, 0)))
        for position, values in enumerate(columns):
            self._values[first : self._length, position] = self._numbered(position, values)
        return range(first, self._length)

    def clear(self) -> None:
        """Begin again with number 0."""
        self.generation += 1
        self._begin()

    def values(self, combinations: Indices) -> Indices:
        """Numbers of the values of some combinations [n, attributes]."""
        if not self._attribute_count:
            return np.zeros((len(combinations), 0), np.intp)
        return self._values[combinations]

    def names(self, position: int) -> list[str]:
        """Names of an attribute's values, by their numbers; values of one name share a number."""
        return self._names[position]

    def _numbered(self, position: int, values: Sequence[str | None]) -> Indices:
        numbers = self._numbers[position]
        found = np.fromiter(map(numbers.get, values, repeat(_NEW)), np.intp, len(values))
        for at in np.flatnonzero(found == _NEW).tolist():
            value = values[at]
            if value not in numbers:
                numbers[value] = self._number_of(position, self._name_value(position, value))
            found[at] = numbers[value]
        return found

    def _number_of(self, position: int, name: str) -> int:
        names = self._names[position]
        number = self._named[position].setdefault(name, len(names))
        if number == len(names):
            names.append(name)
        return number
