"""What it costs to receive a record from Kafka, by client: kafka-python, with fast fetch, and librdkafka.

The broker is Apache Kafka. Nothing is decoded; of librdkafka's messages, which are objects with methods, what
Credence needs of a record is read.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import product
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from benchmarks.ingest import broker, command_line, settings_of
from benchmarks.streams import SMALL, create_topics, produce
from consumers.fast_fetch import use_fast_fetch
from service.app.memory_tuning import collect_rarely
from service.config.settings import Settings
from service.kafka.clients import build_consumer
from service.kafka.topic_metadata import join

_WARM, _NEARLY_ALL = 0.3, 0.95
_POLL_MS = 200
_MOST_RECORDS = 10_000


def with_kafka_python(servers: str, topic: str, predictions: int, *, fast: bool) -> dict[str, float]:
    """Read a topic with kafka-python."""
    settings = Settings.model_validate(settings_of(SMALL, servers, topic, "redis://unused"))
    consumer = build_consumer(settings.kafka, group=secrets.token_hex(4), without_offset="earliest")
    if fast and not use_fast_fetch(consumer):
        raise SystemExit("fast fetch does not fit this version of kafka-python")
    try:
        join(consumer, topic)
        return _measure(lambda: sum(map(len, consumer.poll(_POLL_MS).values())), predictions)
    finally:
        consumer.close(autocommit=False)


def with_librdkafka(servers: str, topic: str, predictions: int) -> dict[str, float]:
    """Read a topic with confluent-kafka."""
    options = {
        "bootstrap.servers": servers,
        "group.id": secrets.token_hex(4),
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    with closing(Consumer(options)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])

        def poll() -> int:
            messages: list[Any] = consumer.consume(_MOST_RECORDS, _POLL_MS / 1e3)
            records = [(m.offset(), m.timestamp(), m.key(), m.value(), m.headers()) for m in messages]
            return len(records)

        return _measure(poll, predictions)


def _measure(poll: Callable[[], int], predictions: int) -> dict[str, float]:
    read = first = 0
    began = cpu = 0.0
    while read < _NEARLY_ALL * predictions:
        read += poll()
        if read >= _WARM * predictions and not first:
            first, began, cpu = read, time.perf_counter(), time.process_time()
    count = read - first
    return {
        "rate": count / (time.perf_counter() - began),
        "cpu_us": 1e6 * (time.process_time() - cpu) / count,
    }


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = command_line(__doc__)
    parser.add_argument("--predictions", type=int, default=500_000, help="(default: 500000)")
    parser.add_argument("--turns", type=int, default=2, help="how often each client reads (default: 2)")
    options = parser.parse_args()
    collect_rarely()
    figures: dict[str, list[dict[str, float]]] = {}
    with broker(options.broker) as servers:
        topic = secrets.token_hex(4)
        create_topics(servers, [topic], partitions=1)
        produce(servers, topic, SMALL.values(options.predictions), partitions=1)
        clients: dict[str, Callable[..., dict[str, float]]] = {
            "kafka-python": partial(with_kafka_python, fast=False),
            "with fast fetch": partial(with_kafka_python, fast=True),
            "librdkafka": with_librdkafka,
        }
        for _, (client, read) in product(range(options.turns), clients.items()):
            figures.setdefault(client, []).append(read(servers, topic, options.predictions))
    least = {client: min(found, key=lambda each: each["cpu_us"]) for client, found in figures.items()}
    if options.json:
        print(json.dumps(least))
        return
    for client, row in least.items():
        print(f"{client:18}{row['rate']:12,.0f} records/s{row['cpu_us']:8.2f} us of CPU a record")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
