"""How fast predictions are taken in, beside a bare `poll()` loop of the same client in the same run.

Records are written to a topic once. Then the bare client and Credence read them in turn, each time in a new
process and a new consumer group, Credence into an empty Redis: its whole consumer, as `credence run` runs it.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.readers import Reader, Reading, read
from benchmarks.schema_registry import one_schema
from benchmarks.streams import AVRO_SCHEMA, STREAMS, Stream, create_topics, produce
from service.demo.servers import EmbeddedBroker, EmbeddedRedis

PARTITIONS = 2
READERS: tuple[Reader, ...] = (
    "poll",
    "credence",
    "poll, garbage collected rarely",
    "credence, fast fetch",
    "poll and decode",
)


@contextmanager
def broker(kind: str) -> Iterator[str]:
    """Bootstrap servers of a broker: Apache Kafka, the bundled one, or one that runs already."""
    if kind == "apache":
        # Its starter belongs to the tests, which are no package.
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "stack"))
        with import_module("apache_kafka").ApacheKafka() as kafka:
            yield kafka.bootstrap_servers
    elif kind == "bundled":
        with EmbeddedBroker() as bundled:
            yield bundled.bootstrap_server
    else:
        yield kind


def command_line(description: str | None) -> argparse.ArgumentParser:
    """What every benchmark on a broker can be set to."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", default="apache", help="apache, bundled, or HOST:PORT (default: apache)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def settings_of(stream: Stream, bootstrap_servers: str, topic: str, redis_url: str) -> dict[str, Any]:
    """Settings of one reading, with a consumer group of its own."""
    run = secrets.token_hex(4)
    return {
        "kafka": {
            "bootstrap_servers": [bootstrap_servers],
            "topics": {"predictions": topic, "dead_letters": f"{topic}.dead"},
            "group_prefix": run,
        },
        "redis": {"url": redis_url, "prefix": run},
        "log_level": "warning",
        "models": {"m": stream.model()},
    }


def measure(stream: Stream, predictions: int, turns: int, bootstrap_servers: str) -> dict[str, Any]:
    """Readings of every reader, in turn."""
    topic = f"bench-{secrets.token_hex(4)}"
    create_topics(bootstrap_servers, [topic, f"{topic}.dead"], partitions=PARTITIONS)
    records, size = produce(bootstrap_servers, topic, stream.values(predictions), partitions=PARTITIONS)
    readings: dict[str, list[Reading]] = {reader: [] for reader in READERS}
    for _, reader in product(range(turns), READERS):
        with EmbeddedRedis() as redis, one_schema(AVRO_SCHEMA) as registry:
            settings = settings_of(stream, bootstrap_servers, topic, redis.url)
            if stream.form == "avro":
                settings["kafka"]["schema_registry"] = {"url": registry.url}
            readings[reader].append(read(reader, settings, predictions, stream.packed))
    return {
        "stream": stream.name,
        "record_bytes": size / records,
        "predictions": predictions,
        "readers": {
            reader: {
                "rate": median(r.rate for r in found),
                "cpu_us": median(r.cpu_us for r in found),
                "stored_share": median(r.stored_share for r in found),
            }
            for reader, found in readings.items()
        },
    }


def show(figures: dict[str, Any]) -> None:
    """Print a table."""
    readers = figures["readers"]
    bare = readers["poll"]
    size, predictions = figures["record_bytes"], figures["predictions"]
    print(f"{figures['stream']}, {size:,.0f} bytes a record, {predictions:,} predictions")
    print(f"  {'':34}{'predictions/s':>14}{'of poll':>9}{'CPU us':>9}{'poll/own':>9}{'storing':>8}")
    for reader, rates in readers.items():
        print(
            f"  {reader:34}{rates['rate']:14,.0f}{rates['rate'] / bare['rate']:9.1%}{rates['cpu_us']:9.2f}"
            f"{bare['cpu_us'] / rates['cpu_us']:9.1%}{rates['stored_share']:8.1%}"
        )


def main() -> None:
    """Measure, and print tables or JSON."""
    parser = command_line(__doc__)
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS))
    parser.add_argument("--predictions", type=int, default=2_000_000, help="(default: 2000000)")
    parser.add_argument("--turns", type=int, default=2, help="how often each reader reads (default: 2)")
    options = parser.parse_args()
    results = []
    with broker(options.broker) as bootstrap_servers:
        for name in options.streams:
            stream = STREAMS[name]
            results.append(measure(stream, options.predictions, options.turns, bootstrap_servers))
            if not options.json:
                show(results[-1])
                sys.stdout.flush()
    if options.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
