"""Labels: label -> request -> outcome, idempotently.

Redis itself decides what a label does to its request, and recognises a label that it has seen;
so a batch can be applied again at any time. The offset is stored after bad labels are kept, and only if
Redis counts as many batches as this process has applied: one that lost its last second is read up again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from consumers.dead_letters import BadMessageLimit, DeadLetterSink, Rejected
from consumers.formats.native import WireLabel, check_event, decode_label, event_time
from service.domain.errors import BadMessage, FlushRefused
from service.domain.label_signatures import verify
from service.domain.messages import LABEL_TYPE
from service.store.request_registry import request_id_of
from service.store.requests import LabelEvent, RequestStore
from service.telemetry.instruments import PipelineMetrics

_EXPLANATIONS = {
    "unknown_request": "no request of this id is known for this model",
    "expired_request": "the request expired before this label came",
    "item_mismatch": "the request is for another item",
    "wrong_vendor": "the request was last asked of another vendor, or of none",
    "conflicting_label": "the request was answered differently; send a correction to replace an answer",
    "nothing_to_retract": "there is no answer to take back",
    "too_many_revisions": "the request was revised too often",
}

_REPEATED = frozenset({"conflicting_label", "nothing_to_retract", "too_many_revisions"})
"""What one vendor can be refused again and again about one request that it has answered."""


class LabelStep:
    """Takes batches of labels of one partition.

    Args:
        stores: label requests by model.
        classes: label sets by model.
        label_keys: by vendor; where there are any, a label must be signed with one of them.
        vendors: those that may be asked, by model.
        dead_letters: takes what is refused.
        bad_message_limit: limit on the share of bad labels.
        metrics: of the pipeline.
        message_bytes: longest value that is taken.
        idle_checkpoint_seconds: progress is stored that often though there is none.
    """

    topic_kind = "labels"

    def __init__(
        self,
        stores: Mapping[str, RequestStore],
        classes: Mapping[str, frozenset[str]],
        *,
        label_keys: Mapping[str, Sequence[bytes]] | None = None,
        vendors: Mapping[str, Collection[str]] | None = None,
        dead_letters: DeadLetterSink,
        bad_message_limit: BadMessageLimit,
        metrics: PipelineMetrics,
        message_bytes: int,
        idle_checkpoint_seconds: float = 10.0,
    ) -> None:
        self._stores = stores
        self._classes = classes
        self._label_keys = label_keys or {}
        self._vendors = vendors or {}
        self._dead_letters = dead_letters
        self._bad_message_limit = bad_message_limit
        self._metrics = metrics
        self._message_bytes = message_bytes
        self._positions: dict[int, int] = {}
        self._idle_checkpoint_seconds = idle_checkpoint_seconds
        self._flushed: dict[int, tuple[int, float]] = {}
        self._batches: dict[int, dict[str, int | None]] = {}
        """Applied ever, as Redis counts them; None where that is not known."""
        self._admitted: dict[int, int] = {}

    def assign(self, partition: int, default_offset: int) -> int:
        """The offset to read from.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        progress = {name: store.labels_progress(partition) for name, store in self._stores.items()}
        start = min((offset for offset, _ in progress.values() if offset is not None), default=default_offset)
        self._batches[partition] = {name: batches for name, (_, batches) in progress.items()}
        self._positions[partition] = start
        return start

    def revoke(self, partition: int) -> None:
        """Forget a partition."""
        self._positions.pop(partition, None)
        self._flushed.pop(partition, None)
        self._batches.pop(partition, None)
        self._admitted.pop(partition, None)

    def process(self, partition: int, records: Sequence[Any], now: float) -> None:
        """Apply one batch of labels.

        Raises:
            Unavailable: Redis or Kafka cannot answer now; give the same batch again later.
            TooManyBadMessages: nothing of the batch was discarded. If only Redis shows that labels are bad
                (they answer no request), good ones among them may have been applied; they are recognised
                when the batch is read again.
        """
        events: dict[str, list[tuple[Any, LabelEvent]]] = {}
        rejected: list[Rejected] = []
        # What was admitted is not counted again when it is given again, alone or with more behind it:
        # waiting must not count a bad message twice.
        admitted = self._admitted.get(partition, -1)
        messages = sum(record.offset > admitted for record in records)
        for record in records:
            try:
                label, vendor = self._decode(record)
            except BadMessage as error:
                rejected.append(_rejected(partition, record, error))
            else:
                events.setdefault(label.model, []).append((record, _event(label, vendor, record, now)))
        # Before anything is applied, as far as that can be told then.
        self._bad_message_limit.check(messages=messages, bad=self._bad_beyond(admitted, rejected))

        counts = {"duplicate": 0, "applied": 0}
        for model, pairs in events.items():
            batches = self._batches[partition]
            # A batch whose answer is lost is counted by Redis, and again when it is given again. Such a count
            # could match one that was begun anew, by a Redis that has lost what was applied before.
            known, batches[model] = batches[model], None
            applied = self._stores[model].apply(partition, [event for _, event in pairs], now=now)
            batches[model] = None if known is None else known + 1
            for (record, event), done in zip(pairs, applied, strict=True):
                status = _status(model, event, done.status)
                if status in _EXPLANATIONS:
                    reason = BadMessage(status, _EXPLANATIONS[status])
                    rejected.append(_rejected(partition, record, reason))
                    continue
                counts[status] += 1
                if done.closed is not None:
                    self._metrics.label_delayed(model, max(0.0, event.time - done.closed.requested_at))
        self._bad_message_limit.admit(messages=messages, bad=self._bad_beyond(admitted, rejected))
        self._admitted[partition] = records[-1].offset
        self._dead_letters.send(rejected)
        self._positions[partition] = records[-1].offset + 1
        self._metrics.labels_taken(applied=counts["applied"], duplicate=counts["duplicate"])
        if rejected:
            self._metrics.dead_lettered(self.topic_kind, [r.error.reason for r in rejected])

    def _bad_beyond(self, offset: int, rejected: Sequence[Rejected]) -> int:
        """Bad labels behind an offset, as the limit counts them.

        What a vendor repeats about its own request tells nothing of others, and must not stop theirs.
        """
        passed_over = _REPEATED if self._label_keys else frozenset()
        return sum(letter.offset > offset and letter.error.reason not in passed_over for letter in rejected)

    def _decode(self, record: Any) -> tuple[WireLabel, str]:
        """The label, and who signed it; nobody where vendors are not configured."""
        value = record.value or b""
        if len(value) > self._message_bytes:
            raise BadMessage("message_too_large", f"the value is over {self._message_bytes} bytes")
        vendor = verify(record.headers, value, self._label_keys) if self._label_keys else ""
        check_event(record.headers, LABEL_TYPE)
        label = decode_label(value)
        if label.model not in self._stores:
            raise BadMessage("unknown_model", "the configuration has no model of this name")
        if label.true_class is not None and label.true_class not in self._classes[label.model]:
            raise BadMessage("unknown_class", "true_class is not in the model's label set")
        if vendor:
            self._check_vendor(vendor, label)
        return label, vendor

    def _check_vendor(self, vendor: str, label: WireLabel) -> None:
        if vendor not in self._vendors[label.model]:
            raise BadMessage("wrong_vendor", "this vendor is not asked about the model")
        # By its time a label is recognised, and its record's is not signed: sent again, it would count again.
        if label.time is None:
            raise BadMessage("missing_field", "a signed label needs a `time` of its own")
        # What Redis keeps of item and vendor is short: no label may bring along an item made to fit it.
        if label.request_id != request_id_of(label.model, label.item_id):
            raise BadMessage("item_mismatch", _EXPLANATIONS["item_mismatch"])

    def advance(self, partition: int, position: int) -> None:
        """What stands before a position was taken, or will never be there: a flush may store that."""
        self._positions[partition] = max(self._positions[partition], position)

    def flush(self, partition: int, now: float) -> int:
        """Remember how far labels are applied; that offset.

        Now and then though there are no more: so a Redis that has lost some is noticed then too.

        Raises:
            FlushRefused: assign the partition again and read on from the offset that gives.
            Unavailable: Redis cannot answer now; flush again later.
        """
        position = self._positions[partition]
        flushed, flushed_at = self._flushed.get(partition, (None, now))
        if flushed != position or now - flushed_at >= self._idle_checkpoint_seconds:
            for name, store in self._stores.items():
                batches = self._batches[partition][name]
                if batches is None:
                    raise FlushRefused(
                        f"a reply on labels of partition {partition} was lost; read on from the stored offset"
                    )
                store.store_labels_offset(partition, position, batches=batches)
            self._flushed[partition] = position, now
        return position


