"""Sends a workload, and what people say to label requests."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from layout import PARTITIONS
from stand import Stand
from workload import Message, Workload

from service.domain.messages import LabelRequest

_CHUNK = 40
_CHUNK_SECONDS = 0.12


class Sender:
    """Sends the workload, and what people say, by clients that see no fault of a wire."""

    def __init__(self, stand: Stand, workload: Workload) -> None:
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.requests: list[LabelRequest] = []
        self._stand = stand
        self._workload = workload
        self._lock = threading.Lock()
        self._producer = KafkaProducer(
            bootstrap_servers=stand.kafka.bootstrap_servers, acks="all", max_block_ms=120_000
        )
        self._predicting = threading.Event()
        self._answering = threading.Event()
        self._failures: list[BaseException] = []
        self._later: list[tuple[float, int, Message]] = []
        self._order = itertools.count()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=work.__name__)
            for work in (self._predict, self._answer)
        ]

    def start(self) -> None:
        """Begin to send."""
        for thread in self._threads:
            thread.start()

    def stop_predicting(self) -> None:
        """Send the last predictions; returns once all that were sent are acknowledged."""
        self._predicting.set()
        self._threads[0].join()
        for partition in range(PARTITIONS["predictions"]):
            self._send("predictions", self._workload.closing(partition), partition)
        self._producer.flush(timeout=60)

    def stop(self) -> None:
        """End everything."""
        self._predicting.set()
        self._answering.set()
        for thread in self._threads:
            thread.join()
        self._producer.close(timeout=10)
        assert not self._failures, f"the workload failed: {self._failures[0]!r}"

    def ends(self) -> dict[tuple[str, int], int]:
        """By topic and partition, the offset behind the last record that Kafka has acknowledged."""
        with self._lock:
            return dict(self.acknowledged)

    @property
    def answers_waiting(self) -> bool:
        """Whether people are still to say something."""
        return bool(self._later)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised when the trial ends
            self._failures.append(error)

    def _predict(self) -> None:
        for start in itertools.count(step=_CHUNK):
            if self._predicting.wait(_CHUNK_SECONDS):
                return
            for message in self._workload.predictions(start, _CHUNK):
                self._send("predictions", message)

    def _answer(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self._stand.kafka.bootstrap_servers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        topic = self._stand.topic("label-requests")
        consumer.assign([TopicPartition(topic, p) for p in range(PARTITIONS["label-requests"])])
        try:
            seen: set[tuple[str, int]] = set()
            while not self._answering.is_set():
                for records in consumer.poll(100).values():
                    for record in records:
                        request = LabelRequest.model_validate_json(record.value)
                        self.requests.append(request)
                        if (request.request_id, request.attempt) not in seen:
                            seen.add((request.request_id, request.attempt))
                            self._think_of(request)
                while self._later and self._later[0][0] <= time.monotonic():
                    self._send("labels", heapq.heappop(self._later)[2])
        finally:
            consumer.close(autocommit=False, timeout_ms=2_000)

    def _think_of(self, request: LabelRequest) -> None:
        at = time.monotonic()
        for message in self._workload.labels(request):
            heapq.heappush(self._later, (at + message.wait_seconds, next(self._order), message))

    def _send(self, kind: str, message: Message, partition: int | None = None) -> None:
        topic = self._stand.topic(kind)
        future = self._producer.send(
            topic,
            key=message.key,
            value=message.value,
            headers=list(message.headers),
            partition=partition,
        )
        future.add_callback(lambda sent: self._acknowledge(kind, sent))

    def _acknowledge(self, kind: str, sent: Any) -> None:
        with self._lock:
            place = (kind, sent.partition)
            self.acknowledged[place] = max(self.acknowledged.get(place, 0), sent.offset + 1)
