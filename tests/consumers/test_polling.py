"""Errors of the client: records that cannot be read, and truncated logs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NoReturn

import pytest
from kafka import TopicPartition
from kafka.errors import CorruptRecordError, LogTruncationError
from kafka.structs import OffsetAndMetadata

from consumers.polling import Poller, close_consumer
from service.domain.errors import Unreadable


def test_an_error_about_a_corrupt_record_does_not_quote_it() -> None:
    def poll(_: int) -> NoReturn:
        broken = UnicodeDecodeError("utf-8", b"secret\xff", 6, 7, "invalid start byte")
        raise CorruptRecordError(f"Found invalid record structure: {broken!r}")

    with pytest.raises(Unreadable, match="Found invalid record structure; repair") as failure:
        Poller(SimpleNamespace(poll=poll), SimpleNamespace()).poll()
    assert "secret" not in str(failure.value)


def test_a_truncation_found_before_a_seek_is_discarded_for_that_partition() -> None:
    partition, other = TopicPartition("t", 0), TopicPartition("t", 1)
    forks = {partition: OffsetAndMetadata(0, "", 0), other: OffsetAndMetadata(7, "", 3)}
    sought: list[tuple[TopicPartition, int]] = []
    noted: list[dict[TopicPartition, int]] = []

    def position(tp: TopicPartition, timeout_ms: int) -> NoReturn:
        assert (tp, timeout_ms) == (partition, 0)
        assert sought == [(partition, 30)], "the position is asked for after the seek"
        raise LogTruncationError(forks)

    client = SimpleNamespace(seek=lambda tp, offset: sought.append((tp, offset)), position=position)
    Poller(client, SimpleNamespace(note_diverged=noted.append)).seek(partition, 30)
    assert noted == [{other: 7}]


def test_a_connection_that_receives_while_it_is_closed_is_logged_and_fails_no_consumer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def close(*, autocommit: bool) -> None:
        assert not autocommit
        running = True
        assert not running, "as of the client's selector"

    close_consumer(SimpleNamespace(close=close))
    assert [record.message for record in caplog.records] == [
        "a connection to Kafka was closed while it received data"
    ]
