"""`credence demo producer` and `credence demo labeller`: the demo's parts against a configured Kafka."""

from __future__ import annotations

from typing import Literal

from service.config.settings import Settings
from service.demo.labeller import answer_requests
from service.demo.producer import produce
from service.demo.world import CLASSES, MODEL
from service.domain.errors import ConfigurationError
from service.telemetry.logs import configure_logs

_SEED = 1
"""Of the world that both parts share."""


def play_part(part: Literal["producer", "labeller"], settings: Settings, *, seconds: float) -> None:
    """Play one part until SIGTERM, with the model `digits` of the configuration.

    One of the producer's cameras degrades after a fraction of the seconds.

    Raises:
        ConfigurationError: the configuration has no such model, it has other classes, or vendors label it.
    """
    model = settings.models.get(MODEL)
    if model is None or tuple(model.classes) != CLASSES:
        problem = f"the demo needs this model, with the classes {', '.join(CLASSES)}"
        raise ConfigurationError([(f"models.{MODEL}", problem)])
    if part == "labeller" and settings.vendors_of(MODEL):
        problem = f"the demo's labeller is none of them; leave {MODEL} out of their `models`"
        raise ConfigurationError([("vendors", problem)])
    configure_logs(settings.log_level)
    if part == "producer":
        produce(settings.kafka, seed=_SEED, seconds=seconds)
    else:
        answer_requests(settings.kafka, seed=_SEED)
