"""The status page, its files, and the runbooks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from service.serving.web.runbooks import load_runbooks, runbook_index, runbook_page

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


def page_routes() -> list[BaseRoute]:
    """Routes of the status page `/`, of its files `/static/…`, and of the runbooks `/docs/runbooks/…`."""
    static = {
        path: _Page.of(entry.read_bytes(), _MEDIA_TYPES[suffix])
        for path, entry in _walk(files("service.serving.web") / "static", "")
        if (suffix := "." + path.rpartition(".")[2]) in _MEDIA_TYPES
    }
    texts = load_runbooks()
    runbooks = {name: _Page.of(runbook_page(name, texts).encode(), "text/html") for name in texts}
    runbooks[""] = _Page.of(runbook_index(texts).encode(), "text/html")
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


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry
