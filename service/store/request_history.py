"""What is known of a request that was asked of a vendor, also when it is closed, and of its annotations."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Literal

import msgspec

from service.store.connection import Connection, ModelStore, unavailable_when_away
from service.store.keys import ModelKeys
from service.store.request_registry import (
    HEAD_BYTES,
    LABEL_BYTES,
    MOST_LABELS,
    class_digest,
    item_digest,
    place_of,
    request_id_of,
)

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
        class_digest: of the true class; 0 if there is none.
        labels: number of labels that it remembers.
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


class Newest(msgspec.Struct, frozen=True, array_like=True):
    """What the newest annotation of a request said, of which a label was written.

    Attributes:
        annotation: its digest; empty if it has no identity.
        time: when it was last changed, seconds since the epoch.
        true_class: digest of the class, hexadecimal; empty where it was skipped or deleted.
    """

    annotation: str
    time: float
    true_class: str

    def says(self, true_class: str) -> bool:
        """Whether it said this class; of an empty one, that there is none."""
        return self.true_class == (class_digest(true_class).hex() if true_class else "")


class AskedRequests(ModelStore):
    """The requests of one model that were ever made.

    Args:
        connection: to Redis.
        keys: of the model.
        remembered_seconds: how long an annotation is known by its id.
    """

    def __init__(self, connection: Connection, keys: ModelKeys, *, remembered_seconds: int) -> None:
        super().__init__(connection, keys)
        self._remembered_seconds = remembered_seconds

    def look(self, vendor: str, request_id: str, item_id: str) -> Closed | None:
        """One request; None if there is none of this item, or another vendor was asked last."""
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

    def remember(self, vendor: str, request_id: str, item_id: str, newest: Newest) -> None:
        """Remember what an annotation said of a request, instead of what one before it said.

        A vendor has at most two keys per request.
        """
        keys, before = self._keys, self.newest(vendor, request_id)
        with self._connection.pipeline(transaction=True) as pipeline:
            if before is not None and before.annotation not in {"", newest.annotation}:
                pipeline.delete(keys.annotation(vendor, before.annotation))
            if newest.annotation:
                named = msgspec.json.encode([request_id, item_id])
                pipeline.set(keys.annotation(vendor, newest.annotation), named, ex=self._remembered_seconds)
            known = msgspec.json.encode(newest)
            pipeline.set(keys.annotated(vendor, request_id), known, ex=self._remembered_seconds)
            pipeline.execute()

    def newest(self, vendor: str, request_id: str) -> Newest | None:
        """What the newest annotation of a request said; None if none is remembered."""
        with unavailable_when_away():
            known = self._connection.client.get(self._keys.annotated(vendor, request_id))
        return None if known is None else msgspec.json.decode(known, type=Newest)

    def annotation(self, vendor: str, annotation: str) -> tuple[str, str] | None:
        """Request and item whose newest annotation has this `annotation_digest`; None if there is none."""
        with unavailable_when_away():
            named = self._connection.client.get(self._keys.annotation(vendor, annotation))
        return None if named is None else msgspec.json.decode(named, type=tuple[str, str])


def annotation_digest(identity: str) -> str:
    """What is kept of an annotation's identity in the tool where it was made; empty of none."""
    return hashlib.blake2b(identity.encode(), digest_size=12).hexdigest() if identity else ""
