"""What accepts predictions over HTTP in a process: it decides as the consumer of predictions does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from consumers.formats.native import WirePrediction, decode_predictions
from consumers.validation import PredictionChecks
from service.config.settings import Settings
from service.domain.errors import BadMessage
from service.serving.ingestion.writer import Examine, Examined, PredictionWriter
from service.store.connection import Connection
from service.store.idempotency import IdempotencyRecords


def prediction_writer(
    settings: Settings, connection: Connection, producer: Any, clock: Callable[[], float]
) -> PredictionWriter:
    """What writes the predictions of a deployment's senders."""
    return PredictionWriter(
        producer,
        settings.kafka.topics.predictions,
        models={name: sender.models for name, sender in settings.senders.items()},
        examine=build_examine(settings),
        most_bytes=settings.bounds.message_bytes,
        calls=IdempotencyRecords(connection),
        clock=clock,
    )


def build_examine(settings: Settings) -> Examine:
    """What examines predictions of a deployment's models."""
    checks = {
        name: PredictionChecks(model.classes, payload_bytes=settings.bounds.payload_bytes)
        for name, model in settings.models.items()
    }

    def problem_of(prediction: WirePrediction, models: Collection[str]) -> str:
        if prediction.model not in models:
            return ""
        try:
            checks[prediction.model].check(prediction)
        except BadMessage as error:
            return str(error)
        return ""

    def examined(value: bytes, models: Collection[str]) -> Iterator[Examined]:
        for position, decoded in decode_predictions(value):
            if not isinstance(decoded, BadMessage):
                yield Examined(position, decoded.model, decoded.item_id, problem_of(decoded, models))
            elif position is None and decoded.reason == "malformed_json":
                raise decoded
            else:
                yield Examined(position, "", "", str(decoded))

    return lambda value, models: list(examined(value, models))
