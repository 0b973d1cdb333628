"""Tokens for logins to Kafka by OAUTHBEARER: from a file, or from a token endpoint for client credentials.

The client requests a token on its I/O thread at every login, and before a broker ends the session. So
requests to the endpoint have short timeouts, and a token is cached for most of its lifetime.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote_plus, urlencode, urlsplit

from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from service.config.settings import KafkaSecurity
from service.config.tls import trusting
from service.domain.errors import ConfigurationError

log = logging.getLogger(__name__)

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""What a bearer token may consist of (RFC 6750, section 2.1)."""

_REFUSALS = frozenset(
    {"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope"}
    | {"unsupported_grant_type"}
)
"""Codes of the endpoint's refusals (RFC 6749, section 5.2); nothing else of its reply is logged."""

_OTHER_ANSWER = "`token_endpoint` answers with something else than a token"
_ANSWER_SECONDS = 5.0
_LONGEST_ANSWER = 65_536
_CACHED_SHARE = 0.8
"""Of a token's lifetime. A login is renewed after at least 0.85 of a session, and needs a newer token."""


class TokenUnavailableError(KafkaConnectionError):  # type: ignore[misc]  # the library has no types
    """There is no token now; the text contains neither secret nor token."""


class TokenRefusedError(SaslAuthenticationFailedError):  # type: ignore[misc]  # the library has no types
    """The configuration yields no token; the text contains neither secret nor token."""


def token_provider(security: KafkaSecurity) -> AbstractTokenProvider:
    """The provider of tokens from `token_file` or `token_endpoint`."""
    if security.token_file is not None:
        return FileTokens(Path(security.token_file))
    return EndpointTokens(security)


class FileTokens(AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
    """The current token in a file; whoever writes the file must renew it in time."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def token(self) -> str:
        """The token.

        Raises:
            TokenRefusedError: there is none.
        """
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not ASCII text"
            raise TokenRefusedError(f"`token_file` cannot be read: {why}") from None
        if not _TOKEN.fullmatch(text):
            raise TokenRefusedError("`token_file` holds no token")
        return text


class EndpointTokens(AbstractTokenProvider):  # type: ignore[misc]  # the library has no types
    """Tokens for client credentials (RFC 6749, section 4.4), each cached for most of its lifetime.

    If the endpoint is unavailable, the cached token is used until it expires.

    Raises:
        ConfigurationError: the file of the endpoint's certificates cannot be used.
    """

    def __init__(self, security: KafkaSecurity, stopwatch: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._security = security
        self._stopwatch = stopwatch
        self._one_at_a_time = threading.Lock()
        self._cached = ""
        self._renew_at = self._ends_at = stopwatch()
        self._opener()

    def token(self) -> str:
        """A valid token.

        Raises:
            TokenRefusedError: the endpoint does not accept the credentials, or returns something else.
            TokenUnavailableError: the endpoint does not answer in time.
        """
        with self._one_at_a_time:
            requested_at = self._stopwatch()
            if requested_at < self._renew_at:
                return self._cached
            try:
                token, life_seconds = self._request_token()
            except TokenUnavailableError as error:
                if requested_at < self._ends_at:
                    log.warning("using the cached token", extra={"cause": str(error)})
                    return self._cached
                raise
            self._cached = token
            self._renew_at = requested_at + _CACHED_SHARE * life_seconds
            self._ends_at = requested_at + life_seconds
            return token

    def _opener(self) -> urllib.request.OpenerDirector:
        at = "kafka.security.token_ca_file"
        https = urllib.request.HTTPSHandler(context=trusting(self._security.token_ca_file, at=at))
        # Without encryption an endpoint is of this machine; the environment's proxy need not be.
        plain = urlsplit(self._security.token_endpoint or "").scheme == "http"
        proxies = urllib.request.ProxyHandler({} if plain else None)
        return urllib.request.build_opener(proxies, https, _NoRedirects)

    def _request_token(self) -> tuple[str, float]:
        """A new token, and its lifetime in seconds."""
        try:
            opener = self._opener()
        except ConfigurationError as error:
            [(key, problem), *_] = error.problems
            raise TokenRefusedError(f"{key} {problem}") from None
        try:
            with opener.open(self._request(), timeout=_ANSWER_SECONDS) as reply:
                answer = self._read(reply)
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error) from None
        except (OSError, HTTPException) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            raise TokenUnavailableError(
                f"`token_endpoint` cannot be reached ({type(cause).__name__})"
            ) from None
        return _read_token(answer)

    def _read(self, reply: IO[bytes]) -> bytes:
        deadline = self._stopwatch() + _ANSWER_SECONDS
        answer = b""
        while part := reply.read1(_LONGEST_ANSWER):  # type: ignore[attr-defined]  # an HTTPResponse has it
            answer += part
            if len(answer) > _LONGEST_ANSWER:
                raise TokenRefusedError(_OTHER_ANSWER)
            if self._stopwatch() > deadline:
                raise TokenUnavailableError("`token_endpoint` does not answer in time")
        return answer

    def _request(self) -> urllib.request.Request:
        security = self._security
        form = {"grant_type": "client_credentials"}
        if security.scope is not None:
            form["scope"] = security.scope
        secret = "" if security.client_secret is None else security.client_secret.get_secret_value()
        login = f"{quote_plus(security.client_id or '')}:{quote_plus(secret)}"
        headers = {
            "Authorization": f"Basic {base64.b64encode(login.encode()).decode()}",
            "Accept": "application/json",
        }
        return urllib.request.Request(  # noqa: S310 - the settings let http and https pass alone
            security.token_endpoint or "", data=urlencode(form).encode(), headers=headers
        )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could send the credentials elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _refusal(error: urllib.error.HTTPError) -> TokenUnavailableError | TokenRefusedError:
    if error.code >= 500 or error.code == 429:  # noqa: PLR2004 - HTTP's numbers
        return TokenUnavailableError(f"`token_endpoint` answers {error.code}")
    if error.code < 400:  # noqa: PLR2004 - HTTP's numbers
        return TokenRefusedError(
            f"`token_endpoint` answers {error.code}: it redirects, which is not followed"
        )
    try:
        code = json.loads(error.read(_LONGEST_ANSWER)).get("error")
    except (OSError, HTTPException, ValueError, AttributeError):
        code = None
    known_code = f", {code}" if code in _REFUSALS else ""
    return TokenRefusedError(
        f"`token_endpoint` refuses ({error.code}{known_code}): check client_id, client_secret, scope"
    )


def _read_token(answer: bytes) -> tuple[str, float]:
    try:
        document = json.loads(answer)
        token, life_seconds = document["access_token"], float(document.get("expires_in") or 0)
        is_token = bool(_TOKEN.fullmatch(token))
    except (ValueError, TypeError, KeyError, AttributeError):
        is_token = False
    if not is_token:
        # From None, and without the answer: it may well hold a token.
        raise TokenRefusedError(_OTHER_ANSWER) from None
    return token, life_seconds
