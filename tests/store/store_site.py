"""One deployment's store and steps on a real Redis, without processes: what the store's tests share."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from prometheus_client import CollectorRegistry
from redis_cluster import EmbeddedRedisCluster
from wires import Wires

from consumers.dead_letters import BadMessageLimit, Rejected
from consumers.ingest import ModelIngest
from consumers.labels import LabelStep
from consumers.predictions import PredictionStep
from service.app.consumer_wiring import (
    label_checks,
    shard_store,
    unrequested_joins,
)
from service.app.format_wiring import prediction_formats
from service.app.monitor_wiring import model_monitor
from service.app.pool_sizing import asked_pools
from service.app.wiring import label_store, model_keys, request_store
from service.config.settings import RedisSettings, Settings
from service.demo.servers import EmbeddedRedis
from service.domain.cells import CellSpace
from service.domain.errors import FlushRefused, Unavailable
from service.domain.grouping_pool import EMPTY_SKETCH, Sketch
from service.domain.pool_key import PoolKey
from service.monitoring.monitor import ModelMonitor
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.facts import FactReader
from service.store.keys import ModelKeys
from service.store.labels import LabelEvent, LabelStore
from service.store.outcome_entries import BEGINNING, OutcomeEntry, OutcomePage, Position, SharedDraw
from service.store.records import Fact, GoldItem, decode_pool_record, encode_json, encode_packed
from service.store.requests import Draw, IssueStatus, OpenRequest, Payment, RequestStore
from service.store.shards import ShardStore, pack_hash, pool_field, unpack_hash
from service.telemetry.instruments import PipelineMetrics

NOW = 1_800_000_000.0
HASH_KEY = bytes(range(16))


@dataclass(frozen=True)
class Record:
    """What a Kafka client gives."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int = int(NOW * 1000)
    partition: int = 0
    topic: str = "t"


class Letters:
    """Dead letters kept in a list; while `closed`, none can be kept."""

    def __init__(self) -> None:
        self.kept: list[Rejected] = []
        self.closed = False

    def send(self, rejected: Sequence[Rejected]) -> None:
        if self.closed and rejected:
            raise Unavailable("kafka", ConnectionError())
        self.kept += rejected

    @property
    def reasons(self) -> list[str]:
        return [letter.error.reason for letter in self.kept]


