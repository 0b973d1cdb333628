"""Faster fetching with the Kafka client: receive in large pieces, and decode a batch in one loop.

The client decodes a record with some thirty Python calls, and receives four kilobytes at a time: together
most of the cost of reading. This replaces private parts of the client, unless `kafka.fast_fetch` is false. So
it is used only with client versions for which `tests/consumers/test_fast_fetch.py` shows that it decodes and
receives exactly as the client does, and after a self-test at the start, as an installed client may be
patched. Otherwise the client's own code stays. docs/kafka-python has such changes as a patch of the client.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import Any

import kafka
from kafka import TopicPartition
from kafka.consumer.fetcher import ConsumerRecord, Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError, KafkaConnectionError
from kafka.net import manager
from kafka.net.transport import KafkaTCPTransport
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder
from kafka.record.util import decode_varint

log = logging.getLogger(__name__)

VERSIONS = frozenset({"3.0.12"})
"""Versions of kafka-python that this was written for."""

_SELF_TEST: Sequence[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = (
    (b"key", b"value", []),
    (None, b"x" * 63, []),
    (b"k" * 64, b"x" * 8_192, [("name", b"value"), ("none", None)]),
    (b"", None, [("", b"")]),
)
"""Keys, values and headers whose lengths take one, two and three bytes, or that are absent."""

_SELF_TEST_BYTES = 65_536
_RECEIVED_BYTES = 256 * 1024
_CURRENT_FORMAT = 2
_LONGEST_SHIFT = 63
_MORE = 0x80
"""Continuation bit of a varint: set in every byte but the last."""


def use_fast_fetch(consumer: Any) -> bool:
    """Make a consumer that has not polled yet use the faster code, if that is safe; whether it is."""
    if kafka.__version__ not in VERSIONS:
        log.warning(
            "fast fetch is off: unsupported version of kafka-python", extra={"supported": sorted(VERSIONS)}
        )
        return False
    if not reads_alike():
        log.warning("fast fetch is off: this kafka-python reads a record batch of the self-test differently")
        return False
    consumer._fetcher.PartitionRecords = FastPartitionRecords  # noqa: SLF001 - see above
    # For all connections that clients of this process make from now on.
    manager.KafkaTCPTransport = FastTransport
    return True


def reads_alike() -> bool:
    """Whether this and the client read the batches of the self-test alike, some milliseconds' work."""
    partition = TopicPartition("self-test", 0)
    readers: tuple[type[Any], ...] = (FastPartitionRecords, Fetcher.PartitionRecords)
    for codec in (DefaultRecordBatch.CODEC_NONE, DefaultRecordBatch.CODEC_GZIP):
        builder = MemoryRecordsBuilder(_CURRENT_FORMAT, codec, _SELF_TEST_BYTES)
        for key, value, headers in _SELF_TEST:
            builder.append(1_700_000_000_000 + len(value or b""), key, value, headers)
        builder.close()
        data = bytes(builder.buffer())
        try:
            fast, own = (reader(0, partition, MemoryRecords(data)).take() for reader in readers)
        except Exception:  # whatever private parts of a patched client raise, its own code stays
            log.warning("fast fetch: the self-test failed", exc_info=True)
            return False
        if not own or [_plain(record) for record in fast] != [_plain(record) for record in own]:
            return False
    return True


def _plain(record: Any) -> tuple[Any, ...]:
    return tuple(list(part) if part == () else part for part in record)


