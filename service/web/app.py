"""The HTTP face: page, API, `/metrics`, `/healthz`, `/readyz`."""

from __future__ import annotations

import socket
import threading

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from service import __version__
from service.health import Check, Health
from service.web.api import API_PATH, SnapshotView, build_api
from service.web.pages import page_routes


def build_app(registry: CollectorRegistry, health: Health, view: SnapshotView | None = None) -> Starlette:
    """The ASGI application.

    Args:
        registry: whose metrics are shown.
        health: of this process.
        view: of the snapshots; None where this process takes none.
    """

    # Plain functions run in a thread pool, so a slow scrape does not hold up a health check.
    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    def healthz(_: Request) -> Response:
        checks = health.checks()
        return _answer(checks, ok=all(check.alive for check in checks))

    def readyz(_: Request) -> Response:
        checks = health.checks()
        return _answer(checks, ok=all(check.alive and check.ready for check in checks))

    def index(_: Request) -> Response:
        return PlainTextResponse(
            f"Credence {__version__}\n\n"
            "/metrics  Prometheus metrics\n"
            "/healthz  whether this process is alive\n"
            "/readyz   whether it does its work\n"
        )

    always = [Route("/metrics", metrics), Route("/healthz", healthz), Route("/readyz", readyz)]
    if view is None:
        return Starlette(routes=[Route("/", index), *always])
    return Starlette(routes=[*page_routes(), *always, Mount(API_PATH, build_api(view))])


def _answer(checks: list[Check], *, ok: bool) -> Response:
    body = {"status": "ok" if ok else "unavailable", "parts": {check.name: check.state for check in checks}}
    return JSONResponse(body, status_code=200 if ok else 503)


class WebServer:
    """Serves an application from a thread of its own.

    Raises:
        OSError: the address cannot be listened on.
    """

    def __init__(self, app: Starlette, *, host: str, port: int) -> None:
        self._socket = socket.create_server((host, port))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", server_header=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="web", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Answer what is under way, then close."""
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()
