"""Suspected groups: they get a share of the label requests, and the reserve of a budget (pure)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats
from service.monitoring.drift import GroupingDrift
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.statistics.drift import drift_label_shares


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


def suspected_aim(
    grouping: GroupingSnapshot | None, drift: GroupingDrift | None, *, label_share: float, since: float
) -> Aim | None:
    """Label requests for the suspected groups of a grouping; None where no group is.

    A group is suspected if its traffic has drifted, with its drift score as weight; if its accuracy has
    changed at `since` or later; and if it is estimated to violate a threshold, until evidence confirms that.
    """
    if grouping is None:
        return None
    low, miscalibrated = grouping.low, grouping.miscalibrated
    if (evidence := grouping.evidence) is not None:
        low = low & ~evidence.confirmed["below_threshold"]
        miscalibrated = miscalibrated & ~evidence.confirmed["miscalibrated"]
    weights = np.where(low | miscalibrated, 1.0, 0.0)
    if drift is not None:
        weights = np.maximum(weights, np.where(drift.drifted & drift.has_recent, drift.score, 0.0))
    for group, change in grouping.change_points.items():
        if change.since >= since:
            weights[grouping.groups.index(group)] = 1.0
    shares = drift_label_shares(weights, weights > 0)
    return None if shares is None else Aim(shares, label_share)
