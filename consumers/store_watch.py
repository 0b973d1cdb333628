"""Whether Redis still holds what this consumer group had stored there; a loss is recorded.

Kafka keeps the committed offsets when Redis loses everything, even if every process restarts. Two events are
losses:

- Kafka has a committed offset of a partition, and Redis has no mark of it: Redis was emptied or replaced;
- all labels are read, and Redis counts fewer answers than before: it returned to an older state.

To say what was lost, every committed offset carries the id of the data in Redis, and how many answers it
counted. Some brokers do not keep that; the loss is recognised without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from kafka import OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from service.kafka.topic_metadata import TopicLog
from service.store.resets import ResetKind, ResetStore
from service.store.topics import TopicProgress

log = logging.getLogger(__name__)

_VERSION = "credence1"
_SETTLED_SECONDS = 30.0
"""How long there are fewer answers, though all labels are read, before that is a loss."""


@dataclass(frozen=True)
class Stamp:
    """What a committed offset says of Redis.

    Attributes:
        offset: committed; all records before it were processed.
        store: id of the data in Redis; empty if the commit does not say.
        models: fingerprint of the models whose answers are counted.
        labels: answers of all models; None if unknown.
    """

    offset: int
    store: str
    models: str
    labels: int | None

    @property
    def metadata(self) -> str:
        """As it is committed."""
        return " ".join((_VERSION, self.store, self.models, "-" if self.labels is None else str(self.labels)))

    @classmethod
    def parse(cls, offset: int, metadata: str) -> Stamp:
        """The stamp in a commit."""
        match metadata.split(" "):
            case [version, store, models, labels] if version == _VERSION:
                return cls(offset, store, models, int(labels) if labels.isdecimal() else None)
        return cls(offset, "", "", None)


@dataclass(eq=False, repr=False)
class StoreWatch:
    """Stamps the offsets of one topic, and compares them with Redis.

    Args:
        topic_log: of the topic.
        consumer: commits the offsets.
        resets: the id of the data in Redis, marks of partitions, and losses.
        progress: the stored offsets.
        models: fingerprint of the configured models.
        count_labels: how many answers Redis counts; None if unknown.
        clock: seconds since the epoch.
    """

    topic_log: TopicLog
    consumer: Any
    _: KW_ONLY
    resets: ResetStore
    progress: TopicProgress
    models: str
    count_labels: Callable[[], int | None]
    clock: Callable[[], float]
    _store: str | None = field(init=False, default=None)
    _stamps: dict[TopicPartition, Stamp] = field(init=False, default_factory=dict)
    _uncommitted: dict[TopicPartition, int] = field(init=False, default_factory=dict)
    _fewer_since: float | None = field(init=False, default=None)

    def check(self, partitions: Collection[TopicPartition]) -> None:
        """Record a loss if Redis does not hold what was stored of these partitions.

        To be called before anything is stored of them.

        Raises:
            Unavailable: Redis or Kafka does not answer.
        """
        unknown = [tp for tp in partitions if tp not in self._stamps]
        committed = self.topic_log.committed(unknown) if unknown else {}
        self._stamps |= {tp: Stamp.parse(*one) for tp, one in committed.items()}
        numbers = {tp.partition: tp for tp in partitions}
        topic = self.topic_log.topic
        store, unmarked = self.resets.identify(self.clock(), topic, numbers)
        self._store = store
        lost: dict[str, dict[int, Stamp]] = {}
        for number in unmarked:
            stamp = self._stamps.get(numbers[number])
            if stamp is not None and stamp.offset > 0 and not self.progress.is_stored(number):
                lost.setdefault(stamp.store or f"before {store}", {})[number] = stamp
        for old, of_old in lost.items():
            self._record(old, "emptied", of_old)
        self.resets.mark(topic, unmarked)

    def check_identity(self, store: str | None, owned: Collection[TopicPartition]) -> None:
        """Check again if the data in Redis have another id than before, or none.

        Raises:
            Unavailable: Redis or Kafka does not answer.
        """
        if owned and self._store is not None and store != self._store:
            self.check(owned)

    def check_labels(self, owned: Collection[TopicPartition], *, is_read: Callable[[float], bool]) -> None:
        """Record a loss if Redis counts fewer answers than before, though all labels are read.

        Args:
            owned: partitions of this consumer.
            is_read: whether all consumers have reported, since a time, that they have read everything.

        Raises:
            Unavailable: Redis does not answer.
        """
        stamps = {tp.partition: self._stamps[tp] for tp in owned if tp in self._stamps}
        known = {number: stamp for number, stamp in stamps.items() if stamp.store == self._store}
        before = self._most_labels(known.values())
        if not before:
            return
        now = self.clock()
        if (self.count_labels() or 0) >= before:
            self._fewer_since = None
            return
        if self._fewer_since is None or now < self._fewer_since:
            self._fewer_since = now
        if now - self._fewer_since >= _SETTLED_SECONDS and is_read(self._fewer_since):
            self._fewer_since = None
            self._record(next(iter(known.values())).store, "rolled_back", known)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit stored offsets to Kafka, with stamps; a failure of Kafka does no harm.

        Raises:
            Unavailable: Redis does not answer; the offsets are committed with the next ones.
        """
        self._uncommitted |= offsets
        if not self._uncommitted or self._store is None:
            return
        labels = self.count_labels()
        stamps = {tp: Stamp(at, self._store, self.models, labels) for tp, at in self._uncommitted.items()}
        self._stamps |= stamps
        self._uncommitted.clear()
        commits = {tp: OffsetAndMetadata(stamp.offset, stamp.metadata, -1) for tp, stamp in stamps.items()}
        try:
            self.consumer.commit_async(commits, callback=_log_commit_failure)
        except KafkaError as error:
            _log_commit_failure(commits, error)

    def forget(self, tp: TopicPartition) -> None:
        """Forget a partition that was revoked: its next owner commits other offsets."""
        self._stamps.pop(tp, None)
        self._uncommitted.pop(tp, None)

    def _most_labels(self, stamps: Iterable[Stamp]) -> int | None:
        """The most answers of any stamp that counts those of the same models as this process."""
        counts = (stamp.labels for stamp in stamps if stamp.models == self.models)
        return max((count for count in counts if count is not None), default=None)

    def _record(self, lost: str, kind: ResetKind, stamps: Mapping[int, Stamp]) -> None:
        labels_before, labels_now = self._most_labels(stamps.values()), self.count_labels()
        offsets = {number: stamp.offset for number, stamp in stamps.items()}
        is_first, self._store = self.resets.record(
            lost,
            kind,
            now=self.clock(),
            labels_before=labels_before,
            labels_now=labels_now,
            topic=self.topic_log.topic,
            offsets=offsets,
        )
        if is_first:
            log.error(
                "Redis has lost data that Credence had stored",
                extra={
                    "kind": kind,
                    "topic": self.topic_log.topic,
                    "records_before": sum(offsets.values()),
                    "labels_before": labels_before,
                    "labels_now": labels_now,
                },
            )


def _log_commit_failure(offsets: Any, result: Any) -> None:
    if isinstance(result, Exception):
        log.debug("offset commit failed", extra={"cause": type(result).__name__, "partitions": len(offsets)})
