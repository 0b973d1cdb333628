"""Labels: label -> request -> outcome, idempotently; and those that nobody requested.

Redis decides what a label does to its request, and recognises duplicates; so a batch can be applied again at
any time. The offset is stored after bad labels are dead-lettered, and only if Redis counts as many batches as
this process has applied. If it counts fewer, it has lost data, and the labels are read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import msgspec

from consumers.assignment import IDLE_CHECKPOINT_SECONDS
from consumers.dead_letters import BadMessageLimit, DeadLetterSink, Rejected
from consumers.formats.event_headers import event_time
from consumers.formats.native import WireLabel
from consumers.label_checks import ITEM_MISMATCH, LabelChecks
from consumers.refusals import Refusals
from consumers.unrequested import ReceivedLabel, UnrequestedJoins
from service.domain.errors import BadMessage, FlushRefused, TooManyBadMessages
from service.store.labels import LabelEvent, LabelStore
from service.store.request_registry import is_request_for
from service.telemetry.instruments import PipelineMetrics

_EXPLANATIONS = {
    "unknown_request": "this model has no request of this id",
    "expired_request": "the request expired before this label came",
    "item_mismatch": ITEM_MISMATCH,
    "wrong_vendor": "the request was last asked of another vendor, or of none",
    "conflicting_label": "the request was answered differently; send a correction to replace an answer",
    "same_annotator": "this annotator has labelled the item before; the request is for somebody else",
    "nothing_to_retract": "there is no answer to retract",
    "too_many_revisions": "the request was revised too often",
}

_REPEATED = frozenset({"conflicting_label", "nothing_to_retract", "same_annotator", "too_many_revisions"})
"""Reasons that a vendor can cause any number of times with one request that it has answered."""

_Events = dict[str, list[tuple[Any, LabelEvent]]]
_Unrequested = dict[str, list[ReceivedLabel]]
"""Labels of a batch, by model."""


@dataclass
class _Partition:
    """State of an assigned partition.

    Attributes:
        position: offset up to which labels are applied.
        batches: batches ever applied, by model, as Redis counts them; None after a reply was lost.
        stored: the offset that Redis has stored, by model; None before the first one.
        counted: offset of the last record that the bad message limit has counted.
        flushed_position: position at the last flush; None before the first one.
        flushed_at: when that was, in monotonic seconds.
    """

    position: int
    batches: dict[str, int | None]
    stored: dict[str, int | None]
    counted: int = -1
    flushed_position: int | None = None
    flushed_at: float = 0.0

    @contextmanager
    def batch_of(self, model: str) -> Iterator[None]:
        """Count a batch that Redis applies within the block.

        If the reply is lost, Redis counts the batch, and counts it again on the retry. Then the count may
        match that of a Redis that has lost data and started from zero.
        """
        count, self.batches[model] = self.batches[model], None
        yield
        self.batches[model] = None if count is None else count + 1


@dataclass(eq=False, repr=False)
class LabelStep:
    """Applies batches of labels to their requests; stores are by model.

    Attributes:
        unrequested: joins labels without a request, of the models that take them.
    """

    topic_kind = "labels"
    is_full = False

    stores: Mapping[str, LabelStore]
    checks: LabelChecks
    _: KW_ONLY
    dead_letters: DeadLetterSink
    bad_message_limit: BadMessageLimit
    metrics: PipelineMetrics
    unrequested: Mapping[str, UnrequestedJoins] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=Refusals)
    _partitions: dict[int, _Partition] = field(init=False, default_factory=dict)

    def assign(self, partition: int, default_offset: int) -> int:
        """The offset to read from."""
        progress = {name: store.progress(partition) for name, store in self.stores.items()}
        start = min((offset for offset, _ in progress.values() if offset is not None), default=default_offset)
        batches: dict[str, int | None] = {name: count for name, (_, count) in progress.items()}
        stored = {name: offset for name, (offset, _) in progress.items()}
        self._partitions[partition] = _Partition(start, batches, stored)
        return start

    def revoke(self, partition: int) -> None:
        """Drop a partition."""
        self._partitions.pop(partition, None)

    def process(self, partition: int, records: Sequence[Any], now: float) -> None:
        """Apply one batch of labels.

        Raises:
            Unavailable: Redis or Kafka does not answer; retry with the same batch.
            TooManyBadMessages: nothing of the batch was discarded. If only Redis shows that labels are bad
                (they answer no request), good ones among them may have been applied; they are recognised as
                duplicates when the batch is read again.
        """
        rejected: list[Rejected] = []
        try:
            self._apply(partition, records, rejected, now)
        except TooManyBadMessages:
            self.refusals.note(rejected, messages=len(records), now=now)
            raise
        self.refusals.note(rejected, messages=len(records), now=now)
        if rejected:
            self.metrics.dead_lettered(self.topic_kind, [r.error.reason for r in rejected])

    def _apply(self, partition: int, records: Sequence[Any], rejected: list[Rejected], now: float) -> None:
        """Apply the good labels of a batch, dead-letter the bad ones, and add these to `rejected`."""
        state = self._partitions[partition]
        # A batch that is retried was counted before, but may have got further records since.
        messages = sum(record.offset > state.counted for record in records)
        events, unrequested = self._decode(records, rejected, now)
        # Before anything is applied; labels that only Redis can refuse are counted below.
        self.bad_message_limit.check(messages=messages, bad=self._count_bad(state, rejected))

        counts = {"duplicate": 0, "applied": 0}
        for model, pairs in events.items():
            with state.batch_of(model):
                applied = self.stores[model].apply(partition, [event for _, event in pairs], now=now)
            for (record, event), done in zip(pairs, applied, strict=True):
                status = _status(model, event, done.status)
                if status in _EXPLANATIONS:
                    bad = BadMessage(status, _EXPLANATIONS[status])
                    rejected.append(Rejected(record, bad))
                    continue
                counts[status] += 1
                if done.closed is not None:
                    delay = max(0.0, event.time - done.closed.requested_at)
                    self.metrics.label_delay.labels(model).observe(delay)
        self._join(state, partition, unrequested, now)
        self.bad_message_limit.admit(messages=messages, bad=self._count_bad(state, rejected))
        state.counted = records[-1].offset
        self.dead_letters.send(rejected)
        state.position = records[-1].offset + 1
        for result in ("applied", "duplicate"):
            self.metrics.labels_consumed.labels(result).inc(counts[result])

    def _decode(
        self, records: Sequence[Any], rejected: list[Rejected], now: float
    ) -> tuple[_Events, _Unrequested]:
        """Labels of requests and labels without one, by model."""
        events: _Events = {}
        unrequested: _Unrequested = {}
        for record in records:
            try:
                label, vendor = self.checks.decode(record)
            except BadMessage as error:
                rejected.append(Rejected(record, error))
                continue
            if label.request_id is None:
                claimed = _claimed_time(label, record)
                received = ReceivedLabel.of(label, vendor, record, claimed=claimed, now=now)
                unrequested.setdefault(label.model, []).append(received)
            else:
                event = _event(label, label.request_id, vendor, record, now)
                events.setdefault(label.model, []).append((record, event))
        return events, unrequested

    def _join(self, state: _Partition, partition: int, unrequested: _Unrequested, now: float) -> None:
        """Join labels without a request, and count what became of them."""
        for model, received in unrequested.items():
            with state.batch_of(model):
                results = self.unrequested[model].apply(partition, received, now=now)
            for result, number in results.items():
                self.metrics.unrequested_labels.labels(model, result).inc(number)

    def _count_bad(self, state: _Partition, rejected: Sequence[Rejected]) -> int:
        """Number of bad labels that the limit has not counted yet.

        A vendor that repeats labels of its own requests must not pause the labels of other vendors.
        """
        ignored = _REPEATED if self.checks.label_keys else frozenset()
        return sum(one.record.offset > state.counted and one.error.reason not in ignored for one in rejected)

    def labels(self) -> int:
        """How many answers Redis counts, of all models; they never become fewer unless it loses data."""
        return sum(store.answers() for store in self.stores.values())

    def advance(self, partition: int, position: int) -> None:
        """Note that all records before a position were processed, or can no longer come."""
        state = self._partitions[partition]
        state.position = max(state.position, position)

    def flush(self, partition: int, now: float) -> int:
        """Store the offset up to which labels are applied, and return it.

        On an idle topic too, every `IDLE_CHECKPOINT_SECONDS`, to notice a Redis that has lost data.
        """
        state = self._partitions[partition]
        is_due = now - state.flushed_at >= IDLE_CHECKPOINT_SECONDS
        if state.flushed_position != state.position or is_due:
            for name, store in self.stores.items():
                batches = state.batches[name]
                if batches is None:
                    raise FlushRefused(
                        f"a reply on labels of partition {partition} was lost; read on from the stored offset"
                    )
                before = state.stored[name]
                store.store_offset(partition, state.position, batches=batches, before=before)
                state.stored[name] = state.position
            state.flushed_position, state.flushed_at = state.position, now
        return state.position


def _status(model: str, event: LabelEvent, status: str) -> str:
    """Status of a label; a mismatch in spite of the right item is one of the vendor."""
    if status == "item_mismatch" and is_request_for(event.request_id, model, event.item_id):
        return "wrong_vendor"
    return status


def _claimed_time(label: WireLabel, record: Any) -> float | None:
    return label.time.timestamp() if label.time else event_time(record.headers or ())


def _event(label: WireLabel, request_id: str, vendor: str, record: Any, now: float) -> LabelEvent:
    claimed = _claimed_time(label, record)
    identity = msgspec.json.encode(
        [label.kind, label.true_class, label.annotator, claimed if claimed is not None else record.timestamp]
    )
    return LabelEvent(
        request_id=request_id,
        item_id=label.item_id,
        kind=label.kind,
        true_class=label.true_class or "",
        digest=hashlib.blake2b(identity, digest_size=8).hexdigest(),
        time=_given_at(claimed, record, now),
        annotator=label.annotator or "",
        vendor=vendor,
    )


def _given_at(claimed: float | None, record: Any, now: float) -> float:
    """When a label was given, in seconds since the epoch, bounded by 0 and now.

    Without a time of its own it is that of its record; a record without a time has a negative timestamp.
    """
    if claimed is None:
        claimed = record.timestamp / 1000 if record.timestamp >= 0 else now
    return min(max(claimed, 0.0), now)