class FastTransport(KafkaTCPTransport):  # type: ignore[misc]  # the library has no types
    """A plain-text connection that receives in large pieces."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received: list[bytes] = []
        error: Exception | None = None
        try:
            while data := self._sock.recv(_RECEIVED_BYTES):
                received.append(data)
            error = KafkaConnectionError("socket disconnected")
        except (BlockingIOError, InterruptedError):
            pass  # nothing more to receive yet
        except Exception as failure:  # noqa: BLE001 - as the client; its socket may be gone
            error = KafkaConnectionError(failure)
        return b"".join(received), error


class FastPartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]  # the library has no types
    """The records of one partition in a fetch response, decoded by `decode_batch`."""

    def take(self, n: int | None = None) -> list[Any]:
        """The next records, `n` at most."""
        records: list[Any] = super().take(n)
        if records and self:
            self.next_fetch_offset = records[-1].offset + 1
        return records

    def _unpack_records(self, tp: Any, records: Any, *deserializers: Any) -> Iterator[Any]:
        batch = None
        while (following := records.next_batch()) is not None:
            batch = following
            if batch.magic != _CURRENT_FORMAT:
                # From before Kafka 0.11: the client decodes it, and all after it.
                rest = chain([batch], iter(records.next_batch, None))
                rest_of_fetch = SimpleNamespace(next_batch=partial(next, rest, None))
                yield from super()._unpack_records(tp, rest_of_fetch, *deserializers)
                return
            if self.check_crcs and not batch.validate_crc():
                raise CorruptRecordError(
                    f"a batch of {tp} at offset {batch.base_offset} has a wrong checksum"
                )
            self.leader_epoch = batch.leader_epoch
            if self._is_skipped(batch):
                self.next_fetch_offset = batch.next_offset
                continue
            self.records_read += batch.records_count
            self.bytes_read += batch.size_in_bytes
            decoded, error = decode_batch(batch, tp)
            yield from decoded
            if error is not None:
                raise error
        if batch is not None:
            # Not the offset after the last record: compaction may have removed later records of the batch.
            self.next_fetch_offset = batch.next_offset
        self.drain()

    def _is_skipped(self, batch: Any) -> bool:
        """Whether a batch belongs to an aborted transaction, or contains control records."""
        if self.isolation_level == IsolationLevel.READ_COMMITTED and batch.has_producer_id():
            self._consume_aborted_transactions_up_to(batch.last_offset)
            if self._contains_abort_marker(batch):
                self.aborted_producer_ids.discard(batch.producer_id)
            elif self._is_batch_aborted(batch):
                return True
        return bool(batch.is_control_batch)


def decode_batch(  # noqa: C901, PLR0912, PLR0915 - calls are what costs
    batch: Any, tp: Any
) -> tuple[list[Any], CorruptRecordError | None]:
    """All records of a batch in the current format; or those before the first invalid one, and the error.

    The layout of a record, with numbers as zigzag varints: length, attributes, timestamp delta, offset delta,
    key length, key, value length, value, header count, headers (Kafka protocol guide, "Record").
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
            # Nearly all numbers take one byte: these are read here, without a call.
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _decode_long(number, data, at)
            end = at + ((number >> 1) ^ -(number & 1))
            # The attributes, which are unused; a varint too, as in the client.
            if data[at] >= _MORE:
                _, at = decode_varint(data, at)
            else:
                at += 1
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _decode_long(number, data, at)
            time = (first_time + ((number >> 1) ^ -(number & 1))) if appended is None else appended
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _decode_long(number, data, at)
            offset = base_offset + ((number >> 1) ^ -(number & 1))
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _decode_long(number, data, at)
            if number & 1:
                key, key_size = None, -1
            else:
                key_size = number >> 1
                key = data[at : at + key_size]
                at += key_size
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _decode_long(number, data, at)
            if number & 1:
                value, value_size = None, -1
            else:
                value_size = number >> 1
                value = data[at : at + value_size]
                at += value_size
            headers: Sequence[tuple[str, bytes | None]] = ()
            headers_size = -1
            if data[at]:
                headers, headers_size, at = _decode_headers(data, at)
            else:
                at += 1
            if at != end:
                return records, CorruptRecordError(
                    f"a record of {tp} at offset {offset} does not have its declared length"
                )
            append(
                make(
                    ConsumerRecord,
                    (topic, partition, epoch, offset, time, time_type, key, value, headers, None,
                     key_size, value_size, headers_size),
                )
            )  # fmt: skip
    except CorruptRecordError as error:
        return records, error
    except (IndexError, ValueError) as error:
        invalid = CorruptRecordError(f"a batch of {tp} at offset {base_offset} is invalid")
        invalid.__cause__ = error
        return records, invalid
    if at != len(data):
        return records, CorruptRecordError(
            f"a batch of {tp} at offset {base_offset} has data after its records"
        )
    return records, None


def _decode_long(number: int, data: bytes, at: int) -> tuple[int, int]:
    """A varint of several bytes, given the first; and where it ends."""
    byte = data[at]
    number += (byte << 7) - _MORE
    at += 1
    shift = 14
    while byte >= _MORE:
        if shift > _LONGEST_SHIFT:
            raise CorruptRecordError("a varint is longer than 64 bits")
        byte = data[at]
        number += (byte << shift) - (_MORE << (shift - 7))
        at += 1
        shift += 7
    return number, at


def _decode_headers(data: bytes, at: int) -> tuple[list[tuple[str, bytes | None]], int, int]:
    """Headers of a record, their size, and where they end."""
    count, at = decode_varint(data, at)
    headers: list[tuple[str, bytes | None]] = []
    size = 0
    if count < 0:
        raise CorruptRecordError("the header count of a record is negative")
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
    return headers, size if headers else -1, at
