"""What the client says of records that it cannot read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NoReturn

import pytest
from kafka.errors import CorruptRecordError

from consumers.polling import Poller
from service.errors import Unreadable


def test_the_bytes_of_a_broken_record_are_not_told() -> None:
    def poll(_: int) -> NoReturn:
        broken = UnicodeDecodeError("utf-8", b"secret\xff", 6, 7, "invalid start byte")
        raise CorruptRecordError(f"Found invalid record structure: {broken!r}")

    with pytest.raises(Unreadable, match="Found invalid record structure; mend") as failure:
        Poller(SimpleNamespace(poll=poll), SimpleNamespace()).poll()
    assert "secret" not in str(failure.value)
