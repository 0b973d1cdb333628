"""Labels signed by their vendor, and who signed one.

A signed label carries two Kafka headers: `credence-vendor` names the vendor, and `credence-signature` is
`v1=` and the HMAC-SHA256, in hexadecimal, of the vendor's name, a line feed and the record's value.
The name is part of what is signed, so that one vendor's label cannot be passed off as another's.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

from service.domain.errors import BadMessage

VENDOR_HEADER = "credence-vendor"
SIGNATURE_HEADER = "credence-signature"


def sign(key: bytes, vendor: str, value: bytes) -> list[tuple[str, bytes]]:
    """Kafka headers of a label beside those of CloudEvents; `key` is one of the vendor's label keys."""
    return [(VENDOR_HEADER, vendor.encode()), (SIGNATURE_HEADER, _signature(key, vendor, value))]


def verify(
    headers: Sequence[tuple[str, bytes | None]] | None, value: bytes, keys: Mapping[str, Sequence[bytes]]
) -> str:
    """The vendor that signed a label. Takes as long whichever of the vendor's keys it was, or none.

    `keys` are the label keys of every configured vendor, by its name.

    Raises:
        BadMessage: `unsigned_label`, `unknown_vendor` or `bad_signature`.
    """
    vendors = [content for name, content in headers or () if name == VENDOR_HEADER]
    signatures = [content for name, content in headers or () if name == SIGNATURE_HEADER]
    if not vendors or not signatures:
        raise BadMessage(
            "unsigned_label", f"the headers {VENDOR_HEADER} and {SIGNATURE_HEADER} are needed; one is absent"
        )
    if len(vendors) > 1 or len(signatures) > 1:
        raise BadMessage("bad_signature", f"{VENDOR_HEADER} or {SIGNATURE_HEADER} is there more than once")
    vendor = (vendors[0] or b"").decode(errors="replace")
    if vendor not in keys:
        raise BadMessage("unknown_vendor", f"{VENDOR_HEADER} names no vendor of the configuration")
    given = signatures[0] or b""
    matches = [hmac.compare_digest(_signature(key, vendor, value), given) for key in keys[vendor]]
    if not any(matches):
        raise BadMessage("bad_signature", f"{SIGNATURE_HEADER} is not what any of the vendor's keys gives")
    return vendor


def _signature(key: bytes, vendor: str, value: bytes) -> bytes:
    return b"v1=" + hmac.digest(key, vendor.encode() + b"\n" + value, "sha256").hex().encode()
