"""What taking in and storing predictions costs, against cells, models of one topic, and pooled items.

The predictions are given to the consumer's step as a Kafka client would give them, and stored in a real
Redis; it prints the processor time of this process, and the time of a flush. A flush follows every
batch here, far more often than in service.
"""

from __future__ import annotations

import argparse
import json
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from benchmarks.streams import BEGAN
from consumers.dead_letters import Rejected
from service.app.consumer_wiring import prediction_step
from service.app.memory_tuning import collect_rarely
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.store.client import build_redis
from service.store.connection import Connection
from service.telemetry.instruments import PipelineMetrics

BATCH = 5_000
SCORE_BINS = 10
CELLS = (100, 1_000, 10_000, 20_000)
MODELS = (1, 10, 50, 200)
POOLED = (16, 64, 256)


class Record(NamedTuple):
    """What a Kafka client gives."""

    offset: int
    timestamp: int
    value: bytes
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


class NoLetters:
    """Where no message is refused."""

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Fail if one is."""
        if rejected:
            raise AssertionError(f"the benchmark's own messages are refused: {rejected[0].error}")


@dataclass(frozen=True)
class Case:
    """One thing that is measured: so many models with so many cells each, and pooled items a class."""

    cells: int = 1_000
    models: int = 1
    pooled: int = 16

    def settings(self, redis_url: str) -> Settings:
        """A model's cells are its classes times its score bins."""
        model = {
            "classes": [f"c{i}" for i in range(self.cells // SCORE_BINS)],
            "groupings": {"class": {"by": "predicted_class"}},
            "assessments": {"ask": {"grouping": "class", "budget": {"labels": max(POOLED)}}},
        }
        return Settings.model_validate(
            {
                "redis": {"url": redis_url, "prefix": secrets.token_hex(4)},
                "bounds": {"pool_items": self.pooled * self.cells // SCORE_BINS},
                "models": {f"m{i}": model for i in range(self.models)},
            }
        )

    def records(self, first: int) -> list[Record]:
        """A batch from an offset on; models, classes and scores take turns."""
        classes = self.cells // SCORE_BINS
        return [
            Record(
                i,
                int(BEGAN * 1e3) + i,
                b'{"model":"m%d","item_id":"img-%012d","predicted_class":"c%d","score":%.6f}'
                % (i % self.models, i, i * 7_919 % classes, i * 0.6180339887 % 1),
            )
            for i in range(first, first + BATCH)
        ]


def measure(case: Case, batches: int, redis_url: str) -> dict[str, Any]:
    """Cost of the last half of so many batches, when the pool is mostly full."""
    settings = case.settings(redis_url)
    connection = Connection(build_redis(settings.redis), settings.redis.prefix)
    step = prediction_step(
        settings,
        connection,
        hash_key=bytes(16),
        dead_letters=NoLetters(),
        metrics=PipelineMetrics(CollectorRegistry(), time.time),
    )
    step.assign(0, 0)
    taking, flushing = [], []
    for batch in range(batches):
        records, now = case.records(batch * BATCH), BEGAN + batch
        began = time.thread_time()
        step.process(0, records, now)
        taken, stored = time.thread_time(), time.perf_counter()
        step.flush(0, now)
        if batch >= batches // 2:
            taking.append(1e6 * (taken - began) / BATCH)
            flushing.append(1e3 * (time.perf_counter() - stored))
    return {
        "cells": case.cells,
        "models": case.models,
        "pooled": case.pooled,
        "taking_us": median(taking),
        "flush_ms": median(flushing),
        "redis_mb": connection.client.info("memory")["used_memory"] / 1e6,
    }


def cases() -> Iterator[Case]:
    """All that is measured."""
    yield from (Case(cells=cells) for cells in CELLS)
    yield from (Case(models=models) for models in MODELS[1:])
    yield from (Case(pooled=pooled) for pooled in POOLED)


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=100, help=f"of {BATCH:,} predictions (default: 100)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    results = []
    collect_rarely()
    if not options.json:
        print("  cells  models pooled   us a prediction   ms a flush   Redis, MB")
    for case in cases():
        with EmbeddedRedis() as redis:
            results.append(figures := measure(case, options.batches, redis.url))
        if not options.json:
            print(
                f"{figures['cells']:7,}{figures['models']:8}{figures['pooled']:7}{figures['taking_us']:18.2f}"
                f"{figures['flush_ms']:13.2f}{figures['redis_mb']:12.1f}",
                flush=True,
            )
    if options.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
