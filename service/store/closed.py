"""What is known of a request that was asked of a vendor, also when it is closed, and of its annotations."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Literal

import msgspec

from service.store.asked import (
    HEAD_BYTES,
    LABEL_BYTES,
    MOST_LABELS,
    class_digest,
    item_digest,
    place_of,
    request_id_of,
)
from service.store.connection import Connection, unavailable_when_away
from service.store.keys import ModelKeys

ClosedState = Literal["open", "answered", "skipped", "retracted", "expired"]

_STATES: dict[bytes, ClosedState] = {
    b"o": "open",
    b"a": "answered",
    b"s": "skipped",
    b"r": "retracted",
    b"e": "expired",
}
_RECORD = struct.Struct(">c4x4s8s")


@dataclass(frozen=True)
class Closed:
    """A request that was asked of a vendor.

    Attributes:
        state: what became of it.
        class_digest: of the true class; 0 where there is none.
        labels: that it remembers.
    """

    state: ClosedState
    class_digest: bytes
    labels: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it takes no revision any more."""
        return self.labels >= MOST_LABELS

    def says(self, true_class: str) -> bool:
        """Whether it is answered, and with this class."""
        return self.state == "answered" and self.class_digest == class_digest(true_class)


class AskedRequests:
    """The requests of one model that were ever made.

    Args:
        connection: to Redis.
        keys: of the model.
        remembered_seconds: how long an annotation is known by its id.
    """

    def __init__(self, connection: Connection, keys: ModelKeys, *, remembered_seconds: int) -> None:
        self._connection = connection
        self._keys = keys
        self._remembered_seconds = remembered_seconds

    def look(self, vendor: str, request_id: str, item_id: str) -> Closed | None:
        """One request; None if there is none of this item, or another vendor was asked last.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        if request_id != request_id_of(self._keys.model, item_id):
            return None
        place = place_of(request_id)
        with unavailable_when_away():
            record = self._connection.client.hget(self._keys.asked(place.bucket), place.field)
        if record is None:
            return None
        state, item, digest = _RECORD.unpack_from(record)
        # Of a request that was made before there were vendors, any of the model's vendors may speak.
        if item not in {item_digest(item_id, vendor), item_digest(item_id)}:
            return None
        return Closed(_STATES[state], digest, (len(record) - HEAD_BYTES) // LABEL_BYTES)

    def annotated(self, vendor: str, annotation: str, *, request_id: str, item_id: str) -> None:
        """Remember which request an annotation is of, and that it is the request's newest one.

        Args:
            vendor: whose annotation it is.
            annotation: its identity in the tool where it was made.
            request_id: of the request.
            item_id: the item that was annotated.

        Raises:
            Unavailable: Redis cannot answer now. Doing it again is harmless.
        """
        of_annotation, of_request = self._annotation_keys(vendor, annotation, request_id)
        with unavailable_when_away():
            pipeline = self._connection.client.pipeline(transaction=True)
            named = msgspec.json.encode([request_id, item_id])
            pipeline.set(of_annotation, named, ex=self._remembered_seconds)
            pipeline.set(of_request, _digest(annotation), ex=self._remembered_seconds)
            pipeline.execute()

    def annotation(self, vendor: str, annotation: str) -> tuple[str, str, bool] | None:
        """Request and item that an annotation is of, and whether it is the newest one; None if unknown.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        client = self._connection.client
        with unavailable_when_away():
            named = client.get(self._annotation_keys(vendor, annotation, "")[0])
            if named is None:
                return None
            request_id, item_id = msgspec.json.decode(named, type=tuple[str, str])
            newest = client.get(self._annotation_keys(vendor, annotation, request_id)[1])
        return request_id, item_id, newest == _digest(annotation)

    def _annotation_keys(self, vendor: str, annotation: str, request_id: str) -> tuple[str, str]:
        keys = self._keys
        return keys.annotation(vendor, _digest(annotation).decode()), keys.annotated(vendor, request_id)


def _digest(annotation: str) -> bytes:
    return hashlib.blake2b(annotation.encode(), digest_size=12).hexdigest().encode()
