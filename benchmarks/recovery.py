"""How soon a consumer that was killed is back at full speed, with very many records unread.

A consumer reads at full speed and is killed (SIGKILL) while it does; it is started again at once, and looked
at until it reads as fast as before. It has an instance id, so its partitions wait for it. In the end Redis
must count every prediction once.
"""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.consuming import TOO_FEW, ConsumerProcess, Look
from benchmarks.ingest import PARTITIONS, broker, command_line, settings_of
from benchmarks.streams import SMALL, create_topics, produce
from service.app.wiring import model_keys
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.facts import FactReader

READ_BEFORE = 0.4
"""Predictions that a consumer has read when it is killed, as a part of those that are to be unread."""

ALL = 1.6
"""Predictions in the topic, as the same part: a flush may be ahead of what is seen of the consumer."""

FULL_SPEED = 0.8
"""Of the rate before it was killed: faster is full speed."""

STRETCH_SECONDS = 1.0
"""So long it must be that fast, at the least: counts move by whole batches."""

_LOOK_SECONDS = 0.2


def measure(unread: int, bootstrap_servers: str) -> dict[str, Any]:
    """Seconds from the restart to the first prediction, to full speed, to the end; and what was counted."""
    topic = f"recovery-{secrets.token_hex(4)}"
    predictions = int(ALL * unread)
    create_topics(bootstrap_servers, [topic, f"{topic}.dead"], partitions=PARTITIONS)
    produce(bootstrap_servers, topic, SMALL.values(predictions), partitions=PARTITIONS)
    with EmbeddedRedis() as redis, tempfile.TemporaryDirectory() as folder:
        settings = settings_of(SMALL, bootstrap_servers, topic, redis.url)
        settings["kafka"] |= {"instance_id": "one"}
        with ConsumerProcess(settings, Path(folder)) as consumer:
            began = consumer.wait_for(1)
            ended = consumer.wait_for(min(began.predictions + READ_BEFORE * unread, predictions))
            consumer.process.kill()
            consumer.process.wait()
        left = predictions - _counted(settings)
        if not left or ended.predictions == began.predictions:
            raise SystemExit(f"{TOO_FEW}: --unread")
        rate = _rate(began, ended)
        restarted = time.perf_counter()
        with ConsumerProcess(settings, Path(folder)) as consumer:
            first = consumer.wait_for(1)
            fast = _full_speed(consumer, first, rate, left)
            consumer.wait_for(left)
            caught_up = time.perf_counter()
        counted = _counted(settings)
    return {
        "rate_before": rate,
        "first_seconds": first.at - restarted,
        "full_speed_seconds": None if fast is None else fast.at - restarted,
        "caught_up_seconds": caught_up - restarted,
        "predictions": predictions,
        "unread": left,
        "counted": counted,
    }


def _full_speed(consumer: ConsumerProcess, first: Look, rate: float, left: int) -> Look | None:
    """Since when it was as fast as before, for a stretch of time; None if everything was read sooner."""
    looks = [first]
    while looks[-1].predictions < left:
        time.sleep(_LOOK_SECONDS)
        looks.append(consumer.look())
        while looks[-1].at - looks[0].at >= STRETCH_SECONDS:
            began = looks.pop(0)
            if _rate(began, looks[-1]) > FULL_SPEED * rate:
                return began
    return None


def _rate(began: Look, ended: Look) -> float:
    return (ended.predictions - began.predictions) / (ended.at - began.at)


def _counted(configuration: dict[str, Any]) -> int:
    settings = Settings.model_validate(configuration)
    space = settings.cell_space("m")
    with build_redis(settings.redis) as client:
        reader = FactReader(
            Connection(client, settings.redis.prefix),
            model_keys(settings, "m"),
            space,
            decay=settings.models["m"].traffic_decay_per_second,
        )
        return reader.traffic().traffic.predictions


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = command_line(__doc__)
    parser.add_argument("--unread", type=int, default=1_000_000, help="records, about (default: 1000000)")
    options = parser.parse_args()
    with broker(options.broker) as bootstrap_servers:
        result = measure(options.unread, bootstrap_servers)
    if options.json:
        print(json.dumps(result))
        return
    print(f"{result['rate_before']:12,.0f}  predictions a second before the kill")
    print(f"{result['first_seconds']:12.1f}  s from the restart to the first prediction")
    if result["full_speed_seconds"] is not None:
        print(f"{result['full_speed_seconds']:12.1f}  s to full speed")
    print(f"{result['caught_up_seconds']:12.1f}  s to the end of {result['unread']:,} unread records")
    print(f"{result['counted']:12,}  counted of {result['predictions']:,}")


if __name__ == "__main__":
    main()
