"""A vendor API on a real socket, with a real Redis and a real broker; requests are issued by hand."""

from __future__ import annotations

import hashlib
import http.client
import json
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from harness import wait_for
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from prometheus_client import CollectorRegistry
from redis_cluster import EmbeddedRedisCluster
from store_site import NOW, Site, message, outcomes, record, redis_settings

from service.app.vendor_wiring import vendor_service
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.domain.messages import LabelRequest
from service.kafka.clients import build_producer
from service.serving.vendor_api.app import vendor_app
from service.serving.vendor_api.service import VendorService
from service.serving.web.server import WebServer
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.records import GoldItem
from service.telemetry.instruments import VendorMetrics

TOKENS = {"acme": "token-of-acme", "acme-next": "next-token-of-acme", "bolt": "token-of-bolt"}
LABEL_KEYS = {"acme": "a" * 32, "bolt": "b" * 32}
LEASE_SECONDS = 600.0
"""Time to answer a request."""

V1 = "/vendor/v1"


def sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


VENDORS: dict[str, Any] = {
    "acme": {
        "label_keys": [LABEL_KEYS["acme"]],
        "token_sha256": [sha256(TOKENS["acme"]), sha256(TOKENS["acme-next"])],
    },
    "bolt": {"label_keys": [LABEL_KEYS["bolt"]], "token_sha256": [sha256(TOKENS["bolt"])]},
}


def models(model: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A model with an assessment that asks for everything; both with further keys."""
    assessment = {
        "policy": "random",
        "budget": {"labels": 10_000},
        "max_in_flight": 10_000,
        "lease_seconds": LEASE_SECONDS,
        "max_attempts": 2,
        **fields,
    }
    kept = {"classes": ["cat", "dog", "owl"], "score_bins": 1, "assessments": {"ask": assessment}}
    return {"m": kept | model}


@dataclass
class Told:
    """An answer of the API."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def problem(self) -> str:
        """The word of a problem; empty where there is none."""
        if not isinstance(self.body, dict) or "type" not in self.body:
            return ""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.body["status"] == self.status
        return str(self.body["type"]).removeprefix("urn:credence:problem:")

    @property
    def claims(self) -> list[dict[str, Any]]:
        assert self.status == 200, self.body
        found: list[dict[str, Any]] = self.body["claims"]
        return found


@dataclass
class Caller:
    """One vendor's tool."""

    port: int
    token: str | None
    tls: ssl.SSLContext | None = None
    seconds: float = 60.0

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Told:
        """Make one call; the body is JSON, unless it is given as bytes."""
        if self.tls is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.seconds)
        else:
            connection = http.client.HTTPSConnection(
                "localhost", self.port, timeout=self.seconds, context=self.tls
            )
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            given.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            given.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, body=body, headers=given)
            reply = connection.getresponse()
            text = reply.read()
            shown = {name.lower(): value for name, value in reply.getheaders()}
        finally:
            connection.close()
        is_json = shown.get("content-type", "").endswith("json")
        return Told(reply.status, json.loads(text) if is_json else text.decode(), shown)

    def get(self, path: str) -> Told:
        return self.call("GET", V1 + path)

    def post(self, path: str, body: Any, **headers: str) -> Told:
        return self.call("POST", V1 + path, body, **headers)

    def claim(self, most: int = 1, **fields: Any) -> list[dict[str, Any]]:
        return self.post("/claims", {"most": most, **fields}).claims

    def of(self, claim: Mapping[str, Any], verb: str, **fields: Any) -> Told:
        """Do something with a claim."""
        path = f"/models/{claim['model']}/requests/{claim['request_id']}/{verb}"
        if verb in {"correction", "retraction"}:
            return self.post(path, {"item_id": claim["request"]["item_id"], **fields})
        return self.post(path, {"claim_id": claim["claim_id"], **fields})

    def answer(self, claim: Mapping[str, Any], true_class: str = "cat", **fields: Any) -> Told:
        return self.of(claim, "answer", true_class=true_class, **fields)


