"""Answers label requests with a function: at least once, whatever fails in between."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from enum import Enum
from itertools import chain
from typing import Any
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from service.client.connection import Kafka, kafka_settings
from service.config.problem_words import JSON, described
from service.domain.errors import Unavailable
from service.domain.messages import LABEL_TYPE, Label, LabelRequest, Name, cloudevents_headers
from service.kafka.clients import build_consumer, build_producer
from service.kafka.topic_metadata import join, translate_errors

log = logging.getLogger("service.client")

_POLL_SECONDS = 0.2
_BACKOFF_SECONDS = 2.0
_DELIVERY_SECONDS = 30.0
_ANSWER_SECONDS = 3_600.0


class Skip(Enum):
    """The answer that an item's true class cannot be determined."""

    SKIP = "skip"


SKIP = Skip.SKIP

Answer = Callable[[LabelRequest], str | Skip | None]
"""The true class, `SKIP` if nobody can determine it, or None to leave the request open until its deadline."""


class Labeller:
    """Calls a function with each label request of a model, one after the other, and sends its answers.

    The offset of a request is committed once Kafka has its answer. After a crash in between, the function is
    called once more; an answer that is sent twice counts once. Several labellers of a model share its
    requests. Requests to vendors are not answered, as their labels have to be signed.

    Args:
        model: name of the model in Credence's configuration.
        answer: may take up to an hour. What it raises ends `run`, and its request comes again.
        annotator: who answers, as a pseudonym; Credence needs it if several people label items.
        kafka: brokers as `host:port`, separated by commas; or the keys of `kafka` in a configuration.

    Raises:
        ConfigurationError: `kafka` has an unknown key, or an impossible value.
        ValueError: `annotator` is not text of 1 to 128 characters.
    """

    def __init__(
        self, model: str, answer: Answer, *, annotator: str | None = None, kafka: Kafka = "127.0.0.1:9092"
    ) -> None:
        self._model = model
        self._answer = answer
        self._annotator = None if annotator is None else _checked_annotator(annotator)
        # One at a time: the answer to one may take long, and its offset is committed alone.
        self._kafka = kafka_settings(kafka).model_copy(update={"max_poll_records": 1})
        self._is_stopping = False

    def stop(self) -> None:
        """Have `run` return after the request that is being answered; callable from a signal handler."""
        self._is_stopping = True

    def run(self) -> None:
        """Answer requests until stopped; while Kafka is unavailable it waits.

        Raises:
            ValueError: an answer is not one of the request's classes.
            ConfigurationError: a file of the security settings cannot be used.
        """
        while not self._is_stopping:
            try:
                self._answer_requests()
            except Unavailable as error:
                log.warning("label requests wait until Kafka is available: %s", error)
                until = time.monotonic() + _BACKOFF_SECONDS
                while not self._is_stopping and time.monotonic() < until:
                    time.sleep(_POLL_SECONDS)

    def _answer_requests(self) -> None:
        topics = self._kafka.topics
        with ExitStack() as stack, translate_errors():
            consumer = build_consumer(
                self._kafka,
                group=f"labeller.{self._model}",
                without_offset="earliest",
                poll_seconds=_ANSWER_SECONDS,
            )
            stack.callback(consumer.close, autocommit=False)
            producer = build_producer(self._kafka, name="labeller", delivery_seconds=_DELIVERY_SECONDS)
            stack.callback(producer.close, timeout=_BACKOFF_SECONDS)
            # A plain `subscribe` may never get a record, without an error.
            join(consumer, topics.label_requests)
            while not self._is_stopping:
                polled = consumer.poll(timeout_ms=int(_POLL_SECONDS * 1000))
                for record in chain.from_iterable(polled.values()):
                    label = self._label(record.value)
                    if label is not None:
                        self._send(producer, topics.labels, label)
                    consumer.commit()

    def _label(self, value: bytes) -> Label | None:
        """The label of a request; None if it is to get none."""
        try:
            request = LabelRequest.model_validate_json(value)
        except ValidationError:
            log.warning("a record on the topic of label requests is no label request; it is ignored")
            return None
        is_other = request.model != self._model or request.vendor is not None
        if is_other or request.deadline <= datetime.now(UTC):
            return None
        answer = self._answer(request)
        if answer is None:
            return None
        if answer is not SKIP and answer not in request.classes:
            raise ValueError(
                f"the answer to request {request.request_id} is not one of its classes: "
                f"{', '.join(request.classes)}; return one of them, SKIP, or None"
            )
        return Label(
            request_id=request.request_id,
            model=request.model,
            item_id=request.item_id,
            kind="skip" if answer is SKIP else "answer",
            true_class=None if isinstance(answer, Skip) else answer,
            annotator=self._annotator,
            time=datetime.now(UTC),
        )

    def _send(self, producer: Any, topic: str, label: Label) -> None:
        headers = cloudevents_headers(
            event_type=LABEL_TYPE,
            event_id=uuid4().hex,
            source=f"/credence/labellers/{self._model}",
            time=datetime.now(UTC),
        )
        value = label.model_dump_json(exclude_none=True).encode()
        future = producer.send(topic, key=label.item_id.encode(), value=value, headers=headers)
        future.get(timeout=_DELIVERY_SECONDS)


def _checked_annotator(annotator: str) -> str:
    try:
        return TypeAdapter(Name).validate_python(annotator, strict=True)
    except ValidationError as error:
        ((_, problem),) = described(error.errors(), JSON)
        raise ValueError(f"annotator: {problem}") from error
