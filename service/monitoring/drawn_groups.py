"""The groups that labels were requested for, and the place of the first request of each."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

import numpy as np

from service.domain.arrays import Codes, Flags
from service.domain.grouping_fingerprints import grouping_key
from service.domain.request_order import NO_PLACE, Places
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
        """Take in further requests.

        Args:
            codes: of the groups that they were drawn for [n].
            places: of the requests [n].
        """
        unknown = np.full(len(self._codes) - len(self._firsts), NO_PLACE, np.uint64)
        self._firsts = np.append(self._firsts, unknown)
        np.minimum.at(self._firsts, codes, places)

    def rebuild(self, codes: Codes, places: Places) -> None:
        """Find all first places again, from all requests that are left; arguments as of `add`."""
        self._firsts = np.zeros(0, np.uint64)
        self.add(codes, places)

    def has_firsts(self, codes: Codes, places: Places) -> bool:
        """Whether some of these requests are the first ones of their groups; arguments as of `add`."""
        return bool(np.any(self._firsts[codes] == places))

    def first_places(self, further: Mapping[GroupKey, int]) -> dict[GroupKey, int]:
        """Place of the first request of every group; groups by votes are left out.

        Args:
            further: places of further draws.
        """
        firsts = dict(zip(self._codes, self._firsts.tolist(), strict=True))
        for key, place in further.items():
            firsts[key] = min(place, firsts.get(key, NO_PLACE))
        return {key: place for key, place in firsts.items() if place != NO_PLACE and key != _BY_VOTES}

    def keep(self, kept: Flags) -> None:
        """Let go of some groups, and number the others without gaps; `rebuild` follows.

        Args:
            kept: which stay [codes].
        """
        self._codes = {key: number for number, key in enumerate(compress(self._codes, kept))}
