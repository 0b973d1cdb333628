"""Texts that lie somewhere in an array of bytes: copied one after the other, or numbered by what they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consumers.formats.columns import Texts
from service.domain.arrays import Bytes, Flags, Indices, Ints, UInt64s

_WORD = 8
_LONGEST_CODED = 64
"""Bytes of texts that are compared as words; of longer ones each is looked up by itself."""

LONGEST_READ = _LONGEST_CODED + _WORD
"""So many bytes may be read from where a text begins, however short it is."""

_NOT_ASCII = 0x80
_MASKS = np.array([(1 << 8 * length) - 1 for length in range(_WORD + 1)], np.uint64)
_FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


class ByteTexts:
    """Bytes, and views of all places in them.

    Attributes:
        bytes: [b].
        words: the eight bytes at every place, as a little-endian number [b - 7].
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.bytes: Bytes = np.frombuffer(data, np.uint8)
        self.words: UInt64s = np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))

    def blocks(self, begins: Ints, size: int) -> Bytes:
        """As many bytes from each of these places, one after the other [n * size]."""
        if not (size and len(begins)):
            return np.zeros(0, np.uint8)
        places = np.ndarray((len(self._data) - size + 1,), f"V{size}", self._data, strides=(1,))
        return places[begins].view(np.uint8)

    def joined(self, begins: Ints, lengths: Ints) -> tuple[Texts, Flags | None]:
        """The texts at these places [n], and which of them surely are UTF-8 [n]; None if all are."""
        bounds = np.zeros(len(begins) + 1, np.int64)
        np.cumsum(lengths, out=bounds[1:])
        longest = int(lengths.max(initial=0))
        if longest == lengths.min(initial=longest):
            data = self.blocks(begins, longest)
        else:
            data = self.bytes[np.arange(bounds[-1]) + np.repeat(begins - bounds[:-1], lengths)]
        texts = Texts(data, bounds)
        return texts, None if _are_utf_8(texts) else _are_ascii(texts)

    def coded(self, begins: Ints, lengths: Ints) -> tuple[list[str | None], Indices]:
        """Every different text, None if it is not UTF-8; and which of them is at each place [n]."""
        firsts, codes = self._different(begins, lengths)
        spans = zip(begins[firsts].tolist(), lengths[firsts].tolist(), strict=True)
        return [_decoded(self._data[begin : begin + length]) for begin, length in spans], codes

    def _different(self, begins: Ints, lengths: Ints) -> tuple[Sequence[int] | Indices, Indices]:
        """Indices of different texts, and which of them is at each place [n]."""
        longest = int(lengths.max(initial=0))
        if not len(begins) or longest > _LONGEST_CODED:
            return self._looked_up(begins, lengths)
        parts = [
            self.words[begins + offset] & _MASKS[(lengths - offset).clip(0, _WORD)]
            for offset in range(0, longest, _WORD)
        ]
        parts.append(lengths.astype(np.uint64))
        if all((part == part[0]).all() for part in parts):
            return [0], np.zeros(len(begins), np.intp)
        keys = np.zeros(len(begins), np.uint64)
        for part in parts:
            keys = (keys ^ part) * _FACTOR
            keys ^= keys >> _SHIFT
        different, codes = np.unique(keys, return_inverse=True)
        firsts = np.zeros(len(different), np.intp)
        firsts[codes] = np.arange(len(begins))
        same = firsts[codes]
        # Different texts may have the same key, if somebody wants it.
        if all((part == part[same]).all() for part in parts):
            return firsts, codes
        return self._looked_up(begins, lengths)

    def _looked_up(self, begins: Ints, lengths: Ints) -> tuple[Sequence[int], Indices]:
        numbers: dict[bytes, int] = {}
        firsts: list[int] = []
        codes: list[int] = []
        for at, (begin, length) in enumerate(zip(begins.tolist(), lengths.tolist(), strict=True)):
            code = numbers.setdefault(self._data[begin : begin + length], len(numbers))
            codes.append(code)
            if code == len(firsts):
                firsts.append(at)
        return firsts, np.array(codes, np.intp)


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _are_utf_8(texts: Texts) -> bool:
    if texts.data.max(initial=0) < _NOT_ASCII:
        return True
    if _decoded(texts.data.tobytes()) is None:
        return False
    # A character must not begin in one text and end in the next one.
    begins = texts.bounds[:-1][np.diff(texts.bounds) > 0]
    is_inner: Flags = (texts.data[begins] & 0xC0) == _NOT_ASCII
    return not is_inner.any()


def _are_ascii(texts: Texts) -> Flags:
    others = np.zeros(len(texts.data) + 1, np.int64)
    np.cumsum(texts.data >= _NOT_ASCII, out=others[1:])
    is_ascii: Flags = others[texts.bounds[1:]] == others[texts.bounds[:-1]]
    return is_ascii
