"""Dead letters read again, and sent back to the topic that they came from, each message once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from consumers.dead_letter_format import REPLAYED_FROM, Letter, Place, read_letter
from service.domain.errors import Refused, Unavailable
from service.kafka.topic_metadata import translate_error
from service.store.redrives import REMEMBERED_DAYS, ReplayMarks

REPLAYED = "replayed"
WOULD_BE_REPLAYED = "would be replayed"

_MENDED_BY_CLASSES = {"unknown_class", "invalid_probabilities"}
"""Reasons that go away when a model's classes change."""

_PASSED_OVER = {
    "replayed": "it was replayed before",
    "unfinished": "an earlier replay of it was cut off, perhaps after it was sent",
}

_READ_MS = 500
_SILENT_POLLS = 40
_SEND_SECONDS = 30.0
_AT_A_TIME = 200
_DAY_MS = 86_400_000


def read_letters(consumer: Any, topic: str) -> Iterator[Letter]:
    """All letters that the dead-letter topic holds now, partition by partition, the oldest first.

    Args:
        consumer: of bytes, without a group.
        topic: the dead-letter topic.

    Raises:
        Unavailable: Kafka cannot answer now, or there is no such topic, or no right to read it.
    """
    try:
        partitions = consumer.partitions_for_topic(topic)
        if not partitions:
            # Kafka tells the two apart to nobody who may not see the topic.
            remedy = "grant READ on the topics that are read, or make them by `credence topics create`"
            raise Refused("kafka", UnknownTopicOrPartitionError(), remedy)
        for partition in sorted(partitions):
            yield from _read_partition(consumer, TopicPartition(topic, partition))
    except KafkaError as error:
        raise translate_error(error) from error


def _read_partition(consumer: Any, tp: TopicPartition) -> Iterator[Letter]:
    consumer.assign([tp])
    consumer.seek_to_beginning(tp)
    end: int | None = None
    silent = 0
    while end is None or consumer.position(tp) < end:
        records = consumer.poll(_READ_MS).get(tp, ())
        # The end as it was at first: whoever writes meanwhile must not keep this going.
        end = consumer.highwater(tp) if end is None else end
        silent = 0 if records else silent + 1
        if silent > _SILENT_POLLS:
            raise Unavailable("kafka", TimeoutError())
        for record in records:
            if end is not None and record.offset >= end:
                return
            yield read_letter(record)


def refusal(
    letter: Letter, *, topics: Collection[str], read_again: Collection[str], now: float
) -> str | None:
    """Why a letter cannot be replayed, whatever became of others of the same message; None if it can.

    Args:
        letter: of the dead-letter topic.
        topics: that the configuration reads.
        read_again: those that are read from their beginning when a model's classes change.
        now: seconds since the epoch.
    """
    if letter.place is None:
        return "it does not say where its message stood, so it is none of Credence's"
    if letter.place.topic not in topics:
        return "its source topic is not one that the configuration reads"
    if letter.truncated:
        return "not all of its message was kept; have it sent by whoever sent it first"
    if letter.reason in _MENDED_BY_CLASSES and letter.place.topic in read_again:
        return (
            "its topic may have been read again from the beginning since the classes changed, and its "
            "message with it; if it was not, say --not-read-again"
        )
    if letter.timestamp_ms < now * 1000 - REMEMBERED_DAYS * _DAY_MS:
        return f"it is older than {REMEMBERED_DAYS} days, for which replays are remembered"
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
    """Send letters' messages back to where they stood.

    Each is marked as begun before it is sent, and as replayed once Kafka has it. So a message that may have
    been sent is never sent again unless `retry_unfinished` says so.

    Args:
        letters: those that are chosen.
        producer: of bytes; waits for all in-sync replicas. None only tells what would be sent.
        marks: remembers what was replayed.
        topics: that the configuration reads.
        read_again: those that are read from their beginning when a model's classes change.
        retry_unfinished: send those too of which an earlier replay did not hear that Kafka has them.
        now: seconds since the epoch.
        send_seconds: longest time to wait for the broker.

    Yields:
        Each letter with `REPLAYED`, or `WOULD_BE_REPLAYED`, or why it was passed over.

    Raises:
        Unavailable: Kafka or Redis cannot answer now. Letters that were not yielded were not sent, or are
            unfinished.
    """
    chosen: set[Place] = set()
    waiting = iter(letters)
    while some := list(islice(waiting, _AT_A_TIME)):
        sendable: list[tuple[Letter, Place]] = []
        for letter in some:
            why, place = (
                refusal(letter, topics=topics, read_again=read_again, now=now),
                letter.place,
            )
            if why is not None or place is None:
                yield letter, why or ""
            elif place in chosen:
                yield letter, "another letter of the same message was chosen too"
            else:
                chosen.add(place)
                sendable.append((letter, place))
        places = [place.identity for _, place in sendable]
        statuses = (
            marks.look(places, retry_unfinished=retry_unfinished)
            if producer is None
            else marks.begin(places, retry_unfinished=retry_unfinished)
        )
        ready = []
        for pair, status in zip(sendable, statuses, strict=True):
            if status == "begun":
                ready.append(pair)
            else:
                yield pair[0], _PASSED_OVER[status]
        if producer is not None:
            _send(ready, producer, send_seconds)
            marks.finish([place.identity for _, place in ready])
        yield from ((letter, WOULD_BE_REPLAYED if producer is None else REPLAYED) for letter, _ in ready)


def _send(letters: Sequence[tuple[Letter, Place]], producer: Any, send_seconds: float) -> None:
    try:
        futures = [
            producer.send(
                place.topic,
                # Whatever partitioner the first sender had, an item's labels stay together.
                partition=place.partition,
                key=letter.key,
                value=letter.value,
                headers=[*letter.headers, (REPLAYED_FROM, f"{letter.partition}/{letter.offset}".encode())],
                # The record's time is the prediction's, where nothing else tells that.
                timestamp_ms=letter.timestamp_ms if place.timestamp_ms is None else place.timestamp_ms,
            )
            for letter, place in letters
        ]
        producer.flush(timeout=send_seconds)
        for future in futures:
            future.get(timeout=send_seconds)
    except KafkaError as error:
        raise translate_error(error) from error
