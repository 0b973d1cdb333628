"""`credence check --sample`: what the newest records of the predictions topic say. It changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from consumers.formats.native import WirePrediction, decode_attributes
from consumers.formats.records import DecodedRecords, Formats, decode_records
from consumers.prediction_times import prediction_times
from consumers.validation import PredictionChecks
from service.app.format_wiring import prediction_formats
from service.app.proposal.topic_sample import newest_records, place_of
from service.app.terminal_tables import table, text
from service.config.settings import Settings
from service.domain.errors import BadMessage
from service.kafka.clients import build_reader

_SHOWN = 5
"""Predictions in the table."""


@dataclass
class Found:
    """What was found in records.

    Attributes:
        records: how many were read.
        predictions: how many would be used.
        shown: the first of these, as cells of a table.
        refused: how many would be refused, with the place and the detail of the first, by reason.
        refused_records: of which anything would be refused.
    """

    records: int = 0
    predictions: int = 0
    shown: list[tuple[str, ...]] = field(default_factory=list)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    refused_records: set[str] = field(default_factory=set)

    def refuse(self, record: Any, error: BadMessage) -> None:
        """Count a message that would be refused."""
        count, first = self.refused.get(error.reason, (0, ""))
        place = place_of(record)
        self.refused_records.add(place)
        self.refused[error.reason] = count + 1, first or f"{place}: {error.detail}"

    @property
    def reasons(self) -> list[tuple[str, int, str]]:
        """Reasons with their number and the first refusal, the most frequent one first."""
        by_count = sorted(self.refused.items(), key=lambda each: -each[1][0])
        return [(reason, count, first) for reason, (count, first) in by_count]


class Sampler:
    """Reads records as the consumer does, up to what depends on Redis."""

    def __init__(self, settings: Settings, formats: Formats) -> None:
        self._bounds = settings.bounds
        self._formats = formats
        self._classes = {name: model.classes for name, model in settings.models.items()}
        self._checks = {
            name: PredictionChecks(classes, payload_bytes=settings.bounds.payload_bytes)
            for name, classes in self._classes.items()
        }

    def add(self, records: Sequence[Any], found: Found, now: float) -> None:
        """Add what a batch of records says."""
        decoded = decode_records(records, message_bytes=self._bounds.message_bytes, formats=self._formats)
        found.records += len(records)
        for place, _, error in decoded.errors:
            found.refuse(records[place], error)
        times = prediction_times(records, decoded, now, lateness_seconds=self._bounds.lateness_seconds).times
        self._add_predictions(records, decoded, times.tolist(), found)

    def _add_predictions(
        self, records: Sequence[Any], decoded: DecodedRecords, times: Sequence[float], found: Found
    ) -> None:
        for place, prediction, time in zip(decoded.places, decoded.predictions, times, strict=True):
            try:
                cells = self._cells(prediction, time)
            except BadMessage as error:
                found.refuse(records[place], error)
                continue
            found.predictions += 1
            if len(found.shown) < _SHOWN:
                found.shown.append(cells)

    def _cells(self, prediction: WirePrediction, time: float) -> tuple[str, ...]:
        checks = self._checks.get(prediction.model)
        if checks is None:
            raise BadMessage("unknown_model", "the configuration has no model of this name")
        index, score = checks.check(prediction)
        attributes = decode_attributes(prediction.attributes)
        return (
            prediction.item_id,
            f"{score:.4g}",
            prediction.model,
            self._classes[prediction.model][index],
            f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S}Z",
            ", ".join(f"{name}={value}" for name, value in attributes.items()),
        )


def check_sample(settings: Settings, *, records: int, console: Console | None = None) -> int:
    """Print what the newest records of the predictions topic say; 1 if none of them can be used.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: Kafka or the schema registry does not answer, or refuses.
    """
    # The client logs each of its attempts; the command itself says what failed.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    found, topic = Found(), settings.kafka.topics.predictions
    sampler = Sampler(settings, prediction_formats(settings))
    now = datetime.now(UTC).timestamp()
    with closing(build_reader(settings.kafka)) as reader:
        for batch in newest_records(reader, topic, records):
            if batch:
                sampler.add(batch, found, now)
    _print(found, topic, console or Console())
    return int(found.predictions == 0)


def refusals(settings: Settings, records: Sequence[Any]) -> str:
    """What consumers would refuse of sampled records, in sentences; empty if nothing.

    Args:
        settings: that are proposed for them.
        records: as they were read.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: the schema registry does not answer, or refuses.
    """
    found = Found()
    Sampler(settings, prediction_formats(settings)).add(records, found, datetime.now(UTC).timestamp())
    if not found.refused:
        return ""
    counted = "; ".join(f"{reason} ({count:,}), such as {first}" for reason, count, first in found.reasons)
    others = (
        " Models that are not here need a section in `models`." if "unknown_model" in found.refused else ""
    )
    return (
        f"WARNING: {len(found.refused_records):,} of {found.records:,} sampled records would be refused, in "
        f"whole or in part: {counted}. Correct the keys below, or what the producer writes, and see what is "
        f"left: `credence check --sample`.{others}"
    )


def _print(found: Found, topic: str, console: Console) -> None:
    refused = sum(count for count, _ in found.refused.values())
    console.print(
        f"sample of the newest {found.records:,} records of {topic}: "
        f"{found.predictions:,} {'prediction' if found.predictions == 1 else 'predictions'}, "
        f"{refused:,} refused",
        soft_wrap=True,
    )
    if not found.records:
        console.print("  the topic has no records; send some, and check again")
    if found.shown:
        console.print(_shown(found.shown))
    for reason, count, first in found.reasons:
        console.print(text(f"  refused: {count:,} {reason}, such as {first}"), soft_wrap=True)


def _shown(rows: Sequence[tuple[str, ...]]) -> Table:
    shown = table("The first predictions", "item", ["score"], ["model", "class", "time", "attributes"])
    for row in rows:
        shown.add_row(*map(text, row))
    return shown
