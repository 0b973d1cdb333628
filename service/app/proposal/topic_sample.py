"""The newest records of a topic of predictions as rows, decoded as consumers decode them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka import TopicPartition
from kafka.errors import UnknownTopicOrPartitionError

from consumers.formats.native import WirePrediction, decode_attributes
from consumers.formats.records import Formats, decode_records
from service.app.files.columns import ATTRIBUTE, VOTE
from service.app.files.rows import Row
from service.domain.errors import BadMessage, Refused, Unavailable
from service.kafka.topic_metadata import TopicLog, absent_topic, translate_errors

_READ_MS = 500
_MOST_POLLS = 40
"""Polls without an answer, after which Kafka counts as unavailable."""


def newest_records(consumer: Any, topic: str, records: int) -> Iterator[list[Any]]:
    """The newest records of a topic in batches, read by a consumer without a group; it commits nothing.

    Args:
        consumer: of bytes.
        topic: whose records are read.
        records: that are read, in equal parts of all partitions; partitions that have fewer give the rest to
            others.

    Raises:
        Unavailable: Kafka does not answer, there is no such topic, or no right to read it; also while the
            batches are iterated.
    """
    with translate_errors(topic):
        partitions = consumer.partitions_for_topic(topic)
    if not partitions:
        # To a client without rights Kafka does not say which of the two it is.
        remedy = f"{absent_topic(topic)}; if it exists, grant READ on it"
        raise Refused("kafka", UnknownTopicOrPartitionError(), remedy)
    log = TopicLog(consumer, topic)
    places = [TopicPartition(topic, partition) for partition in sorted(partitions)]
    ends = _ends(consumer, places)
    starts = {tp: log.first_offset(tp) for tp in places}
    shares = _shares({tp: ends[tp] - starts[tp] for tp in places}, records)
    ranges = {tp: (ends[tp] - share, ends[tp]) for tp, share in shares.items() if share}
    return (batch for tp, (start, end) in ranges.items() for batch in _batches(consumer, tp, start, end))


def _ends(consumer: Any, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The end of every partition, as its leader has it when it is read there.

    Not every broker that answers as Kafka does counts the records of the last batch when it is asked for the
    end alone.
    """
    with translate_errors(places[0].topic):
        consumer.assign(places)
        consumer.seek_to_end(*places)
        for _ in range(_MOST_POLLS):
            ends = {tp: consumer.highwater(tp) for tp in places}
            if None not in ends.values():
                return ends
            consumer.poll(_READ_MS)
    raise Unavailable("kafka", TimeoutError())


def _shares(available: Mapping[TopicPartition, int], records: int) -> dict[TopicPartition, int]:
    """Records of every partition: equal parts, as far as there are so many."""
    shares: dict[TopicPartition, int] = {}
    left = records
    for at, tp in enumerate(sorted(available, key=lambda tp: (available[tp], tp))):
        shares[tp] = min(available[tp], -(-left // (len(available) - at)))
        left -= shares[tp]
    return shares


def message_rows(batches: Iterable[Sequence[Any]], message_bytes: int, formats: Formats) -> Iterator[Row]:
    """A row for each prediction of batches of records.

    Args:
        batches: of records.
        message_bytes: longest record.
        formats: of predictions besides the native one.
    """
    number = 0
    for batch in batches:
        for made in _decoded(batch, message_bytes, formats):
            number += 1
            if isinstance(made, BadMessage):
                yield Row(number, problem=made)
                continue
            prediction, size = made
            try:
                yield Row(number, _cells(prediction), size=size)
            except BadMessage as error:
                yield Row(number, problem=error)


def _batches(consumer: Any, tp: TopicPartition, start: int, end: int) -> Iterator[list[Any]]:
    empty_polls = 0
    with translate_errors(tp.topic):
        consumer.assign([tp])
        consumer.seek(tp, start)
        while consumer.position(tp) < end:
            records = consumer.poll(_READ_MS).get(tp, [])
            empty_polls = 0 if records else empty_polls + 1
            if empty_polls > _MOST_POLLS:
                raise Unavailable("kafka", TimeoutError())
            yield [record for record in records if record.offset < end]


def _decoded(
    records: Sequence[Any], message_bytes: int, formats: Formats
) -> Iterator[tuple[WirePrediction, int] | BadMessage]:
    decoded = decode_records(records, message_bytes=message_bytes, formats=formats)
    for at, prediction in zip(decoded.places, decoded.predictions, strict=True):
        yield prediction, len(records[at].value or b"")
    for at, _, error in decoded.errors:
        yield BadMessage(error.reason, f"{place_of(records[at])}: {error.detail}")


def place_of(record: Any) -> str:
    """Which record it is, for people."""
    return f"record {record.topic}/{record.partition}/{record.offset}"


def _cells(prediction: WirePrediction) -> dict[str, Any]:
    """The fields of a prediction as cells of a row; attributes and votes are columns of their own."""
    cells: dict[str, Any] = {
        "model": prediction.model,
        "item_id": prediction.item_id,
        "predicted_class": prediction.predicted_class,
        "score": prediction.score,
        "probabilities": prediction.probabilities,
        "time": prediction.time,
    }
    for name, value in decode_attributes(prediction.attributes).items():
        cells[ATTRIBUTE + name] = value
    for name, value in (prediction.votes or {}).items():
        cells[VOTE + name] = value
    return {name: cell for name, cell in cells.items() if cell is not None}
