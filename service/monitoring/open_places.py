"""Where open requests stand among all requests, by the group that they are for (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from service.config.model import ModelSettings
from service.domain.request_order import NO_PLACE, Places, request_place
from service.monitoring.outcome_rows import GroupKey
from service.store.requests import OpenRequest

ANY_GROUPING: Final = ""
"""Key of requests whose assessment is configured no more: they may be of any grouping."""


def open_places(
    open_requests: Mapping[str, OpenRequest], settings: ModelSettings, keys: Mapping[str, str]
) -> dict[GroupKey, int]:
    """The place of the first open request of every group; `keys` has the key of every grouping, by name."""
    found: dict[GroupKey, int] = {}
    usual = [(request_id, one) for request_id, one in open_requests.items() if not one.gold]
    drawn = [(request_id, each) for request_id, one in usual for each in (one, *one.shared)]
    for request_id, request in drawn:
        assessment = settings.assessments.get(request.assessment)
        grouping = ANY_GROUPING if assessment is None else keys.get(assessment.asked_grouping, ANY_GROUPING)
        place = request_place(request.requested_at, request_id)
        key = grouping, request.group
        found[key] = min(place, found.get(key, NO_PLACE))
    return found


def first_open(opened: Mapping[GroupKey, int], key: str, groups: Iterable[str]) -> Places:
    """The place of the first open request of every group of a grouping; `NO_PLACE` without one [G]."""
    return np.array(
        [
            min(opened.get((key, group), NO_PLACE), opened.get((ANY_GROUPING, group), NO_PLACE))
            for group in groups
        ],
        dtype=np.uint64,
    )
