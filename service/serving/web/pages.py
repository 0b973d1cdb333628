"""What people use: the status page with its API, and the runbooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp

from service.serving.web.api import API_PATH, SnapshotView, build_api
from service.serving.web.runbooks import load_runbooks, runbook_page
from service.serving.web.static_files import (
    StaticFile,
    content_security_policy,
    read_static_files,
    static_route,
)

STATIC = Path(__file__).with_name("static")
"""The status page's files."""


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
    policy = content_security_policy()
    static = read_static_files(STATIC)
    texts = load_runbooks()
    runbooks = {name: StaticFile.of(runbook_page(name, texts).encode(), "text/html") for name in texts}
    if "README" in runbooks:
        runbooks[""] = runbooks["README"]
    return [
        static_route("/", {"": static.pop("index.html")}, policy),
        static_route("/static/{path:path}", static, policy),
        static_route("/docs/runbooks/{path}", runbooks, policy),
        static_route("/docs/runbooks/", runbooks, policy),
    ]
