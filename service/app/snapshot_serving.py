"""The snapshots of a process: the rounds that take them, and the page that shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from service.app.round_running import RoundRunner
from service.config.settings import Settings
from service.monitoring.snapshot import ModelSnapshot
from service.serving.web.api import SnapshotView
from service.serving.web.app import page_app
from service.store.connection import Connection
from service.telemetry.instruments import PipelineMetrics


class SnapshotServing:
    """Takes snapshots of all models, and shows them.

    Args:
        settings: of the process.
        registry: that snapshots are shown in.
        metrics: of the pipeline.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        registry: CollectorRegistry,
        metrics: PipelineMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._metrics = metrics
        self._clock = clock
        self._board: dict[str, ModelSnapshot] = {}

    def page(self) -> ASGIApp:
        """The application of the status page; it shows nothing before the first round."""
        view = SnapshotView(
            models=list(self._settings.models),
            board=self._board,
            tick_seconds=self._settings.schedule.tick_seconds,
            clock=self._clock,
        )
        return page_app(view, allowed_hosts=self._settings.http.allowed_hosts)

    def runner(self, connection: Connection, *, hash_key: bytes, producer: Any) -> RoundRunner:
        """What takes the snapshots.

        Args:
            connection: to Redis.
            hash_key: of the pools.
            producer: of label requests; None where this process only looks.
        """
        return RoundRunner(
            self._settings,
            connection,
            hash_key=hash_key,
            producer=producer,
            board=self._board,
            registry=self._registry,
            metrics=self._metrics,
            clock=self._clock,
        )
