"""Says whether a file has changed between two looks, as a trial reads it twice."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class FileStamp(NamedTuple):
    """What changes with the content of a file.

    Attributes:
        size: in bytes.
        changed_at: time of the last change, nanoseconds since the epoch.
    """

    size: int
    changed_at: int


def stamp_of(path: str) -> FileStamp | None:
    """The stamp of a file; None if there is none."""
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return None
    return FileStamp(found.st_size, found.st_mtime_ns)
