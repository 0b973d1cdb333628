"""Which vendor is asked: a keyed hash decides, so every replica decides alike and nothing is remembered.

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


class VendorAssignment:
    """Assigns label requests to vendors.

    Args:
        shares: positive weights of the vendors that may be asked; empty where there are none.
        hash_key: of the deployment, 16 bytes: who does not hold it cannot choose item ids for a vendor.
    """

    def __init__(self, shares: Mapping[str, float], hash_key: bytes) -> None:
        self._shares = dict(shares)
        self._hash_key = hash_key

    def vendor(self, request_id: str, attempt: int) -> str:
        """The vendor that an attempt of a request is sent to; empty where there are none.

        Args:
            request_id: of the label request.
            attempt: counts from 1; another attempt may go to another vendor, or to the same one.
        """
        return max(self._shares, key=lambda vendor: self._score(request_id, attempt, vendor), default="")

    def _score(self, request_id: str, attempt: int, vendor: str) -> tuple[float, str]:
        return -self._shares[vendor] / math.log(self._uniform(request_id, attempt, vendor)), vendor

    def _uniform(self, request_id: str, attempt: int, vendor: str) -> float:
        """A number in (0, 1), neither end included; so its logarithm is below 0."""
        text = msgspec.json.encode([request_id, attempt, vendor])
        hashed = hashlib.blake2b(text, key=self._hash_key, digest_size=8, person=b"assignment").digest()
        return ((int.from_bytes(hashed) >> 12) + 0.5) / 2**52
