"""Thresholds and label budgets of a proposal, by the arithmetic that `credence check` announces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.app.detection_forecast import (
    MOST_LABELS,
    TYPICAL_GROUPS,
    detection,
    labels_a_day,
    typical_fault,
    when,
)
from service.app.proposal.classes import Classes, predictions
from service.app.proposal.profile import Profile
from service.app.proposal.roles import Roles
from service.config.assessments import EstimationSettings, IdentificationSettings
from service.config.budget import Budget
from service.config.model import ModelSettings
from service.domain.errors import misuse
from service.domain.groupings import ALL
from service.domain.times import duration
from service.statistics.detection_time import Delay

MOST_GROUPS: Final = 50
"""Groups of a grouping that gets labels of its own; with more, each gets few."""

_FEWEST_TRUE: Final = 50
"""Sampled rows with a true class, below which the accuracy is taken from scores."""


@dataclass(frozen=True)
class Threshold:
    """The accuracy that groups must have, and why."""

    value: float
    why: str


@dataclass(frozen=True)
class LabelBudget:
    """Labels a day for one grouping, or None for none, and why."""

    labels: int | None
    why: str


def propose_threshold(
    profile: Profile, roles: Roles, classes: Classes, *, given: float | None, drop: float
) -> Threshold:
    """The threshold: half a drop below the accuracy of the sample, or below the mean of its scores."""
    if given is not None:
        return Threshold(given, "named by --min-accuracy")
    rows = [*predictions(profile, roles, classes)]
    labelled = [predicted == true for predicted, _, true in rows if true is not None]
    if len(labelled) >= _FEWEST_TRUE:
        level = sum(labelled) / len(labelled)
        source = f"{level:.1%} of {len(labelled):,} sampled rows with a true class are right"
    elif rows:
        level = sum(score for _, score, _ in rows) / len(rows)
        source = (
            f"the mean score of {len(rows):,} sampled rows is {level:.1%}, which is what the model itself "
            "expects; no true classes confirm it"
        )
    else:
        level, source = 0.9, "no sampled row has a score, so 90% is assumed"
    value = min(max(round(level - drop / 2, 3), 0.01), 0.99)
    return Threshold(
        value,
        f"{source}. The threshold is half of the {100 * drop:g} points to detect below that, so that healthy "
        "groups are above it. Set what you promise",
    )


class FallArithmetic:
    """Labels a day that find a fall across a threshold; the same for all groupings with as many groups.

    Args:
        model: without assessments.
        drop: that is to be found, in shares.
        threshold: of every group.
    """

    def __init__(self, model: ModelSettings, *, drop: float, threshold: float) -> None:
        self.model = model
        self.drop = drop
        self.threshold = threshold
        self.fault = typical_fault(threshold, drop)
        self._needed: dict[int, tuple[int, Delay] | None] = {}

    def needed(self, groups: int) -> tuple[int, Delay] | None:
        """The fewest labels a day, and how soon they find the fall; None if no budget finds it in time."""
        if groups not in self._needed:
            self._needed[groups] = self._calculated(groups)
        return self._needed[groups]

    def _calculated(self, groups: int) -> tuple[int, Delay] | None:
        asked = IdentificationSettings(grouping=ALL, budget=Budget(labels=1, per_days=1))
        labels = labels_a_day(self.model, asked, self.fault, self.threshold, groups=groups, late=True)
        if labels is None:
            return None
        asked = asked.model_copy(update={"budget": Budget(labels=labels, per_days=1)})
        return labels, detection(self.model, asked, self.fault, self.threshold, groups=groups).alert


def propose_budget(arithmetic: FallArithmetic, *, groups: int, is_attribute: bool) -> LabelBudget:
    """Labels a day that find a fall across the threshold in the time asked for, 9 of 10 times."""
    if groups > MOST_GROUPS:
        return LabelBudget(
            None, f"{groups:,} groups, more than {MOST_GROUPS}: each would get few of the labels"
        )
    model, fault = arithmetic.model, arithmetic.fault
    # Values that the sample lacks may come; `credence check` counts as many.
    counted = max(groups, TYPICAL_GROUPS) if is_attribute else groups
    within = duration(model.find_within_days * 86_400)
    needed = arithmetic.needed(counted)
    if needed is None:
        return LabelBudget(
            None,
            f"no budget finds a fall of {100 * arithmetic.drop:g} points in one of {counted} groups within "
            f"{within}; give it more time (--decide-within), or look for larger falls (--detect)",
        )
    labels, alert = needed
    divergence = float(
        np.sum(special.rel_entr([fault.after, 1 - fault.after], [fault.before, 1 - fault.before]))
    )
    odds = math.log(1 / (1 - model.alerts.confidence))
    also = f" (counted as {counted}, as new values may come)" if counted != groups else ""
    reason = (
        f"A group that falls from {fault.before:.1%} to {fault.after:.1%} is decided by about "
        f"{odds / divergence:.0f} of its own labels: on average each adds {divergence:.3f} to the "
        f"logarithm of the evidence, which has to reach {odds:.1f}, that of "
        f"1 / {1 - model.alerts.confidence:.2g}. Labels go to the group that seems the weakest; the first "
        "ones only find out which that is."
    )
    found = f"With {labels:,} a day a fall is {when('found', alert)}; {within} are asked for"
    return LabelBudget(labels, f"{groups} groups{also}. {reason} {found} (docs/choosing.md)")


def propose_overall(model: ModelSettings, *, drop: float, threshold: float, most: int | None) -> LabelBudget:
    """Labels a day for the accuracy over all traffic, at most so many: where no grouping gets any.

    Raises:
        ConfigurationError: no budget finds such a fall in time, even in all traffic together.
    """
    fault = typical_fault(threshold, drop)
    asked = EstimationSettings(budget=Budget(labels=1, per_days=1))
    needed = labels_a_day(model, asked, fault, threshold, groups=1, late=True)
    within = duration(model.find_within_days * 86_400)
    if needed is None:
        problem = (
            f"no budget of up to {MOST_LABELS:,} labels a day finds a fall of {100 * drop:g} points across "
            f"the threshold of {threshold:.1%} within {within}; look for larger falls (--detect), more time "
            "(--decide-within), or another threshold (--min-accuracy)"
        )
        raise misuse("--detect", problem)
    labels = min(needed, most or MOST_LABELS)
    asked = asked.model_copy(update={"budget": Budget(labels=labels, per_days=1)})
    alert = detection(model, asked, fault, threshold, groups=1).alert
    return LabelBudget(
        labels,
        "No grouping gets labels of its own, so items are drawn from all traffic. "
        f"With {labels:,} a day a fall of the accuracy from {fault.before:.1%} to {fault.after:.1%} is "
        f"{when('found', alert)}; {within} are asked for (docs/choosing.md)",
    )


def within_limit(budgets: Sequence[LabelBudget], most: int | None) -> list[LabelBudget]:
    """Budgets that together are at most so many labels a day: the smallest ones first."""
    left = math.inf if most is None else most
    kept = dict[int, LabelBudget]()
    for place, each in sorted(enumerate(budgets), key=lambda item: item[1].labels or 0):
        if each.labels is not None and each.labels > left:
            why = (
                f"{each.labels:,} labels a day are needed, and {left:,.0f} are left of "
                f"--labels-per-day {most:,}"
            )
            kept[place] = LabelBudget(None, why)
        else:
            kept[place] = each
            left -= each.labels or 0
    return [kept[place] for place in range(len(budgets))]
