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
from typing import NamedTuple

import msgspec

BUCKETS = 16_384
"""Small hashes of one model. With a million requests one holds 61; Redis packs up to 512 by default."""

MOST_LABELS = 32
"""So many labels a record has room for; `apply_labels.lua` takes no revision after that."""

HEAD_BYTES = 27
LABEL_BYTES = 9
"""A record's length: so much, and so much per label."""

_FIELD_BYTES = 8
_ITEM_BYTES = 4
_CLASS_BYTES = 8


class Place(NamedTuple):
    """Where the record of a request stands.

    Attributes:
        bucket: number of the hash.
        field: in the hash, 8 bytes.
    """

    bucket: int
    field: bytes


def place_of(request_id: str) -> Place:
    """Where the record of a request stands."""
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
