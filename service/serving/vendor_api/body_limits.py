"""Bodies: read whole before anything is done, bounded in length and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.serving.vendor_api.problems import Kind, Refused

BODY_SECONDS = 15.0
"""So long a body may take to come."""

_LINGER_SECONDS = 2.0
_LINGER_BYTES = 1_048_576
"""What is read of a refused body, unseen: an answer is lost to a client that is cut off while it sends."""


class Bodies:
    """Reads the body of a call whole, whatever its length header says, before the application runs.

    Where bodies may be longer than `ordinary` bytes, each vendor has one call at a time: a burst of them
    would fill the memory. `longest` gives the bytes that a body at a path may have. The application also
    finds the `body` in the scope's state.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        longest: Callable[[str], int],
        ordinary: int,
        seconds: float = BODY_SECONDS,
    ) -> None:
        self._app = app
        self._longest = longest
        self._ordinary = ordinary
        self._seconds = seconds
        self._importing: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        longest, vendor = self._longest(scope["path"]), scope["state"]["vendor"]
        if longest <= self._ordinary:
            await self._answer(scope, receive, send, longest)
        elif vendor in self._importing:
            await refuse(Refused(Kind.TOO_MANY_IMPORTS, retry_seconds=1.0), scope, receive, send)
        else:
            self._importing.add(vendor)
            try:
                await self._answer(scope, receive, send, longest)
            finally:
                self._importing.remove(vendor)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, longest: int) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                body = await _read(scope, receive, longest)
        except TimeoutError:
            await refuse(Refused(Kind.TOO_SLOW), scope, receive, send)
            return
        except Refused as refused:
            await refuse(refused, scope, receive, send)
            return
        scope["state"]["body"] = body
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)


async def refuse(refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a call whose body was not read, or not to its end, and leave the connection."""
    if _has_body(scope):
        refused.headers["Connection"] = "close"
        if refused.kind is not Kind.TOO_SLOW:
            await _linger(receive)
    await refused.response()(scope, receive, send)


async def _read(scope: Scope, receive: Receive, longest: int) -> bytes:
    headers = Headers(scope=scope)
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > longest:
        raise Refused(Kind.TOO_LARGE)
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > longest:
            raise Refused(Kind.TOO_LARGE)
        more = message.get("more_body", False)
    if body and not _is_json(headers):
        raise Refused(Kind.UNSUPPORTED_MEDIA_TYPE)
    return bytes(body)


async def _linger(receive: Receive) -> None:
    taken, more = 0, True
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            while more and taken < _LINGER_BYTES:
                message = await receive()
                taken += len(message.get("body", b""))
                more = message.get("more_body", False)


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _is_json(headers: Headers) -> bool:
    kind, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    return (
        kind.strip().lower() == "application/json"
        and charset in {"", "charset=utf-8"}
        and headers.get("content-encoding", "identity").lower() == "identity"
    )