@dataclass
class Clock:
    """Shows what it is given."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Office:
    """The vendor API of one test.

    Attributes:
        site: the store behind it.
        settings: all of them.
        service: None while Redis and Kafka count as not reached yet.
        stopping: whether the process counts as ending.
    """

    connection: Connection
    broker: str
    vendors: Mapping[str, Any] = field(default_factory=lambda: VENDORS)
    api: Mapping[str, Any] = field(default_factory=dict)
    assessment: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    gold: Sequence[GoldItem] = ()
    body_seconds: float = 15.0
    delivery_seconds: float = 30.0
    certificate: tuple[str, str] | None = None
    clock: Clock = field(default_factory=Clock)
    stopping: bool = False

    def __post_init__(self) -> None:
        self.site = Site(self.connection, models(self.model, **self.assessment), vendors=self.vendors)
        self.topic = f"{self.connection.prefix}.labels.{secrets.token_hex(4)}"
        self.settings = Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": [self.broker], "topics": {"labels": self.topic}},
                "redis": {"prefix": self.connection.prefix},
                "models": models(self.model, **self.assessment),
                "vendors": dict(self.vendors),
                "vendor_api": {"requests_per_second": 10_000, "burst": 10_000, **self.api},
            }
        )
        admin = KafkaAdminClient(bootstrap_servers=self.broker)
        admin.create_topics([NewTopic(self.topic, num_partitions=1, replication_factor=1)])
        admin.close()
        self._consumer = KafkaConsumer(bootstrap_servers=self.broker, enable_auto_commit=False)
        self._consumer.assign([TopicPartition(self.topic, 0)])
        self._consumer.seek_to_beginning()
        self._producer = build_producer(
            self.settings.kafka,
            name="test",
            delivery_seconds=self.delivery_seconds,
            block_seconds=self.delivery_seconds,
            idempotent=False,
        )
        self.registry = CollectorRegistry()
        self.metrics = VendorMetrics(self.registry)
        self.service: VendorService | None = self.made_service(self._producer)
        app = vendor_app(
            self.settings.vendors,
            self.settings.vendor_api,
            service=lambda: self.service,
            metrics=self.metrics,
            clock=self.clock,
            stopping=lambda: self.stopping,
            body_seconds=self.body_seconds,
        )
        self.server = WebServer(
            app,
            name="vendor_api",
            host="127.0.0.1",
            port=0,
            certificate=self.certificate,
            connections=self.settings.vendor_api.connections,
        )
        self.items = 0
        self._step = self.site.label_step()
        self._step.assign(0, 0)
        self.labels: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping = True
        self.server.stop()
        self._producer.close(timeout=5)
        self._consumer.close(autocommit=False)

    def made_service(self, producer: Any) -> VendorService:
        return vendor_service(
            self.settings, self.connection, producer, metrics=self.metrics, clock=self.clock
        )

    def caller(self, vendor: str | None) -> Caller:
        """The tool of a vendor."""
        return Caller(self.server.port, None if vendor is None else TOKENS[vendor])

    def ask(self, count: int, **fields: Any) -> None:
        """Have so many more requests issued."""
        start, self.items = self.items, self.items + count
        fields = {"payload": {"picture": 1}} | fields
        self.site.take_in([record(i, message(i, **fields)) for i in range(start, self.items)])
        self.round()

    def round(self) -> None:
        """One round of the leader."""
        monitor = self.site.monitor("m", gold=self.gold)
        monitor.refresh(self.clock())
        monitor.ask(epoch=1, now=self.clock())

    def asked_of(self, vendor: str) -> list[LabelRequest]:
        """The requests that were issued to a vendor and wait to be published."""
        texts = self.site.requests("m").read_outbox().values()
        requests = [LabelRequest.model_validate_json(text) for text in texts]
        return [request for request in requests if request.vendor == vendor]

    def read_labels(self, count: int = 1, *, seconds: float = 60.0) -> list[dict[str, Any]]:
        """Have the labels consumer take so many labels that the API wrote; what they say."""
        records: list[Any] = []
        until = time.monotonic() + seconds
        while len(records) < count and time.monotonic() < until:
            for found in self._consumer.poll(100).values():
                records += found
        assert len(records) == count, f"{len(records)} labels"
        self._step.process(0, records, self.clock())
        said = [json.loads(each.value) for each in records]
        self.labels += said
        return said

    def read_some(self) -> None:
        """Have the labels consumer take what is there."""
        for found in self._consumer.poll(50).values():
            self._step.process(0, found, self.clock())

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Have the labels consumer take what is written, all the time."""
        ended = threading.Event()

        def go_on() -> None:
            while not ended.is_set():
                self.read_some()

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def true_classes(self) -> list[str]:
        """What the outcomes say, corrections and retractions included."""
        return [entry.label.true_class for entry in outcomes(self.site)]

    def await_outcomes(self, *classes: str) -> None:
        """Wait until the labels consumer has made these outcomes."""
        wait_for(lambda: self.true_classes() == list(classes), seconds=10, what="the outcomes")

    def sample(self, name: str, **labels: str) -> float:
        """A metric's value."""
        return self.registry.get_sample_value(name, labels) or 0.0


Open = Callable[..., Office]


def fresh_connection(server: EmbeddedRedis | EmbeddedRedisCluster, **options: Any) -> Connection:
    """A connection with a prefix of its own."""
    return Connection(build_redis(redis_settings(server, **options)), f"test-{secrets.token_hex(6)}")
