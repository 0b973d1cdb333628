"""The vendor API of a process: it listens from the start, and works once Redis and Kafka are reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp

from service.app.vendor_call_report import VendorCallReporter
from service.app.wiring import correction_seconds, model_keys
from service.config.settings import Settings
from service.kafka.clients import build_producer
from service.monitoring.snapshot import ModelSnapshot
from service.serving.vendor_api.app import vendor_app
from service.serving.vendor_api.claims import Claims, ModelRequests
from service.serving.vendor_api.labels import LabelWriter
from service.serving.vendor_api.service import VendorService
from service.store.claims import ClaimStore
from service.store.connection import Connection
from service.store.idempotency import RUNNING_SECONDS, IdempotencyRecords
from service.store.recent_reports import vendor_calls
from service.store.request_registry import RequestRegistry
from service.telemetry.instruments import VendorMetrics

_ANSWER_SECONDS = 8.0
"""How long Kafka may take to accept an answer; after that the vendor must send it again."""


@dataclass
class VendorServing:
    """Serves the vendors of a deployment, until the process is stopping."""

    settings: Settings
    metrics: VendorMetrics
    clock: Callable[[], float]
    stopping: Callable[[], bool]
    board: Mapping[str, ModelSnapshot]
    """The latest snapshots of models."""
    _service: VendorService | None = field(default=None, init=False)
    _reporter: VendorCallReporter | None = field(default=None, init=False)

    def app(self) -> ASGIApp:
        """The application of the listener; unless vendors are served, it asks them to come later."""
        return vendor_app(
            self.settings.vendors,
            self.settings.vendor_api,
            service=lambda: self._service,
            metrics=self.metrics,
            clock=self.clock,
            stopping=self.stopping,
            board=self.board,
        )

    def producer(self) -> Any:
        """A producer of answers, which gives up while the vendor still waits for its reply.

        An answer that is in Kafka twice counts once, so the producer need not be idempotent.

        Raises:
            ConfigurationError: a file of the settings cannot be used.
            Unavailable: no broker can be reached, or they refuse.
        """
        return build_producer(
            self.settings.kafka,
            name="vendor-api",
            delivery_seconds=_ANSWER_SECONDS,
            block_seconds=_ANSWER_SECONDS,
            idempotent=False,
        )

    def start(self, connection: Connection, producer: Any) -> None:
        """Serve vendors from now on; their answers go to the producer."""
        self._service = vendor_service(
            self.settings, connection, producer, metrics=self.metrics, clock=self.clock
        )
        self._reporter = VendorCallReporter(vendor_calls(connection), self.metrics, self.clock)

    def report_calls(self) -> None:
        """Tell the other processes how many calls fail, every few seconds."""
        if self._reporter is not None:
            self._reporter.report_due()

    def stop(self) -> None:
        """Serve no vendor from now on."""
        self._service = None


def vendor_service(
    settings: Settings,
    connection: Connection,
    producer: Any,
    *,
    metrics: VendorMetrics,
    clock: Callable[[], float],
) -> VendorService:
    """The service behind the vendor API."""
    label_keys = {name: vendor.label_key_bytes() for name, vendor in settings.vendors.items()}
    models = {}
    for name, model in settings.models.items():
        keys = model_keys(settings, name)
        models[name] = ModelRequests(
            classes=tuple(model.classes),
            vendors=frozenset(settings.vendors_of(name)),
            claims=ClaimStore(connection, keys),
            registry=RequestRegistry(connection, keys, remembered_seconds=correction_seconds(settings)),
            several=model.labels_per_item.several,
        )
    claims = Claims(models, claim_keys=label_keys, metrics=metrics, clock=clock)
    return VendorService(
        claims,
        labels=LabelWriter(
            producer, settings.kafka.topics.labels, {name: keys[0] for name, keys in label_keys.items()}
        ),
        calls=IdempotencyRecords(
            connection, running_seconds=RUNNING_SECONDS + math.ceil(settings.vendor_api.wait_seconds)
        ),
        metrics=metrics,
        clock=clock,
    )
