"""The format of a dead letter: its headers, written and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from consumers.dead_letters import Place, Rejected
from service.domain.label_signatures import SIGNATURE_HEADER, VENDOR_HEADER

OWN_PREFIX = "credence-"
"""Prefix of Credence's own headers; those of a source record are dropped."""

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

_SIGNATURE = frozenset({VENDOR_HEADER, SIGNATURE_HEADER})
"""Own headers of a source record that a dead letter keeps: a redriven label needs its signature."""

LONGEST_DETAIL = 500
"""Longest detail, in characters."""

HEADER_BYTES = 2_048
"""Longest headers of a source record: every bad element of an array carries them."""

LONGEST_KEY = 1_024
"""Longest key of a truncated letter, in bytes."""


@dataclass(frozen=True)
class Letter:
    """One record of the dead-letter topic.

    Attributes:
        partition: of the dead-letter topic, as `offset`.
        timestamp_ms: when it was written, since the epoch.
        detail: why, in a sentence.
        place: of the message; None if the record is not one of Credence's letters.
        value: of the message, perhaps truncated.
        headers: of the source record, as far as they fit.
        truncated: whether value, key or headers are incomplete.
        replayed_from: partition/offset of an earlier letter that the message was redriven from; or empty.
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


def letter_headers(rejected: Rejected, *, value_bytes: int | None) -> list[tuple[str, bytes]]:
    """Headers of a dead letter.

    `value_bytes` is the length of its value before truncation; None if key and value are complete.
    """
    fitting, dropped = _source_headers(rejected.record.headers)
    place = rejected.place
    own = {
        REASON: rejected.error.reason,
        DETAIL: rejected.error.detail[:LONGEST_DETAIL],
        SOURCE_TOPIC: place.topic,
        SOURCE_PARTITION: place.partition,
        SOURCE_OFFSET: place.offset,
        SOURCE_INDEX: place.index,
        SOURCE_TIMESTAMP: place.timestamp_ms,
        TRUNCATED: value_bytes,
        HEADERS_DROPPED: dropped or None,
    }
    return fitting + [
        (name, str(content).encode(errors="replace")) for name, content in own.items() if content is not None
    ]


def _source_headers(headers: Sequence[tuple[str, bytes | None]]) -> tuple[list[tuple[str, bytes]], int]:
    """Headers of a source record that fit, and the number of those that do not."""
    fitting, room, dropped = [], HEADER_BYTES, 0
    for name, content in headers or ():
        if name.startswith(OWN_PREFIX) and name not in (REPLAYED_FROM, *_SIGNATURE):
            continue
        size = len(name.encode(errors="replace")) + len(content or b"")
        if size > room:
            dropped += 1
            continue
        room -= size
        # The client cannot send a null header; the decoders treat an empty one alike.
        fitting.append((name, content or b""))
    return fitting, dropped


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
            if not name.startswith(OWN_PREFIX) or name in _SIGNATURE
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
