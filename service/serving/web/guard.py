"""What every listener does with every answer: headers that keep browsers from misusing it, and no traces."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

_SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""On every answer that does not say otherwise itself, as the status page does."""

PROBLEM_MEDIA_TYPE = "application/problem+json"
PROBLEM_URN = "urn:credence:problem:"

INTERNAL_ERROR = ("internal-error", 500, "something went wrong on this side; it was logged")
"""Word, status and sentence of an answer that reveals nothing of the error."""


class Guard:
    """Stands in front of every application.

    An error that the application lets through is logged here, and here alone; the caller learns no more
    than that there was one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except ClientDisconnect:
            return  # nobody is there to be answered
        except Exception:
            log.exception("a request failed", extra={"method": scope["method"], "route": route_of(scope)})
            if not started:
                await internal_error()(scope, receive, answer)


def route_of(scope: Scope) -> str:
    """The template of the path that was asked for, such as `/models/{model}`; never the path itself."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else "unknown"


def internal_error() -> JSONResponse:
    """An answer that reveals nothing of the error."""
    return problem_response(*INTERNAL_ERROR)


def problem_response(
    word: str, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: object
) -> JSONResponse:
    """Problem details (RFC 9457), with the type `word` and any further members."""
    body = {
        "type": PROBLEM_URN + word,
        "title": word.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
        **members,
    }
    return JSONResponse(body, status_code=status, headers=headers, media_type=PROBLEM_MEDIA_TYPE)
