"""Throughput over several consumer processes that share a topic's partitions, beside as many bare clients.

One process is measured first, then more; what counts is how much faster they are together, and whether the
bare client gains as much on the same machine.

All read the whole topic, and none before all have their partitions: bare clients join their group, and then
begin anew at a sign. Credence's have names (`kafka.instance_id`): once they have their partitions they are
killed, Redis is emptied, and they are started again, for what they had. Measured is while all of them read:
from when each has read a part of its share until one has read most of what was left of its share then.
"""

from __future__ import annotations

import json
import multiprocessing
import secrets
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from benchmarks.consuming import TOO_FEW, ConsumerProcess
from benchmarks.ingest import broker, command_line, settings_of
from benchmarks.streams import STREAMS, Stream, create_topics, produce
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.domain.errors import EmbeddedServerError
from service.kafka.clients import build_admin, build_consumer
from service.kafka.topic_metadata import join
from service.store.client import build_redis

PARTITIONS = 4
WARM = 0.1
"""Part of its share that every process has read when the clock starts."""

NEARLY_ALL = 0.8
"""Part of what was left of a share then; the first process that has read it stops the clock."""

_LOOK_SECONDS = 0.1
_JOIN_SECONDS = 120.0
_MOST_SECONDS = 600.0
_POLL_MS = 200

Point = tuple[float, int]
"""When, in seconds of a clock that only goes forward, a process had read how many records."""


def with_credence(settings: dict[str, Any], processes: int, predictions: int) -> float:
    """Predictions a second of so many consumers together; empties the Redis of the settings."""
    named = [
        {**settings, "kafka": settings["kafka"] | {"instance_id": f"process-{number}"}}
        for number in range(processes)
    ]
    with tempfile.TemporaryDirectory() as folder:
        with ExitStack() as joining:
            consumers = [joining.enter_context(ConsumerProcess(each, Path(folder))) for each in named]
            _wait_for_partitions(settings, "predictions", processes)
            for consumer in consumers:
                consumer.kill()
        with build_redis(Settings.model_validate(settings).redis) as client:
            client.flushall()
        with ExitStack() as running:
            consumers = [running.enter_context(ConsumerProcess(each, Path(folder))) for each in named]
            for consumer in consumers:
                consumer.wait_for(0)

            def points() -> list[Point]:
                return [(look.at, look.predictions) for look in (each.look() for each in consumers)]

            return _rate(points, predictions)


def with_bare_clients(settings: dict[str, Any], processes: int, predictions: int) -> float:
    """Records a second of so many bare clients together."""
    context = multiprocessing.get_context("spawn")
    begin = context.Event()
    read = [context.Value("q", 0) for _ in range(processes)]
    clients = [context.Process(target=_poll, args=(settings, begin, count), daemon=True) for count in read]
    for client in clients:
        client.start()

    def points() -> list[Point]:
        for client in clients:
            if not client.is_alive():
                raise EmbeddedServerError(f"a bare client exited with code {client.exitcode}")
        return [(time.perf_counter(), count.value) for count in read]

    try:
        _wait_for_partitions(settings, "bare", processes)
        begin.set()
        return _rate(points, predictions)
    finally:
        for client in clients:
            client.kill()
            client.join()


def _poll(configuration: dict[str, Any], begin: Event, count: Synchronized[int]) -> None:
    settings = Settings.model_validate(configuration)
    consumer = build_consumer(settings.kafka, group="bare", without_offset="earliest")
    join(consumer, settings.kafka.topics.predictions)
    # The group is settled a moment before its members know it.
    while not (begin.is_set() and consumer.assignment()):
        consumer.poll(_POLL_MS)
    consumer.seek_to_beginning()
    while True:
        count.value += sum(map(len, consumer.poll(_POLL_MS).values()))


