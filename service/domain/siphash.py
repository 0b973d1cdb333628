"""SipHash-2-4 over many short byte strings at once.

The noise behind the pool's priorities must be the same when records are read again, and impossible to steer
without the key; a keyed hash of the item id is both.
Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), section 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.domain.arrays import Bytes, Ints, UInt64s

_WORD = 8


def siphash24(messages: Sequence[bytes], key: bytes) -> UInt64s:
    """SipHash-2-4 of every message under a 16-byte key, as unsigned 64-bit integers [n].

    Raises:
        ValueError: the key is not 16 bytes long.
    """
    lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
    bounds = np.zeros(len(messages) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return siphash24_joined(np.frombuffer(b"".join(messages), np.uint8), bounds, key)


def siphash24_joined(data: Bytes, bounds: Ints, key: bytes) -> UInt64s:
    """The same of messages that follow one another in an array of bytes.

    Args:
        data: the bytes of all messages.
        bounds: where each begins and the last one ends [n + 1].
        key: of 16 bytes.

    Raises:
        ValueError: the key is not 16 bytes long.
    """
    if len(key) != 2 * _WORD:
        raise ValueError(f"the hash key must be 16 bytes, not {len(key)}")
    begins, lengths = bounds[:-1], np.diff(bounds)
    hashes = np.empty(len(lengths), dtype=np.uint64)
    if not len(lengths):
        return hashes
    # The final word holds the message's tail and its length, so there is always one more than full words.
    word_counts = lengths // _WORD + 1
    if word_counts[0] == word_counts.min() == word_counts.max():
        return _hash_block(_padded(data, begins, lengths), lengths, key)
    for word_count in np.unique(word_counts):
        members = np.flatnonzero(word_counts == word_count)
        padded = _padded(data, begins[members], lengths[members])
        hashes[members] = _hash_block(padded, lengths[members], key)
    return hashes


def _padded(data: Bytes, begins: Ints, lengths: Ints) -> UInt64s:
    """Messages of as many words each [n], padded with zeros, as the algorithm does [n, words]."""
    longest = int(lengths.max())
    padded = np.zeros((len(lengths), (longest // _WORD + 1) * _WORD), np.uint8)
    if longest == lengths.min():
        begin = int(begins[0])
        if begin + longest * len(lengths) == int(begins[-1]) + longest:
            padded[:, :longest] = data[begin : begin + longest * len(lengths)].reshape(len(lengths), longest)
            return padded.view("<u8")
    columns = np.arange(longest)
    is_within = columns < lengths[:, None]
    padded[:, :longest][is_within] = data[(begins[:, None] + columns)[is_within]]
    return padded.view("<u8")


def _hash_block(words: UInt64s, lengths: Ints, key: bytes) -> UInt64s:
    words[:, -1] |= (lengths.astype(np.uint64) & np.uint64(0xFF)) << np.uint64(56)

    k0, k1 = (int.from_bytes(part, "little") for part in (key[:_WORD], key[_WORD:]))
    v = [
        np.full(len(words), initial, dtype=np.uint64)
        for initial in (
            k0 ^ 0x736F6D6570736575,
            k1 ^ 0x646F72616E646F6D,
            k0 ^ 0x6C7967656E657261,
            k1 ^ 0x7465646279746573,
        )
    ]
    spare = np.empty(len(words), dtype=np.uint64)
    for column in np.ascontiguousarray(words.T):
        v[3] ^= column
        _rounds(v, 2, spare)
        v[0] ^= column
    v[2] ^= np.uint64(0xFF)
    _rounds(v, 4, spare)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _rounds(v: list[UInt64s], count: int, spare: UInt64s) -> None:
    for _ in range(count):
        v[0] += v[1]
        _rotate(v[1], 13, spare)
        v[1] ^= v[0]
        _rotate(v[0], 32, spare)
        v[2] += v[3]
        _rotate(v[3], 16, spare)
        v[3] ^= v[2]
        v[0] += v[3]
        _rotate(v[3], 21, spare)
        v[3] ^= v[0]
        v[2] += v[1]
        _rotate(v[1], 17, spare)
        v[1] ^= v[2]
        _rotate(v[2], 32, spare)


def _rotate(x: UInt64s, bits: int, spare: UInt64s) -> None:
    """Rotate to the left, in place; `spare` is overwritten."""
    np.left_shift(x, np.uint64(bits), out=spare)
    np.right_shift(x, np.uint64(64 - bits), out=x)
    np.bitwise_or(x, spare, out=x)
