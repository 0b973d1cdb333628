"""One deployment under test: its topics, Redis, schema registry, processes, and the wires between."""

from __future__ import annotations

import json
import secrets
import signal
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from forge import Forge
from harness import PATIENCE_SECONDS, wait_for
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from layout import (
    BOUNDS,
    LEASE_SECONDS,
    MODELS,
    PARTITIONS,
    REDIS_TIMEOUT_SECONDS,
    REGISTRY_TIMEOUT_SECONDS,
    ROLES,
    SESSION_SECONDS,
)
from member import Member
from pydantic import SecretStr
from registered import answer_of
from store_site import HASH_KEY, Site
from wired_kafka import WiredKafka
from wires import Wires
from workload import Message

from benchmarks.schema_registry import LocalSchemaRegistry
from service.config.settings import RedisSettings
from service.demo.servers import EmbeddedRedis
from service.store.client import build_redis
from service.store.connection import Connection

Records = Mapping[int, Sequence[Any]]
"""Of a topic, by partition, as the Kafka client gives them."""


class Stand:
    """A deployment with fresh topics, a fresh Redis and a schema registry, on brokers that others use too.

    Args:
        folder: for configurations, logs, and Redis's data.
        wires: where the wires turn.
        kafka: the brokers.
        forge: starts the processes.
        redis_folder: where Redis keeps its data, if not in `folder`.
        hash_key: whether it is configured; made by the processes themselves if not.
        settings: more of the configuration, by its top-level keys.
    """

    def __init__(
        self,
        folder: Path,
        *,
        wires: Wires,
        kafka: WiredKafka,
        forge: Forge,
        redis_folder: Path | None = None,
        hash_key: bool = True,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = f"f{secrets.token_hex(5)}"
        self.folder = folder
        self.kafka = kafka
        self._hash_key = hash_key
        self._settings = dict(settings or {})
        self.redis_folder = redis_folder or folder / "redis"
        self.redis_folder.mkdir(parents=True, exist_ok=True)
        self.redis = EmbeddedRedis(folder=self.redis_folder)
        self.redis_client = build_redis(RedisSettings(url=SecretStr(self.redis.url), timeout_seconds=2.0))
        self.registry = LocalSchemaRegistry(answer_of)
        self.registry.start()
        self.members = {
            name: Member(
                name,
                folder=folder,
                forge=forge,
                redis_wire=wires.wire(self.redis.port),
                configure=self._configuration,
            )
            for name in ROLES
        }
        self._create_topics()

    def _create_topics(self) -> None:
        topics = [
            NewTopic(self.topic(kind), count, len(self.kafka.brokers)) for kind, count in PARTITIONS.items()
        ]
        admin = self.kafka.admin()
        admin.create_topics(topics)
        wait_for(lambda: self._have_leaders(admin), seconds=30, what="topics with leaders")
        admin.close()

    def _have_leaders(self, admin: KafkaAdminClient) -> bool:
        described = admin.describe_topics([self.topic(kind) for kind in PARTITIONS])
        return all(
            len(topic["partitions"]) == count and all(p["leader_id"] >= 0 for p in topic["partitions"])
            for topic, count in zip(described, PARTITIONS.values(), strict=True)
        )

    def topic(self, kind: str) -> str:
        """Name of one of the topics."""
        return f"{self.name}.{kind}"

    def _configuration(self, member: Member) -> dict[str, Any]:
        """The configuration of one process."""
        configured: dict[str, Any] = {
            "kafka": {
                "bootstrap_servers": self.kafka.bootstrap_of(member.client),
                "session_timeout_seconds": SESSION_SECONDS,
                "group_prefix": self.name,
                "flush_seconds": 0.2,
                "max_poll_records": 200,
                "schema_registry": {"url": self.registry.url, "timeout_seconds": REGISTRY_TIMEOUT_SECONDS},
                "topics": {kind.replace("-", "_"): self.topic(kind) for kind in PARTITIONS},
            },
            "redis": {
                "url": f"redis://127.0.0.1:{member.redis_wire.port}/0",
                "prefix": self.name,
                "timeout_seconds": REDIS_TIMEOUT_SECONDS,
            },
            "monitoring": {"port": member.monitoring_port},
            "http": {"port": 0},
            "schedule": {"tick_seconds": 0.25, "lease_seconds": LEASE_SECONDS},
            "bounds": BOUNDS,
            "log_level": "debug",
            "models": MODELS,
        }
        if self._hash_key:
            configured["hash_key"] = HASH_KEY.hex()
        return configured | self._settings

    @property
    def connection(self) -> Connection:
        """To its Redis, by no wire."""
        return Connection(self.redis_client, self.name)

    def site(self) -> Site:
        """Its store, as the store's tests look at it."""
        return Site(self.connection, MODELS, bounds=BOUNDS)

    def stop(self, *names: str) -> None:
        """Have some processes stop, all at once; each must say that nothing failed."""
        for name in names:
            self.members[name].ask_to_stop()
        for name in names:
            self.members[name].stop()

    def restart_redis(self) -> None:
        """Start Redis again on its folder and port; it must be stopped."""
        self.redis = EmbeddedRedis(folder=self.redis_folder, port=self.redis.port)

    def send(self, messages: Iterable[Message]) -> None:
        """Send predictions, and wait for the brokers to have them."""
        producer = KafkaProducer(bootstrap_servers=self.kafka.bootstrap_servers)
        for message in messages:
            producer.send(
                self.topic("predictions"),
                key=message.key,
                value=message.value,
                headers=list(message.headers),
            )
        producer.flush()
        producer.close()

    def predictions_stored(self) -> bool:
        """Whether everything in the predictions topic is stored."""
        ends = self.ends("predictions")
        return all(self.site().reader(model).traffic().offsets == ends for model in MODELS)

    def records(self, kind: str) -> dict[int, list[Any]]:
        """All records of one topic that are there now, by partition."""
        consumer = KafkaConsumer(bootstrap_servers=self.kafka.bootstrap_servers, enable_auto_commit=False)
        try:
            partitions = [TopicPartition(self.topic(kind), p) for p in range(PARTITIONS[kind])]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            ends = consumer.end_offsets(partitions)
            found: dict[int, list[Any]] = {tp.partition: [] for tp in partitions}
            deadline = time.monotonic() + PATIENCE_SECONDS
            while any(consumer.position(tp) < ends[tp] for tp in partitions):
                assert time.monotonic() < deadline, f"{kind} cannot be read"
                for tp, records in consumer.poll(200).items():
                    found[tp.partition] += records
        finally:
            consumer.close()
        return found

    def ends(self, kind: str) -> dict[int, int]:
        """End offset of every partition of one topic."""
        consumer = KafkaConsumer(bootstrap_servers=self.kafka.bootstrap_servers, enable_auto_commit=False)
        try:
            ends = consumer.end_offsets(
                [TopicPartition(self.topic(kind), p) for p in range(PARTITIONS[kind])]
            )
        finally:
            consumer.close()
        return {tp.partition: end for tp, end in ends.items()}

    def check_gone(self) -> None:
        """Fail where a process still runs, or a port is still listened on."""
        for member in self.members.values():
            assert not member.running, f"{member.name} still runs"
            with socket.socket() as client:
                refused = client.connect_ex(("127.0.0.1", member.monitoring_port))
            assert refused, f"something still listens on the port of {member.name}"

    def check_logs(self) -> None:
        """Fail where a process logged an exception, said what is no log entry, or called something critical.

        The Kafka client's own entries may tell of exceptions: it logs those that it gets over.
        """
        for member in self.members.values():
            lines = member.log.read_text(errors="replace").splitlines() if member.log.exists() else []
            for line in lines:
                assert line.startswith("{"), f"{member.name} said: {line}; its log: {member.log}"
                entry = json.loads(line)
                ours = not entry["logger"].startswith("kafka.")
                assert entry["level"] != "critical", f"{member.name} logged: {line}"
                assert not (ours and "exception" in entry), f"{member.name} logged: {line}"

    def close(self) -> None:
        """End all processes, this Redis and the registry, and delete the topics."""
        for member in self.members.values():
            member.kill()
            member.redis_wire.close()
        self.registry.stop()
        self.redis_client.close()
        self.redis.process.send_signal(signal.SIGCONT)
        self.redis.stop()
        with suppress(Exception):
            admin = self.kafka.admin()
            admin.delete_topics([self.topic(kind) for kind in PARTITIONS])
            admin.close()
