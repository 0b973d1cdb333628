"""Signatures of labels: who signed one, and every way in which one is refused."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

import pytest

from service.domain.errors import BadMessage
from service.domain.label_signatures import SIGNATURE_HEADER, VENDOR_HEADER, sign, verify

Headers = list[tuple[str, bytes]]

KEYS = {"acme": [b"a" * 32, b"b" * 32], "bolt": [b"c" * 32]}
VALUE = b'{"request_id":"r","item_id":"i"}'


def refused(headers: Headers, value: bytes = VALUE) -> str:
    with pytest.raises(BadMessage) as caught:
        verify(headers, value, KEYS)
    assert b"a" * 32 not in str(caught.value).encode()
    return caught.value.reason


def test_a_signature_is_the_hmac_of_vendor_and_value() -> None:
    digest = hmac.new(KEYS["acme"][0], b"acme\n" + VALUE, hashlib.sha256).hexdigest()
    assert sign(KEYS["acme"][0], "acme", VALUE) == [
        ("credence-vendor", b"acme"),
        ("credence-signature", f"v1={digest}".encode()),
    ]


@pytest.mark.parametrize("key", KEYS["acme"])
def test_each_of_a_vendors_keys_is_accepted(key: bytes) -> None:
    assert verify([("ce_id", b"1"), *sign(key, "acme", VALUE)], VALUE, KEYS) == "acme"


@pytest.mark.parametrize("missing", [VENDOR_HEADER, SIGNATURE_HEADER])
def test_a_label_without_vendor_or_signature_is_unsigned(missing: str) -> None:
    headers = [(name, content) for name, content in sign(KEYS["acme"][0], "acme", VALUE) if name != missing]
    assert refused(headers) == "unsigned_label"


@pytest.mark.parametrize("vendor", ["other", "", "ACME", "acme\n"])
def test_a_vendor_that_is_not_configured_is_unknown(vendor: str) -> None:
    assert refused(sign(KEYS["acme"][0], vendor, VALUE)) == "unknown_vendor"


@pytest.mark.parametrize(
    "tamper",
    [
        lambda headers: [headers[0], (SIGNATURE_HEADER, headers[1][1].replace(b"v1=", b"v2="))],
        lambda headers: [headers[0], (SIGNATURE_HEADER, headers[1][1][3:])],
        lambda headers: [headers[0], (SIGNATURE_HEADER, headers[1][1][:-1])],
        lambda headers: [headers[0], (SIGNATURE_HEADER, headers[1][1].upper())],
        lambda headers: [headers[0], (SIGNATURE_HEADER, b"v1=\xff")],
        lambda headers: [headers[0], (SIGNATURE_HEADER, b"")],
        lambda headers: [(VENDOR_HEADER, b"bolt"), headers[1]],
        lambda headers: [*headers, headers[1]],
        lambda headers: [(VENDOR_HEADER, b"bolt"), *headers],
    ],
)
def test_a_signature_that_was_tampered_with_is_bad(tamper: Callable[[Headers], Headers]) -> None:
    assert refused(tamper(sign(KEYS["acme"][0], "acme", VALUE))) == "bad_signature"


def test_another_value_or_another_key_is_bad() -> None:
    assert refused(sign(KEYS["acme"][0], "acme", VALUE), VALUE + b" ") == "bad_signature"
    assert refused(sign(KEYS["bolt"][0], "acme", VALUE)) == "bad_signature"
