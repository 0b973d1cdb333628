"""What evidence starts from: the order in which groups arrived, open requests, and a checkpoint (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Indices
from service.domain.cells import CellSpace
from service.domain.grouping_fingerprints import definitions, grouping_key
from service.domain.request_order import NO_PLACE, Places, request_place
from service.statistics.grouped_e_processes import STATE, GroupEvidence
from service.store.checkpoints import DatedChange, EvidenceCheckpoint, GroupingState
from service.store.references import ReferenceWindow
from service.store.requests import OpenRequest

GroupKey = tuple[str, str]
"""What a grouping is known by, as `grouping_key` makes it, and the name of one of its groups."""

OTHERS_SAY: Final = frozenset({"votes", "challenge"})
"""Kinds of groupings by what other classifiers say: where these differ the model is right less often than its
scores tell, and a change may be theirs."""

ANY_GROUPING: Final = ""
"""Key of requests whose assessment is configured no more: they may be of any grouping."""


def open_places(
    open_requests: Mapping[str, OpenRequest], settings: ModelSettings, keys: Mapping[str, str]
) -> dict[GroupKey, int]:
    """The place of the first open request of every group.

    Args:
        open_requests: by id.
        settings: of the model.
        keys: what groupings are known by, by name.
    """
    found: dict[GroupKey, int] = {}
    drawn = [(request_id, each) for request_id, one in open_requests.items() for each in (one, *one.shared)]
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


@dataclass(frozen=True)
class Base:
    """Evidence about the groups of one grouping by a checkpoint.

    Attributes:
        evidence: what is needed to continue [G].
        changes: those that were confirmed, by group.
        place: labels up to there are known.
    """

    evidence: GroupEvidence
    changes: Mapping[int, DatedChange]
    place: int

    @classmethod
    def none(cls, group_count: int) -> Base:
        """Without a checkpoint."""
        return cls(GroupEvidence.none(group_count), {}, 0)


class Checkpoint:
    """A checkpoint, read with the groupings as they are configured now.

    Args:
        stored: as it is kept; None if there is none.
        space: the model's cells.
        reference: the window that "now" is compared with, if one was set.
    """

    def __init__(
        self, stored: EvidenceCheckpoint | None, space: CellSpace, reference: ReferenceWindow | None
    ) -> None:
        is_current = stored is not None and stored.window == reference
        self.keys = grouping_keys(space)
        self.arrivals: list[GroupKey] = [] if stored is None else stored.arrivals
        self.place = stored.place if stored is not None and is_current else 0
        self._states: dict[str, GroupingState] = {}
        self.other_states: list[GroupingState] = []
        names = {key: name for name, key in reversed(self.keys.items())}
        for state in stored.groupings if stored is not None and is_current else []:
            # Under another name it is the same grouping; under the same name, with another key, it is not.
            same = self.keys.get(state.grouping) == state.key
            name = state.grouping if same else names.get(state.key)
            if name is None or name in self._states:
                self.other_states.append(state)
            else:
                self._states[name] = state

    @property
    def groupings(self) -> set[str]:
        """Those of which it has evidence."""
        return set(self._states)

    def state(self, grouping: str) -> GroupingState | None:
        """Evidence about a grouping as it is kept."""
        return self._states.get(grouping)

    def base(self, grouping: str, groups: list[str]) -> Base:
        """Evidence about the groups of a grouping; about those that it does not know, none."""
        none, state = GroupEvidence.none(len(groups)), self._states.get(grouping)
        if state is None:
            return Base(none, {}, self.place)
        index = {group: number for number, group in enumerate(state.groups)}
        known = np.array([group for group, name in enumerate(groups) if name in index], np.intp)
        rows = np.array([index[name] for name in groups if name in index], np.intp)
        columns = {name: column.copy() for name, column in vars(none).items()}
        for name in STATE:
            kept = np.frombuffer(state.columns[name], "<f8")
            columns[name][known] = kept.reshape(len(state.groups), *columns[name].shape[1:])[rows]
        changes = {group: state.changes[name] for group, name in enumerate(groups) if name in state.changes}
        return Base(GroupEvidence(**columns), changes, self.place)


def grouping_keys(space: CellSpace) -> dict[str, str]:
    """What every grouping of a model is known by, whatever it is called, by name."""
    return {name: grouping_key(name, definition) for name, definition in definitions(space).items()}


def arrival_order(
    arrivals: Sequence[GroupKey], first_places: Mapping[GroupKey, int], until: int = NO_PLACE
) -> list[GroupKey]:
    """Groups of all groupings of a model, in the order in which labels were first requested for them.

    Those of the checkpoint come first, as it knows all requests up to its place. Those of groupings that are
    configured no more keep their numbers. So the order does not change when labels are let go of, when a
    process starts, when traffic is counted again from its beginning, or when the configuration changes.

    Args:
        arrivals: those that the checkpoint knows, in their order.
        first_places: of groups that have labels, or wait for some: the place of the first request.
        until: groups whose first request has this place, or a later one, are left out.
    """
    known = set(arrivals)
    later = [(place, key) for key, place in first_places.items() if key not in known and place < until]
    return [*arrivals, *(key for _, key in sorted(later))]


def arrival_numbers(order: list[GroupKey], key: str, groups: list[str]) -> Indices:
    """Number of every group of a grouping in the order of arrival, from 1; of new ones, behind all [G]."""
    numbers = {group: number for number, group in enumerate(order, start=1)}
    return np.array([numbers.get((key, group), len(order) + 1) for group in groups], dtype=np.intp)
