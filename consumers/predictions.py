"""Predictions: records -> cell sums and pool candidates -> shards in Redis.

A batch is first decoded and resolved, which may fail and changes nothing; then bad messages are
dead-lettered, which may fail; only then is it added to the shards, which cannot. So a batch can be
tried again as a whole whenever Redis or Kafka comes back.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from consumers.arrivals import FUTURE_SECONDS, arrival_times
from consumers.dead_letters import BadMessageLimit, DeadLetterSink, Rejected
from consumers.formats.native import WirePrediction, event_time
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import DecodedRecords, decode_records, texts_of
from consumers.ingest import ModelIngest, Resolved
from service.domain.arrays import Flags, Floats, Indices
from service.domain.errors import BadMessage
from service.domain.siphash import siphash24
from service.telemetry.instruments import PipelineMetrics

Error = tuple[int, int | None, BadMessage]
"""Which record of the batch, which element of its array, and what is wrong with it."""

_timestamp: Callable[[Any], float] = datetime.timestamp


class _Times(NamedTuple):
    """When predictions count as made [n].

    Attributes:
        counted: seconds since the epoch.
        too_late: whether a time too far in the future was claimed.
        too_early: whether a time too far in the past was claimed.
    """

    counted: Floats
    too_late: Flags
    too_early: Flags


@dataclass(frozen=True)
class _Part:
    """One model's predictions in a batch.

    Attributes:
        name: of the model.
        model: that takes them in.
        rows: where they stand in the batch.
        resolved: these predictions.
        kept: which of them are to be added.
    """

    name: str
    model: ModelIngest
    rows: Indices
    resolved: Resolved
    kept: Indices


class PredictionStep:
    """Takes batches of one partition; owns the shards of all models of the partitions assigned to it."""

    topic_kind = "predictions"

    def __init__(
        self,
        models: Mapping[str, ModelIngest],
        *,
        responses: OpenInference,
        dead_letters: DeadLetterSink,
        bad_message_limit: BadMessageLimit,
        metrics: PipelineMetrics,
        message_bytes: int,
        hash_key: bytes,
        lateness_seconds: float = math.inf,
        idle_checkpoint_seconds: float = 10.0,
    ) -> None:
        self._models = models
        self._responses = responses
        self._dead_letters = dead_letters
        self._bad_message_limit = bad_message_limit
        self._metrics = metrics
        self._message_bytes = message_bytes
        self._hash_key = hash_key
        self._lateness_seconds = lateness_seconds
        self._idle_checkpoint_seconds = idle_checkpoint_seconds
        self._positions: dict[int, int] = {}
        self._newest: dict[int, float] = {}
        self._admitted: dict[int, int] = {}
        self._checkpointed: dict[int, float] = {}
        self._checkpoint_all: set[int] = set()

    def assign(self, partition: int, default_offset: int) -> int:
        """Load all models' shards of a partition; the offset to read from.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        stored = {name: model.load(partition) for name, model in self._models.items()}
        known = [offset for offset in stored.values() if offset is not None]
        start = min(known, default=default_offset)
        for name, offset in stored.items():
            if offset is None:
                # A model that is new in the configuration has no history before this point.
                self._models[name].owned[partition].applied = start
        self._positions[partition] = start
        self._newest[partition] = max(
            (
                self._models[name].owned[partition].shard.newest_record
                for name, offset in stored.items()
                if offset == start
            ),
            default=-math.inf,
        )
        return start

    def revoke(self, partition: int) -> None:
        """Forget a partition; what was not flushed is read again by its next owner."""
        self._positions.pop(partition, None)
        self._newest.pop(partition, None)
        self._admitted.pop(partition, None)
        self._checkpointed.pop(partition, None)
        self._checkpoint_all.discard(partition)
        for model in self._models.values():
            model.owned.pop(partition, None)

    def process(self, partition: int, records: Sequence[Any], now: float) -> None:
        """Add one batch of records, or nothing of it.

        Raises:
            Unavailable: Redis or Kafka cannot answer now; give the same batch again later.
            TooManyBadMessages: nothing of the batch was discarded.
        """
        decoded = decode_records(records, message_bytes=self._message_bytes, responses=self._responses)
        parts, errors = self._checked(partition, records, decoded)
        self._admit(partition, records, decoded, errors)
        times = _observed_at(records, decoded, now, lateness_seconds=self._lateness_seconds)
        arrived, newest = arrival_times(records, now=now, newest=self._newest[partition])
        arrivals = arrived[np.asarray(decoded.places, dtype=np.intp)]
        hashes = siphash24([p.item_id.encode() for p in decoded.predictions], self._hash_key)
        additions = []
        for part in parts:
            rows = part.rows[part.kept]
            additions.append(
                part.model.candidates(
                    part.resolved,
                    part.kept,
                    times=times.counted[rows],
                    arrivals=arrivals[rows],
                    id_hashes=hashes[rows],
                )
            )
        self._dead_letters.send(list(self._rejected(partition, records, errors)))

        position = records[-1].offset + 1
        for part, candidates in zip(parts, additions, strict=True):
            part.model.owned[partition].shard.add(candidates)
            self._metrics.consumed(part.name, len(part.kept))
            rows = part.rows[part.kept]
            future, past = (
                int(np.count_nonzero(clipped[rows])) for clipped in (times.too_late, times.too_early)
            )
            self._metrics.times_clipped(part.name, future=future, past=past)
        for model in self._models.values():
            owned = model.owned[partition]
            owned.applied = max(owned.applied, position)
        self._positions[partition], self._newest[partition] = position, newest
        if errors:
            self._metrics.dead_lettered(self.topic_kind, [error.reason for _, _, error in errors])
            self._checkpoint_all.add(partition)

    def _admit(
        self, partition: int, records: Sequence[Any], decoded: DecodedRecords, errors: Sequence[Error]
    ) -> None:
        """Count what was not counted yet: waiting must not count a bad message twice.

        A batch that is given again may have grown meanwhile.
        """
        seen = self._admitted.get(partition, -1)
        first = bisect_right(records, seen, key=attrgetter("offset"))
        places = [*decoded.places, *(place for place, _, _ in decoded.errors)]
        self._bad_message_limit.admit(
            messages=sum(place >= first for place in places) if first else len(places),
            bad=sum(place >= first for place, _, _ in errors),
        )
        self._admitted[partition] = max(seen, records[-1].offset)

    def _checked(
        self, partition: int, records: Sequence[Any], decoded: DecodedRecords
    ) -> tuple[list[_Part], list[Error]]:
        """Every model's predictions, and what is wrong with any; those that a shard holds are not kept."""
        parts = []
        errors = list(decoded.errors)
        places, elements = decoded.places, decoded.elements
        for name, rows in _rows_by_model(decoded.predictions).items():
            model = self._models.get(name)
            if model is None:
                error = BadMessage("unknown_model", "the configuration has no model of this name")
                errors += [(places[row], elements[row], error) for row in rows.tolist()]
                continue
            whole = len(rows) == len(decoded.predictions)
            resolved = model.resolve(
                decoded.predictions if whole else [decoded.predictions[row] for row in rows.tolist()]
            )
            refused = resolved.checked.refused
            for at, error in refused.items():
                row = int(rows[at])
                errors.append((places[row], elements[row], error))
            kept = np.ones(len(rows), dtype=np.bool_)
            kept[list(refused)] = False
            applied = model.owned[partition].applied
            if records[0].offset < applied:
                kept &= np.array([records[place].offset >= applied for place in places])[rows]
            parts.append(_Part(name, model, rows, resolved, np.flatnonzero(kept)))
        return parts, sorted(errors, key=_place_and_element)

    def _rejected(
        self, partition: int, records: Sequence[Any], errors: Sequence[Error]
    ) -> Iterator[Rejected]:
        for place, group in groupby(errors, key=lambda error: error[0]):
            record, of_record = records[place], list(group)
            value = record.value or b""
            # Once per record: it may hold very many bad elements.
            several = any(element is not None for _, element, _ in of_record)
            text_of = texts_of(record, self._responses) if several else None
            for _, element, error in of_record:
                text = value if element is None or text_of is None else text_of(element)
                yield Rejected(
                    partition,
                    record.offset,
                    element,
                    record.key,
                    text,
                    error,
                    timestamp_ms=record.timestamp,
                    headers=record.headers,
                )

    def advance(self, partition: int, position: int) -> None:
        """What stands before a position was taken, or will never be there: a flush may store that."""
        self._positions[partition] = max(self._positions[partition], position)

    def flush(self, partition: int, now: float) -> int:
        """Write a partition's shards back; the offset up to which everything is stored.

        Models without new predictions are checkpointed now and then: so they need not read far back, and a
        Redis that has lost what it held is noticed though nothing new comes.

        Raises:
            FlushRefused: assign the partition again and read on from the offset that gives.
            Unavailable: Redis cannot answer now; flush again later.
        """
        position = self._positions[partition]
        idle_too = (
            partition in self._checkpoint_all
            or now - self._checkpointed.get(partition, 0.0) >= self._idle_checkpoint_seconds
        )
        for model in self._models.values():
            if idle_too or model.owned[partition].shard.changed:
                model.flush(partition, position, newest_record=self._newest[partition], anew=idle_too)
        if idle_too:
            self._checkpointed[partition] = now
            self._checkpoint_all.discard(partition)
        return position


