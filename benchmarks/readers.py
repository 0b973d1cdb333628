"""Those that read a topic in the benchmarks, each in a process of its own: the bare client, and Credence."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.consuming import TOO_FEW, ConsumerProcess
from consumers.formats.parts import decode_parts
from service.app.format_wiring import prediction_formats
from service.app.memory_tuning import collect_rarely
from service.config.settings import Settings
from service.kafka.clients import build_consumer
from service.kafka.topic_metadata import join

Reader = Literal[
    "poll", "poll, garbage collected rarely", "poll and decode", "credence", "credence, fast fetch"
]
WARM = 0.4
"""So much is read before the clock starts: processes warm up, and the pool fills."""

_NEARLY_ALL = 0.95
_POLL_MS = 200


@dataclass(frozen=True)
class Reading:
    """How fast a topic was read, but for its beginning.

    Attributes:
        rate: predictions a second.
        cpu_us: processor time of the process, microseconds a prediction.
        stored_share: part of the time in which what was taken in was stored: encoded, and put into Redis.
    """

    rate: float
    cpu_us: float
    stored_share: float


def read(reader: Reader, settings: Mapping[str, Any], predictions: int, packed: int = 1) -> Reading:
    """Read a topic's predictions in a new process.

    Args:
        reader: who.
        settings: of Credence; the bare client takes its own from them.
        predictions: in the topic.
        packed: predictions in a record.

    Raises:
        ValueError: there are too few to measure.
    """
    if reader in ("credence", "credence, fast fetch"):
        kafka = settings["kafka"] | {"fast_fetch": reader == "credence, fast fetch"}
        return _read_with_credence({**settings, "kafka": kafka}, predictions)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_read_bare, (reader, settings, predictions, packed))


def _read_bare(reader: Reader, configuration: Mapping[str, Any], predictions: int, packed: int) -> Reading:
    settings = Settings.model_validate(configuration)
    consumer = build_consumer(settings.kafka, group="bare", without_offset="earliest")
    formats = prediction_formats(settings)
    join(consumer, settings.kafka.topics.predictions)
    if reader != "poll":
        collect_rarely()
    read = first = 0
    began = cpu = 0.0
    while read < _NEARLY_ALL * predictions:
        for records in consumer.poll(_POLL_MS).values():
            if reader == "poll and decode":
                decode_parts(records, message_bytes=settings.bounds.message_bytes, formats=formats)
            read += packed * len(records)
        if read >= WARM * predictions and not first:
            first, began, cpu = read, time.perf_counter(), time.process_time()
    ended, used = time.perf_counter(), time.process_time()
    consumer.close(autocommit=False)
    if read == first:
        raise ValueError(TOO_FEW)
    return Reading((read - first) / (ended - began), 1e6 * (used - cpu) / (read - first), 0.0)


def _read_with_credence(settings: Mapping[str, Any], predictions: int) -> Reading:
    with tempfile.TemporaryDirectory() as folder, ConsumerProcess(settings, Path(folder)) as consumer:
        began = consumer.wait_for(WARM * predictions)
        ended = consumer.wait_for(_NEARLY_ALL * predictions)
    count, seconds = ended.predictions - began.predictions, ended.at - began.at
    if not count:
        raise ValueError(TOO_FEW)
    return Reading(
        rate=count / seconds,
        cpu_us=1e6 * (ended.cpu_seconds - began.cpu_seconds) / count,
        stored_share=(ended.stored_seconds - began.stored_seconds) / seconds,
    )
