"""The strata of an attribute's values (`ByStratum`): numbers, names, and what is counted of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Flags, Indices
from service.domain.cells import CellSpace
from service.domain.groupings import ByStratum, Grouping

Counted = TypeVar("Counted", bound=npt.NDArray[Any])


@dataclass(frozen=True)
class ValueStrata:
    """How groups by an attribute's values, or by the strata of these, are numbered and named.

    All strata of one value come before those of the next.
    """

    by: Grouping
    strata: list[str]  # of every value; a nameless one if the groups are the values [K]
    of: Indices  # stratum of every class and score bin [classes, bins]
    selected: Flags  # strata whose predictions are of the positive class [K]

    @classmethod
    def of_grouping(cls, space: CellSpace, name: str) -> ValueStrata:
        """Of a grouping by an attribute.

        Raises:
            KeyError: the model has no such grouping.
        """
        by = space.groupings[name]
        if not isinstance(by, ByStratum):
            shape = len(space.classes), space.bin_count
            return cls(by, [""], np.zeros(shape, np.intp), np.zeros(1, np.bool_))
        strata, of = by.strata(space.classes, space.score_edges)
        selected = np.isin(np.arange(len(strata)), of[space.classes.index(by.positive)])
        return cls(by, strata, of, selected)

    def __len__(self) -> int:
        """Strata of one value."""
        return len(self.strata)

    def name(self, value: str, stratum: int) -> str:
        """Name of the group of a value, and of one of its strata."""
        return self.by.group_name(self.strata[stratum], value) if isinstance(self.by, ByStratum) else value

    def names(self, values: Iterable[str]) -> list[str]:
        """Names of all groups of some values."""
        return [self.name(value, stratum) for value in values for stratum in range(len(self))]

    def name_among(self, values: Sequence[str], group: int) -> str:
        """Name of a group by its number, where rows are of these values."""
        row, stratum = divmod(group, len(self))
        return self.name(values[row], stratum)

    def numbers(self, rows: Indices, classes: Indices, bins: Indices) -> Indices:
        """Groups of predictions, by the row of their value, class and score bin [n]."""
        return rows * len(self) + self.of[classes, bins]

    def split(self, counted: Counted) -> Counted:
        """What is counted of every value by `selected_bins` [V, 2 B], by stratum and score bin [V K, B]."""
        bins, half = counted.shape[1] // 2, len(self) // 2
        of_bins = self.of[0] % half
        found = np.zeros((len(counted), 2, half, bins), counted.dtype)
        found[:, :, of_bins, np.arange(bins)] = counted.reshape(-1, 2, bins)
        return found.reshape(-1, bins)  # type: ignore[return-value]  # a view of the same kind
