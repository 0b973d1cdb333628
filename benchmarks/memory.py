"""Memory of a consumer and of Redis over very many predictions with ever-new item ids.

The consumer runs as it does in service and reads all partitions, while predictions are written: those of a
stream with 20,000 cells, 100 in a record, or with `--stream` those of one in `benchmarks/streams.py`. There,
the grouping with the most groups requests labels, so that all of them have pools. What the consumer has in
use is what the system reports for its process; that of Redis is its own figure.
"""

from __future__ import annotations

import json
import multiprocessing
import secrets
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.consuming import ConsumerProcess
from benchmarks.ingest import broker, command_line, settings_of
from benchmarks.streams import STREAMS, Stream, create_topics, produce
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.store.client import build_redis

STREAM = Stream("100 in a record, 20,000 cells", classes=200, packed=100)
"""200 classes x 10 score bins x 10 combinations, the last of them for all that do not fit."""

LOOKS = 20
SETTLED = LOOKS // 4 - 1
"""The look behind the first quarter, which fills the pool, if there are millions of predictions."""


def measure(stream: Stream, predictions: int, partitions: int, bootstrap_servers: str) -> dict[str, Any]:
    """Memory at every twentieth of so many predictions."""
    topic = f"memory-{secrets.token_hex(4)}"
    create_topics(bootstrap_servers, [topic, f"{topic}.dead"], partitions=partitions)
    producer = multiprocessing.get_context("spawn").Process(
        target=_produce, args=(bootstrap_servers, topic, stream, predictions, partitions), daemon=True
    )
    with EmbeddedRedis() as redis, tempfile.TemporaryDirectory() as folder:
        settings = settings_of(stream, bootstrap_servers, topic, redis.url)
        if stream.attributes:
            _request_labels(settings, stream)
        producer.start()
        with ConsumerProcess(settings, Path(folder)) as consumer:
            looks = [consumer.wait_for(predictions * (n + 1) / LOOKS) for n in range(LOOKS)]
        producer.join()
        with build_redis(Settings.model_validate(settings).redis) as client:
            redis_bytes = client.info("memory")["used_memory_peak"]
    sizes = [look.resident_mb for look in looks]
    return {
        "stream": stream.name,
        "partitions": partitions,
        "predictions": [look.predictions for look in looks],
        "resident_mb": sizes,
        "growth": max(sizes[SETTLED:]) / sizes[SETTLED] - 1,
        "redis_mb": redis_bytes / 1e6,
    }


def _request_labels(settings: dict[str, Any], stream: Stream) -> None:
    """Every value is a group of its own, and the grouping with the most groups requests labels."""
    most = max(stream.attributes)
    by_class = stream.classes >= most
    asks = "class" if by_class else stream.attribute_names[stream.attributes.index(most)]
    settings["bounds"] = {"attribute_values": max(most, 1_000)}
    settings["models"]["m"]["assessments"] = {"ask": {"grouping": asks, "budget": {"labels": 100}}}


def _produce(bootstrap_servers: str, topic: str, stream: Stream, predictions: int, partitions: int) -> None:
    produce(bootstrap_servers, topic, stream.values(predictions), partitions=partitions)


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = command_line(__doc__)
    parser.add_argument("--predictions", type=int, default=20_000_000, help="(default: 20000000)")
    parser.add_argument("--stream", choices=STREAMS, help="of the predictions")
    parser.add_argument("--partitions", type=int, default=2, help="(default: 2)")
    options = parser.parse_args()
    stream = STREAMS[options.stream] if options.stream else STREAM
    with broker(options.broker) as bootstrap_servers:
        result = measure(stream, options.predictions, options.partitions, bootstrap_servers)
    if options.json:
        print(json.dumps(result))
        return
    print("  predictions    MB in use")
    for count, size in zip(result["predictions"], result["resident_mb"], strict=True):
        print(f"{count:13,}{size:13.1f}")
    print(f"  growth behind the first quarter, at most: {result['growth']:.1%}")
    print(f"  Redis, at most: {result['redis_mb']:.1f} MB")


if __name__ == "__main__":
    main()
