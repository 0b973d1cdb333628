"""What machines ask a process, over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import CollectorRegistry

from service.serving.web import server as web_server
from service.serving.web.monitoring import monitoring_app
from service.serving.web.server import WebServer
from service.telemetry.health import Check, Health


@contextmanager
def served(*checks: Check) -> Iterator[int]:
    """The port at which a process with these parts answers."""
    health = Health()
    for check in checks:
        health.add(lambda check=check: check)
    health.started()
    server = WebServer(
        monitoring_app(CollectorRegistry(), health), name="monitoring", host="127.0.0.1", port=0
    )
    try:
        yield server.port
    finally:
        server.stop()


def ask(port: int, path: str, **headers: str) -> tuple[int, str, str]:
    """Status, content type and body."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.headers["content-type"], reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read().decode()


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text"),
        ("text/plain", "text/plain"),
    ],
)
def test_metrics_are_reported_in_the_format_that_is_asked_for(accept: str, expected: str) -> None:
    with served() as port:
        status, content_type, _ = ask(port, "/metrics", Accept=accept)
    assert status == 200
    assert content_type.startswith(expected)


@pytest.mark.parametrize(
    ("alive", "ready", "healthz", "readyz"),
    [(True, True, 200, 200), (True, False, 200, 503), (False, True, 503, 503)],
)
def test_a_process_is_alive_and_ready_if_all_its_parts_are(
    alive: bool, ready: bool, healthz: int, readyz: int
) -> None:
    parts = Check("one", alive=True, ready=True, state="running"), Check("two", alive, ready, "waiting")
    with served(*parts) as port:
        assert ask(port, "/healthz")[0] == healthz
        status, _, body = ask(port, "/readyz")
    assert status == readyz
    assert json.loads(body)["parts"] == {"one": "running", "two": "waiting"}


@pytest.mark.parametrize("path", ["/api/v1/models", "/static/style.css", "/docs/runbooks/"])
def test_nothing_that_people_look_at_is_served_there(path: str) -> None:
    with served() as port:
        assert ask(port, path)[0] == 404


def test_a_client_that_was_answered_and_dawdles_with_its_body_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 0.5)
    with served() as port, socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        assert wire.recv(65_536).startswith(b"HTTP/1.1 200 ")
        began, gone = time.monotonic(), False
        while not gone and time.monotonic() - began < 60:
            try:
                wire.sendall(b"x")
            except OSError:
                gone = True
            time.sleep(0.02)
        assert gone


def test_a_body_that_nobody_reads_does_not_keep_the_next_request_from_being_answered() -> None:
    with served() as port, socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        for _ in range(2):
            wire.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n")
            answer = http.client.HTTPResponse(wire)
            answer.begin()
            assert (answer.status, answer.read()[:8]) == (200, b"Credence")
            wire.sendall(b"xx")
