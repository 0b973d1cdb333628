"""What every deployment of the suite is: its processes, its topics, its times, and what it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workload import CLASSES, GOLD_FILE, MODEL, PANEL

ROLES: Mapping[str, tuple[str, ...]] = {
    "predictions-1": ("consume", "predictions"),
    "predictions-2": ("consume", "predictions"),
    "labels-1": ("consume", "labels"),
    "schedule-1": ("schedule",),
    "schedule-2": ("schedule",),
    "predictions-3": ("consume", "predictions"),
}
"""Command of every process by its name; the last one only visits, to make the others share anew."""

CONSUMERS = ("predictions-1", "predictions-2", "labels-1")
SCHEDULERS = ("schedule-1", "schedule-2")
RESIDENTS = (*CONSUMERS, *SCHEDULERS)
VISITOR = tuple(ROLES)[-1]

PARTITIONS = {"predictions": 3, "labels": 2, "label-requests": 2, "dead-letters": 1}
SESSION_SECONDS = 2.0
LEASE_SECONDS = 1.0
REDIS_TIMEOUT_SECONDS = 1.0
REGISTRY_TIMEOUT_SECONDS = 0.5

_SORTER: dict[str, Any] = {
    "classes": list(CLASSES),
    "score_bins": 4,
    "groupings": {
        "region": {"by": "attribute", "attribute": "region"},
        "class": {"by": "predicted_class"},
    },
    "assessments": {
        "weakest": {
            "task": "identification",
            "grouping": "region",
            "budget": {"labels": 60},
            "max_in_flight": 12,
            "lease_seconds": 600.0,
        },
        "classes": {
            "task": "estimation",
            "grouping": "class",
            "budget": {"labels": 60},
            "max_in_flight": 12,
            "lease_seconds": 1.5,
            "max_attempts": 2,
        },
    },
}
"""Of two questions, one waits for answers longer than a test lasts; the other's requests expire soon."""

_SEVERAL: dict[str, Any] = {
    "least": 2,
    "most": 4,
    "audit_share": 0.3,
    "gold": {"file": str(GOLD_FILE), "share": 0.3},
}

MODELS: dict[str, Any] = {MODEL: _SORTER, PANEL: _SORTER | {"labels_per_item": _SEVERAL}}
"""Of the same questions, one model's take one label of an item each, the other's take several."""

BOUNDS: dict[str, Any] = {"pool_items": 64, "payload_bytes": 1_024, "lateness_hours": None}


def assessments() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Model, name and settings of every assessment."""
    for model, settings in MODELS.items():
        for name, assessment in settings["assessments"].items():
            yield model, name, assessment
