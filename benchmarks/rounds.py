"""How long a scheduler's round takes, and what outcomes cost in memory, by numbers of labels and groups.

A model with one attribute of very many values, ten score bins, an estimation and an identification. Its
predictions go through the real ingest into four partitions of a real Redis; label requests are issued,
published and answered through the real store. A round is `ModelMonitor.refresh` and `ask`, on a process that
is warm, after the requests of the last round were answered: some tens of new outcomes. A cold start is the
first `refresh` of a new process.

With `--stream` the model has the classes and attributes of one of the streams in `benchmarks/streams.py`, and
a grouping by each of them. Its predictions come over some days with a round every three hours, so that
traffic has epochs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
import redis
from prometheus_client import CollectorRegistry

from benchmarks.flushes import NoLetters, Record
from benchmarks.streams import STREAMS, Stream
from consumers.predictions import PredictionStep
from service.app.consumer_wiring import prediction_step
from service.app.monitor_wiring import model_monitor
from service.app.wiring import label_store, model_keys, request_store
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.domain.grouping_pool import Sketch
from service.monitoring.item_drawer import Pooled
from service.monitoring.monitor import ModelMonitor
from service.monitoring.request_builder import RequestBuilder, VendorAssignment
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.keys import ModelKeys
from service.store.labels import LabelEvent, LabelStore
from service.store.records import PoolRecord
from service.store.requests import Payment, RequestStore
from service.telemetry.instruments import PipelineMetrics

MODEL = "sorter"
CLASSES = [f"class-{number}" for number in range(10)]
PARTITIONS = 4
PREDICTIONS_PER_GROUP = 200
STEP_SECONDS = 3 * 3_600.0
ISSUED_AT_ONCE = 500
HASH_KEY = bytes(range(16))
TICK_SECONDS = 5.0
SPARE_POOL = b"spare:\0spare"
"""The pool of no grouping: its items are drawn at once to make outcomes."""

MIB = 2**20
MANY = 1_000


def settings_of(groups: int, url: str) -> Settings:
    """A model with so many groups, under a prefix of its own."""
    budget = {"labels": 10_000_000}
    return Settings.model_validate(
        {
            "redis": {"url": url, "prefix": f"rounds-{groups}", "timeout_seconds": 60},
            "bounds": {"attribute_values": groups},
            "seed": 1,
            "models": {
                MODEL: {
                    "classes": CLASSES,
                    "groupings": {"site": {"by": "attribute", "attribute": "site"}},
                    "assessments": {
                        "every-site": {"grouping": "site", "budget": budget},
                        "weakest-site": {"task": "identification", "grouping": "site", "budget": budget},
                    },
                    "alerts": {"min_accuracy": 0.8, "max_ece": 0.2},
                    "label_half_life_days": 90,
                }
            },
        }
    )


def stream_settings(stream: Stream, url: str) -> Settings:
    """A model of such a stream; labels are requested by class and by the first attribute."""
    budget, first = {"labels": 10_000_000}, stream.attribute_names[0]
    model = stream.model() | {
        "assessments": {
            "every-class": {"grouping": "class", "budget": budget},
            "weakest-value": {"task": "identification", "grouping": first, "budget": budget},
        },
        "alerts": {"min_accuracy": 0.8, "max_ece": 0.2},
        "label_half_life_days": 90,
    }
    return Settings.model_validate(
        {
            "redis": {"url": url, "prefix": "rounds-stream", "timeout_seconds": 60},
            "bounds": {"attribute_values": max((*stream.attributes, 1_000))},
            "seed": 1,
            "models": {MODEL: model},
        }
    )


class Site:
    """One deployment's facts, and how they are made.

    Args:
        redis_url: of the server.
        groups: values of the attribute.
        settings: of the model; None for that of `settings_of`.
    """

    def __init__(self, redis_url: str, groups: int, settings: Settings | None = None) -> None:
        self.settings = settings or settings_of(groups, redis_url)
        self.connection = Connection(build_redis(self.settings.redis), self.settings.redis.prefix)
        self.keys: ModelKeys = model_keys(self.settings, MODEL)
        self.requests: RequestStore = request_store(self.settings, self.connection, MODEL)
        self.labels: LabelStore = label_store(self.settings, self.connection, MODEL)
        self.outcomes = 0
        self.now = time.time()
        self._groups = groups
        self._rng = np.random.default_rng(groups)
        self._items = 0

    def used_memory(self) -> int:
        """Bytes that Redis uses, with a connection that is new and has no buffers to speak of."""
        self.connection.client.connection_pool.disconnect()
        return int(self.connection.client.info("memory")["used_memory"])

    def stream_memory(self) -> int:
        """Bytes of the outcome stream."""
        return int(self.connection.client.memory_usage(self.keys.outcomes, samples=0) or 0)

    def monitor(self) -> ModelMonitor:
        """Of a new process."""
        rng = np.random.default_rng(1)
        return model_monitor(self.settings, MODEL, self.connection, hash_key=HASH_KEY, rng=rng)

    def _step(self) -> PredictionStep:
        return prediction_step(
            self.settings,
            self.connection,
            hash_key=HASH_KEY,
            dead_letters=NoLetters(),
            metrics=PipelineMetrics(CollectorRegistry(), time.time),
        )

    def take_in_predictions(self) -> None:
        """Traffic and a pool, on every partition."""
        step = self._step()
        for partition in range(PARTITIONS):
            step.assign(partition, 0)
            for first in range(0, self._groups * PREDICTIONS_PER_GROUP // PARTITIONS, 5_000):
                records = [self._prediction(first + i) for i in range(5_000)]
                step.process(partition, records, self.now)
                step.flush(partition, self.now)

    def _prediction(self, offset: int) -> Record:
        item = self._item()
        message = {
            "model": MODEL,
            "item_id": item.item_id,
            "predicted_class": item.predicted_class,
            "score": item.score,
            "attributes": item.attributes,
        }
        return Record(offset, int(1_000 * self.now), msgspec.json.encode(message))

    def _item(self) -> PoolRecord:
        """The next item: every group has traffic, some more than others."""
        self._items += 1
        number, share = self._items, self._rng.random()
        group = number % self._groups if share < 0.5 else int(share**3 * self._groups) % self._groups  # noqa: PLR2004
        return PoolRecord(
            item_id=f"{number:010d}-{group:05d}",
            predicted_class=CLASSES[number % len(CLASSES)],
            score=round(float(self._rng.beta(4.0, 1.2)), 4),
            time=self.now - 60 - 40 * 86_400 * float(self._rng.random()),
            attributes={"site": f"site-{group:05d}"},
        )

    def _known(self, item_id: str) -> tuple[int, int]:
        """Number of the class that was predicted for an item, and of its group."""
        number, group = (int(part) for part in item_id.split("-"))
        return number, group

    def _label(self, request_id: str, item_id: str) -> LabelEvent:
        """An answer; every tenth group is worse than the others."""
        predicted, group = self._known(item_id)
        right = self._rng.random() < (0.6 if group % 10 == 0 else 0.9)
        classes = self.settings.models[MODEL].classes
        true_class = classes[
            (predicted + (0 if right else 1 + self._rng.integers(len(classes) - 1))) % len(classes)
        ]
        digest = f"{self._rng.integers(2**62):016x}"
        return LabelEvent(request_id, item_id, "answer", true_class, digest, self.now, "annotator-7")

    def make_outcomes(self, count: int) -> None:
        """Issue and answer requests until there are so many outcomes, every assessment's in turn."""
        client = self.connection.client
        model = self.settings.models[MODEL]
        assessments = list(model.assessments)
        builder = RequestBuilder(
            MODEL, model, self.settings.cell_space(MODEL), VendorAssignment({}, HASH_KEY)
        )
        while self.outcomes < count:
            name = assessments[self.outcomes // ISSUED_AT_ONCE % len(assessments)]
            size = min(ISSUED_AT_ONCE, count - self.outcomes)
            items = [self._item() for _ in range(size)]
            hashes = range(self._items, self._items + size)
            sketch = Sketch(-np.inf, np.zeros(size), np.array(hashes, np.uint64))
            client.hset(self.keys.pool(0), SPARE_POOL, sketch.encode())
            draws = [
                builder.request(
                    Pooled(
                        0,
                        SPARE_POOL,
                        item_hash,
                        item,
                        self._group(item, model.assessments[name].asked_grouping),
                    ),
                    name,
                    now=self.now,
                )
                for item_hash, item in zip(hashes, items, strict=True)
            ]
            self.requests.issue(
                epoch=1,
                assessment=name,
                payment=Payment(f"{name}|0", 10_000_000),
                now=self.now,
                draws=draws,
            )
            self.answer_all()
            client.delete(self.keys.drawn(0))  # as the partition's owner does, who is not here
        client.hdel(self.keys.pool(0), SPARE_POOL)

    def _group(self, item: PoolRecord, grouping: str) -> str:
        """Name of its group in a grouping that asks."""
        attribute = self.settings.models[MODEL].groupings[grouping].attribute
        return item.predicted_class if attribute is None else item.attributes[attribute]

    def answer_all(self) -> None:
        """Publish and answer all requests that are open."""
        outbox = self.requests.read_outbox()
        self.requests.remove_published(list(outbox))
        messages = [json.loads(text) for text in outbox.values()]
        labels = [self._label(message["request_id"], message["item_id"]) for message in messages]
        if labels:
            self.labels.apply(0, labels, now=self.now)
            self.outcomes += len(labels)


class StreamSite(Site):
    """The same with the predictions of a stream, which come over several days.

    Args:
        redis_url: of the server.
        stream: of the predictions.
        predictions: how many come.
        days: how long they take.
    """

    def __init__(self, redis_url: str, stream: Stream, predictions: int, days: float) -> None:
        super().__init__(redis_url, 0, stream_settings(stream, redis_url))
        self._values = stream.values(sys.maxsize)
        self._told: dict[str, tuple[int, int]] = {}
        self._first = stream.attribute_names[0]
        self._predictions, self._days = predictions, days

    def take_in_predictions(self) -> None:
        """Traffic and a pool, and a round after every step, which marks traffic and has labels asked for."""
        step, steps = self._step(), max(1, round(self._days * 86_400 / STEP_SECONDS))
        for partition in range(PARTITIONS):
            step.assign(partition, 0)
        monitor, count = self.monitor(), self._predictions // steps // PARTITIONS
        self.now -= steps * STEP_SECONDS
        for turn in range(steps):
            self.now += STEP_SECONDS
            for partition in range(PARTITIONS):
                records = [self._prediction(turn * count + i) for i in range(count)]
                step.process(partition, records, self.now)
                step.flush(partition, self.now)
            monitor.refresh(self.now)
            monitor.ask(epoch=1, now=self.now)
            self.answer_all()

    def _item(self) -> PoolRecord:
        """The next item of the stream."""
        self._items += 1
        message = json.loads(next(self._values))
        value = message["attributes"][self._first]
        self._told[message["item_id"]] = int(message["predicted_class"]), int(value.removeprefix("v"))
        return PoolRecord(
            item_id=message["item_id"],
            predicted_class=message["predicted_class"],
            score=message["score"],
            time=self.now - STEP_SECONDS * float(self._rng.random()),
            attributes=message["attributes"],
        )

    def _known(self, item_id: str) -> tuple[int, int]:
        return self._told[item_id]


def rounds(site: Site, monitor: ModelMonitor, turns: int) -> tuple[list[float], list[float]]:
    """Milliseconds of rounds on a process that is warm, every one after some tens of new outcomes.

    By the clock, and of this process's CPU: they differ by the time that Redis takes, and by the time that a
    machine with other work has no CPU to give.
    """
    by_clock, of_cpu = [], []
    for turn in range(turns + 2):
        site.now += TICK_SECONDS
        began, used = time.perf_counter(), time.process_time()
        monitor.refresh(site.now)
        done = monitor.ask(epoch=1, now=site.now)
        if turn > 1:  # the first reads everything, the second has nothing new
            by_clock.append(1e3 * (time.perf_counter() - began))
            of_cpu.append(1e3 * (time.process_time() - used))
        if not any(done.issued.values()):
            raise ValueError("a round of the benchmark asked for nothing")
        site.answer_all()
    return by_clock, of_cpu


def _resident(field: str) -> float:
    """Memory of this process in MiB: `VmRSS` now, `VmHWM` at the most."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise ValueError(f"/proc/self/status tells no {field}")


def _cold_start(redis_url: str, groups: int) -> None:
    """In a process of its own: how long the first refresh takes, and the memory around it."""
    monitor = Site(redis_url, groups).monitor()
    before = _resident("VmRSS")
    began, used = time.perf_counter(), time.process_time()
    monitor.refresh(time.time() + 3_600)
    message = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - used, "before": before}
    for tick in range(3):
        monitor.refresh(time.time() + 3_600 + TICK_SECONDS * tick)
    print(json.dumps(message | {"after": _resident("VmRSS"), "most": _resident("VmHWM")}))


def cold_start(redis_url: str, groups: int) -> dict[str, float]:
    """The first refresh of a new process."""
    command = [sys.executable, "-m", "benchmarks.rounds", "--cold-start", redis_url, str(groups)]
    ran = subprocess.run(command, check=True, capture_output=True, timeout=300)
    message: dict[str, float] = json.loads(ran.stdout)
    return message


COLUMNS = {
    "groups": "groups",
    "outcomes": "labels",
    "round_fastest_ms": "fastest, ms",
    "round_median_ms": "median, ms",
    "round_cpu_ms": "CPU, ms",
    "cold_start_s": "cold start, s",
    "cold_start_cpu_s": "CPU, s",
    "stream_mb": "stream MB",
    "redis_mb": "all Redis MB",
    "stream_bytes": "stream B/label",
    "redis_bytes": "Redis B/label",
    "process_mib": "process MiB",
    "process_most_mib": "at most",
    "process_bytes": "B/label",
}


def measure(
    sizes: Sequence[tuple[int, int]], turns: int, say: Callable[[dict[str, float]], None]
) -> list[dict[str, float]]:
    """A row of figures for every size, each being groups and outcomes; sizes of the same groups ascend."""
    rows: list[dict[str, float]] = []
    with EmbeddedRedis() as server, redis.Redis(port=server.port) as client:
        # Its buffers would be taken for facts.
        client.config_set("appendonly", "no")
        site, monitor, empty, groups_now = None, None, 0, 0
        for groups, outcomes in sizes:
            if site is None or monitor is None or groups != groups_now:
                site, groups_now = Site(server.url, groups), groups
                client.flushall()
                site.take_in_predictions()
                monitor, empty = site.monitor(), site.used_memory()
            site.make_outcomes(outcomes)
            used, stream, there = site.used_memory() - empty, site.stream_memory(), site.outcomes
            by_clock, of_cpu = rounds(site, monitor, turns)
            cold = cold_start(server.url, groups)
            figures = (
                groups,
                outcomes,
                min(by_clock),
                median(by_clock),
                min(of_cpu),
                cold["seconds"],
                cold["cpu"],
                stream / 1e6,
                used / 1e6,
                stream / there,
                used / there,
                cold["after"],
                cold["most"],
                (cold["after"] - cold["before"]) * MIB / there,
            )
            rows.append(dict(zip(COLUMNS, figures, strict=True)))
            say(rows[-1])
    return rows


def measure_stream(
    name: str, labels: Sequence[int], turns: int, *, predictions: int, days: float
) -> list[dict[str, float]]:
    """A row of figures for every number of labels, which ascend; of rounds of a stream's model."""
    rows: list[dict[str, float]] = []
    with EmbeddedRedis() as server, redis.Redis(port=server.port) as client:
        client.config_set("appendonly", "no")
        site = StreamSite(server.url, STREAMS[name], predictions, days)
        site.take_in_predictions()
        monitor = site.monitor()
        for count in labels:
            site.make_outcomes(count)
            there = site.outcomes
            by_clock, of_cpu = rounds(site, monitor, turns)
            snapshot = monitor.refresh(site.now)
            rows.append(
                {
                    "groups": sum(len(grouping.groups) for grouping in snapshot.groupings.values()),
                    "outcomes": there,
                    "round_median_ms": median(by_clock),
                    "round_cpu_ms": min(of_cpu),
                    "round_median_cpu_ms": median(of_cpu),
                    "round_most_cpu_ms": max(of_cpu),
                }
            )
    return rows


def _sizes(most_labels: int) -> Iterator[tuple[int, int]]:
    labels = 1_000
    while labels <= most_labels:
        yield 1_000, labels
        labels *= 10
    for groups in (10, 100, 10_000):
        yield groups, min(100_000, most_labels)


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=1_000_000, help="most labels (default: 1000000)")
    parser.add_argument("--stream", choices=STREAMS, help="of the predictions, in place of one attribute")
    parser.add_argument("--predictions", type=int, default=400_000, help="of the stream (default: 400000)")
    parser.add_argument(
        "--days", type=float, default=8.0, help="that they take, which gives traffic its epochs (default: 8)"
    )
    parser.add_argument("--turns", type=int, default=10, help="rounds of every size (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--cold-start", nargs=2, metavar=("URL", "GROUPS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cold_start:
        url, groups = options.cold_start
        _cold_start(url, int(groups))
        return
    if options.stream:
        labels = [count for count in (1_000, 10_000, 100_000) if count <= options.labels]
        rows = measure_stream(
            options.stream, labels, options.turns, predictions=options.predictions, days=options.days
        )
        print(json.dumps(rows, indent=1))
        return
    say = (lambda _: None) if options.json else _print_row
    if not options.json:
        print(" ".join(f"{title:>14}" for title in COLUMNS.values()))
    rows = measure(list(_sizes(options.labels)), options.turns, say)
    if options.json:
        print(json.dumps(rows))


def _print_row(row: dict[str, float]) -> None:
    """As soon as it is known."""
    print(" ".join(f"{figure:>14,.{1 if figure < MANY else 0}f}" for figure in row.values()), flush=True)


if __name__ == "__main__":
    main()
