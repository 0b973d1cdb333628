"""The status page with its API, as one application."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount
from starlette.types import ASGIApp

from service.serving.web.api import API_PATH, SnapshotView, build_api
from service.serving.web.pages import page_routes


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