class Site:
    """A configuration, and the parts of it that the tests use."""

    def __init__(
        self,
        connection: Connection,
        models: Mapping[str, Any],
        *,
        bounds: Mapping[str, Any] | None = None,
        pause_window: int = 1_000,
        vendors: Mapping[str, Any] | None = None,
        kafka: Mapping[str, Any] | None = None,
    ) -> None:
        self.connection = connection
        self.settings = Settings.model_validate(
            {
                "redis": {"prefix": connection.prefix},
                "kafka": dict(kafka or {}),
                # Streams of these tests are dated as it suits them.
                "bounds": {"lateness_hours": None, **(bounds or {})},
                "models": dict(models),
                "vendors": dict(vendors or {}),
            }
        )
        self.letters = Letters()
        self.registry = CollectorRegistry()
        self._metrics = PipelineMetrics(self.registry, lambda: NOW)
        self._pause_window = pause_window

    def space(self, model: str) -> CellSpace:
        return self.settings.cell_space(model)

    def keys(self, model: str) -> ModelKeys:
        return model_keys(self.settings, model)

    def decay(self, model: str) -> float:
        return self.settings.models[model].traffic_decay_per_second

    def shards(self, model: str, connection: Connection | None = None) -> ShardStore:
        return shard_store(
            self.settings, connection or self.connection, model, space=self.space(model), hash_key=HASH_KEY
        )

    def requests(self, model: str, connection: Connection | None = None) -> RequestStore:
        return request_store(self.settings, connection or self.connection, model)

    def labels(self, model: str, connection: Connection | None = None) -> LabelStore:
        return label_store(self.settings, connection or self.connection, model)

    def reader(self, model: str) -> FactReader:
        return FactReader(self.connection, self.keys(model), self.space(model), decay=self.decay(model))

    def monitor(self, model: str, seed: int = 7, gold: Sequence[GoldItem] = ()) -> ModelMonitor:
        rng = np.random.default_rng(seed)
        return model_monitor(self.settings, model, self.connection, hash_key=HASH_KEY, rng=rng, gold=gold)

    def prediction_step(
        self, connection: Connection | None = None, *, models: Sequence[str] | None = None
    ) -> PredictionStep:
        bounds = self.settings.bounds
        return PredictionStep(
            {
                name: ModelIngest(
                    self.space(name),
                    shards=self.shards(name, connection),
                    pool_key=PoolKey(HASH_KEY, name),
                    payload_bytes=bounds.payload_bytes,
                    keep_probabilities=True,
                )
                for name in models or self.settings.models
            },
            formats=prediction_formats(self.settings),
            dead_letters=self.letters,
            bad_message_limit=BadMessageLimit(ratio=0.5, window=self._pause_window),
            metrics=self._metrics,
            message_bytes=bounds.message_bytes,
            hash_key=HASH_KEY,
            lateness_seconds=bounds.lateness_seconds,
        )

    def label_step(self, connection: Connection | None = None) -> LabelStep:
        return LabelStep(
            {name: self.labels(name, connection) for name in self.settings.models},
            label_checks(self.settings),
            dead_letters=self.letters,
            bad_message_limit=BadMessageLimit(ratio=0.5, window=self._pause_window),
            metrics=self._metrics,
            unrequested=unrequested_joins(self.settings, connection or self.connection, hash_key=HASH_KEY),
        )

    def take_in(self, records: Sequence[Record], partition: int = 0, *, now: float = NOW) -> None:
        """Records of a partition, taken in and stored by a consumer that then goes away."""
        step = self.prediction_step()
        start = step.assign(partition, 0)
        if left := [record for record in records if record.offset >= start]:
            step.process(partition, left, now)
        step.flush(partition, now)

    def answer(self, model: str, true_class: Callable[[int], str]) -> list[int]:
        """Answer every open request; the numbers of its items, by which their true classes are known."""
        opened = self.reader(model).requests().open
        waiting = [json.loads(text) for text in self.requests(model).read_outbox().values()]
        asked = {int(one["item_id"]): one["request_id"] for one in waiting if one["request_id"] in opened}
        events = [
            LabelEvent(request, str(item), "answer", true_class(item), f"{item:016x}", NOW, "ana")
            for item, request in asked.items()
        ]
        self.labels(model).apply(0, events, now=NOW)
        return list(asked)

    def facts(self, model: str) -> Facts:
        """Everything that predictions have left in Redis."""
        return read_facts(self, model)


@dataclass
class Facts:
    """A model's facts, named by what they mean and not by where they stand."""

    offsets: dict[int, int] = field(default_factory=dict)
    counts: dict[tuple[Any, ...], int] = field(default_factory=dict)
    weights: dict[tuple[Any, ...], float] = field(default_factory=dict)
    priorities: dict[tuple[Any, ...], list[float]] = field(default_factory=lambda: defaultdict(list))
    bounds: dict[tuple[Any, ...], float] = field(default_factory=dict)

    @property
    def pool(self) -> set[tuple[Any, ...]]:
        """Partition, pool id, group and record of every pooled item."""
        return set(self.priorities)


