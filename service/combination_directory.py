"""The numbers of a model's combinations of attribute values.

Combinations are numbered in the order in which they were first seen, by one directory per model that all
partitions share; number 0 is the one in which every attribute is folded into `__other__`.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.cells import OTHER, CellSpace, Combination


class CombinationDirectory:
    """A model's numbered combinations of attribute values, bounded.

    Invariants: number 0 is the folded combination; numbers are never reused; once an attribute
    or the whole directory is full, it stays full.
    """

    def __init__(self, space: CellSpace, combinations: Sequence[Combination] = ()) -> None:
        self._space = space
        self._numbers: dict[Combination, int] = {}
        self._values: list[set[str]] = [set() for _ in space.attributes]
        self._alike: dict[int, dict[Combination, int]] = {}
        for combination in combinations or [(OTHER,) * len(space.attributes)]:
            self.append(combination)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def combinations(self) -> list[Combination]:
        """All combinations in the order of their numbers."""
        return list(self._numbers)

    def append(self, combination: Combination) -> int:
        """Number the next combination; the caller has folded it."""
        number = self._numbers.setdefault(combination, len(self._numbers))
        self._alike = {}
        for values, value in zip(self._values, combination, strict=True):
            values.add(value)
        return number

    def fold(self, raw: Combination) -> Combination:
        """The combination that stands for `raw`: itself, or with values folded into `__other__`.

        A value is folded when its attribute already has `attribute_values` others; the whole
        combination when the directory is full.
        """
        folded = self._told_apart(raw)
        if folded in self._numbers or len(self._numbers) < self._space.combination_limit:
            return folded
        return (OTHER,) * len(raw)

    def number(self, folded: Combination) -> int | None:
        """Number of a folded combination, or None when it is not in the directory yet."""
        return self._numbers.get(folded)

    def number_of_any(self, raw: Combination, position: int) -> int | None:
        """Number of the first combination that differs in one attribute at the most; None without one.

        Args:
            raw: not folded.
            position: of the attribute that may differ.
        """
        if position not in self._alike:
            alike: dict[Combination, int] = {}
            for combination, number in self._numbers.items():
                alike.setdefault(combination[:position] + combination[position + 1 :], number)
            self._alike[position] = alike
        folded = self._told_apart(raw)
        return self._alike[position].get(folded[:position] + folded[position + 1 :])

    def _told_apart(self, raw: Combination) -> Combination:
        """`raw`, with those values folded whose attribute is full."""
        limit = self._space.bounds.attribute_values
        return tuple(
            value if value in values or len(values - {OTHER}) < limit else OTHER
            for value, values in zip(raw, self._values, strict=True)
        )
