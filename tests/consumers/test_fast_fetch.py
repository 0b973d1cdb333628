"""The faster way to take record batches apart reads and refuses what the client's own way does."""

from __future__ import annotations

import socket
import struct
from types import SimpleNamespace
from typing import Any

import kafka
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.errors import CorruptRecordError, KafkaConnectionError
from kafka.net import manager
from kafka.net.transport import KafkaTCPTransport
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from consumers.fast_fetch import VERSIONS, FastPartitionRecords, FastTransport, use_fast_fetch

PARTITION = TopicPartition("t", 1)
CODECS = {"none": 0, "gzip": 1}
BOTH: list[type[Any]] = [FastPartitionRecords, Fetcher.PartitionRecords]

small = st.binary(max_size=3) | st.sampled_from([b"x" * 63, b"x" * 64, b"x" * 8_191, b"x" * 8_192])
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | small), max_size=3)
records = st.tuples(
    st.integers(0, 2**45), st.none() | small, st.none() | small, headers, st.integers(0, 10_000)
)


def batch_of(
    contents: list[Any], *, offset: int = 0, compression: int = 0, transactional: bool = False
) -> bytes:
    """A batch of (time in ms, key, value, headers, offsets that are skipped behind it)."""
    producer = {"transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    builder = MemoryRecordsBuilder(
        2, compression, 10_000_000, offset=offset, **(producer if transactional else {})
    )
    for time, key, value, with_headers, skipped in contents:
        builder.append(time, key, value, with_headers)
        builder.skip(skipped)
    builder.close()
    return bytes(builder.buffer())


def read(
    reader: type[Any], data: bytes, *, portion: int = 3, begin: int = 0, aborted: Any = None
) -> tuple[list[Any], bool]:
    """Records with the offset to go on from behind every portion; and whether it then ended as corrupt."""
    part = reader(
        begin,
        PARTITION,
        MemoryRecords(data),
        isolation_level=IsolationLevel.READ_COMMITTED,
        aborted_transactions=aborted,
    )
    found: list[Any] = []
    try:
        while part:
            found += [(*record[:8], list(record[8]), *record[9:]) for record in part.take(portion)]
            found.append(part.next_fetch_offset)
    except CorruptRecordError:
        return found, True
    return found, False


def control_batch(offset: int, *, commits: bool) -> bytes:
    """What tells how the transaction of producer 7 ended."""
    batch = bytearray(
        batch_of([(0, struct.pack(">hh", 0, commits), b"\0" * 6, [], 0)], offset=offset, transactional=True)
    )
    attributes = DefaultRecordBatch.ATTRIBUTES_OFFSET
    batch[attributes + 1] |= DefaultRecordBatch.CONTROL_MASK
    return with_checksum(batch)


def with_checksum(batch: bytearray) -> bytes:
    covered = bytes(batch[DefaultRecordBatch.ATTRIBUTES_OFFSET :])
    struct.pack_into(">I", batch, DefaultRecordBatch.CRC_OFFSET, crc32c(covered))
    return bytes(batch)


def old_batch(offset: int, values: list[bytes]) -> bytes:
    """A batch in a format from before Kafka 0.11."""
    builder = MemoryRecordsBuilder(1, 0, 10_000_000, offset=offset)
    for value in values:
        builder.append(1_700_000_000_000, b"key", value)
    builder.close()
    return bytes(builder.buffer())


def test_the_version_that_is_tested_here_is_one_that_is_read_faster() -> None:
    assert kafka.__version__ in VERSIONS


@given(
    st.lists(st.lists(records, min_size=1, max_size=5), min_size=1, max_size=3),
    st.sampled_from(sorted(CODECS)),
    st.integers(1, 4),
    st.integers(0, 6),
)
def test_any_batches_are_read_as_the_client_reads_them(
    batches: list[list[Any]], codec: str, portion: int, begin: int
) -> None:
    data, offset = b"", 0
    for contents in batches:
        data += batch_of(contents, offset=offset, compression=CODECS[codec])
        offset += sum(1 + skipped for *_, skipped in contents)
    fast, own = (read(reader, data, portion=portion, begin=begin) for reader in BOTH)
    assert fast == own
    assert not fast[1]


@settings(max_examples=500)
@given(st.lists(records, min_size=1, max_size=3), st.data())
def test_damaged_records_with_a_right_checksum_are_read_or_refused_as_the_client_does(
    contents: list[Any], data: st.DataObject
) -> None:
    batch = bytearray(batch_of(contents))
    header = DefaultRecordBatch.HEADER_STRUCT.size
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(header, min(len(batch) - 1, header + 40)))
        batch[at] = data.draw(st.integers(0, 255))
    fast, own = (read(reader, with_checksum(batch)) for reader in BOTH)
    assert fast == own


@pytest.mark.parametrize("order", ["old", "old new", "new old", "new old new old"])
@pytest.mark.parametrize("portion", [1, 2, 100])
def test_batches_of_formats_before_kafka_0_11_are_read_as_the_client_reads_them(
    order: str, portion: int
) -> None:
    data = b""
    for at, kind in enumerate(order.split()):
        values = [b"%d" % (2 * at + i) for i in range(2)]
        new = [(1_700_000_000_000, b"key", value, [], 0) for value in values]
        data += old_batch(2 * at, values) if kind == "old" else batch_of(new, offset=2 * at)
    fast, own = (read(reader, data, portion=portion) for reader in BOTH)
    assert fast == own
    assert len([record for record in fast[0] if isinstance(record, tuple)]) == 2 * len(order.split())


