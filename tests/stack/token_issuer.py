"""Issues tokens that a broker can verify, and gives them to clients by a real HTTP server."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

AUDIENCE = "kafka"
NAME = "https://issuer.example"
_KEY_ID = "of-the-tests"


class TokenIssuer:
    """Signs tokens with a key of its own (RS256).

    Attributes:
        given: tokens that were issued.
    """

    def __init__(self) -> None:
        self._key: RSAPrivateKey = generate_private_key(65_537, 2_048)
        self.given: list[str] = []

    def write_keys(self, path: Path) -> Path:
        """Write the public key as a JWKS file, by which a broker verifies."""
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID}
        key |= {"n": _number(numbers.n), "e": _number(numbers.e)}
        path.write_text(json.dumps({"keys": [key]}))
        return path

    def token(self, subject: str, *, life_seconds: float = 300.0, **claims: Any) -> str:
        """A token of a subject."""
        now = time.time()
        body = {"sub": subject, "iss": NAME, "aud": AUDIENCE, "iat": int(now), "exp": now + life_seconds}
        signed = f"{_encoded({'alg': 'RS256', 'kid': _KEY_ID, 'typ': 'JWT'})}.{_encoded(body | claims)}"
        signature = self._key.sign(signed.encode(), PKCS1v15(), SHA256())
        self.given.append(f"{signed}.{_text(signature)}")
        return self.given[-1]

    def unsigned(self, subject: str) -> str:
        """A token that says of itself that nobody signed it."""
        _, body, _ = self.token(subject).split(".")
        return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{body}."


class TokenEndpoint:
    """Gives tokens for client credentials; a context manager.

    Args:
        issuer: of the tokens.
        clients: secrets, by client id; each is given tokens of the subject that its id is.
        life_seconds: of a token.
        context: of TLS, if it is to be encrypted.

    Attributes:
        asked: form of every request that was answered.
        answer: status, headers and body that it gives instead of a token, if set.
    """

    def __init__(
        self,
        issuer: TokenIssuer,
        clients: Mapping[str, str],
        *,
        life_seconds: float = 300.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.answer: tuple[int, dict[str, str], bytes] | None = None
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
                endpoint.asked.append(form)
                status, headers, body = endpoint.answer or self._token(form)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def _token(self, form: dict[str, list[str]]) -> tuple[int, dict[str, str], bytes]:
                login = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
                client, _, secret = login.partition(":")
                if form.get("grant_type") != ["client_credentials"] or clients.get(client) != secret:
                    return 401, {}, json.dumps({"error": "invalid_client", "hint": login}).encode()
                token = issuer.token(client, life_seconds=life_seconds)
                return 200, {}, json.dumps({"access_token": token, "expires_in": life_seconds}).encode()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}/token"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()


def _number(number: int) -> str:
    return _text(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _encoded(document: Mapping[str, Any]) -> str:
    return _text(json.dumps(document).encode())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
