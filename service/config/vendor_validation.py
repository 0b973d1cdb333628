"""What makes no sense in the settings of vendors though every key by itself does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from service.config.security_validation import Problems, incomplete_pairs
from service.config.settings import Settings


def vendor_problems(settings: Settings) -> Problems:
    """Every key of the vendors that does not go with another key, by its path, and what is wrong."""
    problems = incomplete_pairs("vendor_api", settings.vendor_api)
    if settings.has_vendor_api and settings.vendor_api.body_bytes <= settings.bounds.payload_bytes:
        problem = "must be over `bounds.payload_bytes`: a webhook of Label Studio carries the payload"
        problems.append(("vendor_api.body_bytes", problem))
    tokens: set[str] = set()
    label_keys: set[bytes] = set()
    topics = set(settings.kafka.topics.model_dump().values())
    for name, vendor in settings.vendors.items():
        at = f"vendors.{name}"
        problems += [
            (f"{at}.models.{i}", f"unknown model {model!r}; there are {', '.join(settings.models)}")
            for i, model in enumerate(vendor.models or ())
            if model not in settings.models
        ]
        problems += _repeated(f"{at}.token_sha256", vendor.token_sha256, tokens, "a token")
        # Whoever holds a key can sign with it under the name of every vendor that has it.
        problems += _repeated(f"{at}.label_keys", vendor.label_key_bytes(), label_keys, "a label key")
        if vendor.topic is not None and vendor.topic in topics:
            problems.append((f"{at}.topic", "must differ from the four topics and from every other vendor's"))
        topics.add(vendor.topic)
    for model, model_settings in settings.models.items():
        if settings.vendors and model_settings.assessments and not settings.vendors_of(model):
            problem = "no vendor may be asked; name the model in `vendors.….models`"
            problems.append((f"models.{model}.assessments", problem))
    return problems


def _repeated(at: str, values: Iterable[Any], seen: set[Any], what: str) -> Problems:
    """Values that were seen before are problems; all are seen from now on."""
    problems = []
    for i, value in enumerate(values):
        if value in seen:
            problems.append((f"{at}.{i}", f"{what} is one vendor's alone; this one is there already"))
        seen.add(value)
    return problems
