"""Records of a topic in a file, one JSON value per line, as `kcat -C` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from service.app.files.rows import UnusableFileError

_BATCH = 500


@dataclass(frozen=True)
class DumpedRecord:
    """A record of which the value alone is known, with the attributes of a record of Kafka.

    Attributes:
        topic: the file.
        offset: its line, from 1.
        value: the line.
        timestamp: as of a record without a time.
    """

    topic: str
    offset: int
    value: bytes
    partition: int = 0
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp: int = -1


def dumped_records(path: Path, records: int | None, message_bytes: int) -> Iterator[list[DumpedRecord]]:
    """The lines of a file as records, in batches.

    Args:
        path: of the file.
        records: that are read; all if None.
        message_bytes: longest record; the rest of a longer line is another one.

    Raises:
        UnusableFileError: the file cannot be read; also while the batches are iterated.
    """
    try:
        with path.open("rb") as handle:
            lines = iter(lambda: handle.readline(message_bytes + 2), b"")
            numbered = enumerate(islice(lines, records), 1)
            while batch := list(islice(numbered, _BATCH)):
                yield [
                    DumpedRecord(str(path), number, line.strip()) for number, line in batch if line.strip()
                ]
    except OSError as error:
        raise UnusableFileError(str(path), f"cannot be read: {error.strerror}") from error
