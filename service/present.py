"""Which groups of a grouping there are: those that have ever had traffic (pure)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.cells import CellSpace
from service.store.facts import TrafficFacts

Indices = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Groups:
    """A grouping's groups that have traffic, and the group of every cell.

    Attributes:
        names: of the groups [G].
        cells: group of every cell [cells]; cells of groups without traffic may stand in any group.
        there: whether the group of a cell has traffic [cells].
    """

    names: list[str]
    cells: Indices
    there: Flags


def present_groups(space: CellSpace, grouping: str, traffic: TrafficFacts) -> Groups:
    """The groups of a grouping that have ever had traffic.

    A group without traffic has no accuracy to tell, and must not win "least accurate".

    Args:
        space: the model's cells.
        grouping: name of a grouping of this model.
        traffic: its traffic.

    Raises:
        KeyError: the model has no such grouping.
    """
    names, cells = space.groups(grouping, traffic.combinations)
    present = np.bincount(cells, weights=traffic.traffic.counts, minlength=len(names)) > 0
    renumbered = np.maximum(np.cumsum(present) - 1, 0)
    named = [name for name, there in zip(names, present, strict=True) if there]
    return Groups(named, renumbered[cells], present[cells])
