"""Validation of mappings across keys: what could never read a record is an error at start."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import get_args

from service.config.mapping import LabelMapping, MappedField, PredictionMapping
from service.config.settings import Settings
from service.config.types import Problems
from service.domain.messages import LabelKind

_Mapping = PredictionMapping | LabelMapping

_CLASSES = ("predicted_class", "probabilities", "true_class")
_NAMED = (*_CLASSES, "kind")
_NAMED_IN_WORDS = f"{', '.join(_NAMED)}, attributes and votes"
_TIME_ONLY = "not accepted here, only for time"
_PATH_ONLY = "not accepted here; give a `path`"


def mapping_problems(settings: Settings) -> Problems:
    """Keys of mappings that conflict with another key or lack one, by path, with the problem."""
    problems: Problems = []
    mappings = {"kafka.mapping": settings.kafka.mapping, "kafka.label_mapping": settings.kafka.label_mapping}
    for at, mapping in mappings.items():
        if mapping is not None:
            problems += [*_class_problems(at, mapping, settings), *_field_problems(at, mapping)]
    if (predictions := settings.kafka.mapping) is not None:
        problems += _prediction_problems(predictions)
        problems += [
            (f"models.{name}.tensors", "has no effect with `kafka.mapping`; map the tensors, and remove it")
            for name, model in settings.models.items()
            if model.tensors
        ]
    return problems


def _class_problems(at: str, mapping: _Mapping, settings: Settings) -> Iterator[tuple[str, str]]:
    """A model or classes that are not configured."""
    model = mapping.model.value
    if not settings.models:
        return
    if model is not None and model not in settings.models:
        yield f"{at}.model.value", f"unknown model {model!r}; the models are {', '.join(settings.models)}"
        return
    models = settings.models.values() if model is None else [settings.models[model]]
    classes = list(dict.fromkeys(name for each in models for name in each.classes))
    rules = {field: rule for field, rule in mapping.rules().items() if field in _CLASSES}
    if isinstance(mapping, PredictionMapping):
        rules |= {f"votes.{name}": rule for name, rule in mapping.votes.items()}
    for field, rule in rules.items():
        yield from _name_problems(f"{at}.{field}", rule, classes, "class")


def _field_problems(at: str, mapping: _Mapping) -> Iterator[tuple[str, str]]:
    """Keys that a field does not have, and constants that it cannot be."""
    if isinstance(mapping, PredictionMapping):
        named = {f"attributes.{name}": rule for name, rule in mapping.attributes.items()}
        named |= {f"votes.{name}": rule for name, rule in mapping.votes.items()}
        yield from (
            (f"{at}.{name}.unit", _TIME_ONLY) for name, rule in named.items() if rule.unit is not None
        )
    for field, rule in mapping.rules().items():
        if rule.names and field not in _NAMED:
            yield f"{at}.{field}.names", f"not accepted here, only for {_NAMED_IN_WORDS}"
        if field == "kind":
            yield from _name_problems(f"{at}.{field}", rule, get_args(LabelKind), "kind")
        if rule.unit is not None and field != "time":
            yield f"{at}.{field}.unit", _TIME_ONLY
        if field in ("score", "probability") and rule.value is not None and not _is_probability(rule.value):
            yield f"{at}.{field}.value", "must be a number from 0 to 1"


def _prediction_problems(mapping: PredictionMapping) -> Iterator[tuple[str, str]]:
    at = "kafka.mapping"
    if mapping.probabilities is None:
        for field in ("predicted_class", "score"):
            if getattr(mapping, field) is None:
                yield f"{at}.{field}", "required without `probabilities`"
    elif mapping.probabilities.value is not None:
        yield f"{at}.probabilities.value", _PATH_ONLY
    if (every := mapping.all_attributes) is not None:
        if every.value is not None:
            yield f"{at}.all_attributes.value", _PATH_ONLY
        if every.required is not None:
            yield f"{at}.all_attributes.required", "not accepted here; require single `attributes`"


def _name_problems(
    at: str, rule: MappedField, allowed: Collection[str], what: str
) -> Iterator[tuple[str, str]]:
    """Names that a field never may have."""
    given = {f"names.{name}": target for name, target in rule.names.items()}
    if rule.value is not None:
        given["value"] = rule.value
    for key, name in given.items():
        if name not in allowed:
            yield f"{at}.{key}", f"{name!r} is no {what}; must be one of {', '.join(allowed)}"


def _is_probability(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and 0 <= number <= 1