def test_a_batch_with_a_wrong_checksum_is_refused() -> None:
    batch = bytearray(batch_of([(0, None, b"value", [], 0)]))
    batch[-1] ^= 1
    assert read(FastPartitionRecords, bytes(batch)) == ([], True)


def test_records_before_an_invalid_one_of_their_batch_are_read_as_the_client_reads_them() -> None:
    batch = bytearray(batch_of([(0, None, b"v%d" % row, [], 0) for row in range(4)]))
    batch[-9] = 0x7D  # the length of the last record
    fast, own = (read(reader, with_checksum(batch)) for reader in BOTH)
    assert fast == own
    assert [record[7] for record in fast[0] if isinstance(record, tuple)] == [b"v0", b"v1", b"v2"]
    assert fast[1]


def test_a_header_count_of_zero_in_two_bytes_is_no_headers() -> None:
    batch = bytearray(batch_of([(0, None, b"v", [], 0)]))
    at = DefaultRecordBatch.HEADER_STRUCT.size
    batch[at] += 2  # a zigzag varint: one byte more
    batch[-1:] = b"\x80\x00"
    struct.pack_into(">i", batch, 8, len(batch) - 12)  # the batch's length, without what is before it
    fast, own = (read(reader, with_checksum(batch)) for reader in BOTH)
    assert fast == own
    assert fast[0][0][-1] == -1


def test_a_number_that_never_ends_is_refused() -> None:
    batch = bytearray(batch_of([(0, None, b"x" * 100, [], 0)]))
    header = DefaultRecordBatch.HEADER_STRUCT.size
    batch[header:] = b"\xff" * (len(batch) - header)
    assert read(FastPartitionRecords, with_checksum(batch)) == ([], True)


@pytest.mark.parametrize("aborted", [False, True])
def test_records_of_aborted_transactions_are_left_out_and_those_of_others_are_not(aborted: bool) -> None:
    class Aborted:
        producer_id, first_offset = 7, 0

    data = batch_of([(0, None, b"in doubt", [], 0)], transactional=True)
    data += batch_of([(0, None, b"certain", [], 0)], offset=1)
    data += control_batch(2, commits=not aborted)
    data += batch_of([(0, None, b"later", [], 0)], offset=3, transactional=True)
    fast, own = (read(reader, data, aborted=[Aborted] if aborted else []) for reader in BOTH)
    assert fast == own
    values = [record[7] for record in fast[0] if isinstance(record, tuple)]
    assert values == ([] if aborted else [b"in doubt"]) + [b"certain", b"later"]


@pytest.fixture(autouse=True)
def own_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the process's clients as they are."""
    monkeypatch.setattr(manager, "KafkaTCPTransport", KafkaTCPTransport)


class Client:
    """As much of a consumer as is changed."""

    def __init__(self) -> None:
        self._fetcher = SimpleNamespace(PartitionRecords=Fetcher.PartitionRecords)

    @property
    def is_fast(self) -> bool:
        return self._fetcher.PartitionRecords is FastPartitionRecords


def test_it_is_put_in_where_it_is_known_to_be_safe() -> None:
    client = Client()
    assert use_fast_fetch(client)
    assert client.is_fast


def test_it_stays_off_with_another_version_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    monkeypatch.setattr(kafka, "__version__", "3.0.99")
    assert not use_fast_fetch(client)
    assert not client.is_fast


def test_it_stays_off_with_a_client_that_is_patched_to_read_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client()
    monkeypatch.setattr(DefaultRecord, "value", property(lambda record: (record._value or b"")[:100]))
    assert not use_fast_fetch(client)
    assert not client.is_fast


def test_it_stays_off_with_a_client_whose_private_parts_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    monkeypatch.delattr(DefaultRecordBatch, "_maybe_uncompress")
    assert not use_fast_fetch(client)
    assert not client.is_fast


def received(transport: type[Any], sent: bytes, *, ends: bool) -> tuple[bytes, str]:
    """What a transport receives of these data, and the error; the other side may then shut down its end."""
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.sendall(sent)
        if ends:
            there.shutdown(socket.SHUT_WR)
        data, error = transport._sock_recv(SimpleNamespace(_sock=here))
    return data, repr(error)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("said", [b"", b"x", b"y" * 4_096, b"z" * 100_000])
def test_what_comes_over_a_connection_and_its_end_are_received_as_the_client_does(
    said: bytes, ends: bool
) -> None:
    assert received(FastTransport, said, ends=ends) == received(KafkaTCPTransport, said, ends=ends)


def test_a_connection_that_is_closed_is_an_error() -> None:
    closed = socket.socket()
    closed.close()
    data, error = FastTransport._sock_recv(SimpleNamespace(_sock=closed))
    assert data == b""
    assert isinstance(error, KafkaConnectionError)


def test_a_connection_that_the_client_has_dropped_is_an_error() -> None:
    _, error = FastTransport._sock_recv(SimpleNamespace(_sock=None))
    _, own = KafkaTCPTransport._sock_recv(SimpleNamespace(_sock=None))
    assert repr(error) == repr(own)
