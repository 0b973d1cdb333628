"""The configuration of the demo of a rare class: the same predictions for two models.

They differ in the policy alone, so what they know differs only by which labels were requested.
"""

from __future__ import annotations

from typing import Any

from service.demo.configuration import Places
from service.demo.rare.transactions import CLASSES, FRAUD, THRESHOLD

ADAPTIVE, RANDOM = MODELS = ("fraud-adaptive", "fraud-random")
"""Names of the models; the policy is what follows the dash."""

ASSESSMENT = "recall"
LABELS = 200
"""Budget of each model."""

MIN_SECONDS = 60.0

_TICK_SECONDS = 2.0
_START_SECONDS = 30.0  # of the run, until requests begin, and after the last one


def rare_configuration(places: Places, *, seconds: float, seed: int) -> dict[str, Any]:
    """The configuration of a run of about this many seconds, over which labels are spread."""
    in_flight = round(LABELS * _TICK_SECONDS / (seconds - _START_SECONDS))
    return {
        **places.configuration(seconds=seconds, seed=seed),
        # Labels are chosen by what the last learning says, so it follows labels closely here.
        "schedule": {"tick_seconds": _TICK_SECONDS, "performance_seconds": 1.0},
        "models": {
            model: {
                "classes": list(CLASSES),
                "assessments": {
                    ASSESSMENT: {
                        "task": "performance",
                        "positive_class": FRAUD,
                        "threshold": THRESHOLD,
                        "policy": model.removeprefix("fraud-"),
                        "aim": "recall",
                        "budget": {"labels": LABELS},
                        "max_in_flight": in_flight,
                        "lease_seconds": 30,
                    }
                },
            }
            for model in MODELS
        },
    }
