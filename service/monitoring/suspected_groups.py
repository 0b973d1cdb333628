"""Suspected groups: they get a share of the label requests, and the reserve of a budget (pure).

Labels requested while a group is suspected are not of its reference (`reference_filling.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats
from service.monitoring.drift import GroupingDrift
from service.monitoring.evidence_base import EvidenceKind
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.statistics.drift import drift_label_shares

_LESS_ACCURATE: tuple[EvidenceKind, ...] = ("below_threshold", "declined", "changed")
"""Kinds of evidence that a group is, or became, less accurate."""


@dataclass(frozen=True)
class Suspects:
    """Which groups of one grouping are suspected, known before a label is requested; arrays are [G].

    The two differ only where evidence has confirmed what is suspected, as no label is needed to confirm it
    once more, and where scores are miscalibrated, as a reference is of accuracies.
    """

    groups: Flags  # drifted, changed, below the threshold, or confirmed to be less accurate
    weights: Floats  # shares of the labels that go to suspected groups, any scale; 0 where none is needed


def find_suspects(grouping: GroupingSnapshot, drift: GroupingDrift | None, *, since: float) -> Suspects:
    """Which groups are suspected, by earlier labels and by traffic.

    A change counts if it was at `since` or later, and for as long as it is open whether the group meets the
    accuracy threshold: few labels show a change only days later.
    """
    low, miscalibrated = grouping.low, grouping.miscalibrated
    changed = np.zeros(len(grouping.groups), np.bool_)
    is_open = grouping.undecided
    for name, change in grouping.change_points.items():
        group = grouping.groups.index(name)
        changed[group] = change.since >= since or is_open[group]
    suspected = low | changed
    if (evidence := grouping.evidence) is not None:
        suspected = np.any([suspected, *(evidence.confirmed[kind] for kind in _LESS_ACCURATE)], axis=0)
        low = low & ~evidence.confirmed["below_threshold"]
        miscalibrated = miscalibrated & ~evidence.confirmed["miscalibrated"]
    weights = np.where(low | miscalibrated | changed, 1.0, 0.0)
    if drift is not None:
        suspected |= drift.drifted
        weights = np.maximum(weights, np.where(drift.drifted & drift.has_recent, drift.score, 0.0))
    return Suspects(suspected, weights)


@dataclass(frozen=True)
class Aim:
    """Label requests for suspected groups."""

    shares: Floats  # of them, per group [G]
    label_share: float  # of the label requests that any group may get

    def groups(
        self, available: Flags, wanted: int, rng: np.random.Generator, *, reserve: int = 0
    ) -> list[int]:
        """Groups to ask for first, one a label.

        Each of the `wanted` labels may be theirs, and `reserve` further ones are.
        """
        shares = self.among(available)
        if shares is None:
            return []
        count = reserve + int(rng.binomial(wanted, self.label_share))
        named: list[int] = rng.choice(len(shares), size=count, p=shares).tolist()
        return named

    def among(self, available: Flags) -> Floats | None:
        """The same shares, of groups that can be asked alone [G]; None where none is suspected."""
        shares = np.where(available, self.shares, 0.0)
        total = shares.sum()
        return None if total == 0 else np.asarray(shares / total, np.float64)


def suspected_aim(suspects: Suspects, label_share: float) -> Aim | None:
    """Label requests for the suspected groups of a grouping; None where none needs labels."""
    shares = drift_label_shares(suspects.weights, suspects.weights > 0)
    return None if shares is None else Aim(shares, label_share)
