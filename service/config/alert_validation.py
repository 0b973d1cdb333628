"""Validation of thresholds: each is of a group that can exist, and of a measure that groups share."""

from __future__ import annotations

from typing import get_args

from service.config.alerts import AlertSettings, GroupThresholds, Measure, applies
from service.config.evidence import is_certifiable
from service.config.labels_per_item import LabelsPerItem
from service.config.model import ModelSettings
from service.config.settings import Settings
from service.config.types import Problems
from service.domain.cells import CHALLENGE, POSITIVE_SCORE, SCORE_BIN, VOTES
from service.domain.groupings import ALL, Grouping, bin_names

_DIFFER = {
    "min_accuracy": "groups by score or votes are expected to differ in accuracy",
    "max_ece": "where other classifiers disagree, a model is right less often than its scores say",
}


def alert_problems(settings: Settings, name: str) -> Problems:
    """What is wrong with the thresholds of a model, by path."""
    model, at = settings.models[name], f"models.{name}.alerts"
    problems: Problems = []
    if not model.labels_per_item.may_err and model.alerts.min_reliability is not None:
        problem = f"needs labels that may be wrong: set models.{name}.labels_per_item, or remove it"
        problems.append((f"{at}.min_reliability", problem))
    all_groupings = settings.cell_space(name).groupings
    known = {key: by for key, by in all_groupings.items() if not by.is_internal}
    for grouping, thresholds in model.alerts.groupings.items():
        here = f"{at}.groupings.{grouping}"
        if grouping not in known:
            problems.append((here, f"unknown grouping {grouping!r}; this model has {', '.join(known)}"))
            continue
        problems += _measure_problems(here, thresholds, known[grouping])
        for group, own in thresholds.groups.items():
            there = f"{here}.groups.{group}"
            if (cannot_exist := _group_problem(settings, model, grouping, group)) is not None:
                problems.append((there, cannot_exist))
            problems += _measure_problems(there, own, known[grouping])
    return problems


def _measure_problems(at: str, thresholds: GroupThresholds, by: Grouping) -> Problems:
    """Thresholds of measures that the groups of a grouping do not have in common."""
    measures: tuple[Measure, ...] = get_args(Measure)
    return [
        (f"{at}.{measure}", f"grouping {by.name} has none: {_DIFFER[measure]}; remove it")
        for measure in measures
        if getattr(thresholds, measure) is not None and not applies(measure, by)
    ]


def _group_problem(settings: Settings, model: ModelSettings, grouping: str, group: str) -> str | None:
    """Why there can be no group of this name."""
    names = group_names(model, grouping)
    if names is not None and group not in names:
        return f"{group!r} is not a group of grouping {grouping}"
    longest = settings.bounds.attribute_length
    if names is None and len(group) > longest:
        return f"a value of more than {longest} characters (bounds.attribute_length) has no group of its own"
    return None


def group_names(model: ModelSettings, grouping: str) -> list[str] | None:
    """Names of all groups that a grouping can have; None if they depend on traffic."""
    if grouping == ALL:
        return [ALL]
    if grouping in (SCORE_BIN, POSITIVE_SCORE):
        return bin_names(model.score_edges)
    if grouping in (VOTES, CHALLENGE):
        return None
    settings = model.groupings[grouping]
    if settings.by == "attribute":
        return None
    return model.classes if settings.by == "predicted_class" else list(settings.superclasses or {})


def uncertifiable_keys(alerts: AlertSettings, by: Grouping, labels: LabelsPerItem) -> list[str]:
    """Keys of accuracy thresholds that no certificate of a grouping can show, below `alerts`.

    Groups without a threshold are left out of it, unless all are.
    """
    at, thresholds = f"groupings.{by.name}", alerts.groupings.get(by.name)
    is_of_grouping = thresholds is not None and thresholds.sets("min_accuracy")
    usual = f"{at}.min_accuracy" if is_of_grouping else "min_accuracy"
    given = {usual: alerts.threshold("min_accuracy", by)}
    for group, own in (thresholds.groups if thresholds is not None else {}).items():
        if own.sets("min_accuracy"):
            given[f"{at}.groups.{group}.min_accuracy"] = own.min_accuracy
    if all(least is None for least in given.values()):
        return [usual]
    return [key for key, least in given.items() if least is not None and not is_certifiable(least, labels)]
