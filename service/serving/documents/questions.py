"""What an assessment asks, in words for people who have never heard of the method."""

from __future__ import annotations

from service.config.assessments import (
    QUALITIES,
    AssessmentSettings,
    ChallengeSettings,
    ComparisonSettings,
    EnsembleSettings,
    ErrorRateSettings,
    IdentificationSettings,
    PerformanceSettings,
    PolicySettings,
)
from service.domain.assessments import LabelledRate
from service.statistics.rates.measures import RATES

_ESTIMATED = {
    "accuracy": "How accurate is the model in every {grouping}?",
    "overall_accuracy": "How accurate is the model over all traffic?",
    "calibration": "How well calibrated is the model in every {grouping}?",
    "confusion": "What is each predicted class really?",
    "error_rates": "How far apart are the error rates of every {grouping}?",
}


def quality(settings: IdentificationSettings) -> str:
    """What an identification looks for."""
    return QUALITIES[settings.metric, settings.end]


def question(settings: AssessmentSettings) -> str:
    """What an assessment asks."""
    match settings:
        case IdentificationSettings():
            groups = f"{settings.top_m} groups by {settings.grouping} are"
            if settings.top_m == 1:
                groups = f"{settings.grouping} is"
            return f"Which {groups} the {quality(settings)}?"
        case ComparisonSettings(between=[first, second]):
            rivals = f"{settings.grouping} {first} less or more accurate than {second}"
            return f"Is {rivals}, by more than {100 * settings.region:g} points?"
        case PerformanceSettings():
            return f"What are precision and recall on class {settings.positive_class}, at every threshold?"
        case EnsembleSettings():
            return f"How precise are the ensemble and its members on class {settings.positive_class}?"
        case ChallengeSettings():
            by = f"{100 * settings.margin:g} percentage points"
            return f"Is {settings.challenger} better than the model, by more than {by}?"
        case _:
            return _ESTIMATED[settings.metric].format(grouping=settings.chosen_grouping.replace("_", " "))


def asked_rates(settings: ErrorRateSettings) -> str:
    """Which error rates labels are requested for, and their limits."""
    rate, by = settings.rate.replace("_", " "), settings.grouping
    limits = [f"{_limit(name, limit)} in every {by}" for name, limit in settings.limits.items()]
    limits += [
        f"{_limit(name, limit)} in {by} {group}"
        for group, own in settings.group_limits.items()
        for name, limit in own.items()
    ]
    limits += [
        f"difference of {name.replace('_', ' ')} at most {100 * limit:g}%"
        for name, limit in settings.max_differences.items()
    ]
    limits += [
        f"ratio of {name.replace('_', ' ')} at least {100 * limit:g}%"
        for name, limit in settings.min_ratios.items()
    ]
    listed = f"limits: {', '.join(limits)}" if limits else "no limits, so no alerts"
    return f"labels are requested for the {rate} on class {settings.positive_class}; {listed}"


def _limit(rate: LabelledRate, limit: float) -> str:
    end = "at least" if RATES[rate].is_good else "at most"
    return f"{rate.replace('_', ' ')} {end} {100 * limit:g}%"


def chooser(settings: AssessmentSettings) -> str:
    """Who chooses what is labelled next: a policy, or the plan of an ensemble or a challenge."""
    return settings.policy if isinstance(settings, PolicySettings) else "planned"
