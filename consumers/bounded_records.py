"""Bounds what a compressed record batch may become in memory, and reads on behind one that cannot be read.

The Kafka client decompresses a batch whole, however large it gets (a gibibyte of zeros takes 33 KB of zstd),
and stops for ever at a batch whose checksum is right and whose content is not. Brokers bound compressed size.

There is no setting of the client for this. So one consumer, and no other in the process, is given another
class for the records of a partition; this relies on names inside the client, which are checked, and works
with the versions that it was tested with alone.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import kafka
from kafka import codec
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch

from service.domain.errors import ConfigurationError

CHECKED_VERSIONS = "3.0."
"""Versions of the client begin so, whose names inside are those that are relied on."""

REFUSED_BATCH = "refused-batch"
"""Header of the record that stands for a batch, or for what is left of it."""


def bound_batches(consumer: Any, *, batch_bytes: int, message_bytes: int) -> None:
    """Make a consumer give, for a batch that is too large or cannot be read, one record that nothing can use.

    The record stands at the batch's last offset and holds its beginning: of one that is too large more than
    `message_bytes`, so that it is refused as a message that is. A fetch is left too as soon as it has become
    larger than `batch_bytes`; what is behind is fetched again.

    Args:
        consumer: a `KafkaConsumer` that has not polled yet.
        batch_bytes: largest batch after decompression.
        message_bytes: longest message that is taken.

    Raises:
        ConfigurationError: the client is not of a version that this was tested with.
    """
    fetcher: Any = getattr(consumer, "_fetcher", None)
    known = hasattr(fetcher, "PartitionRecords") and hasattr(Fetcher.PartitionRecords, "_unpack_records")
    if not kafka.__version__.startswith(CHECKED_VERSIONS) or not known:
        problem = (
            f"kafka-python {kafka.__version__} is not of a version that batches can be bounded with "
            f"({CHECKED_VERSIONS}x); install one, or leave this out"
        )
        raise ConfigurationError([("bounds.batch_bytes", problem)])

    class BoundedPartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]  # the library has no types
        """Records of one fetch of one partition."""

        def _unpack_records(self, tp: Any, records: Any, *deserializers: Any) -> Any:
            return super()._unpack_records(
                tp, _BoundedBatches(records, batch_bytes, message_bytes), *deserializers
            )

    fetcher.PartitionRecords = BoundedPartitionRecords


class _BoundedBatches:
    """The batches of one fetch; stands in for the client's `MemoryRecords`."""

    def __init__(self, records: Any, batch_bytes: int, message_bytes: int) -> None:
        self._records = records
        self._batch_bytes = batch_bytes
        self._message_bytes = message_bytes
        self._last: _BoundedBatch | None = None
        self._left = batch_bytes

    def next_batch(self) -> Any:
        if self._last is not None:
            self._left -= self._last.plain_bytes
            if self._left <= 0:
                return None
        batch = self._records.next_batch()
        if not isinstance(batch, DefaultRecordBatch):
            return batch
        self._last = _BoundedBatch(batch, self._batch_bytes, self._message_bytes)
        return self._last


class _BoundedBatch(DefaultRecordBatch):  # type: ignore[misc]  # the library has no types
    """A batch that is never larger than its bound, and always ends.

    Attributes:
        plain_bytes: what it took after decompression; 0 before that.
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
                yield self._refusal("something stands behind the last one")
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
        told = f"{self._num_records - self._next_record_index} of {self._num_records} records: {why}"
        value = bytes(self._buffer[self._pos : self._pos + self._refusal_bytes])
        headers = [(REFUSED_BATCH, told.encode())]
        return DefaultRecord(
            len(value), self.last_offset, self.max_timestamp, self.timestamp_type, None, value, headers
        )


def _gunzip(data: bytes, most: int) -> bytes:
    plain = bytearray()
    while data and len(plain) < most:
        member = zlib.decompressobj(wbits=31)
        plain += member.decompress(data, most - len(plain))
        if not member.eof and len(plain) < most:
            raise zlib.error("the stream ends early")
        data = member.unused_data
    return bytes(plain)


def _unsnap(data: bytes, most: int) -> bytes:
    # Each block says first how long it will be, and the codec holds it to that.
    promised = 0
    if codec._detect_xerial_stream(data):  # noqa: SLF001 - see the module's docstring
        at = 16
        while at + 4 <= len(data):
            block_bytes = int.from_bytes(data[at : at + 4], "big")
            promised += _varint(data[at + 4 : at + 9])
            at += 4 + block_bytes
    else:
        promised = _varint(data[:5])
    if promised >= most:
        return data.ljust(most, b"\0")
    plain: bytes = codec.snappy_decode(data)
    return plain


def _varint(data: bytes) -> int:
    value = 0
    for position, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
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
    RuntimeError,  # of lz4
    ValueError,
    IndexError,
    struct.error,
    *([codec.zstd.ZstdError] if codec.zstd is not None else []),
    *([codec.snappy.UncompressError] if codec.snappy is not None else []),
)
"""What is raised for content that cannot be read; not what is raised for a codec that is not installed."""
