"""What an assessment asks, in words for people who have never heard of the method."""

from __future__ import annotations

from service.config.assessments import (
    QUALITIES,
    AssessmentSettings,
    ChallengeSettings,
    ComparisonSettings,
    EnsembleSettings,
    IdentificationSettings,
    PerformanceSettings,
    PolicySettings,
)

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


def chooser(settings: AssessmentSettings) -> str:
    """Who chooses what is labelled next: a policy, or the plan of an ensemble or a challenge."""
    return settings.policy if isinstance(settings, PolicySettings) else "planned"
