"""What people use: the status page with its API, and the runbooks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from service.serving.web.api import API_PATH, SnapshotView, build_api
from service.serving.web.runbooks import load_runbooks, runbook_page

_POLICY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
}
"""Scripts and styles of its own; all other security headers are those of every answer (`Guard`)."""

# A machine's own table of types may lack some, and browsers refuse scripts of another type.
_MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class _Page:
    content: bytes
    media_type: str
    tag: str

    @classmethod
    def of(cls, content: bytes, media_type: str) -> _Page:
        return cls(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')

    def answer(self, request: Request) -> Response:
        # Asked for again each time, and then mostly not sent: a new release is seen at once.
        headers = {**_POLICY, "ETag": self.tag, "Cache-Control": "no-cache"}
        known = request.headers.get("if-none-match", "")
        if self.tag in (part.strip().removeprefix("W/") for part in known.split(",")):
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.media_type)


def page_app(view: SnapshotView, *, allowed_hosts: Sequence[str] = ()) -> ASGIApp:
    """The application that people use: status page, runbooks, and what they show as JSON.

    It answers under `allowed_hosts` only, `*.example.com` for names below one; under any, if empty. A
    browser that another page led here under another name (DNS rebinding) is refused.
    """

    async def not_found(_: Request, __: Exception) -> Response:
        # As the API says it, for paths of it too that the mount does not match, such as with a line break.
        return JSONResponse({"detail": "Not Found"}, status_code=404)

    app = Starlette(
        routes=[*page_routes(), Mount(API_PATH, build_api(view))], exception_handlers={404: not_found}
    )
    if not allowed_hosts:
        return app
    return TrustedHostMiddleware(app, allowed_hosts=allowed_hosts, www_redirect=False)


def page_routes() -> list[BaseRoute]:
    """Routes of the status page `/`, of its files `/static/…`, and of the runbooks `/docs/runbooks/…`."""
    folder = Path(__file__).with_name("static")
    static = {
        file.relative_to(folder).as_posix(): _Page.of(file.read_bytes(), _MEDIA_TYPES[file.suffix])
        for file in folder.rglob("*")
        if file.suffix in _MEDIA_TYPES
    }
    texts = load_runbooks()
    runbooks = {name: _Page.of(runbook_page(name, texts).encode(), "text/html") for name in texts}
    if "README" in runbooks:
        runbooks[""] = runbooks["README"]
    return [
        _served("/", {"": static.pop("index.html")}),
        _served("/static/{path:path}", static),
        _served("/docs/runbooks/{path}", runbooks),
        _served("/docs/runbooks/", runbooks),
    ]


def _served(path: str, pages: dict[str, _Page]) -> Route:
    async def answer(request: Request) -> Response:
        page = pages.get(request.path_params.get("path", ""))
        if page is None:
            return PlainTextResponse("not found\n", status_code=404, headers=_POLICY)
        return page.answer(request)

    return Route(path, answer)
