"""The APIs of vendors and senders: they listen from the start, and work once Redis and Kafka are reached."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from service.app.ingestion_wiring import prediction_writer
from service.app.vendor_call_report import VendorCallReporter
from service.app.wiring import correction_seconds, model_keys
from service.config.settings import Settings
from service.kafka.clients import build_producer
from service.serving.ingestion.app import INGESTION_PATH, ingestion_app
from service.serving.ingestion.writer import PredictionWriter
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
"""How long Kafka may take to accept an answer or a prediction; after that it must be sent again."""


@dataclass
class VendorServing:
    """Serves the vendors and the senders of a deployment, until the process is stopping."""

    settings: Settings
    metrics: VendorMetrics
    clock: Callable[[], float]
    stopping: Callable[[], bool]
    _service: VendorService | None = field(default=None, init=False)
    _predictions: PredictionWriter | None = field(default=None, init=False)
    _reporter: VendorCallReporter | None = field(default=None, init=False)

    def app(self) -> ASGIApp:
        """The application of the listener; what is not served yet asks its callers to come later."""
        vendors = vendor_app(
            self.settings.vendors,
            self.settings.vendor_api,
            service=lambda: self._service,
            metrics=self.metrics,
            clock=self.clock,
            stopping=self.stopping,
        )
        if not self.settings.senders:
            return vendors
        senders = ingestion_app(
            self.settings.senders,
            self.settings.vendor_api,
            writer=lambda: self._predictions,
            metrics=self.metrics,
        )

        # Tokens of one are unknown to the other: no vendor sends predictions, and no sender sees requests.
        async def either(scope: Scope, receive: Receive, send: Send) -> None:
            is_sender = scope.get("path", "").startswith(f"{INGESTION_PATH}/")
            await (senders if is_sender else vendors)(scope, receive, send)

        return either

    def start(
        self,
        connection: Connection,
        retried: Callable[[Callable[[], Any]], Any | None],
        stack: ExitStack,
    ) -> None:
        """Serve what is configured, until the stack is closed.

        `retried` gives the result of a function that may raise `Unavailable`, or None if the process stops.
        """
        if self.settings.has_vendor_api:
            # An answer that is in Kafka twice counts once, so the producer need not be idempotent.
            answers = retried(partial(self._producer, name="vendor-api", idempotent=False))
            if answers is not None:
                stack.callback(answers.close, timeout=5)
                self._service = vendor_service(
                    self.settings, connection, answers, metrics=self.metrics, clock=self.clock
                )
        if self.settings.senders:
            predictions = retried(partial(self._producer, name="ingestion-api", idempotent=True))
            if predictions is not None:
                stack.callback(predictions.close, timeout=5)
                self._predictions = prediction_writer(self.settings, connection, predictions, self.clock)
        self._reporter = VendorCallReporter(vendor_calls(connection), self.metrics, self.clock)
        stack.callback(self._stop)

    def _producer(self, *, name: str, idempotent: bool) -> Any:
        """A producer that gives up while the caller still waits for its reply.

        Raises:
            ConfigurationError: a file of the settings cannot be used.
            Unavailable: no broker can be reached, or they refuse.
        """
        return build_producer(
            self.settings.kafka,
            name=name,
            delivery_seconds=_ANSWER_SECONDS,
            block_seconds=_ANSWER_SECONDS,
            idempotent=idempotent,
        )

    def report_calls(self) -> None:
        """Tell the other processes how many calls fail, every few seconds."""
        if self._reporter is not None:
            self._reporter.report_due()

    def _stop(self) -> None:
        """Serve nobody from now on."""
        self._service = self._predictions = None


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
