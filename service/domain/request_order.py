"""The order of label requests as one number each: by when they were made, ties by request id (pure).

Evidence counts labels in this order, because it does not depend on what labels say. Answers may come in any
order: a wrong prediction may take people longer than a right one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

import numpy as np

from service.domain.arrays import UInt64s

Places = UInt64s

_TIE_BITS: Final = 22
_LATEST: Final = (1 << (64 - _TIE_BITS)) - 1
"""Milliseconds since the epoch, in the year 2109."""

NO_PLACE: Final = (1 << 64) - 1
"""Behind every request."""


def request_place(requested_at: float, request_id: str) -> int:
    """Place of a request among all requests, which grows with time; 64 bits.

    `requested_at` is when its first attempt was issued, seconds since the epoch. The id breaks ties.
    """
    milliseconds = min(max(round(requested_at * 1_000), 0), _LATEST)
    return milliseconds << _TIE_BITS | zlib.crc32(request_id.encode()) >> (32 - _TIE_BITS)


def request_places(requests: Iterable[tuple[float, str]]) -> Places:
    """Places of many requests, each a time and an id [n]."""
    return np.array([request_place(*request) for request in requests], dtype=np.uint64)


def requested_at(place: int) -> float:
    """When the request of a place was made, seconds since the epoch."""
    return (place >> _TIE_BITS) / 1_000
