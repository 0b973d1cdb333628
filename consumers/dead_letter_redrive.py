"""Reads dead letters, and redrives them: each message once, to its source topic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from kafka import TopicPartition
from kafka.errors import UnknownTopicOrPartitionError

from consumers.dead_letter_format import REPLAYED_FROM, Letter, read_letter
from consumers.dead_letters import Place
from service.domain.errors import Refused, Unavailable
from service.kafka.topic_metadata import translate_errors
from service.store.redrives import REMEMBERED_DAYS, ReplayMarks

REPLAYED = "replayed"
WOULD_BE_REPLAYED = "would be replayed"

_FIXED_BY_CLASSES = {"unknown_class", "invalid_probabilities"}
"""Reasons that a change of a model's classes can fix."""

_SKIPPED = {
    "replayed": "it was replayed before",
    "unfinished": "an earlier replay of it was cut off, perhaps after it was sent",
}

_READ_MS = 500
_MOST_EMPTY_POLLS = 40
_SEND_SECONDS = 30.0
_AT_A_TIME = 200
_DAY_MS = 86_400_000


def read_letters(consumer: Any, topic: str) -> Iterator[Letter]:
    """All letters of the dead-letter topic, read by a consumer without a group.

    They come partition by partition, the oldest first.

    Raises:
        Unavailable: Kafka does not answer, there is no such topic, or no right to read it.
    """
    with translate_errors():
        partitions = consumer.partitions_for_topic(topic)
        if not partitions:
            # To a client without rights Kafka does not say which of the two it is.
            remedy = "grant READ on the topics that are read, or create them with `credence topics create`"
            raise Refused("kafka", UnknownTopicOrPartitionError(), remedy)
        for partition in sorted(partitions):
            yield from _read_partition(consumer, TopicPartition(topic, partition))


def _read_partition(consumer: Any, tp: TopicPartition) -> Iterator[Letter]:
    consumer.assign([tp])
    consumer.seek_to_beginning(tp)
    end: int | None = None
    empty_polls = 0
    while end is None or consumer.position(tp) < end:
        records = consumer.poll(_READ_MS).get(tp, ())
        # The end at the first poll: letters written since are left out, so that this ends.
        end = consumer.highwater(tp) if end is None else end
        empty_polls = 0 if records else empty_polls + 1
        if empty_polls > _MOST_EMPTY_POLLS:
            raise Unavailable("kafka", TimeoutError())
        for record in records:
            if end is not None and record.offset >= end:
                return
            yield read_letter(record)


def refusal(
    letter: Letter, *, topics: Collection[str], read_again: Collection[str], now: float
) -> str | None:
    """Why a letter cannot be replayed; None if it can, unless it was replayed before.

    `topics` and `read_again` as in `replay`.
    """
    if letter.place is None:
        return "it has no source topic, partition and offset, so Credence did not write it"
    if letter.place.topic not in topics:
        return "its source topic is not one that the configuration reads"
    if letter.truncated:
        return "not all of its message was kept; let its first sender send it again"
    if letter.reason in _FIXED_BY_CLASSES and letter.place.topic in read_again:
        return (
            "its topic may have been read again from the beginning since the classes changed, and its "
            "message with it; if it was not, say --not-read-again"
        )
    if letter.timestamp_ms < now * 1000 - REMEMBERED_DAYS * _DAY_MS:
        return f"it is older than {REMEMBERED_DAYS} days, as long as replays are remembered"
    return None


def replay(
    letters: Iterable[Letter],
    *,
    producer: Any | None,
    marks: ReplayMarks,
    topics: Collection[str],
    read_again: Collection[str],
    retry_unfinished: bool,
    now: float,
    send_seconds: float = _SEND_SECONDS,
) -> Iterator[tuple[Letter, str]]:
    """Send letters' messages to their source topics.

    Each is marked as begun before it is sent, and as replayed once Kafka has acknowledged it. So a message
    that may have been sent is never sent again without `retry_unfinished`.

    Args:
        letters: the chosen ones.
        producer: of bytes; waits for all in-sync replicas. None for a dry run.
        marks: of what was replayed.
        topics: source topics of the configuration.
        read_again: those that are read from their beginning when a model's classes change.
        retry_unfinished: also send letters whose earlier replay was not acknowledged.
        now: seconds since the epoch.
        send_seconds: longest time to wait for the broker.

    Yields:
        Each letter with `REPLAYED`, or `WOULD_BE_REPLAYED`, or why it was skipped.

    Raises:
        Unavailable: Kafka or Redis does not answer. Letters that were not yielded were not sent, or are
            unfinished.
    """
    seen_places: set[Place] = set()
    remaining = iter(letters)
    while batch := list(islice(remaining, _AT_A_TIME)):
        sendable: list[tuple[Letter, Place]] = []
        for letter in batch:
            why = refusal(letter, topics=topics, read_again=read_again, now=now)
            place = letter.place
            if why is not None or place is None:
                yield letter, why or ""
            elif place in seen_places:
                yield letter, "another letter of the same message was chosen too"
            else:
                seen_places.add(place)
                sendable.append((letter, place))
        places = [place.identity for _, place in sendable]
        mark = marks.check if producer is None else marks.begin
        statuses = mark(places, retry_unfinished=retry_unfinished)
        ready = []
        for (letter, place), status in zip(sendable, statuses, strict=True):
            if status == "begun":
                ready.append((letter, place))
            else:
                yield letter, _SKIPPED[status]
        if producer is not None:
            _send(ready, producer, send_seconds)
            marks.finish([place.identity for _, place in ready])
        yield from ((letter, WOULD_BE_REPLAYED if producer is None else REPLAYED) for letter, _ in ready)


def _send(letters: Sequence[tuple[Letter, Place]], producer: Any, send_seconds: float) -> None:
    with translate_errors():
        futures = [
            producer.send(
                place.topic,
                # Not the partitioner's: an item's labels must stay together, whatever the first sender used.
                partition=place.partition,
                key=letter.key,
                value=letter.value,
                headers=[*letter.headers, (REPLAYED_FROM, f"{letter.partition}/{letter.offset}".encode())],
                # It counts as the prediction's time where the message has none.
                timestamp_ms=letter.timestamp_ms if place.timestamp_ms is None else place.timestamp_ms,
            )
            for letter, place in letters
        ]
        producer.flush(timeout=send_seconds)
        for future in futures:
            future.get(timeout=send_seconds)
