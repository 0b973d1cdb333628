"""Predictions that come over HTTP: examined as a consumer does, and written to Kafka as they came."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

from kafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from service.domain.messages import PREDICTION_TYPE, cloudevents_headers
from service.kafka.topic_metadata import translate_error
from service.serving.vendor_api.problems import Fault, Kind, Refused
from service.store.idempotency import IdempotencyRecords

log = logging.getLogger(__name__)

_SEND_SECONDS = 10.0
_MOST_FAULTS = 20


class Examined(NamedTuple):
    """What a consumer would make of one prediction.

    `position` is that in an array, or None for a single one. `problem` says why it would be refused, without
    quoting it. `model` and `item_id` are empty if it cannot be read.
    """

    position: int | None
    model: str
    item_id: str
    problem: str


Examine = Callable[[bytes, Collection[str]], Sequence[Examined]]
"""Predictions of a record's value, a single one or an array; only those of these models are examined.

How long it takes must not reveal whether another model exists. Raises `BadMessage` if the value is not JSON.
"""


class PredictionWriter:
    """Writes predictions of senders, each of its own models, with a producer that waits for all replicas.

    Args:
        models: that each sender may send predictions of.
        examine: decides what is accepted; nothing is, unless all of a call's predictions are.
        most_bytes: of a record's value.
        calls: has the outcome of earlier calls.
    """

    def __init__(
        self,
        producer: Any,
        topic: str,
        *,
        models: Mapping[str, Sequence[str]],
        examine: Examine,
        most_bytes: int,
        calls: IdempotencyRecords,
        clock: Callable[[], float],
    ) -> None:
        self.calls = calls
        self._producer = producer
        self._topic = topic
        self._models = {sender: frozenset(names) for sender, names in models.items()}
        self._examine = examine
        self._most_bytes = most_bytes
        self._clock = clock

    def write(self, sender: str, value: bytes) -> int:
        """Write the predictions of one call as one record, so that Kafka gets all of them or none.

        Returns:
            How many there are, once Kafka has them.

        Raises:
            Refused: a prediction is not valid, or of a model that the sender may not send.
            Unavailable: Kafka does not take them now. It may have them all the same.
        """
        if len(value) > self._most_bytes:
            raise Refused(Kind.TOO_LARGE)
        models = self._models[sender]
        examined = self._examine(value, models)
        if not examined:
            raise Refused(Kind.INVALID, errors=[Fault(at="body", problem="must have at least 1 entry")])
        if any(each.model and each.model not in models for each in examined):
            raise Refused(Kind.NOT_FOUND)
        if faults := [_fault(each) for each in examined if each.problem]:
            raise Refused(Kind.INVALID, errors=faults[:_MOST_FAULTS])
        headers = cloudevents_headers(
            event_type=PREDICTION_TYPE,
            event_id=uuid4().hex,
            source=f"/credence/senders/{sender}",
            time=datetime.fromtimestamp(self._clock(), UTC),
        )
        key = examined[0].item_id.encode()
        try:
            future = self._producer.send(self._topic, key=key, value=value, headers=headers)
            future.get(timeout=_SEND_SECONDS)
        except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
            raise Refused(Kind.TOO_LARGE) from error
        except KafkaError as error:
            raise translate_error(error, self._topic) from error
        return len(examined)


def _fault(examined: Examined) -> Fault:
    at = "body" if examined.position is None else f"body.{examined.position}"
    return Fault(at=at, problem=examined.problem)
