"""Which gold items are requested next: each once, in an order that nobody without the hash key can tell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from service.store.records import GoldItem
from service.store.request_registry import request_id_of
from service.store.requests import RequestStore

_PAGE: Final = 500  # items of which it is looked up at once whether they were requested


class GoldQueue:
    """The gold items of one model that were not requested yet.

    The order is a keyed hash of their ids. So it stays the same when the file gets further items, or a
    process starts again.
    """

    def __init__(
        self, model: str, items: Iterable[GoldItem], requests: RequestStore, *, hash_key: bytes
    ) -> None:
        self._model = model
        self._requests = requests
        self._left = sorted(items, key=lambda item: _priority(item.record.item_id, hash_key))

    def next(self, count: int) -> list[GoldItem]:
        """The next items, at most `count`; they stay next until they were requested.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        left, looked_up = self._left, 0
        while count and looked_up < min(len(left), count):
            page = left[looked_up : looked_up + max(count, _PAGE)]
            ids = [request_id_of(self._model, item.record.item_id) for item in page]
            used = self._requests.are_used(ids)
            unused = [item for item, is_used in zip(page, used, strict=True) if not is_used]
            left[looked_up : looked_up + len(page)] = unused
            looked_up += len(unused)
        return left[:count]


def _priority(item_id: str, hash_key: bytes) -> bytes:
    return hashlib.blake2b(item_id.encode(), key=hash_key, digest_size=8, person=b"gold").digest()
