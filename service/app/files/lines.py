"""Lines of a binary file, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from service.domain.errors import BadMessage


class Lines:
    """Numbered lines, and how much of the current row was read.

    Iterated, it gives lines as text. It raises `BadMessage` for a line that is not UTF-8, and for a row that
    is too long, and then goes on with the next line.

    Args:
        handle: of a file that was opened for reading bytes.
        row_bytes: longest row; a row may have several lines.

    Attributes:
        number: of the last line that was read, from 1; 0 before the first one.
    """

    def __init__(self, handle: IO[bytes], *, row_bytes: int) -> None:
        self._handle = handle
        self._row_bytes = row_bytes
        self._left = row_bytes
        self.number = 0

    @property
    def row_size(self) -> int:
        """Bytes of the current row that were read."""
        return self._row_bytes - self._left

    def begin_row(self) -> None:
        """Let the next line be the first one of a row."""
        self._left = self._row_bytes

    def read(self) -> bytes:
        """The next line with its end; empty at the end of the file.

        Raises:
            BadMessage: the row is too long.
        """
        line = self._handle.readline(self._left + 1)
        if not line:
            return line
        self.number += 1
        if len(line) > self._left:
            # In pieces: its end may be far.
            while line and not line.endswith(b"\n"):
                line = self._handle.readline(self._row_bytes)
            raise BadMessage("row_too_long", f"the row is over {self._row_bytes} bytes")
        self._left -= len(line)
        return line

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.read()
        if not line:
            raise StopIteration
        try:
            return line.decode()
        except UnicodeDecodeError:
            raise BadMessage("not_utf8", "the row is not UTF-8") from None
