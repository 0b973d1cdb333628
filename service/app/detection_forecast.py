"""How soon an assessment finds a fault at its budget, for `credence check`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from service.config.assessments import AssessmentSettings, PolicySettings
from service.config.model import ModelSettings
from service.config.settings import Settings
from service.domain.groupings import ALL, ByClass
from service.domain.times import duration
from service.statistics.detection_time import (
    Delay,
    Detection,
    Fault,
    Labelling,
    PolicyFamily,
    Rules,
    days_to_detection,
)

TYPICAL_GROUPS = 8
"""Groups of an attribute, whose values are not known before there is traffic."""

DROP = 0.1
"""Points of accuracy that a group loses, in a fault that nobody has described."""

MOST_LABELS = 4_096
"""Labels a day beyond which no budget is looked for."""

_POWERS = tuple(1 << power for power in range(MOST_LABELS.bit_length()))

_DAY = 86_400.0


@dataclass(frozen=True)
class Forecast:
    """How soon an assessment finds a fault of one group.

    Attributes:
        text: in a sentence.
        days: median days until the alert; infinite if that is never.
        labels: a day, with which the median is `find_within_days`; None if no budget suffices, or it is.
    """

    text: str
    days: float
    labels: int | None


def typical_fault(threshold: float, drop: float = DROP) -> Fault:
    """A drop across a threshold: the accuracy before is as far above it as that after it is below."""
    before = min(threshold + drop / 2, (1 + threshold) / 2)
    return Fault(before, min(drop, before / 2))


def forecast(
    settings: Settings, model: str, assessment: AssessmentSettings, threshold: float, *, drop: float = DROP
) -> Forecast | None:
    """When a group with this threshold that falls by `drop` is found; None without a period or a policy.

    Labels have been requested for a month, and neither scores nor classes show the fault.
    """
    chosen = settings.models[model]
    if (
        not 0 < threshold < 1
        or assessment.budget.per_days is None
        or not isinstance(assessment, PolicySettings)
    ):
        return None
    fault = typical_fault(threshold, drop)
    groups = _groups(settings, model, assessment.asked_grouping)
    found = detection(chosen, assessment, fault, threshold, groups=groups)
    what = "an accuracy" if groups == 1 else f"one {assessment.asked_grouping} of {groups} with equal traffic"
    items = chosen.labels_per_item.items_per_label(fault.before)
    spent = "" if math.isclose(items, 1) else f"; a new item takes about {1 / items:.2f} labels of the budget"
    labels = None
    if found.alert.median > chosen.find_within_days:
        labels = labels_a_day(chosen, assessment, fault, threshold, groups=groups)
    text = (
        f"{what} that falls from {100 * fault.before:g}% to {100 * fault.after:g}% is "
        f"{when('found', found.alert)}, and {when('confirmed', found.confirmed)}{spent}"
    )
    return Forecast(text, found.alert.median, labels)


def labels_a_day(
    model: ModelSettings,
    assessment: PolicySettings,
    fault: Fault,
    threshold: float,
    *,
    groups: int,
    late: bool = False,
) -> int | None:
    """The fewest labels a day that find a fault within `find_within_days`; None if `MOST_LABELS` do not.

    In the median, or with `late` 9 of 10 times. The days fall as the labels rise, so the number is found by
    bisection.
    """

    def suffices(labels: int) -> bool:
        budget = assessment.budget.model_copy(update={"labels": labels, "per_days": 1.0})
        asked = assessment.model_copy(update={"budget": budget})
        alert = detection(model, asked, fault, threshold, groups=groups).alert
        return bool((alert.late if late else alert.median) <= model.find_within_days)

    # From few labels on: with very many, the arithmetic ends before any day does.
    high = next((labels for labels in _POWERS if suffices(labels)), None)
    if high is None:
        return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def detection(
    model: ModelSettings,
    assessment: PolicySettings,
    fault: Fault,
    threshold: float,
    *,
    groups: int,
    days_before: float = 30.0,
) -> Detection:
    """How soon a fault of one of some equal groups is found, if labels were requested so long before it.

    Of every item the first label counts, as if it were right.
    """
    budget = assessment.budget
    labelling = Labelling(
        np.full(groups, 1 / groups),
        budget.labels * model.labels_per_item.items_per_label(fault.before) / (budget.per_days or math.inf),
        _family(assessment),
        reserve=assessment.reserved_labels / budget.labels,
        half_life_days=model.label_half_life_days,
        draw_half_life_hours=model.draw_half_life_hours,
        run_length=model.change_run_length,
        days_before=days_before,
    )
    rules = Rules(
        threshold,
        confidence=model.alerts.confidence,
        min_labels=model.alerts.min_labels,
        alpha=model.evidence.alpha,
        reference_labels=model.reference.labels,
    )
    return days_to_detection(fault, labelling, rules)


def when(done: str, delay: Delay) -> str:
    """The median, and the time within which nine of ten faults are found."""
    if not math.isfinite(delay.median):
        return f"usually not {done} within two years"
    late = f"within {duration(delay.late * _DAY)}" if math.isfinite(delay.late) else "later than two years"
    often = "9 of 10 times" if math.isfinite(delay.late) else "at times"
    return f"usually {done} in about {duration(delay.median * _DAY)} ({often} {late})"


def _groups(settings: Settings, model: str, grouping: str) -> int:
    by = settings.cell_space(model).groupings[grouping]
    if grouping == ALL:
        return 1
    return len(settings.models[model].classes) if isinstance(by, ByClass) else TYPICAL_GROUPS


def _family(assessment: PolicySettings) -> PolicyFamily:
    if assessment.policy == "random":
        return "traffic"
    return "adaptive" if assessment.task == "identification" else "even"
