"""Validation of a model's settings across keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from service.config.alert_validation import alert_problems, group_names, uncertifiable_keys
from service.config.assessments import (
    AssessmentSettings,
    ChallengeSettings,
    ComparisonSettings,
    EnsembleSettings,
    ErrorRateSettings,
    IdentificationSettings,
    PerformanceSettings,
    PolicySettings,
)
from service.config.evidence import most_certified
from service.config.model import CONFUSION_CLASSES, CostSettings, GroupingSettings, ModelSettings
from service.config.settings import Settings
from service.config.types import Problems
from service.domain.cells import AGREE, CHALLENGE, DISAGREE, MISSING, POSITIVE_SCORE, SCORE_BIN, VOTES
from service.domain.groupings import ALL, Grouping
from service.domain.traffic_tables import most_table_bytes

_RESERVED = (ALL, SCORE_BIN, POSITIVE_SCORE, VOTES, CHALLENGE)
_ALL_ALONE = f"always uses grouping `{ALL}`; remove `grouping` or set it to `{ALL}`"


def model_problems(settings: Settings, name: str) -> Problems:
    """Conflicts between keys of a model's settings, by path."""
    model, at = settings.models[name], f"models.{name}"
    problems = [
        (f"{at}.groupings.{grouping}", f"reserved name; reserved are {', '.join(_RESERVED)}")
        for grouping in model.groupings
        if grouping in _RESERVED
    ]
    for grouping, chosen in model.groupings.items():
        problems += _superclass_problems(f"{at}.groupings.{grouping}", model, chosen)
    if model.costs is not None:
        problems += _cost_problems(f"{at}.costs", model, model.costs)
    problems += [(f"{at}.assessments", problem) for problem in _disagreements(model)]
    if model.labels_per_item.may_err and model.unrequested_labels is not None:
        problem = f"needs labels that are true: remove {at}.labels_per_item"
        problems.append((f"{at}.unrequested_labels", problem))
    problems += alert_problems(settings, name)
    wait_days = None if model.unrequested_labels is None else model.unrequested_labels.wait_days
    if wait_days is not None and wait_days > settings.bounds.join_days:
        problem = (
            f"must not be above bounds.join_days ({settings.bounds.join_days:g}); raise that, or lower this"
        )
        problems.append((f"{at}.unrequested_labels.wait_days", problem))
    for assessment, asked in model.assessments.items():
        problems += _assessment_problems(f"{at}.assessments.{assessment}", settings, name, asked)
    limit = settings.bounds.table_bytes
    if not problems and (needed := most_table_bytes(settings.cell_space(name))) > limit:
        problem = (
            f"the tables of model {name!r} take up to {needed:,} bytes in one partition; raise it to "
            f"{needed}, lower bounds.attribute_values, or use fewer score bins"
        )
        problems.append(("bounds.table_bytes", problem))
    return problems + _vote_problems(settings, name)


def _vote_problems(settings: Settings, model: str) -> Problems:
    """Limits that are too short for votes, which are stored like values of an attribute."""
    ensemble, challenge = settings.models[model].ensemble, settings.models[model].challenge
    if challenge is not None:
        longest, what = max(map(len, (AGREE, DISAGREE, MISSING))), "the challenger"
    elif ensemble is not None:
        longest, what = 1 + len(ensemble.members), "vote patterns"
    else:
        return []
    if settings.bounds.attribute_length >= longest:
        return []
    return [("bounds.attribute_length", f"must be at least {longest}, for {what} of model {model!r}")]


