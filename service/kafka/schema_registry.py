"""A client of a schema registry with the REST API of Confluent's: schemas by their ids.

An id names the same schema for as long as the registry exists, so a caller may keep what it got for ever.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlsplit

from service.config.schema_registry import SchemaRegistrySettings
from service.config.tls import client_context
from service.domain.errors import BadMessage, ConfigurationError, Refused, Unavailable
from service.kafka.timed_replies import TimedHTTP, TimedHTTPS

PART = "schema_registry"
"""Name of the registry in `Unavailable`."""

_AT = "kafka.schema_registry"
_LONGEST_ANSWER = 4_194_304
_LONGEST_TEXTS = 4_194_304
"""Characters of a schema with its references."""

_HIGHEST_ID = 2**31 - 1
"""Registries number schemas by a Java `int`; some take a higher number for a wrong path."""

_MOST_REFERENCES = 100
_REMEMBERED_SECONDS = 10.0
"""How long an id counts as unknown: a schema may be registered a moment after its first message."""

_MOST_UNKNOWN = 100
"""Ids that the registry is asked for in vain within `_REMEMBERED_SECONDS`; more are refused unasked."""

_NO_SUCH_SCHEMA = range(40_400, 40_500)
"""Codes by which the registry itself says that it has no such subject, version or schema."""

_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_NOT_FOUND = 404
_ABOUT_THE_REQUEST = (400, 409, 422)
"""Statuses by which a registry may refuse one id."""


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as it is registered.

    Attributes:
        kind: `AVRO`, `PROTOBUF` or `JSON`.
        text: of the schema.
        references: texts that it refers to, by the names that it uses; each after those it refers to itself.
    """

    kind: str
    text: str
    references: dict[str, str]


class SchemaRegistry:
    """Asks a registry for schemas.

    Args:
        settings: of the connection.
        stopwatch: monotonic seconds.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
    """

    def __init__(
        self, settings: SchemaRegistrySettings, *, stopwatch: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._stopwatch = stopwatch
        self._unknown: dict[int, float] = {}
        client_context(settings, at=_AT)

    def schema(self, number: int) -> RegisteredSchema:
        """The schema of an id.

        Raises:
            BadMessage: there is none, or it refers to one that is not registered, or it is too large.
            Unavailable: the registry does not answer, or refuses.
        """
        if number > _HIGHEST_ID:
            raise _unknown_schema(number)
        now = self._stopwatch()
        self._unknown = {known: until for known, until in self._unknown.items() if now < until}
        if number in self._unknown:
            raise _unknown_schema(number)
        if len(self._unknown) >= _MOST_UNKNOWN:
            raise BadMessage(
                "unknown_schema", f"schema {number} was not looked up: too many recent ids are unknown"
            )
        try:
            return self._ask(number)
        except _RejectedError:
            # A wrong URL or a proxy rejects everything; a registry answers other requests.
            self.check()
        except _AbsentError:
            pass
        self._unknown[number] = now + _REMEMBERED_SECONDS
        raise _unknown_schema(number)

    def check(self) -> None:
        """Ask for the names of subjects, to see whether the registry answers.

        Raises:
            Unavailable: it does not answer, or refuses.
        """
        try:
            self._request("/subjects")
        except (_TooLongError, _AbsentError):
            pass  # a registry answers: with very many names, or in its own words
        except _RejectedError:
            raise _misunderstood() from None

    def _ask(self, number: int) -> RegisteredSchema:
        answer = self._get(f"/schemas/ids/{number}")
        references: dict[str, str] = {}
        self._add_references(answer, references, _LONGEST_TEXTS - len(_text(answer)))
        return RegisteredSchema(answer.get("schemaType") or "AVRO", _text(answer), references)

    def _add_references(self, answer: dict[str, Any], found: dict[str, str], room: int) -> None:
        for name, subject, version in _references(answer):
            if name in found:
                continue
            if len(found) >= _MOST_REFERENCES:
                raise BadMessage("unsupported_schema", f"it has more than {_MOST_REFERENCES} references")
            target = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}")
            found[name] = _text(target)
            if sum(map(len, found.values())) > room:
                raise _too_large()
            self._add_references(target, found, room)
            found[name] = found.pop(name)  # after those it refers to itself

    def _get(self, path: str) -> dict[str, Any]:
        """The JSON object at a path.

        Raises:
            _AbsentError: there is none.
        """
        try:
            document = self._request(path)
        except _TooLongError:
            raise _too_large() from None
        if not isinstance(document, dict):
            raise _misunderstood()
        return document

    def _request(self, path: str) -> Any:
        try:
            opener = self._opener()
            request = self._authorized(path)
        except ConfigurationError as error:
            [(key, problem), *_] = error.problems
            raise Refused(PART, error, f"{key} {problem}") from None
        try:
            with opener.open(request, timeout=self._settings.timeout_seconds) as reply:
                return json.loads(_read(reply))
        except urllib.error.HTTPError as error:
            with error:
                raise _failure(error) from None
        except (OSError, HTTPException) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            reason = cause if isinstance(cause, BaseException) else error
            raise Unavailable(PART, reason) from None
        except (ValueError, RecursionError):
            raise _misunderstood() from None

    def _opener(self) -> urllib.request.OpenerDirector:
        # One for each request, so that a certificate that is renewed in place counts from the next one on.
        https = TimedHTTPS(context=client_context(self._settings, at=_AT))
        plain = urlsplit(self._settings.url).scheme == "http"
        proxies = urllib.request.ProxyHandler({} if plain else None)
        return urllib.request.build_opener(proxies, TimedHTTP, https, _NoRedirects)

    def _authorized(self, path: str) -> urllib.request.Request:
        settings = self._settings
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if settings.token_file is not None:
            headers["Authorization"] = f"Bearer {_read_token(settings.token_file)}"
        elif settings.username is not None and settings.password is not None:
            login = f"{settings.username}:{settings.password.get_secret_value()}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        url = settings.url.rstrip("/") + path
        return urllib.request.Request(url, headers=headers)  # noqa: S310 - settings allow http and https only


