"""Reads many Avro values of one schema at once: what one function reads from a value, arrays read from all.

Every access is checked against the end of its value before it is made. A value that is not as expected is
given up: its position is set to zeros behind all values, and what is read there means nothing. Numbers are
those of the specification of Avro 1.12, "Binary encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from consumers.formats.byte_texts import LONGEST_READ, ByteTexts
from consumers.formats.columns import Coded, Texts
from service.domain.arrays import Flags, Floats, Indices, Ints, UInt64s

Rows = Indices | None
"""Indices of some values [r]; None for all of them."""

_AFTER = 16
"""Bytes of zeros that a value that is given up may take before it begins there again."""

_PADDING = _AFTER + LONGEST_READ

_MORE = 0x80
"""Continuation bit of a varint: set in every byte but the last."""
_MOST_IN_WORD = 8
_TENTH_SHIFT = 63

_CONTINUED = np.uint64(0x8080808080808080)
_CONTENT = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONE, _LOW = np.uint64(1), np.uint64(0x7F)
_FOLDS = [
    (np.uint64(kept), np.uint64(moved), np.uint64(by))
    for kept, moved, by in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
]
"""Steps that join the seven bits of every byte of a word."""


def subset(rows: Rows, members: Flags) -> Rows:
    """Those of some rows [r] that are members [r]."""
    if members.all():
        return rows
    return np.flatnonzero(members) if rows is None else rows[members]


class Scan:
    """Positions in values of Avro [n], each of which moves on with what is read there.

    Attributes:
        is_plain: which values have been as expected up to now [n].
        total_bytes: of all values.
    """

    def __init__(self, values: Sequence[bytes], begin: int) -> None:
        """Positions that begin at an offset within each value, which is at least so long."""
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        self._texts = ByteTexts(b"".join([*values, bytes(_PADDING)]))
        self._ends = np.cumsum(lengths)
        self._at = self._ends - lengths + begin
        self.total_bytes = int(lengths.sum())
        self.is_plain: Flags = np.ones(len(values), np.bool_)
        self._is_whole = True

    def count(self, rows: Rows) -> int:
        """Number of rows."""
        return len(self._at) if rows is None else len(rows)

    def refuse(self, rows: Rows, which: Flags) -> None:
        """Give up those of some rows [r] for which this is true [r]."""
        if not which.any():
            return
        refused = np.flatnonzero(which) if rows is None else rows[which]
        self._is_whole = False
        self.is_plain[refused] = False
        self._at[refused] = self.total_bytes
        self._ends[refused] = self.total_bytes + _AFTER

    def finish(self) -> None:
        """Give up the values that go on."""
        self.refuse(None, self.is_plain & (self._at != self._ends))

    def take(self, rows: Rows, sizes: Ints | int) -> Ints:
        """Where so many bytes begin in every row [r], after which its position is then."""
        at, ends = (self._at, self._ends) if rows is None else (self._at[rows], self._ends[rows])
        short = sizes > ends - at
        if short.any():
            self.refuse(rows, short)
            at, sizes = np.where(short, self.total_bytes, at), np.where(short, 0, sizes)
        if rows is None:
            self._at = at + sizes
        else:
            self._at[rows] = at + sizes
        return at

    def longs(self, rows: Rows, lowest: int, highest: int) -> Ints:
        """Integers within bounds [r]; 0 where a value is given up."""
        begins = self.take(rows, 1)
        first = self._texts.bytes[begins]
        is_short = first.max(initial=0) < _MORE
        folded = first.astype(np.uint64) if is_short else self._varints(rows, begins)
        numbers = ((folded >> _ONE) ^ (~(folded & _ONE) + _ONE)).view(np.int64)
        is_outside = (numbers < lowest) | (numbers > highest)
        self.refuse(rows, is_outside)
        if self._is_whole:
            return numbers
        return np.where(self.is_plain if rows is None else self.is_plain[rows], numbers, 0)

    def _varints(self, rows: Rows, begins: Ints) -> UInt64s:
        """Unsigned integers, the first byte of each of which was taken [r]."""
        words = self._texts.words[begins]
        stops = ~words & _CONTINUED
        # All bits up to the lowest stop: all 64 if there is none.
        within = stops ^ (stops - _ONE)
        found = words & within & _CONTENT
        for kept, moved, by in _FOLDS:
            found = (found & kept) | ((found & moved) >> by)
        sizes = (np.bitwise_count(within) // _MOST_IN_WORD).astype(np.int64)
        if (longer := np.flatnonzero(stops == 0)).size:
            at = begins[longer] + _MOST_IN_WORD
            ninth, tenth = (self._texts.bytes[at + step].astype(np.uint64) for step in (0, 1))
            is_ten = ninth >= _MORE
            found[longer] |= ((ninth & _LOW) << np.uint64(7 * _MOST_IN_WORD)) | np.where(
                is_ten, (tenth & _ONE) << np.uint64(_TENTH_SHIFT), np.uint64(0)
            )
            sizes[longer] += 1 + is_ten
            is_over = np.zeros(len(begins), np.bool_)
            is_over[longer] = is_ten & (tenth > 1)
            self.refuse(rows, is_over)
        self.take(rows, sizes - 1)
        return found

    def reals(self, rows: Rows, size: int) -> Floats:
        """Floats of 4 or 8 bytes [r]."""
        words = self._texts.words[self.take(rows, size)]
        if size == _MOST_IN_WORD:
            return words.view(np.float64)
        return _as_doubles(words.astype(np.uint32).view(np.float32))

    def matrix(self, begins: Ints, size: int, width: int) -> Floats:
        """As many floats of 4 or 8 bytes at each of these places, which are in values [r, width]."""
        kind = np.float64 if size == _MOST_IN_WORD else np.float32
        found = self._texts.blocks(begins, size * width).view(kind).reshape(len(begins), width)
        return _as_doubles(found)

    def run(self, rows: Rows, counts: Ints, size: int) -> tuple[Ints, Ints]:
        """Where items of a fixed size begin in every row, and how many there are [r]; 0 where given up."""
        begins = self.take(rows, counts * size)
        if not self._is_whole:
            counts = np.where(self.is_plain if rows is None else self.is_plain[rows], counts, 0)
        return begins, counts

    def spans(self, rows: Rows) -> tuple[Ints, Ints]:
        """Where texts or bytes begin in every row, and how long they are [r]; empty where given up."""
        return self.run(rows, self.longs(rows, 0, self.total_bytes), 1)

    def texts(self, rows: Rows, spans: tuple[Ints, Ints]) -> Texts:
        """The texts in spans of every row [r]; gives up those that are not UTF-8."""
        texts, is_utf_8 = self._texts.joined(*spans)
        if is_utf_8 is not None:
            self.refuse(rows, ~is_utf_8)
        return texts

    def coded(self, rows: Rows, fewest: int, most: int) -> Coded:
        """Texts of so many characters [r]."""
        names, codes = self._texts.coded(*self.spans(rows))
        is_odd = np.array([name is None or not fewest <= len(name) <= most for name in names], np.bool_)
        if is_odd.any():
            self.refuse(rows, is_odd[codes])
        return Coded(names, codes)

    def end_of_blocks(self, rows: Rows) -> None:
        """Give up rows whose array or map goes on with another block."""
        begins = self.take(rows, 1)
        self.refuse(rows, self._texts.bytes[begins] != 0)


def _as_doubles(found: npt.NDArray[Any]) -> Floats:
    with np.errstate(invalid="ignore"):  # of some numbers that are not finite
        return found.astype(np.float64)
