"""What a configuration does for the owner of a model, in sentences, and what keeps it from working well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from service.config.assessments import ErrorRateSettings
from service.config.model import ModelSettings
from service.domain.times import duration
from service.statistics.names import LABELLED_RATES

if TYPE_CHECKING:
    from service.app.detection_forecast import Forecast

_DAY = 86_400


def summary(model: ModelSettings) -> Iterator[str]:
    """Which groups are watched, by how many labels."""
    groupings = ["all traffic", *(f"every {name}" for name in model.groupings)]
    yield (
        f"  in short: counts the predictions of {_listed(groupings)}, and compares recent ones with a "
        "reference; "
        "this needs no labels"
    )
    if not model.assessments:
        return
    budgets = [each.budget for each in model.assessments.values()]
    a_day = sum(each.labels / each.per_days for each in budgets if each.per_days is not None)
    once = sum(each.labels for each in budgets if each.per_days is None)
    labels = [f"{a_day:,.0f} labels a day"] * (a_day > 0) + [f"{once:,} labels once"] * (once > 0)
    text = f"  in short: estimates accuracy from at most {_listed(labels)}"
    if targets := model.alerts.given("min_accuracy"):
        ends = [f"{target:.1%}" for target in sorted({min(targets), max(targets)})]
        text += (
            f", and alerts if a group is below {' to '.join(ends)} with a probability of "
            f"{model.alerts.confidence:.0%}"
        )
    yield text
    asked = {each.chosen_grouping for each in model.assessments.values()}
    if others := [name for name in model.groupings if name not in asked]:
        yield (
            f"  in short: requests no labels by {_listed(others)}; labels of other groupings count "
            "there too, so "
            "a fault of a small group is found late"
        )


def warnings(model: ModelSettings, forecasts: Mapping[str, Forecast]) -> Iterator[str]:
    """What keeps a fault from being found in time, and what to change; forecasts are by assessment."""
    if model.assessments and not model.alerts.given("min_accuracy"):
        yield "  warning: no group is ever reported as inaccurate; set alerts.min_accuracy"
    yield from _unconfirmed(model)
    for name, assessment in model.assessments.items():
        if assessment.budget.per_days is None:
            yield (
                f"  warning: {name} spends its {assessment.budget.labels:,} labels once; a fault "
                "after that gets no "
                "labels. Set budget.per_days"
            )
    if "find_within_days" not in model.model_fields_set:
        return
    within = duration(model.find_within_days * _DAY)
    for name, found in forecasts.items():
        if found.days > model.find_within_days:
            remedy = "allow more time, or fewer groups"
            if found.labels is not None:
                remedy = f"{found.labels:,} labels a day do, or allow more time"
            yield (
                f"  warning: {name} usually finds that fall later than in find_within_days "
                f"({within}); {remedy}"
            )


def _unconfirmed(model: ModelSettings) -> Iterator[str]:
    """Limits of error rates that evidence cannot confirm."""
    if model.labels_per_item.stated_bound is not None:
        return
    for name, rates in model.assessments_of(ErrorRateSettings).items():
        if (
            rates.limits
            or rates.group_limits
            or {*rates.max_differences, *rates.min_ratios} & {*LABELLED_RATES}
        ):
            yield (
                f"  warning: evidence never confirms that error rates of {name} are beyond their limits, "
                "because labels may be wrong; set labels_per_item.max_error to a number"
            )


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
