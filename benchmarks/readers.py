"""Those that read a topic in the benchmarks, each in a process of its own: the bare client, and Credence."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from consumers.formats.open_inference import OpenInference
from consumers.formats.records import decode_records
from service.clients import build_consumer
from service.garbage import collect_rarely
from service.settings import Settings
from service.wiring import Application

Reader = Literal[
    "poll", "poll, garbage collected rarely", "poll and decode", "credence", "credence, fast fetch"
]

_LOOK_SECONDS = 0.1
"""Seldom enough for the looking to cost nothing."""

_UNMEASURED = 5
"""A fifth of the predictions is read before the clock starts: processes warm up, and the pool fills."""


@dataclass(frozen=True)
class Reading:
    """How fast a topic was read, but for its beginning.

    Attributes:
        rate: predictions a second.
        cpu_us: processor time of the process, microseconds a prediction.
        redis_share: part of the time in which Redis was waited for.
    """

    rate: float
    cpu_us: float
    redis_share: float


def read(reader: Reader, settings: Mapping[str, Any], predictions: int, packed: int = 1) -> Reading:
    """Read a topic's predictions in a new process."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        if reader in ("credence", "credence, fast fetch"):
            kafka = settings["kafka"] | {"fast_fetch": reader == "credence, fast fetch"}
            return pool.apply(_read_with_credence, ({**settings, "kafka": kafka}, predictions))
        return pool.apply(_read_bare, (reader, settings, predictions, packed))


def _read_bare(reader: Reader, told: Mapping[str, Any], predictions: int, packed: int) -> Reading:
    settings = Settings.model_validate(told)
    consumer = build_consumer(settings.kafka, group="bare")
    responses = OpenInference({name: model.tensors for name, model in settings.models.items()})
    consumer.subscribe([settings.kafka.topics.predictions])
    if reader != "poll":
        collect_rarely()
    read = first = 0
    began = cpu = 0.0
    while read < predictions:
        batches = consumer.poll(200)
        for records in batches.values():
            if reader == "poll and decode":
                decode_records(records, message_bytes=settings.bounds.message_bytes, responses=responses)
            read += packed * len(records)
        if read >= predictions / _UNMEASURED and not first:
            first, began, cpu = read, time.perf_counter(), time.process_time()
    ended, used = time.perf_counter(), time.process_time()
    consumer.close(autocommit=False)
    return Reading((read - first) / (ended - began), 1e6 * (used - cpu) / (read - first), 0.0)


def _read_with_credence(told: Mapping[str, Any], predictions: int) -> Reading:
    settings = Settings.model_validate(told)
    application = Application(settings, {"predictions"})
    registry = application.registry
    found: list[Reading] = []

    def sample(name: str) -> float:
        return sum(s.value for family in registry.collect() for s in family.samples if s.name == name)

    def watch() -> None:
        first = last = began = cpu = stored = 0.0
        while last < predictions:
            time.sleep(_LOOK_SECONDS)
            last = sample("credence_predictions_consumed_total")
            if last >= predictions / _UNMEASURED and not first:
                first, began, cpu = last, time.perf_counter(), time.process_time()
                stored = sample("credence_flush_duration_seconds_sum")
        ended, used = time.perf_counter(), time.process_time()
        stored = sample("credence_flush_duration_seconds_sum") - stored
        found.append(
            Reading(
                (last - first) / (ended - began),
                1e6 * (used - cpu) / (last - first),
                stored / (ended - began),
            )
        )
        application.stop()

    watcher = threading.Thread(target=watch)
    watcher.start()
    application.run()
    watcher.join()
    return found[0]
