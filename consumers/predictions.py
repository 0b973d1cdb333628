"""Predictions: records -> traffic sums and pool candidates -> shards in Redis.

A piece of a batch is first decoded and validated, which may fail and changes nothing. Then bad messages are
dead-lettered, which may fail. Only then is it added to the shards, which cannot fail. So a batch can be
retried when Redis or Kafka is back, from the piece that failed.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Any

import numpy as np

from consumers.assignment import IDLE_CHECKPOINT_SECONDS
from consumers.dead_letters import BadMessageLimit, DeadLetterSink
from consumers.formats.parts import Part, decode_parts
from consumers.formats.records import Formats
from consumers.ingest import ModelIngest
from consumers.prediction_errors import Error, error_of, place_of, rejected
from consumers.prediction_times import arrival_times, prediction_times
from consumers.refusals import Refusals
from consumers.validation import Checked
from service.domain.arrays import Floats, Indices
from service.domain.errors import BadMessage, TooManyBadMessages
from service.domain.shard import Candidates
from service.domain.siphash import siphash24_joined
from service.telemetry.instruments import PipelineMetrics

_PIECE_BYTES = 1_000_000
"""About how much is added at once: what a piece is made of should fit into the processor's cache."""


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
        checked: its predictions [n].
        values: numbers of their attribute values [n, attributes].
        accepted: which of these are added to the shard [r].
        rows: places of the accepted ones among all predictions of the part [r].
    """

    name: str
    model: ModelIngest
    checked: Checked
    values: Indices
    accepted: Indices
    rows: Indices


@dataclass(frozen=True)
class _Addition:
    """What one model's shard gets from a batch.

    Attributes:
        clipped: how many predictions had a time that was replaced by a bound, by direction.
    """

    name: str
    model: ModelIngest
    candidates: Candidates
    clipped: Mapping[str, int]


@dataclass(eq=False, repr=False)
class PredictionStep:
    """Adds predictions to the shards of all models, for the partitions assigned to this process."""

    topic_kind = "predictions"

    models: Mapping[str, ModelIngest]
    _: KW_ONLY
    formats: Formats
    dead_letters: DeadLetterSink
    bad_message_limit: BadMessageLimit
    metrics: PipelineMetrics
    message_bytes: int
    hash_key: bytes
    lateness_seconds: float
    refusals: Refusals = field(default_factory=Refusals)
    _partitions: dict[int, _Partition] = field(init=False, default_factory=dict)

    def assign(self, partition: int, default_offset: int) -> int:
        """Load all models' shards of a partition; the offset to read from."""
        stored = {model: model.load(partition) for model in self.models.values()}
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
        for model in self.models.values():
            model.owned.pop(partition, None)

    def process(self, partition: int, records: Sequence[Any], now: float) -> None:
        """Add one batch of records, in pieces: each is added completely, or nothing of it.

        A batch that is retried continues with the piece that failed.
        """
        first = bisect_left(records, self._partitions[partition].position, key=attrgetter("offset"))
        for piece in _pieces(records[first:]):
            self._process_piece(partition, piece, now)

    def _process_piece(self, partition: int, records: Sequence[Any], now: float) -> None:
        state = self._partitions[partition]
        for model in self.models.values():
            model.trim()
        parts = decode_parts(records, message_bytes=self.message_bytes, formats=self.formats)
        validated = [self._validate(partition, records, part) for part in parts]
        errors = [error for _, errors in validated for error in errors]
        messages = sum(len(part.places) + len(part.errors) for part in parts)
        try:
            self._count_messages(state, records, parts, errors)
        except TooManyBadMessages:
            self.refusals.note([place_of(records, error) for error in errors], messages=messages, now=now)
            raise
        arrived, newest = arrival_times(records, now=now, newest=state.newest_record)
        additions = [
            addition
            for part, (batches, _) in zip(parts, validated, strict=True)
            for addition in self._additions(records, part, batches, arrived, now)
        ]
        refused = zip(parts, [of_part for _, of_part in validated], strict=True)
        self.dead_letters.send(list(rejected(records, refused)))

        state.position, state.newest_record = records[-1].offset + 1, newest
        for addition in additions:
            shard = addition.model.owned[partition].shard
            shard.add(addition.candidates)
            self.metrics.predictions_consumed.labels(addition.name).inc(len(addition.candidates.classes))
            for direction, count in addition.clipped.items():
                shard.count_clipped(direction, count)
                self.metrics.times_clipped.labels(addition.name, direction).inc(count)
        for model in self.models.values():
            owned = model.owned[partition]
            owned.applied = max(owned.applied, state.position)
        self.refusals.note([place_of(records, error) for error in errors], messages=messages, now=now)
        if errors:
            self.metrics.dead_lettered(self.topic_kind, [error.reason for _, _, error in errors])
            state.must_flush_all = True

    def _additions(
        self,
        records: Sequence[Any],
        part: Part,
        batches: Sequence[_ModelBatch],
        arrived: Floats,
        now: float,
    ) -> list[_Addition]:
        """What the shards get from a part of the records, which arrived at these times [n]."""
        made = prediction_times(records, part, now, lateness_seconds=self.lateness_seconds)
        arrivals = arrived[part.places]
        ids = part.item_ids
        hashes = siphash24_joined(ids.data, ids.bounds, self.hash_key)
        return [
            _Addition(
                batch.name,
                batch.model,
                batch.model.build_candidates(
                    batch.checked,
                    batch.values,
                    batch.accepted,
                    times=made.times[batch.rows],
                    arrivals=arrivals[batch.rows],
                    id_hashes=hashes[batch.rows],
                    now=now,
                ),
                {
                    direction: int(np.count_nonzero(clipped[batch.rows]))
                    for direction, clipped in (("future", made.too_late), ("past", made.too_early))
                },
            )
            for batch in batches
        ]

    def _count_messages(
        self, state: _Partition, records: Sequence[Any], parts: Sequence[Part], errors: Sequence[Error]
    ) -> None:
        """Count a batch's messages in the bad message limit, each once.

        A batch that is retried was counted before, but may have got further records since.

        Raises:
            TooManyBadMessages: the limit is exceeded.
        """
        first = bisect_right(records, state.counted, key=attrgetter("offset"))
        self.bad_message_limit.admit(
            messages=sum(
                int(np.count_nonzero(np.asarray(part.places) >= first))
                + sum(place >= first for place, _, _ in part.errors)
                for part in parts
            ),
            bad=sum(place >= first for place, _, _ in errors),
        )
        state.counted = max(state.counted, records[-1].offset)

    def _validate(
        self, partition: int, records: Sequence[Any], part: Part
    ) -> tuple[list[_ModelBatch], list[Error]]:
        """Predictions of a part by model, and all errors; what a shard contains already is not accepted."""
        batches = []
        errors = list(part.errors)
        places, predictions = part.places, part.predictions
        for name, rows in part.rows_by_model().items():
            model = self.models.get(name)
            if model is None:
                error = BadMessage("unknown_model", "the configuration has no model of this name")
                errors += [error_of(part, row, error) for row in rows.tolist()]
                continue
            whole = len(rows) == len(predictions)
            checked, values = model.resolve(
                predictions if whole else [predictions[row] for row in rows.tolist()]
            )
            accepted = np.ones(len(rows), dtype=np.bool_)
            for at, error in checked.refused.items():
                row = int(rows[at])
                errors.append(error_of(part, row, error))
                accepted[at] = False
            applied = model.owned[partition].applied
            if records[0].offset < applied:
                accepted &= np.array([records[place].offset >= applied for place in places])[rows]
            batches.append(
                _ModelBatch(name, model, checked, values, np.flatnonzero(accepted), rows[accepted])
            )
        return batches, sorted(errors, key=lambda error: (error[0], -1 if error[1] is None else error[1]))

    @property
    def is_full(self) -> bool:
        """Whether a shard has so many predictions for unrequested labels that it should be flushed."""
        shards = [owned.shard for model in self.models.values() for owned in model.owned.values()]
        return any(shard.joins is not None and shard.joins.is_full for shard in shards)

    def labels(self) -> None:
        """None: predictions do not change the labels."""

    def advance(self, partition: int, position: int) -> None:
        """Note that all records before a position were processed, or can no longer come."""
        state = self._partitions[partition]
        state.position = max(state.position, position)

    def flush(self, partition: int, now: float) -> int:
        """Write a partition's shards to Redis; the offset up to which everything is stored.

        Models without new predictions are flushed every `IDLE_CHECKPOINT_SECONDS`: so they need not be read
        far back after a restart, and a Redis that has lost data is noticed on an idle topic too.
        """
        state = self._partitions[partition]
        flush_all = state.must_flush_all or now - state.flushed_all >= IDLE_CHECKPOINT_SECONDS
        for model in self.models.values():
            if flush_all or model.owned[partition].shard.changed:
                model.flush(partition, state.position, newest_record=state.newest_record, force=flush_all)
        if flush_all:
            state.flushed_all, state.must_flush_all = now, False
        return state.position


def _pieces(records: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Successive records, in pieces by the lengths of their values."""
    begins = accumulate([len(record.value or b"") for record in records], initial=0)
    numbers = [begin // _PIECE_BYTES for begin in begins][:-1]
    for _, members in groupby(range(len(records)), numbers.__getitem__):
        places = list(members)
        yield records[places[0] : places[-1] + 1]