class _AbsentError(Exception):
    """The registry has no such schema, subject or version."""


class _RejectedError(Exception):
    """The registry, or what is in its place, refuses this request."""


class _TooLongError(Exception):
    """The answer is longer than Credence reads."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could send the credentials elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _read(reply: IO[bytes]) -> bytes:
    answer = b""
    while part := reply.read1(_LONGEST_ANSWER):  # type: ignore[attr-defined]  # an HTTPResponse has it
        answer += part
        if len(answer) > _LONGEST_ANSWER:
            raise _TooLongError
    return answer


def _read_token(path: str) -> str:
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not ASCII text"
        raise ConfigurationError([(f"{_AT}.token_file", f"cannot be read: {why}")]) from None
    if not token or not token.isprintable() or " " in token:
        raise ConfigurationError([(f"{_AT}.token_file", "holds no token")])
    return token


def _text(answer: dict[str, Any]) -> str:
    text = answer.get("schema")
    if not isinstance(text, str):
        raise _misunderstood()
    return text


def _references(answer: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Name, subject and version of the schemas that one refers to."""
    found = []
    try:
        for reference in answer.get("references") or ():
            name, subject, version = (reference[key] for key in ("name", "subject", "version"))
            if not (isinstance(name, str) and isinstance(subject, str) and type(version) is int):
                raise _misunderstood()
            found.append((name, subject, version))
    except (LookupError, TypeError):
        raise _misunderstood() from None
    return found


def _too_large() -> BadMessage:
    return BadMessage(
        "unsupported_schema", f"with its references it is longer than {_LONGEST_TEXTS // 2**20} MiB"
    )


def _unknown_schema(number: int) -> BadMessage:
    return BadMessage("unknown_schema", f"the registry has no schema {number}, or lacks one it refers to")


def _misunderstood() -> Refused:
    return Refused(PART, ValueError(), f"its answer is no schema; check {_AT}.url, with its path")


def _failure(error: urllib.error.HTTPError) -> Exception:
    """What an answer that is no success means."""
    code = error.code
    if code >= _SERVER_ERROR or code == _TOO_MANY_REQUESTS:
        return Unavailable(PART, error, why=f"it answers {code}")
    if code == _NOT_FOUND and _is_about_schemas(error):
        return _AbsentError()
    if code in _ABOUT_THE_REQUEST:
        return _RejectedError()
    if code in (401, 403):
        return Refused(PART, error, f"it answers {code}; check {_AT}.username and password, or token_file")
    return Refused(PART, error, f"it answers {code}; check {_AT}.url, with its path")


def _is_about_schemas(error: urllib.error.HTTPError) -> bool:
    """Whether the registry itself says that it has no such schema; else the URL may be wrong."""
    try:
        return json.loads(error.read(_LONGEST_ANSWER))["error_code"] in _NO_SUCH_SCHEMA
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return False
