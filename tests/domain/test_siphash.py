"""SipHash-2-4 against its authors' vectors, and against itself one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.siphash import siphash24

KEY = bytes(range(16))

# Aumasson and Bernstein's reference implementation, `vectors.h`: the hash of 00 01 02 ... of each length.
REFERENCE = {
    0: 0x726FDB47DD0E0E31,
    1: 0x74F839C593DC67FD,
    7: 0xAB0200F58B01D137,
    8: 0x93F5F5799A932462,
    15: 0xA129CA6149BE45E5,
}


@pytest.mark.parametrize(("length", "expected"), REFERENCE.items())
def test_it_gives_the_authors_vectors(length: int, expected: int) -> None:
    assert int(siphash24([bytes(range(length))], KEY)[0]) == expected


@given(st.lists(st.binary(max_size=40), max_size=20), st.binary(min_size=16, max_size=16))
def test_hashing_many_is_hashing_each(messages: list[bytes], key: bytes) -> None:
    together = siphash24(messages, key)
    assert together.tolist() == [int(siphash24([message], key)[0]) for message in messages]


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes, not 3"):
        siphash24([b"x"], b"abc")
