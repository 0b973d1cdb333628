"""What every listener's answers carry, and what they never do."""

from __future__ import annotations

import http.client
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from service.serving.web.api import SnapshotView, build_api
from service.serving.web.monitoring import monitoring_app
from service.serving.web.pages import page_app
from service.serving.web.server import WebServer
from service.telemetry.health import Health


def fails(_: Request) -> Response:
    raise RuntimeError("a-detail-for-operators-alone")


async def fails_outside(*_: Any) -> None:
    raise RuntimeError("a-detail-for-operators-alone")


class Board(dict[str, Any]):
    """A board that cannot be read."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("a-detail-for-operators-alone")


VIEW = SnapshotView(models=["m"], board={}, tick_seconds=5.0, clock=lambda: 1.0)
APPS = {
    "page": page_app(VIEW),
    "monitoring": monitoring_app(CollectorRegistry(), Health()),
    "failing": Starlette(routes=[Route("/fails", fails), Route("/", lambda _: PlainTextResponse("x"))]),
    "failing api": Starlette(
        routes=[Mount("/api", build_api(SnapshotView(["m"], Board(), 5.0, clock=lambda: 1.0)))]
    ),
    "failing outside": fails_outside,
}


@pytest.fixture(params=APPS)
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    server = WebServer(APPS[request.param], name="test", host="127.0.0.1", port=0)
    yield server.port
    server.stop()


def get(port: int, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply.status, {name.lower(): value for name, value in reply.getheaders()}, body


def test_every_answer_of_every_listener_has_its_security_headers(port: int) -> None:
    for path in ("/", "/nowhere", "/metrics", "/healthz", "/api/v1/models", "/fails", "/static/style.css"):
        _, headers, _ = get(port, path)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] in {"no-store", "no-cache"}
        assert "server" not in headers


@pytest.mark.parametrize(
    ("app", "path"), [("failing", "/fails"), ("failing api", "/api/models/m"), ("failing outside", "/")]
)
def test_an_error_is_logged_and_not_reported(app: str, path: str, caplog: pytest.LogCaptureFixture) -> None:
    server = WebServer(APPS[app], name="test", host="127.0.0.1", port=0)
    with caplog.at_level(logging.ERROR):
        status, _, body = get(server.port, path)
    server.stop()
    assert status == 500
    assert "detail-for-operators" not in body
    assert "Traceback" not in body
    assert "RuntimeError" not in body
    (logged,) = [record for record in caplog.records if record.exc_info]
    assert logged.name == "service.serving.web.guard"


def test_a_page_with_names_is_not_shown_under_another_one() -> None:
    app = page_app(VIEW, allowed_hosts=["localhost", "*.example.com"])
    server = WebServer(app, name="test", host="127.0.0.1", port=0)
    asked = {
        host: get(server.port, "/api/v1/models", Host=host)[0]
        for host in ("localhost", "localhost:8400", "credence.example.com", "evil.example", "127.0.0.1", "")
    }
    server.stop()
    assert asked == {
        "localhost": 200,
        "localhost:8400": 200,
        "credence.example.com": 200,
        "evil.example": 400,
        "127.0.0.1": 400,
        "": 400,
    }
