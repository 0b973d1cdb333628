"""The keyed order of pooled items: nobody without the key can predict or steer draws.

The noise behind an item's priority is a keyed hash of the item, its times, the model and the grouping. So the
order is the same when predictions are read again, and independent between groupings and between models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from service.domain.arrays import Floats, UInt64s
from service.domain.cells import CellSpace, definitions


def gumbel_noise(hashes: UInt64s) -> Floats:
    """Standard Gumbel variates [n] from uniform 64-bit hashes [n].

    The top 52 bits make u in (0, 1), exactly; -log(-log(1 - u)) keeps full precision where it is large.
    """
    uniform = ((hashes >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return -np.log(-np.log1p(-uniform))


def pool_ids(space: CellSpace, groupings: Iterable[str], *, half_life_hours: float | None) -> dict[str, str]:
    """Id of the pool of every grouping: its name, a digest of what the grouping is by, and the half-life.

    Priorities under two half-lives cannot be compared. So a grouping that is redefined under its name, or
    drawn with another half-life, starts a pool of its own. Without a half-life, weights do not decay.
    """
    by, half_life = definitions(space), "" if half_life_hours is None else f"{half_life_hours!r}h"
    return {
        name: f"{name}:{by[name].hex()}:{half_life}:{space.voters_of(name)}"
        for name in sorted(set(groupings))
    }


class PoolKey:
    """Hashes of one model's items under the deployment's 16-byte key."""

    def __init__(self, hash_key: bytes, model: str) -> None:
        self._hash_key = hash_key
        self._model = model
        self._secret = self._derive("items", "")
        self._secrets: dict[str, UInt64s] = {}

    def item_hashes(self, id_hashes: UInt64s, times: Floats, arrivals: Floats) -> UInt64s:
        """Hash of every prediction [n], from its item and times.

        An item that is sent again arrives later and gets new noise. Else anybody who has seen an item drawn
        could send it again and again, each time with the same high noise.

        Args:
            id_hashes: SipHash-2-4 of the items' ids under the deployment's key [n].
            times: when each was predicted, seconds since the epoch [n].
            arrivals: when each arrived, seconds since the epoch [n].
        """
        found = _mix(id_hashes ^ self._secret[0])
        for stamps, secret in zip((times, arrivals), self._secret[1:], strict=True):
            found = _mix(found + _mix(np.ascontiguousarray(stamps, "<f8").view("<u8") ^ secret))
        return found

    def join_digests(self, id_hashes: UInt64s) -> UInt64s:
        """Digest of the item of every prediction or unrequested label [n], whatever its time."""
        return self._mixed("joins", id_hashes)

    def sample_positions(self, id_hashes: UInt64s) -> Floats:
        """A number in [0, 1) for every item [n], even and independent of `join_digests`."""
        return np.asarray((self._mixed("sample", id_hashes) >> np.uint64(11)) * 2.0**-53, np.float64)

    def _mixed(self, purpose: str, id_hashes: UInt64s) -> UInt64s:
        secret = self._derive(purpose, "")
        return _mix(_mix(id_hashes ^ secret[0]) + secret[1])

    def noise(self, pool_id: str, item_hashes: UInt64s) -> Floats:
        """Gumbel noise of items in the pool of one grouping [n].

        The hashes are secret, so mixing them with secrets of the grouping gives each grouping its own order:
        the finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), twice.
        """
        if pool_id not in self._secrets:
            self._secrets[pool_id] = self._derive("grouping", pool_id)
        secret = self._secrets[pool_id]
        return gumbel_noise(_mix(_mix(item_hashes ^ secret[0]) + secret[1]))

    def _derive(self, purpose: str, name: str) -> UInt64s:
        """Three secret 64-bit words for a purpose [3]."""
        text = f"{purpose}\0{self._model}\0{name}"
        digest = hashlib.blake2b(text.encode(), key=self._hash_key, digest_size=24).digest()
        return np.frombuffer(digest, "<u8").astype(np.uint64)


def _mix(values: UInt64s) -> UInt64s:
    """The finalizer of splitmix64: a bijection that changes half of the bits when one changes [n]."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ values >> np.uint64(shift)) * np.uint64(factor)
    return values ^ values >> np.uint64(31)
