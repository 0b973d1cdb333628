"""Batches that are bombs, or cannot be read, stop nothing and take no memory to speak of."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import kafka
import pytest
from harness import Deploy, Deployment, Process, prediction, wait_for
from kafka import KafkaConsumer, KafkaProducer
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords
from letter_topic import header, letters_of

from consumers.bounded_records import REFUSED_BATCH, bound_batches, bounded_batches
from service.domain.errors import ConfigurationError

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
COMPRESSED = [name for name in CODECS if name != "none"]
LIMIT = 1_048_576
MESSAGE_BYTES = 1_000


class NoText(str):
    """A header's name that other clients may send and this one cannot read."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return b"\xff\xfe"


def batch(codec: str, values: list[bytes], headers: list[Any] | None = None) -> bytes:
    builder = DefaultRecordBatchBuilder(
        2, CODECS[codec], 0, producer_id=-1, producer_epoch=-1, base_sequence=-1, batch_size=2**31 - 1
    )
    for offset, value in enumerate(values):
        builder.append(offset, 1_000 + offset, b"k", value, headers if offset == 2 and headers else [])
    return bytes(builder.build())


def read(*batches: bytes, limit: int = LIMIT) -> list[Any]:
    found = []
    for one in bounded_batches(MemoryRecords(b"".join(batches)), limit, MESSAGE_BYTES):
        assert one.validate_crc()
        found += list(one)
    return found


def resealed(content: bytes, at: int, byte: int) -> bytes:
    """A batch with one byte changed and a checksum that is right again."""
    from kafka.record.util import calc_crc32c  # noqa: PLC0415 - internal, for this alone

    changed = bytearray(content)
    changed[at] = byte
    changed[17:21] = calc_crc32c(memoryview(changed)[21:]).to_bytes(4, "big")
    return bytes(changed)


@pytest.mark.parametrize("codec", CODECS)
def test_ordinary_batches_are_read_as_the_client_reads_them(codec: str) -> None:
    content = batch(codec, [b"x" * size for size in range(200)], [("name", b"content")])
    expected = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in next(MemoryRecords(content))]
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in read(content)] == expected
    assert len(expected) == 200


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_one_record_that_is_too_long_and_takes_no_memory_to_speak_of(codec: str) -> None:
    bomb = batch(codec, [bytes(20_000_000)])
    tracemalloc.start()
    try:
        (record,) = read(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(record.value) == MESSAGE_BYTES + 1
    assert record.offset == 0
    assert dict(record.headers)[REFUSED_BATCH] == b"1 of 1 records: over 1048576 bytes after decompression"
    assert peak < 6 * LIMIT + 3 * len(bomb)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_batch_that_just_fits_is_read_whole(codec: str) -> None:
    values = [b"x" * 1_000] * 1_000
    assert [r.value for r in read(batch(codec, values))] == values


def test_a_fetch_that_has_become_large_is_left_between_two_batches_and_loses_nothing() -> None:
    some = batch("gzip", [b"x" * 300_000] * 3)
    assert len(read(some, some, some)) == 6, "the third is fetched again"


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_batch_whose_content_is_garbage_is_one_record(codec: str) -> None:
    content = batch(codec, [b"some text that repeats, some text that repeats"] * 50)
    (record,) = read(resealed(content, 61, 0x5A))
    assert (record.offset, record.key) == (49, None)
    assert REFUSED_BATCH in dict(record.headers)


def test_a_header_whose_name_is_no_text_ends_its_batch_and_not_what_is_before() -> None:
    content = batch("none", [b"a", b"b", b"c", b"d"], [(NoText("x"), b"")])
    *before, refused = read(content)
    assert [r.value for r in before] == [b"a", b"b"]
    assert refused.offset == 3
    assert dict(refused.headers)[REFUSED_BATCH] == b"2 of 4 records: UnicodeDecodeError"


def test_a_client_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "__version__", "3.1.0")
    with pytest.raises(ConfigurationError, match=r"kafka-python 3\.1\.0"):
        bound_batches(object(), batch_bytes=LIMIT, message_bytes=MESSAGE_BYTES)


def test_a_client_without_the_names_that_are_relied_on_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"bounds\.batch_bytes"):
        bound_batches(object(), batch_bytes=LIMIT, message_bytes=MESSAGE_BYTES)


def bounded(deploy: Deploy) -> Deployment:
    deployment = deploy()
    deployment.config.write_text(
        deployment.config.read_text() + "bounds: {batch_bytes: 1048576, message_bytes: 10000}\n"
    )
    return deployment


def most_memory(process: Process) -> int:
    """The most that a process ever had in memory, in bytes."""
    status = Path(f"/proc/{process.popen.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for a process's memory")
def test_a_consumer_reads_on_behind_a_bomb_without_having_held_it(deploy: Deploy) -> None:
    deployment = bounded(deploy)
    topic = f"{deployment.name}.predictions"
    with deployment.process("consume", "predictions") as process:
        wait_for(process.ready, seconds=60, what="ready")
        before = most_memory(process)
        bomber = KafkaProducer(
            bootstrap_servers=deployment.broker, compression_type="gzip", max_request_size=2**31 - 1
        )
        for _ in range(3):
            bomber.send(topic, value=bytes(100_000_000), partition=1).get(timeout=30)
        bomber.send(topic, value=json.dumps(prediction(1)).encode(), partition=1).get(timeout=30)
        bomber.close()
        wait_for(lambda: deployment.predictions_stored() == 1, seconds=60, what="the prediction behind it")
        assert most_memory(process) < before + 50_000_000
        letters = letters_of(deployment, 3)
    assert {header(letter, "credence-reason") for letter in letters} == {"message_too_large"}


def test_a_consumer_reads_on_behind_a_header_whose_name_is_no_text(deploy: Deploy) -> None:
    deployment = bounded(deploy)
    topic = f"{deployment.name}.predictions"
    deployment.producer.send(topic, b"{}", headers=[(NoText("x"), b"")], partition=2).get(timeout=60)
    deployment.producer.send(topic, json.dumps(prediction(1)).encode(), partition=2).get(timeout=60)
    with deployment.process("consume", "predictions"):
        wait_for(lambda: deployment.predictions_stored() == 1, seconds=60, what="the prediction behind it")
        (letter,) = letters_of(deployment, 1)
    assert header(letter, "credence-reason") == "malformed_json"


def test_the_bound_is_of_one_consumer_and_of_no_other(bootstrap_servers: str) -> None:
    consumers = [KafkaConsumer(bootstrap_servers=bootstrap_servers) for _ in range(2)]
    try:
        bound_batches(consumers[0], batch_bytes=LIMIT, message_bytes=MESSAGE_BYTES)
        classes = [consumer._fetcher.PartitionRecords for consumer in consumers]
        assert classes[0] is not classes[1]
        assert issubclass(classes[0], classes[1])
    finally:
        for consumer in consumers:
            consumer.close()