def read_facts(site: Site, model: str) -> Facts:
    keys, client = site.keys(model), site.connection.client
    traffic = site.reader(model).traffic()
    facts = Facts(offsets=traffic.offsets)
    for partition in traffic.partitions:
        shard = site.shards(model).load(partition)
        for attribute, table in shard.traffic.tables.items():
            table.scale(float(np.exp(site.decay(model) * (shard.traffic.landmark - NOW))))
            for columns in table.specs:
                block = table.block(columns)
                for row, column in np.argwhere(block.counts).tolist():
                    name = (partition, attribute, columns, table.names[row], column)
                    facts.counts[name] = int(block.counts[row, column])
                    if block.weights.shape[1]:
                        facts.weights[*name, "weight"] = float(block.weights[row, column])
                        facts.weights[*name, "score"] = float(block.score_sums[row, column])
        factor = np.exp(site.decay(model) * (shard.traffic.landmark - NOW))
        for predicted, sums in shard.probability_sums.items():
            for true, value in enumerate(sums):
                facts.weights[partition, "sums", predicted, true] = float(value * factor)
        items = client.hgetall(keys.items(partition))
        sketches = shard.pools.groupings.items()
        pooled = [
            ((partition, pool_id, group, items[pack_hash(item)]), priority)
            for pool_id, pool in sketches
            for group, sketch in pool.sketches().items()
            for item, priority in zip(sketch.hashes.tolist(), sketch.priorities.tolist(), strict=True)
        ]
        for name, priority in pooled:
            facts.priorities[name].append(priority)
        facts.bounds |= {
            (partition, pool_id, group): sketch.bound
            for pool_id, pool in sketches
            for group, sketch in pool.sketches().items()
        }
        # What was drawn is stored until the owner's next flush.
        assert {unpack_hash(item) for item in items} - shard.pools.removed == shard.pools.holders.keys()
    return facts


def assert_same_facts(found: Facts, expected: Facts) -> None:
    assert found.offsets == expected.offsets
    assert found.counts == expected.counts
    assert found.pool == expected.pool
    for name, priorities in expected.priorities.items():
        assert sorted(found.priorities[name]) == sorted(priorities), name
    assert found.bounds == expected.bounds
    assert found.weights.keys() == expected.weights.keys()
    values: npt.NDArray[np.float64] = np.array([found.weights[name] for name in expected.weights])
    np.testing.assert_allclose(values, np.array(list(expected.weights.values())), rtol=1e-9, atol=0)


def message(item: str | int, **fields: Any) -> dict[str, Any]:
    """A prediction that every model of these tests takes, but for what is said otherwise."""
    plain = {"model": "m", "item_id": str(item), "predicted_class": "cat", "score": 0.75}
    return {name: value for name, value in (plain | fields).items() if value is not ...}


def record(offset: int, *messages: Any, **fields: Any) -> Record:
    """A record with one message, or an array of several."""
    body = messages[0] if len(messages) == 1 else list(messages)
    return Record(offset, body if isinstance(body, bytes) else json.dumps(body).encode(), **fields)


class Owner:
    """One consumer of partitions, as the loop drives it: its position is in memory, and lost with it."""

    def __init__(self, site: Site, topic: Mapping[int, Sequence[Record]]) -> None:
        self._site = site
        self._topic = topic
        self._clock = NOW
        self.positions: dict[int, int] = {}
        self.step = site.prediction_step()

    def restart(self) -> None:
        self.step = self._site.prediction_step()
        self.positions = {}

    def own(self, partition: int) -> None:
        self.positions[partition] = self.step.assign(partition, 0)

    def take(self, partition: int, count: int) -> None:
        if partition not in self.positions:
            self.own(partition)
        begin = self.positions[partition]
        if batch := self._topic[partition][begin : begin + count]:
            self.step.process(partition, batch, NOW)
            self.positions[partition] = batch[-1].offset + 1

    def flush(self, partition: int) -> bool:
        """Whether it was not refused; after a refusal the partition is loaded again."""
        if partition not in self.positions:
            return True
        self._clock += 4  # less than the time between two checkpoints of idle models
        try:
            self.step.flush(partition, self._clock)
        except FlushRefused:
            self.step.revoke(partition)
            self.own(partition)
            return False
        return True

    def finish(self) -> None:
        """Take and store everything, however often what was taken is refused."""
        for partition, records in self._topic.items():
            for _ in range(5):
                self.take(partition, len(records))
                self._clock += 100
                if self.flush(partition):
                    break
            else:
                raise AssertionError(f"partition {partition} does not come to rest")


def save(connection: Connection) -> dict[bytes, bytes]:
    """All keys of a prefix, as a backup of Redis holds them."""
    client = connection.client
    return {key: client.dump(key) for key in client.scan_iter(f"{connection.prefix}:*", count=1_000)}


