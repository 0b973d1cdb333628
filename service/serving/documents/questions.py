"""What an assessment asks, in words for people who have never heard of the method."""

from __future__ import annotations

from service.config.assessments import QUALITIES, AssessmentSettings

_ESTIMATED = {
    "accuracy": "How accurate is the model in every {grouping}?",
    "overall_accuracy": "How accurate is the model over all traffic?",
    "calibration": "How well calibrated is the model in every {grouping}?",
    "confusion": "What is each predicted class really?",
}


def quality(settings: AssessmentSettings) -> str:
    """What an identification looks for."""
    return QUALITIES[settings.metric, settings.end]


def question(settings: AssessmentSettings) -> str:
    """What an assessment asks."""
    if settings.task == "comparison" and settings.between:
        first, second = settings.between
        rivals = f"{settings.grouping} {first} less or more accurate than {second}"
        return f"Is {rivals}, by more than {100 * settings.region:g} points?"
    if settings.task == "identification":
        if settings.top_m == 1:
            return f"Which {settings.grouping} is the {quality(settings)}?"
        return f"Which {settings.top_m} groups by {settings.grouping} are the {quality(settings)}?"
    if settings.task == "performance":
        return f"What are precision and recall on class {settings.positive_class}, at every threshold?"
    if settings.task in ("ensemble", "challenge"):
        return _asked_of_others(settings)
    return _ESTIMATED[settings.metric].format(grouping=settings.asked_grouping.replace("_", " "))


def _asked_of_others(settings: AssessmentSettings) -> str:
    """What is asked about other classifiers of the same items."""
    if settings.task == "ensemble":
        return f"How precise are the ensemble and its members on class {settings.positive_class}?"
    by = f"{100 * settings.least_margin:g} percentage points"
    return f"Is {settings.challenger} better than the model, by more than {by}?"


def chooser(settings: AssessmentSettings) -> str:
    """Who chooses what is labelled next: a policy, or the plan of an ensemble or a challenge."""
    return "planned" if settings.task in ("ensemble", "challenge") else settings.policy