def _disagreements(model: ModelSettings) -> Iterator[str]:
    """Keys that must be the same in several assessments of a model, but differ."""
    if len({one.positive_class for one in model.assessments_of(PerformanceSettings).values()}) > 1:
        yield "all performance assessments of a model must have the same `positive_class`"
    if len({one.positive_class for one in model.assessments_of(ErrorRateSettings).values()}) > 1:
        yield "all assessments of error rates of a model must have the same `positive_class`"
    ensembles = model.assessments_of(EnsembleSettings).values()
    if len({(*one.members, one.positive_class) for one in ensembles}) > 1:
        yield "all ensembles of a model must have the same `members` and `positive_class`"
    challenges = model.assessments_of(ChallengeSettings).values()
    if len({one.challenger for one in challenges}) > 1:
        yield "all challenges of a model must have the same `challenger`"
    if challenges and ensembles:
        yield "a model can have an ensemble or a challenger, not both"


def _cost_problems(at: str, model: ModelSettings, costs: CostSettings) -> Problems:
    problems: Problems = []
    if all(grouping.by != "predicted_class" for grouping in model.groupings.values()):
        problems.append(
            (at, "costs are estimated per predicted class; add a grouping with `by: predicted_class`")
        )
    if len(model.classes) > CONFUSION_CLASSES:
        problems.append((at, f"costs are limited to models with {CONFUSION_CLASSES:,} classes"))
    classes, seen = set(model.classes), set()
    for i, mistake in enumerate(costs.mistakes):
        pair = mistake.true, mistake.predicted
        named = {"true": mistake.true, "predicted": mistake.predicted}
        problems += [
            (f"{at}.mistakes.{i}.{key}", f"{name!r} is not a class of the model")
            for key, name in named.items()
            if name not in classes
        ]
        if mistake.true == mistake.predicted:
            problems.append(
                (f"{at}.mistakes.{i}", "`true` and `predicted` are the same; correct predictions cost 0")
            )
        if pair in seen:
            problems.append((f"{at}.mistakes.{i}", "duplicate mistake: it already has a cost"))
        seen.add(pair)
    return problems


def _assessment_problems(at: str, settings: Settings, name: str, assessment: AssessmentSettings) -> Problems:
    model = settings.models[name]
    built_in = [POSITIVE_SCORE] if model.positive_class is not None else []
    built_in += [VOTES] if model.ensemble is not None else []
    known = [ALL, SCORE_BIN, *built_in, *model.groupings]
    if assessment.grouping not in known:
        return [unknown_grouping(at, assessment.grouping, known)]
    problems = _metric_problems(at, model, assessment)
    if isinstance(assessment, PolicySettings) and assessment.policy == "certify":
        by = settings.cell_space(name).groupings[assessment.asked_grouping]
        problems += _certificate_problems(f"{at}.policy", model, assessment, by)
    groups = group_names(model, assessment.grouping)
    match assessment:
        case IdentificationSettings() | ComparisonSettings() if groups is not None and len(groups) == 1:
            problems.append((f"{at}.grouping", f"{assessment.task} requires more than one group"))
        case IdentificationSettings() if groups is not None and assessment.top_m >= len(groups):
            problems.append((f"{at}.top_m", f"must be below the number of groups, {len(groups)}"))
        case ComparisonSettings():
            problems += _between_problems(f"{at}.between", assessment.between, groups)
        case ErrorRateSettings():
            problems += _error_rate_problems(at, model, assessment)
        case PerformanceSettings() | EnsembleSettings():
            problems += _binary_problems(at, model, assessment)
    return problems


def _certificate_problems(
    at: str, model: ModelSettings, assessment: PolicySettings, by: Grouping
) -> Problems:
    """Why the policy `certify` could never reach a certificate."""
    labels = model.labels_per_item
    if not by.has_threshold:
        return [(at, "certify requires labels by groups that have a threshold, not by score or votes")]
    problems = [
        (at, f"certify requires `alerts.{key}`, above 0 and at most {most_certified(labels):g}")
        for key in uncertifiable_keys(model.alerts, by, labels)
    ]
    if labels.stated_bound is None:
        problems.append((at, "certify requires `labels_per_item.max_error`, a number, if labels err"))
    if isinstance(assessment, ComparisonSettings):
        problems.append((at, "certify requires labels of all groups, and a comparison requests those of two"))
    return problems


