"""A dead-letter topic that is written and read without a process of Credence."""

from __future__ import annotations

import secrets
from contextlib import closing
from types import SimpleNamespace
from typing import Any

from kafka import KafkaConsumer
from kafka.admin import NewTopic

from consumers.dead_letter_format import Letter, read_letter
from consumers.dead_letter_producer import KafkaDeadLetters
from consumers.dead_letters import Rejected
from service.config.settings import KafkaSettings
from service.domain.errors import BadMessage
from service.kafka.clients import build_admin, build_producer

MESSAGE_BYTES = 100_000
ERROR = BadMessage("malformed_json", "not JSON")


def rejected(offset: int, value: bytes = b"{", **fields: Any) -> Rejected:
    """A message of topic `source` that cannot be used; with an `index`, one of an array."""
    index = fields.pop("index", None)
    plain: dict[str, Any] = {"topic": "source", "partition": 0, "key": None, "timestamp": 17, "headers": ()}
    record = SimpleNamespace(offset=offset, value=value, **(plain | fields))
    return Rejected(record, ERROR, index, None if index is None else value)


class Site:
    """A dead-letter topic, and a producer for it."""

    def __init__(self, bootstrap_server: str) -> None:
        self.settings = KafkaSettings(bootstrap_servers=[bootstrap_server])
        self.topic = f"letters-{secrets.token_hex(4)}"
        admin = build_admin(self.settings)
        admin.create_topics([NewTopic(self.topic, num_partitions=1, replication_factor=1)])
        admin.close()
        self.producer = build_producer(self.settings, name="test", delivery_seconds=3_600)

    def letters(self, *, send_seconds: float = 10.0) -> KafkaDeadLetters:
        return KafkaDeadLetters(
            self.producer,
            self.topic,
            message_bytes=MESSAGE_BYTES,
            send_seconds=send_seconds,
        )

    def records(self) -> list[Any]:
        """All that the topic holds once one more record, the last one, is read."""
        self.producer.send(self.topic, value=b"", key=b"the last one").get(timeout=20)
        consumer = KafkaConsumer(
            self.topic,
            bootstrap_servers=self.settings.bootstrap_servers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=20_000,
        )
        found = []
        with closing(consumer):
            for record in consumer:
                if record.key == b"the last one":
                    return found
                found.append(record)
        raise AssertionError("the last record does not come")

    def kept(self) -> list[Letter]:
        return [read_letter(record) for record in self.records()]