def _wait_for_partitions(configuration: dict[str, Any], group: str, members: int) -> None:
    """Wait until so many members of a consumer group have their partitions."""
    settings = Settings.model_validate(configuration).kafka
    name = f"{settings.group_prefix}.{group}"
    deadline = time.monotonic() + _JOIN_SECONDS
    with build_admin(settings) as admin:
        while not _is_settled(admin, name, members):
            if time.monotonic() > deadline:
                raise EmbeddedServerError(f"{name} has not {members} members within {_JOIN_SECONDS:g} s")
            time.sleep(_LOOK_SECONDS)


def _is_settled(admin: KafkaAdminClient, group: str, members: int) -> bool:
    try:
        found = admin.describe_groups([group])[group]
    except KafkaError:  # a group that nobody has joined yet, or no coordinator
        return False
    return found["group_state"] == "Stable" and len(found["members"]) == members


def _rate(points: Callable[[], list[Point]], predictions: int) -> float:
    """Records a second of all processes, from their points; see the module.

    Raises:
        ValueError: there are too few records to measure.
        EmbeddedServerError: it takes too long.
    """

    def counts(now: list[Point]) -> list[int]:
        return [count for _, count in now]

    def grown(now: list[Point]) -> list[int]:
        return [count - before for count, before in zip(counts(now), counts(began), strict=True)]

    began = _first(
        points,
        lambda now: min(counts(now)) >= WARM * predictions / len(now) or sum(counts(now)) >= predictions,
    )
    left = (predictions - sum(counts(began))) / len(began)
    if left <= 0:
        raise ValueError(TOO_FEW)
    ended = _first(points, lambda now: max(grown(now)) >= NEARLY_ALL * left)
    if min(grown(ended)) <= 0:
        raise ValueError(TOO_FEW)
    seconds = [at - before for (at, _), (before, _) in zip(ended, began, strict=True)]
    return sum(count / spent for count, spent in zip(grown(ended), seconds, strict=True))


def _first(points: Callable[[], list[Point]], wanted: Callable[[list[Point]], bool]) -> list[Point]:
    deadline = time.monotonic() + _MOST_SECONDS
    while not wanted(now := points()):
        if time.monotonic() > deadline:
            raise EmbeddedServerError(f"the topic was not read in {_MOST_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    return now


def measure(
    stream: Stream, predictions: int, processes: list[int], bootstrap_servers: str, *, fast_fetch: bool
) -> list[dict[str, float]]:
    """Rates of Credence and of the bare client with so many processes."""
    topic = f"bench-{secrets.token_hex(4)}"
    create_topics(bootstrap_servers, [topic, f"{topic}.dead"], partitions=PARTITIONS)
    produce(bootstrap_servers, topic, stream.values(predictions), partitions=PARTITIONS)
    results = []
    for count in processes:
        with EmbeddedRedis() as redis:
            settings = settings_of(stream, bootstrap_servers, topic, redis.url)
            settings["kafka"] |= {"fast_fetch": fast_fetch, "session_timeout_seconds": 30}
            rates = {
                "poll": with_bare_clients(settings, count, predictions),
                "credence": with_credence(settings, count, predictions),
            }
        results.append({"processes": count} | rates)
    return results


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = command_line(__doc__)
    parser.add_argument("--predictions", type=int, default=1_000_000, help="(default: 1000000)")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4], help="(default: 1 2 4)")
    parser.add_argument("--fast-fetch", action="store_true", help="with kafka.fast_fetch")
    options = parser.parse_args()
    with broker(options.broker) as bootstrap_servers:
        results = measure(
            STREAMS["small"],
            options.predictions,
            options.processes,
            bootstrap_servers,
            fast_fetch=options.fast_fetch,
        )
    if options.json:
        print(json.dumps(results))
        return
    print("  processes     poll, records/s          credence, predictions/s")
    for row in results:
        gains = {name: row[name] / results[0][name] for name in ("poll", "credence")}
        print(
            f"{row['processes']:11}{row['poll']:15,.0f} ({gains['poll']:.2f} x)"
            f"{row['credence']:22,.0f} ({gains['credence']:.2f} x)"
        )


if __name__ == "__main__":
    main()
