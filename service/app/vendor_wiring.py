"""Makes what serves vendors from the settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from service.app.wiring import model_keys
from service.config.settings import Settings
from service.serving.vendor_api.answers import Answers
from service.serving.vendor_api.claims import Claims, ModelRequests
from service.serving.vendor_api.labels import LabelWriter
from service.serving.vendor_api.service import VendorService
from service.store.claims import ClaimStore
from service.store.connection import Connection
from service.store.idempotency import RUNNING_SECONDS, IdempotencyRecords
from service.store.request_history import AskedRequests
from service.telemetry.instruments import VendorMetrics


def claim_stores(settings: Settings, connection: Connection) -> dict[str, ClaimStore]:
    """The claims of every model's requests."""
    return {
        name: ClaimStore(connection, model_keys(settings, name, settings.cell_space(name)))
        for name in settings.models
    }


def vendor_service(
    settings: Settings,
    connection: Connection,
    producer: Any,
    *,
    metrics: VendorMetrics,
    clock: Callable[[], float],
) -> VendorService:
    """What serves vendors over HTTP."""
    stores = claim_stores(settings, connection)
    label_keys = {name: vendor.label_key_bytes() for name, vendor in settings.vendors.items()}
    models = {
        name: ModelRequests(
            classes=tuple(model.classes),
            vendors=frozenset(settings.vendors_of(name)),
            claims=stores[name],
            asked=AskedRequests(
                connection,
                model_keys(settings, name, settings.cell_space(name)),
                remembered_seconds=int(settings.bounds.correction_days * 86_400),
            ),
        )
        for name, model in settings.models.items()
    }
    claims = Claims(models, claim_keys=label_keys, metrics=metrics, clock=clock)
    answers = Answers(
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
    return VendorService(claims, answers)
