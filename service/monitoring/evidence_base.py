"""What evidence about the groups of a grouping starts from: what a checkpoint knows of them (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Indices
from service.domain.cells import CellSpace, definitions, grouping_key
from service.domain.request_order import NO_PLACE, Places
from service.monitoring.outcome_table import LabelSequence
from service.statistics.grouped_e_processes import STATE, GroupEvidence
from service.store.checkpoints import DatedChange, EvidenceCheckpoint, GroupingState
from service.store.references import ReferenceWindow

GroupKey = tuple[str, str]
"""What a grouping is known by, as `grouping_key` makes it, and the name of one of its groups."""


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

    Without one, or with one of another reference window, no evidence is known.

    Attributes:
        keys: `grouping_key` of every grouping, by name.
        arrivals: groups in the order of their arrival.
        place: labels of requests up to there are known.
        states: evidence about groupings, by name, as it is kept.
        other_states: evidence about groupings that are configured no more.
    """

    def __init__(
        self, stored: EvidenceCheckpoint | None, space: CellSpace, reference: ReferenceWindow | None
    ) -> None:
        is_current = stored is not None and stored.reference == reference
        self.keys = {name: grouping_key(name, by) for name, by in definitions(space).items()}
        self.arrivals: list[GroupKey] = [] if stored is None else stored.arrivals
        self.place = stored.place if stored is not None and is_current else 0
        self.states: dict[str, GroupingState] = {}
        self.other_states: list[GroupingState] = []
        names = {key: name for name, key in reversed(self.keys.items())}
        for state in stored.groupings if stored is not None and is_current else []:
            # Under another name it is the same grouping; under the same name, with another key, it is not.
            same = self.keys.get(state.grouping) == state.key
            name = state.grouping if same else names.get(state.key)
            if name is None or name in self.states:
                self.other_states.append(state)
            else:
                self.states[name] = state

    def base(self, grouping: str, groups: list[str]) -> Base:
        """Evidence about the groups of a grouping; about those that it does not know, none."""
        none, state = GroupEvidence.none(len(groups)), self.states.get(grouping)
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


@dataclass(frozen=True)
class WatchedGroups:
    """The groups of one grouping, and what evidence about them starts from.

    Attributes:
        names: of the groups [G].
        has_threshold: whether the accuracy threshold applies to them.
        numbers: in the order of arrival among all groups of the model, from 1 [G].
        ended: the first request of every group that is still open; labels from there on wait [G].
        base: evidence by the checkpoint.
        sharing: how many groupings of the model are the same one under several names.
    """

    names: list[str]
    has_threshold: bool
    numbers: Indices
    ended: Places
    base: Base
    sharing: int = 1

    @classmethod
    def alone(cls, names: list[str], *, has_threshold: bool = True) -> WatchedGroups:
        """Those of a model's only grouping: they arrived in their order, and no request is open."""
        count = len(names)
        ended = np.full(count, NO_PLACE, dtype=np.uint64)
        return cls(names, has_threshold, np.arange(1, count + 1), ended, Base.none(count))

    def in_order(self, labels: LabelSequence, groups: Indices) -> tuple[LabelSequence, Indices]:
        """The labels that count now, by group, and in each in the order of their requests; groups as well.

        A label counts once all earlier requests for its group have ended.
        """
        counting = (labels.places > self.base.place) & (labels.places < self.ended[groups])
        if not counting.all():
            labels, groups = labels.part(counting), groups[counting]
        # They are nearly sorted by then, which makes this fast; and numbers of 16 bits are sorted faster.
        order = np.argsort(labels.places, kind="stable")
        of_groups = groups[order].astype(np.uint16) if len(self.names) <= 1 << 16 else groups[order]
        order = order[np.argsort(of_groups, kind="stable")]
        return labels.part(order), groups[order]

    def threshold(self, settings: ModelSettings) -> float | None:
        """The accuracy that labels can show the groups to be below, if there is one."""
        least = settings.alerts.min_accuracy
        # Nothing is less accurate than 0, and a single error tells that 1 is not reached.
        return least if least is not None and 0 < least < 1 and self.has_threshold else None
