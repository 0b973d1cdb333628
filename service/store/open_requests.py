"""Open requests, found by their items: for whoever brings labels without having seen the requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from service.store.connection import ModelStore
from service.store.request_registry import person_digest, request_id_of

_MOST_OPINIONS = 9
"""As config/labels_per_item.py allows: requests stay open if the number is lowered."""

_DIGEST_BYTES = 8


class _Open(msgspec.Struct):
    vendor: str = ""


class _Message(msgspec.Struct):
    item_id: str


@dataclass(frozen=True)
class ItemRequest:
    """An open request for the label of an item.

    Attributes:
        vendor: that was asked last; empty if no vendors were configured.
        barred: digests of those who have labelled the item.
    """

    request_id: str
    vendor: str
    barred: bytes = b""

    def bars(self, annotator: str, vendor: str = "") -> bool:
        """Whether somebody has labelled the item before, so that the request is for others."""
        places = range(0, len(self.barred), _DIGEST_BYTES)
        people = {self.barred[at : at + _DIGEST_BYTES] for at in places}
        return bool(people) and person_digest(annotator, vendor) in people


class OpenRequests(ModelStore):
    """The open requests of one model; it changes nothing."""

    def of_items(self, items: Sequence[str]) -> list[list[ItemRequest]]:
        """Open requests of every item, in the order of their opinions."""
        if not items:
            return []
        opinions = range(1, _MOST_OPINIONS + 1)
        ids = [request_id_of(self._keys.model, item, opinion) for item in items for opinion in opinions]
        with self._connection.pipeline(transaction=False) as pipeline:
            pipeline.hmget(self._keys.open, ids)
            pipeline.hmget(self._keys.barred, ids)
            opened, barred = pipeline.execute()
        found = [
            None if text is None else ItemRequest(request_id, _decode_open(text).vendor, people or b"")
            for request_id, text, people in zip(ids, opened, barred, strict=True)
        ]
        places = range(0, len(ids), _MOST_OPINIONS)
        return [[one for one in found[at : at + _MOST_OPINIONS] if one is not None] for at in places]

    def items_of(self, request_ids: Sequence[str]) -> list[str | None]:
        """The item of every request; None of one that is not open."""
        with self._connection.pipeline(transaction=False) as pipeline:
            for request_id in request_ids:
                pipeline.hget(self._keys.request(request_id), "message")
            messages: list[bytes | None] = pipeline.execute()
        return [None if text is None else _decode_message(text).item_id for text in messages]


_decode_open = msgspec.json.Decoder(_Open).decode
_decode_message = msgspec.json.Decoder(_Message).decode
