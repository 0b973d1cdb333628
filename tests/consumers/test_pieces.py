"""Pieces of a batch: no record twice or left out, and about a megabyte each, whatever the lengths are."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from consumers.predictions import _PIECE_BYTES, _pieces


class Record(NamedTuple):
    offset: int
    value: bytes | None


LENGTHS = st.sampled_from([0, 1, 400, 70_000, _PIECE_BYTES - 1, _PIECE_BYTES, 3 * _PIECE_BYTES])


@given(st.lists(LENGTHS, max_size=60))
def test_pieces_are_bounded_by_the_longest_record(lengths: list[int]) -> None:
    records = [Record(offset, bytes(length) if length else None) for offset, length in enumerate(lengths)]
    pieces = list(_pieces(records))
    assert [record for piece in pieces for record in piece] == records
    for piece in pieces:
        sizes = [len(record.value or b"") for record in piece]
        assert sum(sizes[:-1]) <= _PIECE_BYTES