def unknown_grouping(at: str, grouping: str, known: Iterable[str]) -> tuple[str, str]:
    """Path and problem of an assessment at a path whose grouping is not one of those that are known."""
    return f"{at}.grouping", f"unknown grouping {grouping!r}; this model has {', '.join(known)}"


def _metric_problems(at: str, model: ModelSettings, assessment: AssessmentSettings) -> Problems:
    metric, grouping = assessment.metric, model.groupings.get(assessment.grouping)
    if metric == "overall_accuracy" and assessment.grouping != ALL:
        return [(f"{at}.grouping", f"metric overall_accuracy {_ALL_ALONE}")]
    if metric not in ("confusion", "cost"):
        return []
    problems = []
    if grouping is None or grouping.by != "predicted_class":
        problems.append((f"{at}.grouping", f"{metric} requires a grouping with `by: predicted_class`"))
    if len(model.classes) > CONFUSION_CLASSES:
        problem = f"{metric} is limited to models with {CONFUSION_CLASSES:,} classes"
        problems.append((f"{at}.metric", problem))
    if metric == "cost" and model.costs is None:
        problems.append((f"{at}.metric", "cost requires the model's `costs`"))
    return problems


def _binary_problems(
    at: str, model: ModelSettings, assessment: PerformanceSettings | EnsembleSettings
) -> Problems:
    """Problems of an assessment of a binary classifier or an ensemble."""
    problems: Problems = []
    if assessment.positive_class not in model.classes:
        problems.append((f"{at}.positive_class", f"must be one of the model's classes: {model.classes}"))
    if assessment.grouping != ALL:
        problems.append((f"{at}.grouping", f"task {assessment.task} {_ALL_ALONE}"))
    if isinstance(assessment, EnsembleSettings):
        if len(set(assessment.members)) < len(assessment.members):
            problems.append((f"{at}.members", "members must differ from one another"))
        if assessment.targets.wanted.keys() - {"precision"}:
            problems.append((f"{at}.targets", "an ensemble accepts only the target `precision`"))
        return problems
    if len(model.classes) != 2:  # noqa: PLR2004 - what binary means
        problems.append(
            (f"{at}.task", "performance requires a binary classifier; this model has more than two classes")
        )
    edges = np.array(model.score_edges)
    if not np.allclose(edges, 1 - edges[::-1], rtol=0, atol=1e-9):
        problems.append((f"{at}.task", "performance requires `score_bins` that are symmetric about 0.5"))
    return problems


def _error_rate_problems(at: str, model: ModelSettings, assessment: ErrorRateSettings) -> Problems:
    problems: Problems = []
    if assessment.positive_class not in model.classes:
        problems.append((f"{at}.positive_class", f"must be one of the model's classes: {model.classes}"))
    grouping = model.groupings.get(assessment.grouping)
    if grouping is None or grouping.by != "attribute":
        problems.append((f"{at}.grouping", "task error_rates requires a grouping with `by: attribute`"))
    return problems


def _between_problems(at: str, between: list[str], groups: list[str] | None) -> Problems:
    if between[0] == between[1]:
        return [(at, "the two groups must differ")]
    return [
        (at, f"{name!r} is not a group of the grouping")
        for name in between
        if name not in (groups or between)
    ]


def _superclass_problems(at: str, model: ModelSettings, grouping: GroupingSettings) -> Problems:
    if grouping.superclasses is None:
        return []
    members = [name for names in grouping.superclasses.values() for name in names]
    problems = [
        (f"{at}.superclasses", f"{name!r} is not a class of the model")
        for name in dict.fromkeys(members)
        if name not in model.classes
    ]
    problems += [
        (f"{at}.superclasses", f"class {name!r} is in {members.count(name)} superclasses; it must be in one")
        for name in model.classes
        if members.count(name) != 1
    ]
    return problems
