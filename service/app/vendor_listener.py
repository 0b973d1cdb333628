"""The vendor API in a process: there from the start, of use once Redis and Kafka are reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.types import ASGIApp

from service.app.vendor_wiring import vendor_service
from service.config.settings import Settings
from service.kafka.clients import build_producer
from service.serving.vendor_api.app import vendor_app
from service.serving.vendor_api.service import VendorService
from service.store.connection import Connection
from service.telemetry.instruments import VendorMetrics

_ANSWER_SECONDS = 8.0
"""So long an answer may take to be in Kafka; then its vendor is told to give it again."""


class VendorServing:
    """Serves the vendors of a deployment.

    Args:
        settings: of the process.
        metrics: of the vendor API.
        clock: seconds since the epoch.
        stopping: whether the process ends.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        metrics: VendorMetrics,
        clock: Callable[[], float],
        stopping: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self._stopping = stopping
        self._service: VendorService | None = None

    def app(self) -> ASGIApp:
        """The application of the listener."""
        return vendor_app(
            self._settings.vendors,
            self._settings.vendor_api,
            service=lambda: self._service,
            metrics=self._metrics,
            clock=self._clock,
            stopping=self._stopping,
        )

    def producer(self) -> Any:
        """Makes the client that answers are given to: one that gives up while its caller still waits.

        An answer that is there twice counts once, so the client need not be idempotent.

        Raises:
            ConfigurationError: a file of the settings cannot be used.
            Unavailable: no broker can be reached, or they refuse.
        """
        return build_producer(
            self._settings.kafka,
            name="vendor-api",
            delivery_seconds=_ANSWER_SECONDS,
            block_seconds=_ANSWER_SECONDS,
            idempotent=False,
        )

    @contextmanager
    def open(self, connection: Connection, producer: Any) -> Iterator[None]:
        """Serve; before that, and afterwards, vendors are told to come later.

        Args:
            connection: to Redis.
            producer: as `producer` makes it; closed in the end.
        """
        self._service = vendor_service(
            self._settings, connection, producer, metrics=self._metrics, clock=self._clock
        )
        try:
            yield
        finally:
            self._service = None
            producer.close(timeout=5)
