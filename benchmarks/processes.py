"""Throughput over several consumer processes that share a topic's partitions, beside as many bare clients.

One process is measured first, then more; what counts is how much faster they are together, and whether the
bare client gains as much on the same machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import secrets
import tempfile
import time
from contextlib import ExitStack
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

from benchmarks.consuming import ConsumerProcess
from benchmarks.ingest import broker, settings_of
from benchmarks.streams import STREAMS, Stream, create_topics, produce
from service.clients import build_consumer
from service.embedded import EmbeddedRedis
from service.settings import Settings

PARTITIONS = 4
WARM, NEARLY_ALL = 0.25, 0.9
_LOOK_SECONDS = 0.1


def with_credence(settings: dict[str, Any], processes: int, predictions: int) -> float:
    """Predictions a second of so many consumers together."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        consumers = [running.enter_context(ConsumerProcess(settings, Path(folder))) for _ in range(processes)]
        for consumer in consumers:
            consumer.wait_for(0)
        points: list[tuple[float, int]] = []
        while not points or points[-1][1] < NEARLY_ALL * predictions:
            time.sleep(_LOOK_SECONDS)
            points.append((time.perf_counter(), sum(each.look().predictions for each in consumers)))
    return _rate(points, predictions)


def with_bare_clients(settings: dict[str, Any], processes: int, predictions: int) -> float:
    """Records a second of so many bare clients together."""
    context = multiprocessing.get_context("spawn")
    read = [context.Value("q", 0) for _ in range(processes)]
    clients = [context.Process(target=_poll, args=(settings, count), daemon=True) for count in read]
    for client in clients:
        client.start()
    points: list[tuple[float, int]] = []
    while not points or points[-1][1] < NEARLY_ALL * predictions:
        time.sleep(_LOOK_SECONDS)
        points.append((time.perf_counter(), sum(count.value for count in read)))
    for client in clients:
        client.kill()
        client.join()
    return _rate(points, predictions)


def _poll(told: dict[str, Any], count: Synchronized[int]) -> None:
    settings = Settings.model_validate(told)
    consumer = build_consumer(settings.kafka, group="bare", without_offset="earliest")
    consumer.subscribe([settings.kafka.topics.predictions])
    while True:
        count.value += sum(map(len, consumer.poll(200).values()))


def _rate(points: list[tuple[float, int]], predictions: int) -> float:
    began = next(point for point in points if point[1] >= WARM * predictions)
    return (points[-1][1] - began[1]) / (points[-1][0] - began[0])


def measure(
    stream: Stream, predictions: int, processes: list[int], bootstrap_servers: str, *, fast_fetch: bool
) -> list[dict[str, float]]:
    """Rates of Credence and of the bare client with so many processes."""
    topic = f"bench-{secrets.token_hex(4)}"
    create_topics(bootstrap_servers, [topic, f"{topic}.dead"], partitions=PARTITIONS)
    produce(bootstrap_servers, topic, stream.values(predictions), partitions=PARTITIONS)
    told = []
    for count in processes:
        with EmbeddedRedis() as redis:
            settings = settings_of(stream, bootstrap_servers, topic, redis.url)
            settings["kafka"] |= {"fast_fetch": fast_fetch, "session_timeout_seconds": 10}
            rates = {
                "poll": with_bare_clients(settings, count, predictions),
                "credence": with_credence(settings, count, predictions),
            }
        told.append({"processes": count} | rates)
    return told


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", default="apache", help="apache, bundled, or HOST:PORT (default: apache)")
    parser.add_argument("--predictions", type=int, default=1_000_000, help="(default: 1000000)")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4], help="(default: 1 2 4)")
    parser.add_argument("--fast-fetch", action="store_true", help="with kafka.fast_fetch")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with broker(options.broker) as bootstrap_servers:
        told = measure(
            STREAMS["small"],
            options.predictions,
            options.processes,
            bootstrap_servers,
            fast_fetch=options.fast_fetch,
        )
    if options.json:
        print(json.dumps(told))
        return
    print("  processes     poll, records/s          credence, predictions/s")
    for row in told:
        gains = {name: row[name] / told[0][name] for name in ("poll", "credence")}
        print(
            f"{row['processes']:11}{row['poll']:15,.0f} ({gains['poll']:.2f} x)"
            f"{row['credence']:22,.0f} ({gains['credence']:.2f} x)"
        )


if __name__ == "__main__":
    main()
