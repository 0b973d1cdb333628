"""What the client says of records that it cannot read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NoReturn

import pytest
from kafka import TopicPartition
from kafka.errors import CorruptRecordError, LogTruncationError
from kafka.structs import OffsetAndMetadata

from consumers.polling import Poller
from service.domain.errors import Unreadable


def test_the_bytes_of_a_broken_record_are_not_told() -> None:
    def poll(_: int) -> NoReturn:
        broken = UnicodeDecodeError("utf-8", b"secret\xff", 6, 7, "invalid start byte")
        raise CorruptRecordError(f"Found invalid record structure: {broken!r}")

    with pytest.raises(Unreadable, match="Found invalid record structure; mend") as failure:
        Poller(SimpleNamespace(poll=poll), SimpleNamespace()).poll()
    assert "secret" not in str(failure.value)


def test_what_was_found_out_of_a_log_before_it_is_read_elsewhere_counts_no_more() -> None:
    mended, other = TopicPartition("t", 0), TopicPartition("t", 1)
    forks = {mended: OffsetAndMetadata(0, "", 0), other: OffsetAndMetadata(7, "", 3)}
    sought: list[tuple[TopicPartition, int]] = []
    noted: list[dict[TopicPartition, int]] = []

    def position(tp: TopicPartition, timeout_ms: int) -> NoReturn:
        assert (tp, timeout_ms) == (mended, 0)
        assert sought == [(mended, 30)], "what was found out of the offset before is told until then"
        raise LogTruncationError(forks)

    client = SimpleNamespace(seek=lambda tp, offset: sought.append((tp, offset)), position=position)
    Poller(client, SimpleNamespace(note_diverged=noted.append)).seek(mended, 30)
    assert noted == [{other: 7}]
