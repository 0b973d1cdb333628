"""Memory of a consumer over very many predictions with ever-new item ids, and 20,000 cells.

The consumer runs as it does in service and reads what is written meanwhile, 100 predictions in a record. What
it has in use is what the system tells of its process.
"""

from __future__ import annotations

import json
import multiprocessing
import secrets
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.consuming import ConsumerProcess
from benchmarks.ingest import PARTITIONS, broker, command_line, settings_of
from benchmarks.streams import Stream, create_topics, produce
from service.demo.servers import EmbeddedRedis

STREAM = Stream("100 in a record, 20,000 cells", classes=200, packed=100)
"""200 classes x 10 score bins x 10 combinations, the last of them for all that do not fit."""

LOOKS = 20
SETTLED = LOOKS // 4 - 1
"""The look behind the first quarter, which fills the pool, if there are millions of predictions."""


def measure(predictions: int, bootstrap_servers: str) -> dict[str, Any]:
    """Memory at every twentieth of so many predictions."""
    topic = f"memory-{secrets.token_hex(4)}"
    create_topics(bootstrap_servers, [topic, f"{topic}.dead"], partitions=PARTITIONS)
    producer = multiprocessing.get_context("spawn").Process(
        target=_produce, args=(bootstrap_servers, topic, predictions), daemon=True
    )
    with EmbeddedRedis() as redis, tempfile.TemporaryDirectory() as folder:
        settings = settings_of(STREAM, bootstrap_servers, topic, redis.url)
        producer.start()
        with ConsumerProcess(settings, Path(folder)) as consumer:
            looks = [consumer.wait_for(predictions * (n + 1) / LOOKS) for n in range(LOOKS)]
        producer.join()
    sizes = [look.resident_mb for look in looks]
    return {
        "predictions": [look.predictions for look in looks],
        "resident_mb": sizes,
        "growth": max(sizes[SETTLED:]) / sizes[SETTLED] - 1,
    }


def _produce(bootstrap_servers: str, topic: str, predictions: int) -> None:
    produce(bootstrap_servers, topic, STREAM.values(predictions), partitions=PARTITIONS)


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = command_line(__doc__)
    parser.add_argument("--predictions", type=int, default=20_000_000, help="(default: 20000000)")
    options = parser.parse_args()
    with broker(options.broker) as bootstrap_servers:
        result = measure(options.predictions, bootstrap_servers)
    if options.json:
        print(json.dumps(result))
        return
    print("  predictions    MB in use")
    for count, size in zip(result["predictions"], result["resident_mb"], strict=True):
        print(f"{count:13,}{size:13.1f}")
    print(f"  growth behind the first quarter, at most: {result['growth']:.1%}")


if __name__ == "__main__":
    main()
