"""A faster way through the Kafka client: batches are received in large pieces, and taken apart in one loop.

The client takes every record apart with some thirty calls of Python functions, and a broker's answer out of
the socket by four kilobytes: together most of what reading costs. The places where this is put in are no part
of the client's public interface. So it is used only where it is asked for (`kafka.fast_fetch`), with the
versions of the client that it was written against, and after it has read a set of batches, and received from
a socket, exactly as the client does; else the client's own way stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import kafka
from kafka import TopicPartition
from kafka.consumer.fetcher import ConsumerRecord, Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.record.util import decode_varint

from consumers.fast_transport import FastTransport, receives_alike, use_fast_transport

log = logging.getLogger(__name__)

VERSIONS = frozenset({"3.0.12"})
"""Of kafka-python: those that this was written against."""

_CURRENT_FORMAT = 2
_LONGEST_SHIFT = 63
_MORE = 0x80
"""Set in every byte of a number but its last."""


def use_fast_fetch(consumer: Any) -> bool:
    """Have a consumer take record batches apart in one loop, if that is safe; whether it does now.

    Args:
        consumer: of kafka-python, not polled yet.
    """
    if kafka.__version__ not in VERSIONS:
        log.warning("fast fetch stays off: it is not for this kafka-python", extra={"for": sorted(VERSIONS)})
        return False
    if not (reads_alike(FastPartitionRecords) and receives_alike(FastTransport)):
        log.error("fast fetch stays off: it does not read as kafka-python does")
        return False
    consumer._fetcher.PartitionRecords = FastPartitionRecords  # noqa: SLF001 - see above
    use_fast_transport()
    return True


class FastPartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]  # the library has no types
    """The records of one partition in an answer of a broker; only how they are taken apart differs."""

    def take(self, n: int | None = None) -> list[Any]:
        """The next records, `n` at most."""
        records: list[Any] = super().take(n)
        if records and self:
            self.next_fetch_offset = records[-1].offset + 1
        return records

    def _unpack_records(self, tp: Any, records: Any, *_deserializers: Any) -> Iterator[Any]:
        batch = None
        while (following := records.next_batch()) is not None:
            batch = following
            if self.check_crcs and not batch.validate_crc():
                raise CorruptRecordError(
                    f"a batch of {tp} at offset {batch.base_offset} has a wrong checksum"
                )
            if batch.magic != _CURRENT_FORMAT:
                yield from self._older(tp, batch)
                continue
            self.leader_epoch = batch.leader_epoch
            if self._left_out(batch):
                self.next_fetch_offset = batch.next_offset
                continue
            self.records_read += batch.records_count
            self.bytes_read += batch.size_in_bytes
            yield from take_apart(batch, tp)
        if batch is not None and batch.magic == _CURRENT_FORMAT:
            # Not behind the last record: what stood there may have been compacted away.
            self.next_fetch_offset = batch.next_offset
        self.drain()

    def _left_out(self, batch: Any) -> bool:
        """Whether a batch belongs to an aborted transaction, or only tells how one ended."""
        if self.isolation_level == IsolationLevel.READ_COMMITTED and batch.has_producer_id():
            self._consume_aborted_transactions_up_to(batch.last_offset)
            if self._contains_abort_marker(batch):
                self.aborted_producer_ids.discard(batch.producer_id)
            elif self._is_batch_aborted(batch):
                return True
        return bool(batch.is_control_batch)

    def _older(self, tp: Any, batch: Any) -> Iterator[Any]:
        """Records of the formats that brokers wrote before Kafka 0.11."""
        for record in batch:
            if self.check_crcs and not record.validate_crc():
                raise CorruptRecordError(f"the record of {tp} at {record.offset} has a wrong checksum")
            self.records_read += 1
            self.bytes_read += record.size_in_bytes
            sizes = [-1 if part is None else len(part) for part in (record.key, record.value)]
            yield ConsumerRecord(
                *tp, self.leader_epoch, record.offset, record.timestamp, record.timestamp_type,
                record.key, record.value, record.headers, record.checksum, *sizes, -1,
            )  # fmt: skip


def take_apart(batch: Any, tp: Any) -> list[Any]:  # noqa: C901, PLR0912, PLR0915 - calls are what costs
    """All records of a batch in the current format.

    The layout of a record, all numbers in zigzag encoding with seven bits a byte: length, attributes, time
    since the batch's, offset since the batch's, length of the key, key, length of the value, value, number of
    headers, headers (Kafka protocol guide, "Record").

    Raises:
        CorruptRecordError: the bytes are no such records.
    """
    batch._maybe_uncompress()  # noqa: SLF001 - see the module
    data, at = bytes(batch._buffer), batch._pos  # noqa: SLF001
    topic, partition = tp
    base_offset, first_time, epoch = batch.base_offset, batch.first_timestamp, batch.leader_epoch
    time_type = batch.timestamp_type
    appended = batch.max_timestamp if time_type == batch.LOG_APPEND_TIME else None
    records: list[Any] = []
    make, append = tuple.__new__, records.append
    try:
        for _ in range(batch.records_count):
            # Nearly all numbers take one or two bytes: these are read here, without a call.
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _long(number, data, at)
            end = at + ((number >> 1) ^ -(number & 1))
            # The attributes, which no version of Kafka has used; a number too, as the client has it.
            if data[at] >= _MORE:
                _, at = decode_varint(data, at)
            else:
                at += 1
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _long(number, data, at)
            time = (first_time + ((number >> 1) ^ -(number & 1))) if appended is None else appended
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _long(number, data, at)
            offset = base_offset + ((number >> 1) ^ -(number & 1))
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _long(number, data, at)
            if number & 1:
                key, key_size = None, -1
            else:
                key_size = number >> 1
                key = data[at : at + key_size]
                at += key_size
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _long(number, data, at)
            if number & 1:
                value, value_size = None, -1
            else:
                value_size = number >> 1
                value = data[at : at + value_size]
                at += value_size
            headers: Sequence[tuple[str, bytes | None]] = ()
            headers_size = -1
            if data[at]:
                headers, headers_size, at = _headers(data, at)
            else:
                at += 1
            if at != end:
                raise CorruptRecordError(
                    f"a record of {tp} at offset {offset} has another length than it says"
                )
            append(
                make(
                    ConsumerRecord,
                    (topic, partition, epoch, offset, time, time_type, key, value, headers, None,
                     key_size, value_size, headers_size),
                )
            )  # fmt: skip
    except (IndexError, ValueError) as error:
        raise CorruptRecordError(f"a batch of {tp} at offset {base_offset} holds no records") from error
    if at != len(data):
        raise CorruptRecordError(f"a batch of {tp} at offset {base_offset} holds more than its records")
    return records


def _long(number: int, data: bytes, at: int) -> tuple[int, int]:
    """A number whose first byte says that there are more; and where it ends."""
    byte = data[at]
    number += (byte << 7) - _MORE
    at += 1
    shift = 14
    while byte >= _MORE:
        if shift > _LONGEST_SHIFT:
            raise CorruptRecordError("a number takes more than 64 bits")
        byte = data[at]
        number += (byte << shift) - (_MORE << (shift - 7))
        at += 1
        shift += 7
    return number, at


def _headers(data: bytes, at: int) -> tuple[list[tuple[str, bytes | None]], int, int]:
    """Headers of a record, their size, and where they end."""
    count, at = decode_varint(data, at)
    headers: list[tuple[str, bytes | None]] = []
    size = 0
    if count < 0:
        raise CorruptRecordError("a record has less than no headers")
    for _ in range(count):
        length, at = decode_varint(data, at)
        if length < 0:
            raise CorruptRecordError("a header has no name")
        name = data[at : at + length].decode()
        at, size = at + length, size + length
        length, at = decode_varint(data, at)
        value = None if length < 0 else data[at : at + length]
        at, size = at + max(length, 0), size + max(length, 0)
        headers.append((name, value))
    return headers, size, at


def reads_alike(fast: type[Any]) -> bool:
    """Whether records of sample batches are read, and broken ones refused, as the client does it."""
    return all(
        _read(fast, sample, isolation) == _read(Fetcher.PartitionRecords, sample, isolation)
        for sample in _samples()
        for isolation in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
    )


def _read(reader: type[Any], sample: bytes, isolation: Any) -> list[Any] | None:
    """All records of a sample, read in portions, and where to go on behind each; None if it is corrupt."""
    part = reader(7, TopicPartition("sample", 3), MemoryRecords(sample), isolation_level=isolation)
    found: list[Any] = []
    try:
        while part:
            found += [(*record[:8], list(record[8]), *record[9:]) for record in part.take(3)]
            found.append(part.next_fetch_offset)
    except CorruptRecordError:
        return None
    return found


def _samples() -> Iterator[bytes]:
    """Batches with all that the format has room for, and the same cut and spoilt."""
    for compression in (0, 1):
        batch = MemoryRecordsBuilder(_CURRENT_FORMAT, compression, 1_000_000, offset=5)
        for i, size in enumerate((None, 0, 1, 63, 64, 8_191, 8_192, 70_000)):
            key = value = None if size is None else b"x" * size
            time = 1_800_000_000_000 + (-(10**i), 10**i)[i % 2]
            batch.append(time, key, value, [("a", b"b"), ("", None), ("\u00fc" * 70, b"")][: i % 4])
            batch.skip(100 * i)
        batch.close()
        whole = bytes(batch.buffer())
        yield whole
        yield whole + whole
        yield whole[:-1]
        yield whole[:-1] + bytes([whole[-1] ^ 1])
