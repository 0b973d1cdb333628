"""The APIs of vendors and senders as a process wires them, with a real Redis and a real broker."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Self

from harness import wait_for
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from office import LABEL_KEYS, TOKENS, Caller, sha256
from prometheus_client import CollectorRegistry

from service.app.vendor_wiring import VendorServing
from service.config.settings import Settings
from service.serving.web.server import WebServer
from service.store.connection import Connection
from service.telemetry.instruments import VendorMetrics

SENDER_TOKENS = {"shop": "token-of-shop", "bank": "token-of-bank"}

GOOD: dict[str, Any] = {"model": "m", "item_id": "a", "predicted_class": "cat", "score": 0.9}


class SenderSite:
    """A listener with a vendor and two senders, one for each model.

    Attributes:
        serving: what a process has of it.
        server: listens on a free port.
    """

    def __init__(self, connection: Connection, broker: str, **api: Any) -> None:
        self.topic = f"{connection.prefix}.predictions.{secrets.token_hex(4)}"
        model = {"classes": ["cat", "dog"]}
        self.settings = Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": [broker], "topics": {"predictions": self.topic}},
                "redis": {"prefix": connection.prefix},
                "models": {"m": model, "other": model},
                "vendors": {
                    "acme": {"label_keys": [LABEL_KEYS["acme"]], "token_sha256": [sha256(TOKENS["acme"])]}
                },
                "senders": {
                    "shop": {"models": ["m"], "token_sha256": [sha256(SENDER_TOKENS["shop"])]},
                    "bank": {"models": ["other"], "token_sha256": [sha256(SENDER_TOKENS["bank"])]},
                },
                "vendor_api": {"requests_per_second": 10_000, "burst": 10_000, **api},
            }
        )
        admin = KafkaAdminClient(bootstrap_servers=broker)
        admin.create_topics([NewTopic(self.topic, num_partitions=1, replication_factor=1)])
        admin.close()
        self._connection = connection
        self._stack = ExitStack()
        self.registry = CollectorRegistry()
        self.serving = VendorServing(
            self.settings, VendorMetrics(self.registry), time.time, stopping=lambda: False
        )
        self.server = WebServer(self.serving.app(), name="vendor_api", host="127.0.0.1", port=0)
        self._consumer = KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False)
        self._consumer.assign([TopicPartition(self.topic, 0)])
        self._consumer.seek_to_beginning()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
        self._stack.close()
        self._consumer.close(autocommit=False)

    def start(self) -> None:
        """Reach Redis and Kafka."""
        self.serving.start(self._connection, _at_once, self._stack)

    def caller(self, sender: str | None) -> Caller:
        """Who has the token of a sender, or of a vendor, or none."""
        return Caller(self.server.port, None if sender is None else (SENDER_TOKENS | TOKENS)[sender])

    def records(self, count: int) -> list[Any]:
        """All records of the predictions topic, once there are so many."""
        found: list[Any] = []

        def enough() -> bool:
            for records in self._consumer.poll(100).values():
                found.extend(records)
            return len(found) >= count

        wait_for(enough, seconds=30, what=f"{count} records")
        return found

    def calls(self, **labels: str) -> float:
        """How many calls were counted."""
        return self.registry.get_sample_value("credence_vendor_api_calls_total", labels) or 0.0


def _at_once(make: Callable[[], Any]) -> Any:
    return make()


def prediction(**changes: Any) -> Mapping[str, Any]:
    """A good prediction, with changes; a field that is None is left out."""
    return {name: value for name, value in (GOOD | changes).items() if value is not None}
