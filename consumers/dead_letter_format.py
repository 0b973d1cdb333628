"""The format of a dead letter: which headers say what, and how they are read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from consumers.dead_letters import Rejected
from service.domain.label_signatures import SIGNATURE_HEADER, VENDOR_HEADER

OWN_PREFIX = "credence-"
"""Headers of these names are Credence's own; a source record cannot bring them along."""

REASON = "credence-reason"
DETAIL = "credence-detail"
SOURCE_TOPIC = "credence-source-topic"
SOURCE_PARTITION = "credence-source-partition"
SOURCE_OFFSET = "credence-source-offset"
SOURCE_INDEX = "credence-source-index"
SOURCE_TIMESTAMP = "credence-source-timestamp"
TRUNCATED = "credence-truncated"
HEADERS_DROPPED = "credence-headers-dropped"
REPLAYED_FROM = "credence-replayed-from"

_BROUGHT_ALONG = frozenset({REPLAYED_FROM, VENDOR_HEADER, SIGNATURE_HEADER})
"""Own headers that a source record does bring along;
without its signature a label that is replayed would be refused."""

LONGEST_DETAIL = 500
"""Characters of a detail that are kept."""

HEADER_BYTES = 2_048
"""Of a source record's headers so much is kept: each bad element of an array carries them."""

LONGEST_KEY = 1_024
"""What is kept of a key, in bytes, when a letter is cut: no letter may be too large for its topic."""


@dataclass(frozen=True)
class Place:
    """Where a refused message stood; tells letters of the same message from letters of others.

    Attributes:
        topic: the source topic.
        partition: of the source topic.
        offset: of the source record.
        index: position in an array; None for a single message.
        timestamp_ms: of the source record, since the epoch; a topic that was made anew counts its offsets
            from 0 again, but not its time. None in letters that do not tell it.
    """

    topic: str
    partition: int
    offset: int
    index: int | None
    timestamp_ms: int | None

    def __str__(self) -> str:
        """As people read it: topic/partition/offset, and the index behind a #."""
        index = "" if self.index is None else f"#{self.index}"
        return f"{self.topic}/{self.partition}/{self.offset}{index}"

    @property
    def identity(self) -> str:
        """As programs tell places apart."""
        return f"{self}@{'' if self.timestamp_ms is None else self.timestamp_ms}"


@dataclass(frozen=True)
class Letter:
    """One record of the dead-letter topic.

    Attributes:
        partition: of the dead-letter topic.
        offset: in the dead-letter topic.
        timestamp_ms: when it was written, since the epoch.
        reason: as in the metric.
        detail: why, in a sentence.
        place: where the message stood; None if the record is not one of Credence's letters.
        key: of the message.
        value: of the message, perhaps cut.
        headers: of the source record, as far as they were kept.
        truncated: whether value, key or headers are not whole.
        replayed_from: partition/offset of the letter that the message was replayed from before it was refused
            again; or empty.
    """

    partition: int
    offset: int
    timestamp_ms: int
    reason: str
    detail: str
    place: Place | None
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    truncated: bool
    replayed_from: str


def letter_headers(
    rejected: Rejected, source_topic: str, *, value_bytes: int | None
) -> list[tuple[str, bytes]]:
    """Headers of a dead letter.

    Args:
        rejected: the message.
        source_topic: where it comes from.
        value_bytes: length of its whole value, if it is not kept whole.
    """
    own = {
        REASON: rejected.error.reason,
        DETAIL: rejected.error.detail[:LONGEST_DETAIL],
        SOURCE_TOPIC: source_topic,
        SOURCE_PARTITION: str(rejected.partition),
        SOURCE_OFFSET: str(rejected.offset),
    }
    if rejected.index is not None:
        own[SOURCE_INDEX] = str(rejected.index)
    if rejected.timestamp_ms is not None:
        own[SOURCE_TIMESTAMP] = str(rejected.timestamp_ms)
    if value_bytes is not None:
        own[TRUNCATED] = str(value_bytes)
    kept, dropped = _source_headers(rejected.headers)
    if dropped:
        own[HEADERS_DROPPED] = str(dropped)
    return kept + [(name, content.encode(errors="replace")) for name, content in own.items()]


def _source_headers(headers: Sequence[tuple[str, bytes | None]]) -> tuple[list[tuple[str, bytes]], int]:
    """What is kept of a source record's headers, and how many are not."""
    kept, room, dropped = [], HEADER_BYTES, 0
    for name, content in headers or ():
        if name.startswith(OWN_PREFIX) and name not in _BROUGHT_ALONG:
            continue
        size = len(name.encode(errors="replace")) + len(content or b"")
        if size > room:
            dropped += 1
            continue
        room -= size
        # The client sends no header without content; to the decoders an empty one says the same.
        kept.append((name, content or b""))
    return kept, dropped


def read_letter(record: Any) -> Letter:
    """The dead letter in a record of the dead-letter topic."""
    headers = [(name, content or b"") for name, content in record.headers or ()]
    own = {name: content.decode(errors="replace") for name, content in headers if name.startswith(OWN_PREFIX)}
    return Letter(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        reason=own.get(REASON, ""),
        detail=own.get(DETAIL, ""),
        place=_place(own),
        key=record.key,
        value=record.value or b"",
        headers=tuple(
            (name, content)
            for name, content in headers
            if not name.startswith(OWN_PREFIX) or name in (VENDOR_HEADER, SIGNATURE_HEADER)
        ),
        truncated=TRUNCATED in own or HEADERS_DROPPED in own,
        replayed_from=own.get(REPLAYED_FROM, ""),
    )


def _place(own: dict[str, str]) -> Place | None:
    try:
        return Place(
            topic=own[SOURCE_TOPIC],
            partition=int(own[SOURCE_PARTITION]),
            offset=int(own[SOURCE_OFFSET]),
            index=int(own[SOURCE_INDEX]) if SOURCE_INDEX in own else None,
            timestamp_ms=int(own[SOURCE_TIMESTAMP]) if SOURCE_TIMESTAMP in own else None,
        )
    except (KeyError, ValueError):
        return None
