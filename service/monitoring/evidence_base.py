"""What evidence about the groups of a grouping starts from: a checkpoint, thresholds, shares of alpha."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Floats, Indices
from service.domain.cells import CellSpace, definitions, grouping_key
from service.domain.request_order import NO_PLACE, Places
from service.monitoring.outcome_rows import GroupKey
from service.monitoring.outcome_table import LabelSequence, OutcomeLedger
from service.statistics.e_processes import log_arrival_weights
from service.statistics.grouped_e_processes import STATE, GroupEvidence
from service.store.checkpoints import DatedChange, EvidenceCheckpoint, GroupingState, RateState
from service.store.references import ReferenceWindow

Group = TypeVar("Group", str, GroupKey)

EvidenceKind = Literal["below_threshold", "declined", "miscalibrated", "changed"]
"""What can be confirmed of a group."""

KINDS: tuple[EvidenceKind, ...] = ("below_threshold", "declined", "miscalibrated", "changed")


class Checkpoint:
    """A checkpoint, read with the groupings as they are configured now.

    Without one, or with one of another reference window, no evidence is known.
    """

    def __init__(
        self, stored: EvidenceCheckpoint | None, space: CellSpace, reference: ReferenceWindow | None
    ) -> None:
        is_current = stored is not None and stored.reference == reference
        self.keys = {name: grouping_key(name, by) for name, by in definitions(space).items()}
        # groups in the order of their arrival
        self.arrivals: list[GroupKey] = [] if stored is None else stored.arrivals
        # labels of requests up to there are known
        self.position = stored.position if stored is not None and is_current else 0
        self.states: dict[str, GroupingState] = {}  # by the name of the grouping
        self.other_states: list[GroupingState] = []  # of groupings that are configured no more
        self.is_current = is_current
        # also of another reference: groups keep the numbers of their arrival
        self.rate_states: list[RateState] = [] if stored is None else stored.rates
        names = {key: name for name, key in reversed(self.keys.items())}
        for state in stored.groupings if stored is not None and is_current else []:
            # Under another name it is the same grouping; under the same name, with another key, it is not.
            same = self.keys.get(state.grouping) == state.key
            name = state.grouping if same else names.get(state.key)
            if name is None or name in self.states:
                self.other_states.append(state)
            else:
                self.states[name] = state

    def evidence(self, grouping: str, groups: list[str]) -> GroupEvidence:
        """Evidence about the groups of a grouping; about those that it does not know, none."""
        none, state = GroupEvidence.none(len(groups)), self.states.get(grouping)
        if state is None:
            return none
        index = {group: number for number, group in enumerate(state.groups)}
        known = np.array([group for group, name in enumerate(groups) if name in index], np.intp)
        rows = np.array([index[name] for name in groups if name in index], np.intp)
        columns = {name: column.copy() for name, column in vars(none).items()}
        for name in STATE:
            if name not in state.columns:  # of a version that did not know it
                continue
            kept = np.frombuffer(state.columns[name], "<f8")
            columns[name][known] = kept.reshape(len(state.groups), *columns[name].shape[1:])[rows]
        return GroupEvidence(**columns)

    def former_states(self, ledger: OutcomeLedger, *, until: int) -> list[GroupingState]:
        """States of groupings not configured now, for the next checkpoint, of requests up to a place.

        Without those that have labels among these requests: a checkpoint cannot tell which of their groups
        these are of. The evidence of such a grouping begins again once it is restored. If it continued
        without these labels, you could leave out labels that you know by removing a grouping for a while.
        """
        if ledger.samples_traffic:  # labels of all groupings
            return []
        passed = {key for key, _ in ledger.groups_requested(after=self.position, until=until)}
        return [state for state in self.other_states if state.key not in passed]

    def changes(self, grouping: str, groups: list[str]) -> dict[int, DatedChange]:
        """Confirmed changes of the groups of a grouping, by group."""
        changes = self.states[grouping].changes if grouping in self.states else {}
        return {group: changes[name] for group, name in enumerate(groups) if name in changes}


def arrival_order(
    known: Sequence[Group], firsts: Mapping[Group, int], *, until: int = NO_PLACE
) -> list[Group]:
    """Groups in the order in which labels were first requested for them, by the places of these requests.

    Those that a checkpoint knows come first, as it knows all requests up to its place. They keep their
    numbers if nothing is requested for them any more. So the order does not change when labels are trimmed,
    when a process starts, when traffic is counted again from its beginning, or when the configuration
    changes. Groups whose first request has the place `until`, or a later one, are left out.
    """
    order, known_ones = list(known), set(known)
    later = [(place, group) for group, place in firsts.items() if group not in known_ones and place < until]
    order += [group for _, group in sorted(later)]
    return order


@dataclass(frozen=True)
class WatchedGroups:
    """The groups of one grouping, and what evidence about them starts from."""

    names: list[str]  # [G]
    min_accuracy: Floats  # their accuracy thresholds; NaN without one [G]
    numbers: Indices  # in the order of arrival among all groups of the model, from 1 [G]
    ended: Places  # the first request of every group that is still open; labels from there on wait [G]
    base: GroupEvidence  # by the checkpoint, to be continued
    base_changes: Mapping[int, DatedChange]  # confirmed by the checkpoint, by group
    base_position: int  # labels of requests up to there are in the checkpoint
    sharing: int  # how many groupings of the model are the same one under several names

    def in_order(self, labels: LabelSequence, groups: Indices) -> tuple[LabelSequence, Indices]:
        """The labels that count now, by group, and in each in the order of their requests; groups as well.

        A label counts once all earlier requests for its group have ended.
        """
        counting = (labels.places > self.base_position) & (labels.places < self.ended[groups])
        if not counting.all():
            labels, groups = labels.part(counting), groups[counting]
        # They are nearly sorted by then, which makes this fast; and numbers of 16 bits are sorted faster.
        order = np.argsort(labels.places, kind="stable")
        of_groups = groups[order].astype(np.uint16) if len(self.names) <= 1 << 16 else groups[order]
        order = order[np.argsort(of_groups, kind="stable")]
        return labels.part(order), groups[order]

    def thresholds(self, settings: ModelSettings) -> Floats:
        """What the accuracy of every group can be shown to be below; NaN if it has no such threshold [G]."""
        least = self.min_accuracy
        # Nothing is less accurate than 0, and a single error tells that 1 is not reached, unless labels err.
        possible = (least > 0) & ((least < 1) | ((least == 1) & settings.labels_per_item.may_err))
        return np.where(possible, least, np.nan)


def log_shares(watched: WatchedGroups, settings: ModelSettings) -> dict[EvidenceKind, Floats]:
    """Logarithm of the share of alpha that every group has for every kind of evidence [G].

    Groups without a threshold have none for that kind, and more for the others.
    """
    possible = {kind: np.ones(len(watched.names), np.bool_) for kind in KINDS}
    possible["below_threshold"] = ~np.isnan(watched.thresholds(settings))
    if settings.labels_per_item.may_err:
        del possible["miscalibrated"]
    kinds = np.sum(list(possible.values()), axis=0)
    weights = log_arrival_weights(watched.numbers) - np.log(kinds * watched.sharing)
    if not possible["below_threshold"].any():
        del possible["below_threshold"]
    return {kind: np.where(groups, weights, -np.inf) for kind, groups in possible.items()}
