"""How soon an assessment finds a fault at its budget, for `credence check`."""

from __future__ import annotations

import math

import numpy as np

from service.config.assessments import AssessmentSettings, PolicySettings
from service.config.model import ModelSettings
from service.config.settings import Settings
from service.domain.cells import POSITIVE_SCORE, SCORE_BIN
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
_DAY = 86_400.0


def forecast(settings: Settings, model: str, assessment: AssessmentSettings) -> str | None:
    """When a group that falls by 10 points is found; None where no threshold, period or group is given.

    The accuracy before is as far above the threshold as that after it is below. Labels have been requested
    for a month, and neither scores nor classes show the fault.
    """
    threshold = settings.models[model].alerts.min_accuracy
    # Labels of strata are no evidence of accuracies.
    no_groups = assessment.asked_grouping in {SCORE_BIN, POSITIVE_SCORE} or assessment.task == "error_rates"
    if (
        threshold is None
        or assessment.budget.per_days is None
        or no_groups
        or not isinstance(assessment, PolicySettings)
    ):
        return None
    before = min(threshold + DROP / 2, (1 + threshold) / 2)
    drop = min(DROP, before / 2)
    groups = _groups(settings, model, assessment.asked_grouping)
    found = detection(settings.models[model], assessment, Fault(before, drop), threshold, groups=groups)
    what = "an accuracy" if groups == 1 else f"one {assessment.asked_grouping} of {groups} with equal traffic"
    items = settings.models[model].labels_per_item.items_per_label(before)
    spent = "" if items == 1 else f"; a new item takes about {1 / items:.2f} labels of the budget"
    return (
        f"{what} that falls from {100 * before:g}% to {100 * (before - drop):g}% is "
        f"{_when('found', found.alert)}, and {_when('confirmed', found.confirmed)}{spent}"
    )


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


def _when(done: str, delay: Delay) -> str:
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
