"""What machines ask a process: `/metrics`, `/healthz`, `/readyz`."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from service import __version__
from service.telemetry.health import Check, Health


def monitoring_app(registry: CollectorRegistry, health: Health) -> Starlette:
    """The application for Prometheus and probes, served apart from those of people and vendors."""

    # Plain functions run in a thread pool, so a slow scrape does not hold up a health check.
    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    def healthz(_: Request) -> Response:
        checks = health.checks()
        return _answer(checks, {}, ok=all(check.alive for check in checks))

    def readyz(_: Request) -> Response:
        checks = health.checks()
        return _answer(checks, health.models(), ok=all(check.alive and check.ready for check in checks))

    def index(_: Request) -> Response:
        return PlainTextResponse(
            f"Credence {__version__}\n\n"
            "/metrics  Prometheus metrics\n"
            "/healthz  whether this process is alive\n"
            "/readyz   whether it does its work, and the status of every model\n"
        )

    return Starlette(
        routes=[
            Route("/", index),
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
        ]
    )


def _answer(checks: list[Check], models: Mapping[str, str], *, ok: bool) -> Response:
    body: dict[str, object] = {
        "status": "ok" if ok else "unavailable",
        "parts": {check.name: check.state for check in checks},
    }
    if models:
        body["models"] = dict(models)
    return JSONResponse(body, status_code=200 if ok else 503)
