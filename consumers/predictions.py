"""Predictions: records -> traffic sums and pool candidates -> shards in Redis.

A batch is first decoded and validated, which may fail and changes nothing. Then bad messages are
dead-lettered, which may fail. Only then is it added to the shards, which cannot fail. So a whole batch can be
retried when Redis or Kafka is back.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from consumers.dead_letters import BadMessageLimit, DeadLetterSink, Rejected
from consumers.formats.native import WirePrediction
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import DecodedRecords, decode_records, texts_of
from consumers.ingest import ModelIngest, Resolved
from consumers.prediction_times import arrival_times, prediction_times
from service.domain.arrays import Indices
from service.domain.errors import BadMessage
from service.domain.siphash import siphash24
from service.telemetry.instruments import PipelineMetrics

Error = tuple[int, int | None, BadMessage]
"""Which record of the batch, which element of its array, and what is wrong with it."""


@dataclass
class _Partition:
    """State of an assigned partition.

    Attributes:
        position: offset up to which records were processed.
        newest_record: time of the newest record before it, seconds since the epoch.
        counted: offset of the last record that the bad message limit has counted.
        flushed_all: when all models were last flushed, in monotonic seconds.
        must_flush_all: whether the next flush includes models without new predictions.
    """

    position: int
    newest_record: float
    counted: int = -1
    flushed_all: float = 0.0
    must_flush_all: bool = False


@dataclass(frozen=True)
class _ModelBatch:
    """One model's predictions in a batch.

    Attributes:
        name: of the model.
        model: the model.
        resolved: its predictions [n].
        accepted: which of these are added to the shard [r].
        rows: places of the accepted ones among all predictions of the batch [r].
    """

    name: str
    model: ModelIngest
    resolved: Resolved
    accepted: Indices
    rows: Indices


class PredictionStep:
    """Adds predictions to the shards of all models, for the partitions assigned to this process."""

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
        self._partitions: dict[int, _Partition] = {}

    def assign(self, partition: int, default_offset: int) -> int:
        """Load all models' shards of a partition; the offset to read from.

        Raises:
            Unavailable: Redis does not answer.
        """
        stored = {model: model.load(partition) for model in self._models.values()}
        start = min((offset for offset in stored.values() if offset is not None), default=default_offset)
        newest = -math.inf
        for model, offset in stored.items():
            owned = model.owned[partition]
            if offset is None:
                # A model that is new in the configuration has no history before this point.
                owned.applied = start
            elif offset == start:
                newest = max(newest, owned.shard.newest_record)
        self._partitions[partition] = _Partition(start, newest)
        return start

    def revoke(self, partition: int) -> None:
        """Drop a partition; its next owner reads again what was not flushed."""
        self._partitions.pop(partition, None)
        for model in self._models.values():
            model.owned.pop(partition, None)

    def process(self, partition: int, records: Sequence[Any], now: float) -> None:
        """Add one batch of records, or nothing of it.

        Raises:
            Unavailable: Redis or Kafka does not answer; retry with the same batch.
            TooManyBadMessages: nothing of the batch was discarded.
        """
        state = self._partitions[partition]
        decoded = decode_records(records, message_bytes=self._message_bytes, responses=self._responses)
        batches, errors = self._validate(partition, records, decoded)
        self._count_messages(state, records, decoded, errors)
        made = prediction_times(records, decoded, now, lateness_seconds=self._lateness_seconds)
        arrived, newest = arrival_times(records, now=now, newest=state.newest_record)
        arrivals = arrived[np.asarray(decoded.places, dtype=np.intp)]
        hashes = siphash24([p.item_id.encode() for p in decoded.predictions], self._hash_key)
        additions = [
            batch.model.build_candidates(
                batch.resolved,
                batch.accepted,
                times=made.times[batch.rows],
                arrivals=arrivals[batch.rows],
                id_hashes=hashes[batch.rows],
            )
            for batch in batches
        ]
        self._dead_letters.send(list(self._rejected(partition, records, errors)))

        state.position, state.newest_record = records[-1].offset + 1, newest
        for batch, candidates in zip(batches, additions, strict=True):
            batch.model.owned[partition].shard.add(candidates)
            self._metrics.predictions_consumed.labels(batch.name).inc(len(batch.rows))
            for direction, clipped in (("future", made.too_late), ("past", made.too_early)):
                count = np.count_nonzero(clipped[batch.rows])
                self._metrics.times_clipped.labels(batch.name, direction).inc(int(count))
        for model in self._models.values():
            owned = model.owned[partition]
            owned.applied = max(owned.applied, state.position)
        if errors:
            self._metrics.dead_lettered(self.topic_kind, [error.reason for _, _, error in errors])
            state.must_flush_all = True

    def _count_messages(
        self, state: _Partition, records: Sequence[Any], decoded: DecodedRecords, errors: Sequence[Error]
    ) -> None:
        """Count a batch's messages in the bad message limit, each once.

        A batch that is retried was counted before, but may have got further records since.

        Raises:
            TooManyBadMessages: the limit is exceeded.
        """
        first = bisect_right(records, state.counted, key=attrgetter("offset"))
        places = [*decoded.places, *(place for place, _, _ in decoded.errors)]
        self._bad_message_limit.admit(
            messages=sum(place >= first for place in places) if first else len(places),
            bad=sum(place >= first for place, _, _ in errors),
        )
        state.counted = max(state.counted, records[-1].offset)

    def _validate(
        self, partition: int, records: Sequence[Any], decoded: DecodedRecords
    ) -> tuple[list[_ModelBatch], list[Error]]:
        """Predictions by model, and all errors; what a shard contains already is not accepted."""
        batches = []
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
            accepted = np.ones(len(rows), dtype=np.bool_)
            for at, error in resolved.checked.refused.items():
                row = int(rows[at])
                errors.append((places[row], elements[row], error))
                accepted[at] = False
            applied = model.owned[partition].applied
            if records[0].offset < applied:
                accepted &= np.array([records[place].offset >= applied for place in places])[rows]
            batches.append(_ModelBatch(name, model, resolved, np.flatnonzero(accepted), rows[accepted]))
        return batches, sorted(errors, key=_place_and_element)

    def _rejected(
        self, partition: int, records: Sequence[Any], errors: Sequence[Error]
    ) -> Iterator[Rejected]:
        for place, group in groupby(errors, key=lambda error: error[0]):
            record, of_record = records[place], list(group)
            # Once per record, which may hold very many bad elements.
            has_elements = any(element is not None for _, element, _ in of_record)
            text_of = texts_of(record, self._responses) if has_elements else None
            for _, element, error in of_record:
                text = None if element is None or text_of is None else text_of(element)
                yield Rejected.from_record(partition, record, error, index=element, value=text)

    def advance(self, partition: int, position: int) -> None:
        """Note that all records before a position were processed, or can no longer come."""
        state = self._partitions[partition]
        state.position = max(state.position, position)

    def flush(self, partition: int, now: float) -> int:
        """Write a partition's shards to Redis; the offset up to which everything is stored.

        Models without new predictions are flushed every `idle_checkpoint_seconds`: so they need not be read
        far back after a restart, and a Redis that has lost data is noticed on an idle topic too.

        Raises:
            FlushRefused: assign the partition again, and read on from the offset that this gives.
            Unavailable: Redis does not answer; flush again later.
        """
        state = self._partitions[partition]
        flush_all = state.must_flush_all or now - state.flushed_all >= self._idle_checkpoint_seconds
        for model in self._models.values():
            if flush_all or model.owned[partition].shard.changed:
                model.flush(partition, state.position, newest_record=state.newest_record, force=flush_all)
        if flush_all:
            state.flushed_all, state.must_flush_all = now, False
        return state.position


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
