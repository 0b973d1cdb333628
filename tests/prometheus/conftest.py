"""Monitoring servers for the tests; a missing one skips locally and fails in CI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from missing_programs import program
from monitoring_servers import (
    Alertmanager,
    Prometheus,
    StartAlertmanager,
    StartPrometheus,
    WebhookReceiver,
)


@pytest.fixture
def start_prometheus(tmp_path: Path) -> Iterator[StartPrometheus]:
    """Starts a Prometheus with a configuration; stops all in the end."""
    program("prometheus", package="prometheus")
    with ExitStack() as stack:
        yield lambda config: stack.enter_context(
            Prometheus(tmp_path / f"prometheus-{len(list(tmp_path.iterdir()))}", config)
        )


@pytest.fixture
def start_alertmanager(tmp_path: Path) -> Iterator[StartAlertmanager]:
    """Starts an Alertmanager with a configuration; stops all in the end."""
    program("alertmanager", "prometheus-alertmanager", package="prometheus-alertmanager")
    with ExitStack() as stack:
        yield lambda config: stack.enter_context(
            Alertmanager(tmp_path / f"alertmanager-{len(list(tmp_path.iterdir()))}", config)
        )


@pytest.fixture
def webhook() -> Iterator[WebhookReceiver]:
    """Receives what an Alertmanager sends."""
    with WebhookReceiver() as receiver:
        yield receiver