def _rejected(partition: int, record: Any, error: BadMessage) -> Rejected:
    return Rejected(
        partition,
        record.offset,
        None,
        record.key,
        record.value or b"",
        error,
        timestamp_ms=record.timestamp,
        headers=record.headers,
    )


def _status(model: str, event: LabelEvent, status: str) -> str:
    """What became of a label; where it has its request's item, what does not fit is the vendor."""
    if status == "item_mismatch" and event.request_id == request_id_of(model, event.item_id):
        return "wrong_vendor"
    return status


def _event(label: WireLabel, vendor: str, record: Any, now: float) -> LabelEvent:
    claimed = label.time.timestamp() if label.time else event_time(record.headers or ())
    identity = msgspec.json.encode(
        [label.kind, label.true_class, label.annotator, claimed if claimed is not None else record.timestamp]
    )
    return LabelEvent(
        request_id=label.request_id,
        item_id=label.item_id,
        kind=label.kind,
        true_class=label.true_class or "",
        digest=hashlib.blake2b(identity, digest_size=8).hexdigest(),
        time=_given_at(claimed, record, now),
        annotator=label.annotator or "",
        vendor=vendor,
    )


def _given_at(claimed: float | None, record: Any, now: float) -> float:
    """When a label was given, in seconds from the epoch: not before that, which few show, nor after now.

    Without a time of its own it is as old as its record; a negative timestamp says that the record has none.
    """
    if claimed is None:
        claimed = record.timestamp / 1000 if record.timestamp >= 0 else now
    return min(max(claimed, 0.0), now)
