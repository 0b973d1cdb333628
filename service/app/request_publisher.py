"""Sends label requests from Redis to Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from service.domain.messages import LABEL_REQUEST_TYPE, cloudevents_headers
from service.kafka.topic_metadata import translate_errors
from service.store.requests import RequestStore
from service.telemetry.instruments import PipelineMetrics

_PUBLISH_SECONDS = 10.0


class _Request(msgspec.Struct):
    item_id: str
    vendor: str = ""


@dataclass(frozen=True)
class RequestPublisher:
    """Sends label requests from the outboxes to the topics of their vendors, or to the common topic.

    A message leaves the outbox after Kafka has it, so it may be sent twice, with the same request id and
    attempt.

    Attributes:
        producer: of bytes.
        topic: of vendors without a topic of their own, and where there are no vendors.
        stores: label requests by model.
        metrics: of the pipeline.
        vendor_topics: by vendor.
    """

    producer: Any
    topic: str
    stores: Mapping[str, RequestStore]
    metrics: PipelineMetrics
    vendor_topics: Mapping[str, str] = field(default_factory=dict)

    def publish(self, now: float) -> int:
        """Send all requests in the outboxes; returns their number.

        Raises:
            Unavailable: Redis or Kafka cannot answer now; the rest is sent later.
        """
        return sum(self._publish_model(model, store, now) for model, store in self.stores.items())

    def _publish_model(self, model: str, store: RequestStore, now: float) -> int:
        outbox = store.read_outbox()
        if not outbox:
            return 0
        with translate_errors():
            futures = [self._send(model, entry, message, now) for entry, message in outbox.items()]
            self.producer.flush(timeout=_PUBLISH_SECONDS)
            for future in futures:
                future.get(timeout=_PUBLISH_SECONDS)
        store.remove_published(list(outbox))
        self.metrics.requests_published.labels(model).inc(len(outbox))
        return len(outbox)

    def _send(self, model: str, entry: str, message: bytes, now: float) -> Any:
        request = msgspec.json.decode(message, type=_Request)
        topic = self.vendor_topics.get(request.vendor, self.topic)
        headers = cloudevents_headers(
            event_type=LABEL_REQUEST_TYPE,
            event_id=entry,
            source=f"/credence/models/{model}",
            time=datetime.fromtimestamp(now, UTC),
        )
        with translate_errors(topic):
            return self.producer.send(topic, key=request.item_id.encode(), value=message, headers=headers)
