"""Labels applied to their requests: they answer, correct, skip or retract, and leave outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from service.domain.errors import FlushRefused
from service.store.claims import claimable_key
from service.store.connection import Argument, Connection, ModelStore, translate_redis_errors
from service.store.keys import ModelKeys
from service.store.records import SKIPPED, LabelFact, encode_packed
from service.store.request_registry import (
    class_digest,
    first_request_id,
    item_digest,
    locate_record,
    opinion_of,
    person_digest,
)
from service.store.requests import OpenRequest


@dataclass(frozen=True)
class LabelEvent:
    """One label, checked and ready to be applied.

    Attributes:
        digest: 16 hexadecimal digits that differ between different labels for one request.
        true_class: empty for a skip and a retraction.
        time: seconds since the epoch.
        vendor: who signed it; empty if no vendors are configured.
    """

    request_id: str
    item_id: str
    kind: str
    true_class: str
    digest: str
    time: float
    annotator: str
    vendor: str = ""


@dataclass(frozen=True)
class LabelResult:
    """Result of applying a label.

    Attributes:
        status: `applied`, `duplicate`, or the reason to reject it.
        closed: the request that was open until this label came, if it was.
    """

    status: str
    closed: OpenRequest | None


class LabelStore(ModelStore):
    """The labels of one model, which may be corrected or retracted for `closed_seconds`.

    Items may be labelled by `several` people.
    """

    def __init__(
        self,
        connection: Connection,
        keys: ModelKeys,
        *,
        closed_seconds: int,
        outcome_limit: int,
        several: bool = False,
    ) -> None:
        super().__init__(connection, keys)
        self.several = several
        self._closed_seconds = closed_seconds
        self._outcome_limit = outcome_limit

    def apply(self, partition: int, labels: Sequence[LabelEvent], *, now: float) -> list[LabelResult]:
        """Apply at least one label of a partition, each at most once.

        Their order matters only within one request.
        """
        keys = self._keys
        names = [keys.open, keys.deadlines, keys.outbox, keys.outcomes, keys.tallies]
        names += [keys.labels(partition), keys.claims, keys.barred, keys.undecided]
        arguments: list[Argument] = [self._outcome_limit, self._closed_seconds, now]
        arguments += [int(self.several), len(labels)]
        for label in labels:
            location, first = locate_record(label.request_id), first_request_id(label.request_id)
            names += [keys.request(label.request_id), keys.asked(location.bucket)]
            names += [claimable_key(keys, label.vendor), keys.labelled(first)]
            arguments += [label.request_id, location.field, item_digest(label.item_id, label.vendor)]
            # Before vendors were configured, nobody in particular was asked.
            arguments += [item_digest(label.item_id) if label.vendor else b"", label.kind]
            arguments += [class_digest(label.true_class), bytes.fromhex(label.digest)]
            unanswered = SKIPPED if label.kind == "skip" else ""
            given = LabelFact(label.true_class, label.time, label.annotator, label.vendor, unanswered)
            arguments += [encode_packed(given), first, opinion_of(label.request_id)]
            arguments.append(person_digest(label.annotator, label.vendor))
        replies = self._connection.run("apply_labels", names, arguments)
        return [_applied(reply) for reply in replies]

    def progress(self, partition: int) -> tuple[int | None, int]:
        """Offset of the first label that is not applied yet, None if none was; and batches ever applied."""
        with translate_redis_errors():
            offset, batches = self._connection.client.hmget(
                self._keys.labels(partition), "next_offset", "batches"
            )
        return None if offset is None else int(offset), int(batches or 0)

    def answers(self) -> int:
        """How many requests were answered ever."""
        with translate_redis_errors():
            tallies = self._connection.client.hgetall(self._keys.tallies)
        return sum(int(count) for event, count in tallies.items() if event.startswith(b"answered|"))

    def store_offset(self, partition: int, offset: int, *, batches: int, before: int | None = None) -> None:
        """Store the offset of the first label that is not applied yet; `before` is the one that was stored.

        Raises:
            FlushRefused: Redis knows another number of applied batches, or a lower offset: it lost some, or
                another consumer applies labels of this partition too.
        """
        known: list[Argument] = [offset, batches, "" if before is None else before]
        reply = self._connection.run("store_labels_offset", [self._keys.labels(partition)], known)
        if reply != b"ok":
            raise FlushRefused(f"labels of partition {partition} may be lost; read on from the stored offset")


def _applied(reply: bytes) -> LabelResult:
    status, _, closed = reply.partition(b" ")
    return LabelResult(status.decode(), msgspec.json.decode(closed, type=OpenRequest) if closed else None)