def restore(connection: Connection, saved: Mapping[bytes, bytes]) -> None:
    """Make Redis hold what it held; an empty backup empties it."""
    client = connection.client
    for key in client.scan_iter(f"{connection.prefix}:*", count=1_000):
        client.delete(key)
    for key, value in saved.items():
        client.restore(key, 0, value)


def redis_settings(server: EmbeddedRedis | EmbeddedRedisCluster, **more: Any) -> RedisSettings:
    """How to reach a server of the tests."""
    clustered = isinstance(server, EmbeddedRedisCluster)
    return RedisSettings.model_validate({"url": server.url, "cluster": clustered} | more)


@contextmanager
def wired(
    server: EmbeddedRedis | EmbeddedRedisCluster, connection: Connection
) -> Iterator[tuple[Wires, Connection]]:
    """A second connection with the same prefix, over wires that can fail."""
    nodes = server.nodes if isinstance(server, EmbeddedRedisCluster) else [server]
    with Wires() as wires:
        ports = {node.port: wires.wire(node.port).port for node in nodes}
        client = build_redis(
            redis_settings(server, url=f"redis://127.0.0.1:{ports[nodes[0].port]}/0", timeout_seconds=2),
            reach=lambda node: (node[0], ports.get(node[1], node[1])),
        )
        with client:
            yield wires, Connection(client, connection.prefix)


def draws_of(
    site: Site, *, partition: int = 0, group: str = "all", assessment: str = "ask", deadline: float = NOW + 60
) -> list[Draw]:
    """A draw of every item in a partition's pool of all traffic, in the order of their ids."""
    client, keys = site.connection.client, site.keys("m")
    field = pool_field(asked_pools(site.settings, "m", site.space("m"))["all"], "all")
    sketch = Sketch.decode(client.hget(keys.pool(partition), field) or EMPTY_SKETCH.encode())
    draws = []
    for item_hash in sketch.hashes.tolist():
        kept = decode_pool_record(client.hget(keys.items(partition), pack_hash(item_hash)))
        item = kept.item_id
        fact = Fact(
            request_id=f"r-{item}",
            item_id=item,
            grouping="all",
            group=group,
            predicted_class=kept.predicted_class,
            score=kept.score,
            attributes=kept.attributes,
            predicted_at=kept.time,
            requested_at=NOW,
        )
        opened = OpenRequest(assessment, group, kept.attributes, kept.predicted_class, kept.score, 1, NOW)
        draws.append(
            Draw(
                partition=partition,
                field=field,
                item_hash=item_hash,
                item_id=item,
                request_id=f"r-{item}",
                fact=encode_packed(fact),
                message=encode_json({"item_id": item, "attempt": 1}),
                open=opened,
                deadline=deadline,
            )
        )
    return sorted(draws, key=lambda draw: draw.item_id)


def page(site: Site, after: Position = BEGINNING) -> OutcomePage:
    """Outcome entries behind a position, which the stream still holds."""
    found = site.reader("m").outcomes(after)
    assert found is not None
    return found


def outcomes(site: Site) -> list[OutcomeEntry]:
    """All entries of the outcome stream, but those of requests that ended without a label."""
    entries = page(site).entries
    return [each for each in entries if isinstance(each, SharedDraw) or not each.label.unanswered]


def unanswered(site: Site) -> list[tuple[str, str, int]]:
    """Of requests that ended without a label: item, reason, and number of the last attempt."""
    found = [(each, each.label.unanswered) for each in page(site).labelled]
    return [(each.fact.item_id, reason, each.attempt) for each, reason in found if reason]


def outcome_log(site: Site) -> list[tuple[bool, str]]:
    """Of every entry of the outcome stream, whether it revises another one, and the true class."""
    return [(entry.of != entry.position, entry.label.true_class) for entry in outcomes(site)]


def issue(
    site: Site,
    draws: Sequence[Draw],
    *,
    epoch: int = 1,
    assessment: str = "ask",
    window: str = "ask|0",
    budget: int = 100,
    payment: Payment | None = None,
    connection: Connection | None = None,
) -> list[IssueStatus]:
    return site.requests("m", connection).issue(
        epoch=epoch,
        assessment=assessment,
        payment=Payment(window, budget) if payment is None else payment,
        now=NOW,
        draws=draws,
    )
