"""Labels on their way to Kafka, from which they are consumed like all others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafka.errors import KafkaError

from service.domain.label_signatures import sign
from service.domain.messages import LABEL_TYPE, LabelKind, cloudevents_headers
from service.kafka.topic_metadata import translate_error
from service.store.records import encode_json

_SEND_SECONDS = 10.0


@dataclass(frozen=True)
class VendorLabel:
    """A vendor's label for one request.

    `true_class` is empty for a skip and a retraction; `time` is aware, and None stands for now.
    """

    model: str
    request_id: str
    kind: LabelKind
    item_id: str = ""
    true_class: str = ""
    annotator: str | None = None
    time: datetime | None = None


class LabelWriter:
    """Writes labels, signed with each vendor's key, with a producer that waits for all in-sync replicas."""

    def __init__(self, producer: Any, topic: str, label_keys: Mapping[str, bytes]) -> None:
        self._producer = producer
        self._topic = topic
        self._label_keys = label_keys

    def write(self, vendor: str, labels: Sequence[VendorLabel], *, now: float) -> None:
        """Return once Kafka has them all.

        Raises:
            Unavailable: Kafka cannot take them now. Some may have been written; writing again is harmless.
        """
        try:
            futures = [self._send(vendor, label, datetime.fromtimestamp(now, UTC)) for label in labels]
            for future in futures:
                future.get(timeout=_SEND_SECONDS)
        except KafkaError as error:
            raise translate_error(error, self._topic) from error

    def _send(self, vendor: str, label: VendorLabel, now: datetime) -> Any:
        fields = {
            "request_id": label.request_id,
            "model": label.model,
            "item_id": label.item_id,
            "kind": label.kind,
            "true_class": label.true_class,
            "annotator": label.annotator,
            "time": (label.time or now).isoformat(),
        }
        value = encode_json({key: text for key, text in fields.items() if text})
        headers = cloudevents_headers(
            event_type=LABEL_TYPE,
            event_id=hashlib.blake2b(value, digest_size=12).hexdigest(),
            source=f"/credence/vendors/{vendor}",
            time=now,
        )
        return self._producer.send(
            self._topic,
            key=label.item_id.encode(),
            value=value,
            headers=headers + sign(self._label_keys[vendor], vendor, value),
        )
