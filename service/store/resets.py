"""Whether Redis still holds the data that it held before: their id, and their loss.

The first consumer gives the data in a Redis a random id, and every consumer marks its partitions there. A
Redis without the mark of a partition that was read before has lost what it held.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from service.store.connection import Argument, Connection, translate_redis_errors
from service.store.keys import identity_key, reset_key

ResetKind = Literal["emptied", "rolled_back"]

_RECORDS = "records:"


@dataclass(frozen=True)
class RedisReset:
    """A loss of data in Redis.

    Attributes:
        since: when it was detected, seconds since the epoch.
        kind: `emptied`, if what consumers had stored was gone; `rolled_back`, if it was an older state.
        labels_before: answers that Redis counted before; None if unknown.
        labels_now: when it was detected; None if unknown.
        records: of each topic, processed before.
    """

    since: float
    kind: ResetKind
    labels_before: int | None
    labels_now: int | None
    records: dict[str, int] = field(default_factory=dict)


class ResetStore:
    """The id of the data in Redis, and their loss. Methods raise `Unavailable` if Redis cannot answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._identity = identity_key(connection.prefix)
        self._reset = reset_key(connection.prefix)

    def identify(self, now: float, topic: str, partitions: Iterable[int]) -> tuple[str, list[int]]:
        """The id of the data in this Redis, a fresh one if it has none; and the partitions without a mark."""
        asked = list(partitions)
        with self._connection.pipeline(transaction=True) as pipeline:
            pipeline.hsetnx(self._identity, "id", _fresh_id())
            pipeline.hsetnx(self._identity, "since", now)
            pipeline.hmget(self._identity, "id", *(_mark(topic, partition) for partition in asked))
            *_, (identity, *marks) = pipeline.execute()
        return identity.decode(), [one for one, mark in zip(asked, marks, strict=True) if mark is None]

    def mark(self, topic: str, partitions: Sequence[int]) -> None:
        """Mark partitions: from now on Redis holds, or has lost for good, what is read of them."""
        if partitions:
            marks = {_mark(topic, partition): 1 for partition in partitions}
            with translate_redis_errors():
                self._connection.client.hset(self._identity, mapping=marks)

    def record(
        self,
        lost: str,
        kind: ResetKind,
        *,
        now: float,
        labels_before: int | None,
        labels_now: int | None,
        topic: str,
        offsets: Mapping[int, int],
    ) -> tuple[bool, str]:
        """Record that the data with the id `lost` are gone, of which `offsets` were committed by partition.

        Returns:
            Whether this is the first report of that loss, and the id of what is in Redis now.
        """
        arguments: list[Argument] = [lost, _fresh_id(), now, kind, _known(labels_before), _known(labels_now)]
        for partition, offset in offsets.items():
            arguments += [f"{topic}/{partition}", offset]
        reply = self._connection.run("note_reset", [self._identity, self._reset], arguments)
        return reply[0] == b"recorded", reply[1].decode()

    def reset(self) -> RedisReset | None:
        """The loss that nobody has acknowledged; None if there is none."""
        with translate_redis_errors():
            found = self._connection.client.hgetall(self._reset)
        fields = {name.decode(): value.decode() for name, value in found.items()}
        if not fields:
            return None
        return RedisReset(
            since=float(fields["since"]),
            kind=cast("ResetKind", fields["kind"]),
            labels_before=_number(fields.get("labels_before")),
            labels_now=_number(fields.get("labels_now")),
            records=_records(fields),
        )

    def acknowledge(self) -> RedisReset | None:
        """Remove the loss, and return it; the same loss is not reported again."""
        found = self.reset()
        with translate_redis_errors():
            self._connection.client.delete(self._reset)
        return found


def _mark(topic: str, partition: int) -> str:
    return f"read:{topic}/{partition}"


def _fresh_id() -> str:
    return secrets.token_hex(8)


def _known(count: int | None) -> str | int:
    return "" if count is None else count


def _records(fields: Mapping[str, str]) -> dict[str, int]:
    """Records by topic, of all its partitions."""
    found: dict[str, int] = {}
    for name, value in sorted(fields.items()):
        if name.startswith(_RECORDS):
            topic = name.removeprefix(_RECORDS).rpartition("/")[0]
            found[topic] = found.get(topic, 0) + int(value)
    return found


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
