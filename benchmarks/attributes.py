"""What many attributes, classes and values cost, and whether every group's traffic is exact.

Predictions are given to the consumer's step as a Kafka client would give them, in turn over four partitions,
and stored in a real Redis. Then the traffic of every value of every attribute, and of every predicted class,
is compared with an exact count. Rates are of this process's processor time, without Kafka, beside those of
the stream that the other benchmarks use, in the same run.
"""

from __future__ import annotations

import argparse
import json
import resource
import secrets
import subprocess
import sys
import time
from collections import Counter
from itertools import islice
from statistics import median
from typing import Any

from prometheus_client import CollectorRegistry

from benchmarks.flushes import NoLetters, Record
from benchmarks.streams import BEGAN, STREAMS, Stream
from service.app.consumer_wiring import prediction_step
from service.app.memory_tuning import collect_rarely
from service.app.wiring import model_keys
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.domain.traffic_tables import most_table_bytes
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.facts import FactReader
from service.telemetry.instruments import PipelineMetrics

BATCH = 5_000
PARTITIONS = 4
MEASURED = ("small", "wide", "classes", "values")


def settings_of(stream: Stream, redis_url: str) -> Settings:
    """A model with a grouping by every attribute, of which the last one asks for labels."""
    asked = stream.attribute_names[-1]
    model = stream.model() | {"assessments": {"ask": {"grouping": asked, "budget": {"labels": 100}}}}
    bounds = {"attribute_values": max((*stream.attributes, 1_000)), "lateness_hours": None}
    return Settings.model_validate(
        {
            "redis": {"url": redis_url, "prefix": secrets.token_hex(4)},
            "bounds": bounds,
            "models": {"m": model},
        }
    )


def differing(stream: Stream, settings: Settings, connection: Connection, exact: Counter[Any]) -> int:
    """How many groups have other traffic than an exact count."""
    space = settings.cell_space("m")
    keys = model_keys(settings, "m")
    reader = FactReader(connection, keys, space, decay=settings.models["m"].traffic_decay_per_second)
    traffic = reader.traffic().traffic
    found: Counter[Any] = Counter()
    by_class = traffic.whole.counts.reshape(len(space.classes), -1).sum(axis=1)
    found.update({("class", name): int(n) for name, n in zip(space.classes, by_class, strict=True) if n})
    for name in stream.attribute_names:
        table = traffic.tables[name]
        counts = table.block("bins").counts.sum(axis=1).tolist()
        found.update({(name, value): n for value, n in zip(table.names, counts, strict=True)})
    return sum(found[group] != exact[group] for group in found.keys() | exact.keys())


def measure(name: str, predictions: int, redis_url: str) -> dict[str, Any]:
    """Take a stream in; cost of the last half, memory, and groups that differ."""
    stream = STREAMS[name]
    settings = settings_of(stream, redis_url)
    connection = Connection(build_redis(settings.redis), settings.redis.prefix)
    metrics = PipelineMetrics(CollectorRegistry(), time.time)
    step = prediction_step(
        settings, connection, hash_key=bytes(16), dead_letters=NoLetters(), metrics=metrics
    )
    for partition in range(PARTITIONS):
        step.assign(partition, 0)
    exact: Counter[Any] = Counter()
    values = stream.values(predictions)
    taking, flushing = [], []
    for batch in range(predictions // BATCH):
        records = [Record(i, int(BEGAN * 1e3) + i, value) for i, value in enumerate(islice(values, BATCH))]
        partition, first = batch % PARTITIONS, batch // PARTITIONS * BATCH
        records = [record._replace(offset=first + record.offset) for record in records]
        for record in records:
            results = json.loads(record.value)
            exact["class", results["predicted_class"]] += 1
            exact.update(results["attributes"].items())
        now, began = BEGAN + batch, time.process_time()
        step.process(partition, records, now)
        taken = time.process_time()
        step.flush(partition, now)
        if batch >= predictions // BATCH // 2:
            taking.append(1e6 * (taken - began) / BATCH)
            flushing.append(1e3 * (time.process_time() - taken))
    groups = len(exact)
    return {
        "stream": stream.name,
        "predictions": predictions,
        "partitions": PARTITIONS,
        "groups": groups,
        "differing": differing(stream, settings, connection, exact),
        "taking_us": median(taking),
        "flush_ms": median(flushing),
        "tables_mb": PARTITIONS * most_table_bytes(settings.cell_space("m")) / 1e6,
        "redis_mb": connection.client.info("memory")["used_memory"] / 1e6,
        "process_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(MEASURED))
    parser.add_argument("--predictions", type=int, default=400_000, help="(default: 400000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    collect_rarely()
    if len(options.streams) == 1:
        with EmbeddedRedis() as redis:
            print(json.dumps(measure(options.streams[0], options.predictions, redis.url)))
        return
    results = []
    for name in options.streams:
        # In a process of its own, whose peak memory is that of this stream.
        command = [sys.executable, "-m", "benchmarks.attributes", "--streams", name]
        command += ["--predictions", str(options.predictions)]
        results.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    if options.json:
        print(json.dumps(results))
        return
    print(
        f"{'stream':36}{'groups':>8}{'differing':>11}{'us a prediction':>17}{'ms a flush':>12}"
        f"{'Redis MB':>10}{'process MB':>12}"
    )
    for one in results:
        print(
            f"{one['stream']:36}{one['groups']:8,}{one['differing']:11}{one['taking_us']:17.2f}"
            f"{one['flush_ms']:12.2f}{one['redis_mb']:10.1f}{one['process_mb']:12.0f}"
        )


if __name__ == "__main__":
    main()
