"""Sessions of people who label in the browser: signed cookies, so that any replica recognizes them."""

from __future__ import annotations

import binascii
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

SESSION_HEADER = "Credence-Session"
"""Names the session of a call: all tabs of a browser share a cookie, and another login replaces it."""

COOKIE = "__Host-credence-label"
"""Browsers take a cookie of such a name only over HTTPS or from this machine, and for one host alone."""

_ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Strict"
_PURPOSE = b"labelling page session\n"
_TOKEN_DIGITS = 16


class Session(msgspec.Struct, frozen=True, array_like=True):
    """One person in one browser, from login to logout.

    Attributes:
        annotator: their pseudonym; empty if they gave none.
        id: 16 hexadecimal digits. Claims made in the session begin with it.
        token: first digits of the SHA-256 of the token that was used; without that token it ends.
        expires_at: seconds since the epoch.
    """

    vendor: str
    annotator: str
    id: str
    token: str
    expires_at: float


@dataclass(frozen=True)
class Sessions:
    """Makes and reads the cookies of sessions.

    Attributes:
        keys: of each vendor that may use the page. The first one signs; a cookie signed with any is valid.
        tokens: SHA-256 digests of the tokens in use, by vendor.
        seconds: how long a session lasts.
        clock: seconds since the epoch.
    """

    keys: Mapping[str, Sequence[bytes]]
    tokens: Mapping[str, Sequence[str]]
    seconds: float
    clock: Callable[[], float]

    def begin(self, vendor: str, token_sha256: str, annotator: str) -> Session:
        """A new session of one of the vendors with `keys`."""
        return Session(
            vendor,
            annotator,
            secrets.token_hex(8),
            token_sha256[:_TOKEN_DIGITS],
            self.clock() + self.seconds,
        )

    def cookie(self, session: Session) -> str:
        """The header `Set-Cookie` that begins a session in a browser."""
        content = msgspec.json.encode(session)
        value = f"{_text(content)}.{_text(_mac(self.keys[session.vendor][0], content))}"
        return f"{COOKIE}={value}; {_ATTRIBUTES}; Max-Age={round(self.seconds)}"

    def find(self, scope: Scope) -> Session | None:
        """The session that a request belongs to.

        None if it has none or names another one, or if a script of another page sent it.
        """
        headers = Headers(scope=scope)
        if not is_same_origin(headers):
            return None
        session = self._read(cookie_parser("; ".join(headers.getlist("cookie"))).get(COOKIE, ""))
        if session is None or session.expires_at <= self.clock():
            return None
        if headers.get(SESSION_HEADER, session.id) != session.id:
            return None
        is_token_valid = any(
            digest.startswith(session.token) for digest in self.tokens.get(session.vendor, ())
        )
        return session if is_token_valid else None

    def _read(self, value: str) -> Session | None:
        content, _, mac = (_bytes(part) for part in value.partition("."))
        # Nothing is read of what none of these vendors' keys has signed.
        signers = [
            vendor
            for vendor, keys in self.keys.items()
            for key in keys
            if hmac.compare_digest(_mac(key, content), mac)
        ]
        session = msgspec.json.decode(content, type=Session) if signers else None
        return session if session is not None and session.vendor in signers else None


def is_same_origin(headers: Headers) -> bool:
    """Whether a script of the page itself sent a request.

    A cookie that is `SameSite=Strict` is also sent with requests of other origins of the same site. Browsers
    send this header, which no script can set, to every address that may have the cookie.
    """
    return headers.get("sec-fetch-site") == "same-origin"


def ended_cookie() -> str:
    """The header `Set-Cookie` that ends a session in a browser."""
    return f"{COOKIE}=; {_ATTRIBUTES}; Max-Age=0"


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + content, "sha256")


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    try:
        return urlsafe_b64decode(f"{text}==")
    except (ValueError, binascii.Error):
        return b""
