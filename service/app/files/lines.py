"""Lines of a binary file, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from service.domain.errors import BadMessage

_QUOTE = b'"'


class Lines:
    """Numbered lines, and how much of the current row was read.

    Iterated, it gives lines as text. It raises `BadMessage` for a row that is too long, and then goes on with
    the next line.

    Args:
        handle: of a file that was opened for reading bytes.
        row_bytes: longest row; a row may have several lines.

    Attributes:
        number: of the last line that was read, from 1; 0 before the first one.
        has_quote: whether the current row has a quote, as far as it was read.
        is_utf8: whether the text of the current row is UTF-8.
    """

    def __init__(self, handle: IO[bytes], *, row_bytes: int) -> None:
        self._handle = handle
        self._row_bytes = row_bytes
        self.number = 0
        self.begin_row()

    @property
    def row_size(self) -> int:
        """Bytes of the current row that were read."""
        return self._row_bytes - self._left

    def begin_row(self) -> None:
        """Let the next line be the first one of a row."""
        self._left = self._row_bytes
        self.has_quote = False
        self.is_utf8 = True

    def read(self) -> bytes:
        """The next line with its end; empty at the end of the file.

        Raises:
            BadMessage: the row is too long.
        """
        line = self._handle.readline(self._left + 1)
        if not line:
            return line
        self.number += 1
        self.has_quote |= _QUOTE in line
        if len(line) > self._left:
            # In pieces: its end may be far.
            while line and not line.endswith(b"\n"):
                line = self._handle.readline(self._row_bytes)
                self.has_quote |= _QUOTE in line
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
            self.is_utf8 = False
            # Quotes and line ends stay, so the parser still finds the end of the row.
            return line.decode(errors="surrogateescape")
