"""The configuration of the demo: an ordinary YAML file, as in production."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from service.demo.world import CLASSES, MODEL, RATE

WEAKEST_CAMERA = "weakest-camera"
ACCURACY_BY_CLASS = "accuracy-by-class"
MIN_ACCURACY = 0.8
SCORE_BINS = 10
MIN_SECONDS = 30.0

_LABELS_PER_SECOND = 4  # budget of each assessment
_DEFAULT_TICK_SECONDS = 5.0
_FEWEST_TICKS = 12

_SECONDS_PER_HOUR = 3_600
_HALF_LIVES = 18

_REFERENCE_PART = 0.1  # first part of the run's predictions, the reference; the camera degrades later


def half_life_seconds(seconds: float) -> float:
    """Half-life of traffic and of draws: the demo asks how accurate the model is *now*."""
    return seconds / _HALF_LIVES


@dataclass(frozen=True)
class Places:
    """Where the servers of a demo are, and where Credence listens."""

    bootstrap_server: str
    redis_url: str
    http_port: int
    monitoring_port: int

    def configuration(self, *, seconds: float, seed: int) -> dict[str, Any]:
        """What every demo of this many seconds configures."""
        return {
            "kafka": {
                "bootstrap_servers": [self.bootstrap_server],
                # The bundled broker lets a new consumer wait for half of this.
                "session_timeout_seconds": 6,
            },
            "redis": {"url": self.redis_url},
            "http": {"port": self.http_port, "history_hours": seconds / _SECONDS_PER_HOUR},
            "monitoring": {"port": self.monitoring_port},
            "seed": seed,
            "hash_key": f"{seed:032x}",
        }


def configuration(places: Places, *, seconds: float, seed: int, more_seconds: float = 0.0) -> dict[str, Any]:
    """The configuration of a run of this many seconds, for which budgets and the half-life are sized.

    `seed` is of Thompson sampling and of which items are drawn. Labels are also there for `more_seconds`.
    """
    tick_seconds = min(_DEFAULT_TICK_SECONDS, seconds / _FEWEST_TICKS)
    asking = {
        "policy": "thompson",
        "budget": {"labels": round(_LABELS_PER_SECOND * (seconds + more_seconds))},
        "max_in_flight": round(_LABELS_PER_SECOND * tick_seconds),
        # Short, so that late answers happen in the run.
        "lease_seconds": 6,
    }
    return {
        **places.configuration(seconds=seconds, seed=seed),
        "schedule": {"tick_seconds": tick_seconds},
        "models": {
            MODEL: {
                "classes": list(CLASSES),
                "score_bins": SCORE_BINS,
                "groupings": {
                    "camera": {"by": "attribute", "attribute": "camera"},
                    "class": {"by": "predicted_class"},
                },
                "assessments": {
                    WEAKEST_CAMERA: {
                        "task": "identification",
                        "metric": "accuracy",
                        "extreme": "lowest",
                        "top_m": 1,
                        "grouping": "camera",
                        **asking,
                    },
                    ACCURACY_BY_CLASS: {"task": "estimation", "grouping": "class", **asking},
                },
                "drift": {
                    # A tick, as traffic is marked at ticks.
                    "window_hours": tick_seconds / 3_600,
                    "reference_predictions": round(_REFERENCE_PART * seconds * RATE),
                },
                "alerts": {"min_accuracy": MIN_ACCURACY},
                # Of each camera, some seconds' worth.
                "reference": {"labels": 20},
                "traffic_half_life_days": half_life_seconds(seconds) / (24 * _SECONDS_PER_HOUR),
                "draw_half_life_hours": half_life_seconds(seconds) / _SECONDS_PER_HOUR,
            }
        },
    }
