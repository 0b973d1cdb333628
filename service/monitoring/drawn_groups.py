"""What labels were drawn for: the groups of their requests, and further draws of the same items."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

import numpy as np

from service.domain.arrays import Codes, Flags, Indices, Ints
from service.domain.cells import grouping_key
from service.domain.request_order import NO_PLACE, Places
from service.monitoring.outcome_rows import GrowingColumns
from service.store.records import Fact

GroupKey = tuple[str, str]
"""What a grouping is known by, as `grouping_key` makes it, and the name of one of its groups."""

_BY_VOTES: GroupKey = ("", "")
"""What requests were drawn for that were aimed by votes."""


def drawn_group(fact: Fact) -> GroupKey:
    """The group that a request was drawn for."""
    return _BY_VOTES if fact.voters else (grouping_key(fact.grouping, fact.definition), fact.group)


class DrawnGroups:
    """Numbers groups in the order in which requests bring them, and keeps the first place of each."""

    def __init__(self) -> None:
        self._codes: dict[GroupKey, int] = {}
        self._firsts = np.zeros(0, np.uint64)

    def __len__(self) -> int:
        return len(self._codes)

    def code(self, fact: Fact) -> int:
        """Code of the group that a request was drawn for; of a new one, the next number."""
        return self._codes.setdefault(drawn_group(fact), len(self._codes))

    def add(self, codes: Codes, places: Places) -> None:
        """Take in further requests: the group that each was drawn for, and its place [n]."""
        unknown = np.full(len(self._codes) - len(self._firsts), NO_PLACE, np.uint64)
        self._firsts = np.append(self._firsts, unknown)
        np.minimum.at(self._firsts, codes, places)

    def rebuild(self, codes: Codes, places: Places) -> None:
        """Find all first places again, from all requests that are left [n]."""
        self._firsts = np.zeros(0, np.uint64)
        self.add(codes, places)

    def has_firsts(self, codes: Codes, places: Places) -> bool:
        """Whether some of these requests are the first ones of their groups [n]."""
        return bool(np.any(self._firsts[codes] == places))

    def first_places(self, further: Mapping[GroupKey, int]) -> dict[GroupKey, int]:
        """Place of the first request, or further draw, of every group; groups by votes are left out."""
        firsts = dict(zip(self._codes, self._firsts.tolist(), strict=True))
        for key, place in further.items():
            firsts[key] = min(place, firsts.get(key, NO_PLACE))
        return {key: place for key, place in firsts.items() if place != NO_PLACE and key != _BY_VOTES}

    def keep(self, kept: Flags) -> None:
        """Let go of groups but these [codes], and number those without gaps; `rebuild` follows."""
        self._codes = {key: number for number, key in enumerate(compress(self._codes, kept))}


class SharedDraws:
    """Further draws of items whose label had been requested before, for another grouping.

    A label has a place in the sample of each grouping that drew it. Outcomes are known by their keys, as
    `OutcomeRows.outcome_keys` gives them; methods take those that are there, ascending [n].
    """

    def __init__(self) -> None:
        self._columns = GrowingColumns(
            {"outcome": np.int64, "place": np.uint64, "grouping": np.int32, "group": np.int32}
        )
        self._groupings: dict[str, int] = {}
        self._groups: dict[GroupKey, int] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, outcome: int, place: int, *, grouping: str, group: GroupKey) -> None:
        """Add a draw of an outcome, for a group of a grouping; its place is in the order of requests."""
        self._columns.extend(
            outcome=[outcome],
            place=np.array([place], np.uint64),
            grouping=[self._groupings.setdefault(grouping, len(self._groupings))],
            group=[self._groups.setdefault(group, len(self._groups))],
        )

    def places(self, grouping: str, outcomes: Ints, places: Places) -> Places:
        """Places of outcomes in the sample of one grouping, from those of their requests [n]."""
        code = self._groupings.get(grouping)
        if code is None:
            return places
        chosen = np.flatnonzero(self._columns["grouping"] == code)
        rows, found = _rows(outcomes, self._columns["outcome"][chosen])
        own = places.copy()
        own[rows[found]] = self._columns["place"][chosen[found]]
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
        """Let go of draws whose outcome is gone."""
        _, found = _rows(outcomes, self._columns["outcome"])
        kept = {name: self._columns[name][found].copy() for name in ("outcome", "place", "grouping", "group")}
        self._columns = GrowingColumns({name: column.dtype for name, column in kept.items()})
        self._columns.extend(**kept)


def _rows(outcomes: Ints, sought: Ints) -> tuple[Indices, Flags]:
    """Row of each outcome that is sought, and whether it is there [m]."""
    rows = np.searchsorted(outcomes, sought)
    found = np.zeros(len(sought), np.bool_)
    inside = rows < len(outcomes)
    found[inside] = outcomes[rows[inside]] == sought[inside]
    return rows, found
