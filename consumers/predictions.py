"""Predictions: records -> cell sums and pool candidates -> shards in Redis.

A batch is first decoded and resolved, which may fail and changes nothing; then bad messages are
dead-lettered, which may fail; only then is it added to the shards, which cannot. So a batch can be
tried again as a whole whenever Redis or Kafka comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from consumers.dead_letters import DeadLetterSink, FloodGate, Rejected
from consumers.formats.native import (
    WirePrediction,
    check_event,
    decode_predictions,
    element_texts,
    event_time,
)
from consumers.ingest import ModelIngest, Rows
from service.contract import PREDICTION_TYPE
from service.errors import BadMessage
from service.metrics import PipelineMetrics

FUTURE_SECONDS = 300.0
"""A prediction may claim a time so far ahead of its record's; beyond, the record's time counts."""


class PredictionStep:
    """Takes batches of one partition; owns the shards of all models of the partitions assigned to it."""

    topic_kind = "predictions"

    def __init__(
        self,
        models: Mapping[str, ModelIngest],
        *,
        dead_letters: DeadLetterSink,
        flood_gate: FloodGate,
        metrics: PipelineMetrics,
        message_bytes: int,
        idle_checkpoint_seconds: float = 10.0,
    ) -> None:
        self._models = models
        self._dead_letters = dead_letters
        self._flood_gate = flood_gate
        self._metrics = metrics
        self._message_bytes = message_bytes
        self._idle_checkpoint_seconds = idle_checkpoint_seconds
        self._positions: dict[int, int] = {}
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
        return start

    def revoke(self, partition: int) -> None:
        """Forget a partition; what was not flushed is read again by its next owner."""
        self._positions.pop(partition, None)
        self._admitted.pop(partition, None)
        self._checkpointed.pop(partition, None)
        self._checkpoint_all.discard(partition)
        for model in self._models.values():
            model.owned.pop(partition, None)

    def process(self, partition: int, records: Sequence[Any], now: float) -> None:
        """Add one batch of records, or nothing of it.

        Raises:
            Unavailable: Redis or Kafka cannot answer now; give the same batch again later.
            DeadLetterFlood: too many messages are bad; nothing of the batch was discarded.
        """
        rows, rejected, count = self._resolve(partition, records, now)
        if self._admitted.get(partition) != records[-1].offset:
            # Not again when the batch is given again: waiting must not turn a few bad messages into a flood.
            self._flood_gate.admit(messages=count, bad=len(rejected))
            self._admitted[partition] = records[-1].offset
        additions = []
        for name, model_rows in rows.items():
            model = self._models[name]
            owned = model.owned[partition]
            additions.append((model, owned, model.candidates(model_rows, owned.shard)))
        self._dead_letters.send(rejected)

        position = records[-1].offset + 1
        for model, owned, candidates in additions:
            owned.shard.add(candidates, model.cell_count)
        for model in self._models.values():
            owned = model.owned[partition]
            owned.applied = max(owned.applied, position)
        self._positions[partition] = position
        for name, model_rows in rows.items():
            self._metrics.consumed(name, len(model_rows.offsets))
        if rejected:
            self._metrics.dead_lettered(self.topic_kind, [r.error.reason for r in rejected])
            self._checkpoint_all.add(partition)

    def _resolve(
        self, partition: int, records: Sequence[Any], now: float
    ) -> tuple[dict[str, Rows], list[Rejected], int]:
        rows: dict[str, Rows] = {}
        rejected: list[Rejected] = []
        count = 0
        for record in records:
            errors: list[tuple[int | None, BadMessage]] = []
            for index, decoded in self._decode(record):
                count += 1
                error = (
                    decoded
                    if isinstance(decoded, BadMessage)
                    else self._take(rows, partition, record, decoded, now)
                )
                if error is not None:
                    errors.append((index, error))
            rejected += _rejected(partition, record, errors)
        return rows, rejected, count

    def _decode(self, record: Any) -> list[tuple[int | None, WirePrediction | BadMessage]]:
        value = record.value or b""
        if len(value) > self._message_bytes:
            too_large = f"the value is over {self._message_bytes} bytes"
            return [(None, BadMessage("message_too_large", too_large))]
        try:
            check_event(record.headers, PREDICTION_TYPE)
        except BadMessage as error:
            return [(None, error)]
        return decode_predictions(value)

    def _take(
        self,
        rows: dict[str, Rows],
        partition: int,
        record: Any,
        prediction: WirePrediction,
        now: float,
    ) -> BadMessage | None:
        """Add one prediction to its model's rows, or tell why it is refused."""
        model = self._models.get(prediction.model)
        if model is None:
            return BadMessage("unknown_model", "the configuration has no model of this name")
        try:
            class_index, score = model.check(prediction)
        except BadMessage as error:
            return error
        if record.offset < model.owned[partition].applied:
            return None
        taken = rows.setdefault(prediction.model, Rows())
        taken.offsets.append(record.offset)
        taken.predictions.append(prediction)
        taken.classes.append(class_index)
        taken.scores.append(score)
        taken.times.append(_observed_at(prediction, record, now))
        return None

    def flush(self, partition: int, now: float) -> int:
        """Write a partition's shards back; the offset up to which everything is stored.

        Models without new predictions are checkpointed now and then, so that they need not read far back.

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
                model.flush(partition, position)
        if idle_too:
            self._checkpointed[partition] = now
            self._checkpoint_all.discard(partition)
        return position


def _rejected(
    partition: int, record: Any, errors: Sequence[tuple[int | None, BadMessage]]
) -> Iterator[Rejected]:
    value = record.value or b""
    # Once per record: an array may hold very many bad elements.
    texts = element_texts(value) if any(index is not None for index, _ in errors) else []
    for index, error in errors:
        text = value if index is None else bytes(texts[index])
        yield Rejected(partition, record.offset, index, record.key, text, error)


def _observed_at(prediction: WirePrediction, record: Any, now: float) -> float:
    recorded: float = min(record.timestamp / 1000, now + FUTURE_SECONDS)
    if prediction.time is not None:
        claimed: float | None = prediction.time.timestamp()
    else:
        claimed = event_time(record.headers) if record.headers else None
    if claimed is None or claimed > recorded + FUTURE_SECONDS:
        return recorded
    return claimed
