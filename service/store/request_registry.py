"""Where a request is remembered that was ever made: a compact record in one of very many small hashes.

Redis keeps a small hash as one packed list, so a record costs about 60 bytes, where a key of its own would
cost five times as much. Its field is a digest of the request's id, and it never expires: a hash that is full
gives up its oldest record when another one comes, but none that may still be answered or corrected, and none
whose outcome is still in the stream. So no item is asked about again while its label counts.

A record is a string of bytes:

| bytes | what |
| --- | --- |
| 1 | state: `o`pen, `a`nswered, `s`kipped, `r`etracted, `e`xpired |
| 2-5 | when it was issued, and from then on when it was closed, whole seconds since the epoch, big-endian |
| 6-9 | digest of the item's id, and of the vendor that was asked last, if one was |
| 10-17 | digest of the true class; 0 where there is none |
| 18-27 | id of the outcome's first entry in the stream: milliseconds (6), sequence (4), big-endian; or 0 |
| 28-36, 37-45, … | per label that it has seen: its digest (8) and its mark |

A label's mark is `+` if it changed something, `=` if it said nothing new, `-` if there was nothing to
retract, `!` if it contradicted what was known. Up to four labels fit a packed hash; a hash with a longer
record takes about twice the memory.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import msgspec

from service.store.connection import Connection, ModelStore, unavailable_when_away
from service.store.keys import ModelKeys

BUCKETS = 16_384
"""Small hashes of one model. With a million requests one holds 61; Redis packs up to 512 by default."""

_MOST_LABELS = 32
"""So many labels a record has room for; `apply_labels.lua` takes no revision after that."""

_HEAD_BYTES = 27
_LABEL_BYTES = 9
"""A record's length: so much, and so much per label."""

_FIELD_BYTES = 8
_ITEM_BYTES = 4
_CLASS_BYTES = 8

ClosedState = Literal["open", "answered", "skipped", "retracted", "expired"]

_STATES: dict[bytes, ClosedState] = {state[:1].encode(): state for state in get_args(ClosedState)}
_RECORD = struct.Struct(">c4x4s8s")


class Place(NamedTuple):
    """Where the record of a request stands: number of the hash, and its field there, 8 bytes."""

    bucket: int
    field: bytes


def place_of(request_id: str) -> Place:
    """Where the record of a request stands, or would stand."""
    digest = hashlib.blake2b(request_id.encode(), digest_size=2 + _FIELD_BYTES).digest()
    return Place(int.from_bytes(digest[:2]) % BUCKETS, digest[2:])


def request_id_of(model: str, item_id: str) -> str:
    """The id of the one request that there can be for an item."""
    return hashlib.blake2b(msgspec.json.encode([model, item_id]), digest_size=12).hexdigest()


def item_digest(item_id: str, vendor: str = "") -> bytes:
    """What is kept of an item's id and of who was asked, 4 bytes.

    It is enough to notice a label with the item of another request, or from another vendor, by mistake.
    Against intent it is not: whoever could choose the item's id freely would find one with the same digest.
    So where there are vendors, a label whose item does not have its request's id is refused first.
    """
    if not vendor:
        return hashlib.blake2b(item_id.encode(), digest_size=_ITEM_BYTES).digest()
    text = msgspec.json.encode([item_id, vendor])
    return hashlib.blake2b(text, digest_size=_ITEM_BYTES, person=b"vendor").digest()


def class_digest(true_class: str) -> bytes:
    """What is kept of a class, 8 bytes: enough to tell whether two labels say the same; 0 of none."""
    if not true_class:
        return bytes(_CLASS_BYTES)
    return hashlib.blake2b(true_class.encode(), digest_size=_CLASS_BYTES).digest()


def records_per_bucket(remembered: int) -> int:
    """Records that a hash may hold before it gives one up, so that all hold so many together, about."""
    return -(-remembered // BUCKETS)


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
        return self.labels >= _MOST_LABELS

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
    """The requests of one model that were ever made; annotations are known by id for `remembered_seconds`."""

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
        return Closed(_STATES[state], digest, (len(record) - _HEAD_BYTES) // _LABEL_BYTES)

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
