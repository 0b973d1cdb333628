"""Files that browsers load: read once, sent with a tag, under a strict content security policy."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

# A machine's own table of types may lack some, and browsers refuse scripts of another type.
_MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


def content_security_policy(image_origins: Sequence[str] = ()) -> str:
    """Scripts, styles and calls of the page's own origin alone; images also inline, and of these origins.

    All other security headers are those of every answer (`Guard`).
    """
    images = " ".join(["'self'", "data:", *image_origins])
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        f"img-src {images}; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
    )


@dataclass(frozen=True)
class StaticFile:
    """A file's content, and its tag."""

    content: bytes
    media_type: str
    tag: str

    @classmethod
    def of(cls, content: bytes, media_type: str) -> StaticFile:
        """A file with this content."""
        return cls(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')

    def answer(self, request: Request, policy: str) -> Response:
        """The file, or 304 to browsers that have it."""
        # Asked for again each time, and then mostly not sent: a new release is seen at once.
        headers = {"Content-Security-Policy": policy, "ETag": self.tag, "Cache-Control": "no-cache"}
        known = request.headers.get("if-none-match", "")
        if self.tag in (part.strip().removeprefix("W/") for part in known.split(",")):
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.media_type)


def read_static_files(folder: Path) -> dict[str, StaticFile]:
    """All files of a folder that browsers load, by path below it."""
    return {
        file.relative_to(folder).as_posix(): StaticFile.of(file.read_bytes(), _MEDIA_TYPES[file.suffix])
        for file in folder.rglob("*")
        if file.suffix in _MEDIA_TYPES
    }


def static_route(path: str, files: Mapping[str, StaticFile], policy: str) -> Route:
    """Serves the file that the parameter `path` names, or the one with an empty name; else 404."""

    async def answer(request: Request) -> Response:
        file = files.get(request.path_params.get("path", ""))
        if file is None:
            headers = {"Content-Security-Policy": policy}
            return PlainTextResponse("not found\n", status_code=404, headers=headers)
        return file.answer(request, policy)

    return Route(path, answer)
