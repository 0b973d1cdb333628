"""Registry of all label requests ever made: one compact record each, in many small Redis hashes.

Redis stores a small hash as one packed list, so a record costs about 60 bytes. A key of its own would cost
five times as much. The field of a record is a digest of the request's id. Records never expire. A full hash
drops its oldest record when a new one is added, but never one that may still be answered or corrected, and
none whose outcome is still in the stream. So no item is requested again while its label counts.

A record is a string of bytes:

| bytes | content |
| --- | --- |
| 1 | state: `o`pen, `a`nswered, `s`kipped, `r`etracted, `e`xpired |
| 2-5 | time of issue while it is open, then time of closing; whole seconds since the epoch, big-endian |
| 6-9 | digest of the item's id and of the latest vendor, if there is one |
| 10-17 | digest of the true class; 0 if there is none |
| 18-27 | id of the outcome's first entry in the stream: milliseconds (6), sequence (4), big-endian; or 0 |
| 28-36, 37-45, … | per label received: its digest (8) and its mark |

A label's mark is `+` if it changed the record, `=` if it repeated it, `-` if there was nothing to retract,
`!` if it contradicted an earlier answer, `~` if its annotator had labelled the item. Records of up to four
labels fit a packed hash; a hash with a longer record takes about twice the memory.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import msgspec

from service.store.connection import Connection, ModelStore, translate_redis_errors
from service.store.keys import ModelKeys

BUCKETS = 16_384
"""Small hashes of one model. With a million requests one holds 61; Redis packs up to 512 by default."""

_MOST_LABELS = 32
"""Labels that a record has room for; `apply_labels.lua` refuses revisions beyond that."""

_HEAD_BYTES = 27
_LABEL_BYTES = 9
"""Length of a record without labels, and what each label adds."""

_FIELD_BYTES = 8
_ITEM_BYTES = 4
_CLASS_BYTES = 8
_PERSON_BYTES = 8
_OPINION = "."

RequestState = Literal["open", "answered", "skipped", "retracted", "expired"]

_STATES: dict[bytes, RequestState] = {state[:1].encode(): state for state in get_args(RequestState)}
_RECORD = struct.Struct(">c4x4s8s")


class RecordLocation(NamedTuple):
    """Location of a request's record: number of the hash, and the field in it (8 bytes)."""

    bucket: int
    field: bytes


def locate_record(request_id: str) -> RecordLocation:
    """Location of a request's record, whether or not there is one."""
    digest = hashlib.blake2b(request_id.encode(), digest_size=2 + _FIELD_BYTES).digest()
    return RecordLocation(int.from_bytes(digest[:2]) % BUCKETS, digest[2:])


def request_id_of(model: str, item_id: str, opinion: int = 1) -> str:
    """Id of the request for an item; an item has at most one for each opinion, counted from 1."""
    first = hashlib.blake2b(msgspec.json.encode([model, item_id]), digest_size=12).hexdigest()
    return first if opinion == 1 else f"{first}{_OPINION}{opinion}"


def first_request_id(request_id: str) -> str:
    """Id of the request for the first opinion about the same item."""
    return request_id.partition(_OPINION)[0]


def is_request_for(request_id: str, model: str, item_id: str) -> bool:
    """Whether a request, for whichever opinion, is about an item."""
    return first_request_id(request_id) == request_id_of(model, item_id)


def opinion_of(request_id: str) -> int:
    """The number of the opinion that a request asks for; 1 for an id that is none of Credence's."""
    number = request_id.partition(_OPINION)[2]
    return int(number) if number.isascii() and number.isdigit() else 1


def person_digest(annotator: str, vendor: str = "") -> bytes:
    """Digest of who labels, for a vendor or for none, 8 bytes."""
    text = msgspec.json.encode([vendor, annotator])
    return hashlib.blake2b(text, digest_size=_PERSON_BYTES, person=b"annotator").digest()


def item_digest(item_id: str, vendor: str = "") -> bytes:
    """Digest of an item's id and of the vendor, 4 bytes.

    It detects labels that by mistake carry the item of another request, or come from another vendor. It does
    not stop an attacker, who could find another item id with the same digest. So if vendors are configured,
    a label is refused first if its request id is not that of its item.
    """
    if not vendor:
        return hashlib.blake2b(item_id.encode(), digest_size=_ITEM_BYTES).digest()
    text = msgspec.json.encode([item_id, vendor])
    return hashlib.blake2b(text, digest_size=_ITEM_BYTES, person=b"vendor").digest()


def class_digest(true_class: str) -> bytes:
    """Digest of a class, 8 bytes, to compare two labels; 0 for no class."""
    if not true_class:
        return bytes(_CLASS_BYTES)
    return hashlib.blake2b(true_class.encode(), digest_size=_CLASS_BYTES).digest()


def records_per_bucket(remembered: int) -> int:
    """Records that a hash may hold before it drops one, if all hashes together hold about `remembered`."""
    return -(-remembered // BUCKETS)


@dataclass(frozen=True)
class RequestRecord:
    """The stored record of a request.

    Attributes:
        class_digest: digest of the true class; 0 if there is none.
        labels: number of labels in it.
    """

    state: RequestState
    class_digest: bytes
    labels: int = 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another revision."""
        return self.labels >= _MOST_LABELS

    def has_class(self, true_class: str) -> bool:
        """Whether the request is answered with this class."""
        return self.state == "answered" and self.class_digest == class_digest(true_class)


class LatestAnnotation(msgspec.Struct, frozen=True, array_like=True):
    """The latest annotation of a request from which a label was written.

    Attributes:
        annotation: its digest; empty if it has no identity.
        time: when it was last changed, seconds since the epoch.
        true_class: digest of the class, hexadecimal; empty if it was skipped or deleted.
    """

    annotation: str
    time: float
    true_class: str

    def has_class(self, true_class: str) -> bool:
        """Whether it has this class; with an empty one, whether it has none."""
        return self.true_class == (class_digest(true_class).hex() if true_class else "")


class RequestRegistry(ModelStore):
    """Records of all requests of one model; annotations are remembered for `remembered_seconds`."""

    def __init__(self, connection: Connection, keys: ModelKeys, *, remembered_seconds: int) -> None:
        super().__init__(connection, keys)
        self._remembered_seconds = remembered_seconds

    def find(self, vendor: str, request_id: str, item_id: str) -> RequestRecord | None:
        """The record of a request; None if it has another item, or was last sent to another vendor."""
        if not is_request_for(request_id, self._keys.model, item_id):
            return None
        location = locate_record(request_id)
        with translate_redis_errors():
            record = self._connection.client.hget(self._keys.asked(location.bucket), location.field)
        if record is None:
            return None
        state, item, digest = _RECORD.unpack_from(record)
        # A request made before vendors were configured may be answered by any of the model's vendors.
        if item not in {item_digest(item_id, vendor), item_digest(item_id)}:
            return None
        return RequestRecord(_STATES[state], digest, (len(record) - _HEAD_BYTES) // _LABEL_BYTES)

    def remember(self, vendor: str, request_id: str, item_id: str, latest: LatestAnnotation) -> None:
        """Store the latest annotation of a request, in place of the one before.

        It takes at most two keys per vendor and request.
        """
        keys, before = self._keys, self.latest(vendor, request_id)
        with self._connection.pipeline(transaction=True) as pipeline:
            if before is not None and before.annotation not in {"", latest.annotation}:
                pipeline.delete(keys.annotation(vendor, before.annotation))
            if latest.annotation:
                named = msgspec.json.encode([request_id, item_id])
                pipeline.set(keys.annotation(vendor, latest.annotation), named, ex=self._remembered_seconds)
            encoded = msgspec.json.encode(latest)
            pipeline.set(keys.annotated(vendor, request_id), encoded, ex=self._remembered_seconds)
            pipeline.execute()

    def latest(self, vendor: str, request_id: str) -> LatestAnnotation | None:
        """The latest annotation of a request; None if none is stored."""
        with translate_redis_errors():
            encoded = self._connection.client.get(self._keys.annotated(vendor, request_id))
        return None if encoded is None else msgspec.json.decode(encoded, type=LatestAnnotation)

    def annotation(self, vendor: str, annotation: str) -> tuple[str, str] | None:
        """Request and item whose latest annotation has this `annotation_digest`; None if there is none."""
        with translate_redis_errors():
            named = self._connection.client.get(self._keys.annotation(vendor, annotation))
        return None if named is None else msgspec.json.decode(named, type=tuple[str, str])


def annotation_digest(identity: str) -> str:
    """Digest of an annotation's identity in its labelling tool; empty for an empty identity."""
    return hashlib.blake2b(identity.encode(), digest_size=12).hexdigest() if identity else ""