def _rows_by_model(predictions: Sequence[WirePrediction]) -> dict[str, Indices]:
    names = [p.model for p in predictions]
    if names and names.count(names[0]) == len(names):
        return {names[0]: np.arange(len(names))}
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    coded = np.array([codes[name] for name in names], dtype=np.intp)
    order, ends = np.argsort(coded, kind="stable"), np.cumsum(np.bincount(coded, minlength=len(codes)))
    return dict(zip(codes, np.split(order, ends[:-1]), strict=False))


def _place_and_element(error: Error) -> tuple[int, int]:
    place, element, _ = error
    return place, -1 if element is None else element


def _observed_at(
    records: Sequence[Any], decoded: DecodedRecords, now: float, *, lateness_seconds: float
) -> _Times:
    """When every prediction counts as made; its record's time where it claims none.

    A time in the far future counts as the record's time, one in the far past as the bound: a label counts as
    of the time of its prediction, so a producer must not choose it freely. It does not matter for draws.
    """
    stamps = np.array([record.timestamp for record in records], dtype=np.int64)
    # A producer may give no timestamp; that is a negative one.
    recorded = np.where(stamps < 0, now, np.minimum(stamps / 1000, now + FUTURE_SECONDS))
    told: Floats = np.full(len(records), np.nan)
    for place in [place for place, record in enumerate(records) if record.headers]:
        if (claimed := event_time(records[place].headers)) is not None:
            told[place] = claimed
    places = np.asarray(decoded.places, dtype=np.intp)
    times = [p.time for p in decoded.predictions]
    try:
        claims = np.fromiter(map(_timestamp, times), np.float64, len(times))
    except TypeError:  # some tell none
        claims = np.array([np.nan if time is None else time.timestamp() for time in times])
        claims = np.where(np.isnan(claims), told[places], claims)
    own = recorded[places]
    too_late, too_early = claims > own + FUTURE_SECONDS, claims < own - lateness_seconds
    counted = np.where(np.isnan(claims) | too_late, own, np.where(too_early, own - lateness_seconds, claims))
    return _Times(counted, too_late, too_early)
