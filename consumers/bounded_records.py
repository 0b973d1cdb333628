"""Bounds the decompressed size of record batches, and skips batches that cannot be decoded.

The Kafka client decompresses a batch completely, however large it gets (a gibibyte of zeros takes 33 KB of
zstd), and never gets past a batch with a valid checksum and invalid content. Brokers bound compressed size
only.

The client has no setting for this. So one consumer, and no other in the process, gets another class for the
records of a partition. This relies on private names of the client, which are checked, and on tested versions.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import kafka
from kafka import codec
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch

from service.domain.errors import ConfigurationError

CHECKED_VERSIONS = "3.0."
"""Prefix of the client versions that this was tested with."""

REFUSED_BATCH = "refused-batch"
"""Header of the record that replaces a batch, or the rest of it."""


def bound_batches(consumer: Any, *, batch_bytes: int, message_bytes: int) -> None:
    """Make a consumer that has not polled yet replace batches that are too large, or cannot be decoded.

    Each becomes one bad record. It has the batch's last offset and the first bytes of its content: more than
    `message_bytes` if the batch is too large, so that the record is refused as too large. A fetch ends as
    soon as it gets larger than `batch_bytes`; the rest is fetched again.

    Raises:
        ConfigurationError: the client's version is not a tested one.
    """
    fetcher: Any = getattr(consumer, "_fetcher", None)
    has_names = hasattr(fetcher, "PartitionRecords") and hasattr(Fetcher.PartitionRecords, "_unpack_records")
    if not kafka.__version__.startswith(CHECKED_VERSIONS) or not has_names:
        problem = (
            f"kafka-python {kafka.__version__} is not supported, only {CHECKED_VERSIONS}x is; "
            "install that, or remove this setting"
        )
        raise ConfigurationError([("bounds.batch_bytes", problem)])

    class BoundedPartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]  # the library has no types
        """Records of one fetch of one partition."""

        def _unpack_records(self, tp: Any, records: Any, *deserializers: Any) -> Any:
            batches = bounded_batches(records, batch_bytes, message_bytes)
            bounded = SimpleNamespace(next_batch=partial(next, batches, None))
            return super()._unpack_records(tp, bounded, *deserializers)

    fetcher.PartitionRecords = BoundedPartitionRecords


def bounded_batches(records: Any, batch_bytes: int, message_bytes: int) -> Iterator[Any]:
    """Batches of one fetch, given the client's `MemoryRecords`; each must be iterated before the next."""
    left = batch_bytes
    while left > 0 and (batch := records.next_batch()) is not None:
        if isinstance(batch, DefaultRecordBatch):
            bounded = _BoundedBatch(batch, batch_bytes, message_bytes)
            yield bounded
            left -= bounded.plain_bytes
        else:
            yield batch


class _BoundedBatch(DefaultRecordBatch):  # type: ignore[misc]  # the library has no types
    """A batch that is never larger than its bound, and whose iteration never fails.

    Attributes:
        plain_bytes: its decompressed size; 0 before it is iterated.
    """

    _buffer: bytearray
    _pos: int
    _next_record_index: int
    _num_records: int

    def __init__(self, batch: Any, limit: int, message_bytes: int) -> None:
        super().__init__(batch._buffer)  # noqa: SLF001 - see the module's docstring
        self._limit = limit
        self._refusal_bytes = message_bytes + 1
        self.plain_bytes = 0

    def __iter__(self) -> Iterator[Any]:
        try:
            self._decompress()
            if self.plain_bytes > self._limit:
                yield self._refusal(f"over {self._limit} bytes after decompression")
                return
            while self._next_record_index < self._num_records:
                record = self._read_msg()
                self._next_record_index += 1
                yield record
            if self._pos != len(self._buffer):
                yield self._refusal("data after the last record")
        except _UNREADABLE as error:
            yield self._refusal(type(error).__name__)

    def _decompress(self) -> None:
        kind = self.compression_type
        if kind != self.CODEC_NONE:
            self._assert_has_codec(kind)
            self._buffer = bytearray(_DECOMPRESS[kind](bytes(self._buffer[self._pos :]), self._limit + 1))
            self._pos = 0
            self.plain_bytes = len(self._buffer)

    def _refusal(self, why: str) -> Any:
        content = f"{self._num_records - self._next_record_index} of {self._num_records} records: {why}"
        value = bytes(self._buffer[self._pos : self._pos + self._refusal_bytes])
        headers = [(REFUSED_BATCH, content.encode())]
        return DefaultRecord(
            len(value), self.last_offset, self.max_timestamp, self.timestamp_type, None, value, headers
        )


def _gunzip(data: bytes, most: int) -> bytes:
    return gzip.GzipFile(fileobj=io.BytesIO(data)).read(most)


def _unsnap(data: bytes, most: int) -> bytes:
    # Each block starts with its decompressed length, which the codec enforces.
    declared = 0
    if codec._detect_xerial_stream(data):  # noqa: SLF001 - see the module's docstring
        at = 16
        while at + 4 <= len(data):
            block_bytes = int.from_bytes(data[at : at + 4], "big")
            declared += _varint(data[at + 4 : at + 9])
            at += 4 + block_bytes
    else:
        declared = _varint(data[:5])
    if declared >= most:
        return data.ljust(most, b"\0")
    plain: bytes = codec.snappy_decode(data)
    return plain


def _varint(data: bytes) -> int:
    value = 0
    for position, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            break
    return value


def _unlz4(data: bytes, most: int) -> bytes:
    plain: bytes = codec.lz4.LZ4FrameDecompressor().decompress(data, max_length=most)
    return plain


def _unzstd(data: bytes, most: int) -> bytes:
    with codec.zstd.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
        plain: bytes = reader.read(most)
    return plain


_DECOMPRESS: dict[int, Callable[[bytes, int], bytes]] = {
    DefaultRecordBatch.CODEC_GZIP: _gunzip,
    DefaultRecordBatch.CODEC_SNAPPY: _unsnap,
    DefaultRecordBatch.CODEC_LZ4: _unlz4,
    DefaultRecordBatch.CODEC_ZSTD: _unzstd,
}

_UNREADABLE: tuple[type[Exception], ...] = (
    CorruptRecordError,
    zlib.error,
    gzip.BadGzipFile,
    EOFError,
    RuntimeError,  # of lz4
    ValueError,
    IndexError,
    struct.error,
    *([codec.zstd.ZstdError] if codec.zstd is not None else []),
    *([codec.snappy.UncompressError] if codec.snappy is not None else []),
)
"""Errors of invalid content; that of a codec which is not installed is not among them."""
