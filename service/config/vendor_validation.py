"""What makes no sense in the settings of vendors though every key by itself does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from service.config.settings import Settings


def vendor_problems(settings: Settings) -> list[tuple[str, str]]:
    """Every key of the vendors that does not go with another key, by its path, and what is wrong."""
    problems: list[tuple[str, str]] = []
    api = settings.vendor_api
    for key, other in (("certificate_file", "key_file"), ("key_file", "certificate_file")):
        if getattr(api, key) is not None and getattr(api, other) is None:
            problems.append((f"vendor_api.{other}", f"is needed with `{key}`"))
    if (
        any(vendor.token_sha256 for vendor in settings.vendors.values())
        and api.body_bytes <= settings.bounds.payload_bytes
    ):
        problems.append(
            (
                "vendor_api.body_bytes",
                "must be over `bounds.payload_bytes`: a webhook of Label Studio carries the payload",
            )
        )
    tokens: set[str] = set()
    label_keys: set[bytes] = set()
    used = settings.kafka.topics
    topics = {used.predictions, used.label_requests, used.labels, used.dead_letters}
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
        topics.add(vendor.topic or used.label_requests)
    for model, model_settings in settings.models.items():
        if settings.vendors and model_settings.assessments and not settings.vendors_of(model):
            problems.append(
                (
                    f"models.{model}.assessments",
                    "no vendor may be asked; name the model in `vendors.….models`",
                )
            )
    return problems


def _repeated(at: str, values: Iterable[Any], seen: set[Any], what: str) -> list[tuple[str, str]]:
    """Values that were seen before are problems; all are seen from now on."""
    problems = []
    for i, value in enumerate(values):
        if value in seen:
            problems.append((f"{at}.{i}", f"{what} is one vendor's alone; this one is there already"))
        seen.add(value)
    return problems
