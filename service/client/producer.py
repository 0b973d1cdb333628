"""Logs predictions from the process of a model, without ever keeping it waiting."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from multiprocessing import parent_process
from multiprocessing.util import Finalize
from typing import Any, Self

from service.client.arguments import (
    InvalidArgumentError,
    json_value,
    number,
    prediction_of,
    probabilities_in_order,
    text,
    texts,
)
from service.client.connection import Kafka, kafka_settings
from service.client.outbox import Counters, Outbox, Record
from service.client.sender import Sender
from service.kafka.clients import build_producer
from service.kafka.connect import forget_other_threads

_DELIVERY_SECONDS = 86_400.0
"""So long Kafka's client retries a record under one sequence number; under another it could arrive twice."""

_BLOCK_SECONDS = 2.0
_JOIN_SECONDS = 3.0


class Producer:
    """Sends the predictions of one model to Credence, from a thread of its own.

    Kafka need not be running when it is made, and several threads may use it. After a fork the child has an
    empty queue: the parent delivers what the parent has logged.

    Args:
        model: name of the model in Credence's configuration.
        kafka: brokers as `host:port`, separated by commas; or the keys of the section `kafka` of a
            configuration, with `security` and `topics`.
        classes: the model's classes, in the order of `models.<name>.classes`; required for probabilities by
            class.
        strict: whether `log` raises if a prediction is not valid: for tests. In production such predictions
            count as failed and are logged, because monitoring must not stop a model.
        max_records: most predictions that wait to be sent.
        max_bytes: most memory that they take, in bytes.

    Raises:
        ConfigurationError: `kafka` has an unknown key, or an impossible value.
    """

    def __init__(
        self,
        model: str,
        *,
        kafka: Kafka = "127.0.0.1:9092",
        classes: Sequence[object] | None = None,
        strict: bool = False,
        max_records: int = 200_000,
        max_bytes: int = 67_108_864,
    ) -> None:
        self._model = model
        self._kafka = kafka_settings(kafka)
        self._classes = None if classes is None else [text(name, "classes") for name in classes]
        self._strict = strict
        self._bounds = {"most_records": max_records, "most_bytes": max_bytes}
        self._begin()
        begin = weakref.WeakMethod(self._begin)
        if hasattr(os, "register_at_fork"):  # nothing forks elsewhere
            os.register_at_fork(after_in_child=lambda: (method := begin()) and method())
            os.register_at_fork(after_in_child=forget_other_threads)
        atexit.register(self.close)

    def _begin(self) -> None:
        self._outbox = Outbox(**self._bounds)
        self._sender = Sender(self._outbox, self._connect, self._kafka.topics.predictions)

    @property
    def counters(self) -> Counters:
        """How many predictions were logged, delivered, dropped, and failed, in this process."""
        return self._outbox.counters

    def log(
        self,
        item_id: str | int,
        *,
        predicted: object = None,
        score: float | None = None,
        probabilities: Mapping[Any, float] | Sequence[float] | Any = None,
        attributes: Mapping[str, object] | None = None,
        time: datetime | None = None,
        payload: Any = None,
        payload_uri: str | None = None,
        votes: Mapping[str, object] | None = None,
    ) -> bool:
        """Log one prediction; returns at once, whether Kafka is available or not.

        Args:
            item_id: the item; one id for one thing that a person can label.
            predicted: the predicted class; default: the most probable one.
            score: the model's probability of the predicted class; default: from `probabilities`.
            probabilities: by class, which needs the producer's `classes`; or a list or array in their order.
            attributes: what groups are made from, such as region or device.
            time: when it was predicted, with a time zone; default: now.
            payload: what a labeller needs to see, as JSON; default: nothing.
            payload_uri: where a labeller finds it, instead of `payload`.
            votes: the class that each member of an ensemble, or a challenger, predicts.

        Returns:
            Whether it will be delivered: False if the queue is full, or the prediction is not valid.

        Raises:
            ValueError: with `strict`: the prediction is not valid; says which argument, and what it must be.
        """
        try:
            fields = {
                "item_id": text(item_id, "item_id"),
                "predicted_class": None if predicted is None else text(predicted, "predicted"),
                "score": None if score is None else number(score, "score"),
                "probabilities": (
                    None if probabilities is None else probabilities_in_order(probabilities, self._classes)
                ),
                "attributes": {} if attributes is None else texts(attributes, "attributes"),
                "time": datetime.now(UTC) if time is None else time,
                "payload": None if payload is None else json_value(payload, "payload"),
                "payload_uri": payload_uri,
                "votes": None if votes is None else texts(votes, "votes"),
            }
            prediction = prediction_of(self._model, self._classes, fields)
            value = prediction.model_dump_json(exclude_defaults=True).encode()
            record = Record(prediction.item_id.encode(), value)
        except Exception as error:  # whatever an object of the model raises, it must not stop the model
            problem = f"the prediction cannot be encoded: {type(error).__name__}"
            if isinstance(error, InvalidArgumentError):
                problem = str(error)
            if self._strict:
                raise InvalidArgumentError(problem) from error
            self._outbox.refuse(problem)
            self._start()
            return False
        accepted = self._outbox.put(record)
        self._start()
        return accepted

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all predictions are delivered; False if that takes longer than `timeout` seconds."""
        return self._outbox.wait_until_empty(timeout)

    def close(self, timeout: float = 10.0) -> None:
        """Deliver what is in the queue, within `timeout` seconds; the rest counts as dropped."""
        atexit.unregister(self.close)
        self._outbox.wait_until_empty(timeout)
        self._outbox.close()
        self._sender.stop()
        if self._sender.is_alive():
            self._sender.join(_JOIN_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        # With the first prediction, as threads do not survive a fork.
        if self._sender.ident is None and self._sender.try_to_start() and parent_process() is not None:
            # A child of `multiprocessing` ends without what is registered with `atexit`.
            Finalize(None, self.close, exitpriority=0)

    def _connect(self) -> Any:
        made = build_producer(
            self._kafka, name="client", delivery_seconds=_DELIVERY_SECONDS, block_seconds=_BLOCK_SECONDS
        )
        # What is registered last is called first: else Kafka's client would be closed before this one.
        atexit.unregister(self.close)
        atexit.register(self.close)
        return made
