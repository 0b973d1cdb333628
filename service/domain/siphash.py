"""SipHash-2-4 over many short byte strings at once.

The noise behind the pool's priorities must be the same when records are read again, and impossible to steer
without the key; a keyed hash of the item id is both.
Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), section 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.domain.arrays import Ints, UInt64s

_WORD = 8


def siphash24(messages: Sequence[bytes], key: bytes) -> UInt64s:
    """SipHash-2-4 of every message under a 16-byte key, as unsigned 64-bit integers [n].

    Raises:
        ValueError: the key is not 16 bytes long.
    """
    if len(key) != 2 * _WORD:
        raise ValueError(f"the hash key must be 16 bytes, not {len(key)}")
    hashes = np.empty(len(messages), dtype=np.uint64)
    if not messages:
        return hashes
    lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
    # The final word holds the message's tail and its length, so there is always one more than full words.
    word_counts = lengths // _WORD + 1
    if word_counts[0] == word_counts.min() == word_counts.max():
        return _hash_block(messages, lengths, int(word_counts[0]), key)
    for word_count in np.unique(word_counts):
        members = np.flatnonzero(word_counts == word_count)
        hashes[members] = _hash_block(
            [messages[i] for i in members.tolist()], lengths[members], int(word_count), key
        )
    return hashes


def _hash_block(messages: Sequence[bytes], lengths: Ints, word_count: int, key: bytes) -> UInt64s:
    # An array of byte strings pads them with zeros, as the algorithm does.
    padded = np.array(messages, dtype=f"S{word_count * _WORD}")
    words = padded.view("<u8").reshape(len(messages), word_count)
    words[:, -1] |= (lengths.astype(np.uint64) & np.uint64(0xFF)) << np.uint64(56)

    k0, k1 = (int.from_bytes(part, "little") for part in (key[:_WORD], key[_WORD:]))
    v = [
        np.full(len(messages), initial, dtype=np.uint64)
        for initial in (
            k0 ^ 0x736F6D6570736575,
            k1 ^ 0x646F72616E646F6D,
            k0 ^ 0x6C7967656E657261,
            k1 ^ 0x7465646279746573,
        )
    ]
    spare = np.empty(len(messages), dtype=np.uint64)
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
