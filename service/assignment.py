"""Which vendor is asked: a hash decides, so every replica decides alike and nothing is remembered.

Weighted rendezvous hashing with logarithms (Schindelhauer and Schomaker, Weighted distributed hash tables,
SPAA 2005): a vendor's hash is a number u that is uniform in (0, 1), and the highest -share / ln u is asked.
Each vendor is the highest in proportion to its share; when one comes, goes or changes its share, requests
move to it or from it alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import msgspec


def vendor_of(request_id: str, attempt: int, shares: Mapping[str, float]) -> str:
    """The vendor that an attempt of a request is sent to; empty where there are none.

    Args:
        request_id: of the label request.
        attempt: counts from 1; another attempt may go to another vendor, or to the same one.
        shares: positive weights by vendor.
    """
    return (
        max(
            shares,
            key=lambda vendor: (-shares[vendor] / math.log(_uniform(request_id, attempt, vendor)), vendor),
        )
        if shares
        else ""
    )


def _uniform(request_id: str, attempt: int, vendor: str) -> float:
    """A number in (0, 1), neither end included; so its logarithm is below 0."""
    text = msgspec.json.encode([request_id, attempt, vendor])
    bits = int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"assignment").digest()) >> 12
    return (bits + 0.5) / 2**52
