"""Draws of items whose label had been requested before, for another grouping."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Flags, Indices, Ints
from service.domain.request_order import NO_PLACE, Places
from service.domain.stratum_estimator import ESTIMATOR_TYPE, NOTHING
from service.monitoring.outcome_rows import NONE, GroupKey, GrowingColumns


class SharedDraws:
    """Further draws of items whose label had been requested before, for another grouping.

    A label has a place in the sample of each grouping that drew it. Outcomes are known by their keys, as
    `OutcomeRows.outcome_keys` gives them; methods take those that are there, ascending [n].
    """

    def __init__(self) -> None:
        self._columns = GrowingColumns(
            {
                "outcome": np.int64,
                "place": np.uint64,
                "grouping": np.int32,
                "group": np.int32,
                "suspected": np.bool_,
                "estimator": ESTIMATOR_TYPE,
            }
        )
        self._groupings: dict[str, int] = {}
        self._groups: dict[GroupKey, int] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def add(
        self,
        outcome: int,
        place: int,
        *,
        grouping: str,
        group: GroupKey,
        suspected: bool,
        estimator: bytes = NOTHING,
    ) -> None:
        """Add a draw of an outcome, for a group of a grouping; its place is in the order of requests."""
        self._columns.extend(
            outcome=[outcome],
            place=np.array([place], np.uint64),
            grouping=[self._groupings.setdefault(grouping, len(self._groupings))],
            group=[self._groups.setdefault(group, len(self._groups))],
            suspected=[suspected],
            estimator=np.array([estimator], ESTIMATOR_TYPE),
        )

    def places(self, grouping: str, outcomes: Ints, places: Places, suspected: Flags) -> tuple[Places, Flags]:
        """Places of outcomes in the sample of one grouping, from those of their requests [n].

        And whether their groups in that grouping were suspected, likewise.
        """
        code = self._groupings.get(grouping)
        if code is None:
            return places, suspected
        chosen = np.flatnonzero(self._columns["grouping"] == code)
        rows, found = _rows(outcomes, self._columns["outcome"][chosen])
        own, flags = places.copy(), suspected.copy()
        own[rows[found]] = self._columns["place"][chosen[found]]
        flags[rows[found]] = self._columns["suspected"][chosen[found]]
        return own, flags

    def estimators(
        self, grouping: str, outcomes: Ints, estimators: npt.NDArray[np.void]
    ) -> npt.NDArray[np.void]:
        """What is kept of the draws of strata in the sample of one grouping, likewise [n]."""
        code = self._groupings.get(grouping)
        chosen = np.flatnonzero(self._columns["grouping"] == (NONE if code is None else code))
        rows, found = _rows(outcomes, self._columns["outcome"][chosen])
        own = estimators.copy()
        own[rows[found]] = self._columns["estimator"][chosen[found]]
        return own

    def first_places(self, outcomes: Ints) -> dict[GroupKey, int]:
        """Of every group that such draws were made for, the place of the first one."""
        firsts = np.full(len(self._groups), NO_PLACE, dtype=np.uint64)
        _, found = _rows(outcomes, self._columns["outcome"])
        np.minimum.at(firsts, self._columns["group"][found], self._columns["place"][found])
        places = zip(self._groups, firsts.tolist(), strict=True)
        return {group: place for group, place in places if place != NO_PLACE}

    def last_place(self, outcomes: Ints) -> int:
        """The highest place of draws that share the labels of these outcomes; 0 of none."""
        _, found = _rows(outcomes, self._columns["outcome"])
        return int(self._columns["place"][found].max(initial=0))

    def keep(self, outcomes: Ints) -> None:
        """Drop draws whose outcome was trimmed."""
        _, found = _rows(outcomes, self._columns["outcome"])
        names = ("outcome", "place", "grouping", "group", "suspected", "estimator")
        kept = {name: self._columns[name][found].copy() for name in names}
        self._columns = GrowingColumns({name: column.dtype for name, column in kept.items()})
        self._columns.extend(**kept)


def _rows(outcomes: Ints, sought: Ints) -> tuple[Indices, Flags]:
    """Row of each outcome that is sought, and whether it is there [m]."""
    rows = np.searchsorted(outcomes, sought)
    found = np.zeros(len(sought), np.bool_)
    inside = rows < len(outcomes)
    found[inside] = outcomes[rows[inside]] == sought[inside]
    return rows, found
