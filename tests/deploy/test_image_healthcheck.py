"""The image's health check, as the container's runtime calls it."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry

from service.config.settings import HttpSettings, MonitoringSettings
from service.config.vendors import VendorApiSettings
from service.demo.ports import free_port
from service.serving.web.monitoring import monitoring_app
from service.serving.web.server import WebServer
from service.telemetry.health import Check, Health

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "deploy/image/healthcheck.py"


def exit_code(port: int) -> int:
    variables = os.environ | {"CREDENCE_MONITORING__PORT": str(port)}
    return subprocess.run([sys.executable, PROGRAM], env=variables, check=False).returncode


@contextmanager
def a_process(*, alive: bool) -> Iterator[int]:
    """The monitoring port of a process with one part."""
    health = Health()
    health.add(lambda: Check("part", alive=alive, ready=False, state="waiting"))
    app = monitoring_app(CollectorRegistry(), health)
    server = WebServer(app, name="monitoring", host="127.0.0.1", port=0)
    try:
        yield server.port
    finally:
        server.stop()


def test_a_process_that_is_alive_but_waits_is_healthy() -> None:
    with a_process(alive=True) as port:
        assert exit_code(port) == 0


def test_a_process_with_a_dead_part_is_not_healthy() -> None:
    with a_process(alive=False) as port:
        assert exit_code(port) == 1


def test_a_process_that_does_not_answer_is_not_healthy() -> None:
    assert exit_code(free_port()) == 1


def test_without_a_variable_the_port_is_the_default_of_the_settings() -> None:
    assert runpy.run_path(str(PROGRAM))["DEFAULT_PORT"] == str(MonitoringSettings().port)


def test_the_image_names_the_ports_that_are_listened_on_by_default() -> None:
    exposed = re.search(r"^EXPOSE (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert exposed
    listeners = (HttpSettings(), MonitoringSettings(), VendorApiSettings())
    assert set(exposed[1].split()) == {str(listener.port) for listener in listeners}
