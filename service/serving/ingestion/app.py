"""The ingestion API as an application, with the logins and limits of the vendor API."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from fastapi import FastAPI, Request
from pydantic import Field
from starlette.types import ASGIApp

from service.config.senders import SenderSettings
from service.config.vendors import VendorApiSettings
from service.domain.errors import BadMessage
from service.domain.messages import Prediction
from service.serving.ingestion.writer import PredictionWriter
from service.serving.vendor_api.app import CountedCalls, new_api
from service.serving.vendor_api.auth import Login, TokenCheck
from service.serving.vendor_api.body_limits import Bodies
from service.serving.vendor_api.idempotency import Idempotency
from service.serving.vendor_api.problems import Kind, Refused, unavailable
from service.serving.vendor_api.reference import problems
from service.serving.vendor_api.schemas import Answer
from service.telemetry.instruments import VendorMetrics

INGESTION_PATH = "/v1"
API_VERSION = "1.0.0"

WAITING_CALLS = 40
"""Calls of a process that may wait for Kafka at once. Every sender has an equal share, but at least one."""

_DESCRIPTION = """\
Predictions of models without Kafka: one per call, or an array of them.

They are accepted once Kafka has them, and then count like all others. A call is accepted or refused as a
whole. With an `Idempotency-Key` a repeated call whose response was lost counts once.
"""
_PREDICTION = {"$ref": "#/components/schemas/Prediction"}
_BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"anyOf": [_PREDICTION, {"type": "array", "items": _PREDICTION, "minItems": 1}]}
        }
    },
}


class Accepted(Answer):
    """Kafka has the predictions."""

    accepted: int = Field(description="number of predictions")


def ingestion_app(
    senders: Mapping[str, SenderSettings],
    settings: VendorApiSettings,
    *,
    writer: Callable[[], PredictionWriter | None],
    metrics: VendorMetrics,
) -> ASGIApp:
    """The application below `INGESTION_PATH`; `writer` gives None until Redis and Kafka are reached."""

    def reached() -> PredictionWriter:
        if (found := writer()) is None:
            raise unavailable()
        return found

    bodies = Bodies(
        Idempotency(build_ingestion_api(reached, senders=len(senders)), records=lambda: reached().calls),
        longest=lambda _: settings.body_bytes,
        ordinary=settings.body_bytes,
    )
    login = Login(
        bodies,
        tokens=TokenCheck({name: sender.token_sha256 for name, sender in senders.items()}, metrics),
        per_second=settings.requests_per_second,
        burst=settings.burst,
    )
    return CountedCalls(login, metrics)


def build_ingestion_api(writer: Callable[[], PredictionWriter], *, senders: int) -> FastAPI:
    """The API behind logins and limits, for so many senders."""
    api = new_api("Credence ingestion API", API_VERSION, _DESCRIPTION, INGESTION_PATH, Prediction)
    waits = _KafkaWaits(max(1, WAITING_CALLS // senders), senders)

    @api.post(
        f"{INGESTION_PATH}/predictions",
        summary="Send predictions",
        status_code=202,
        responses=problems(Kind.NOT_FOUND, changes=True),
        openapi_extra={"requestBody": _BODY},
    )
    async def send_predictions(request: Request) -> Accepted:
        sender = request.state.vendor
        write = partial(writer().write, sender, request.state.body)
        try:
            return Accepted(accepted=await waits.run(sender, write))
        except BadMessage as error:
            raise Refused(Kind.MALFORMED) from error

    return api


class _KafkaWaits:
    """Runs what waits for Kafka in threads of its own: those that all routes share must not run out.

    Otherwise, while Kafka is slow, senders would keep vendors and the labelling page waiting. Each sender has
    a share of its own, so that none keeps the others waiting. A call keeps its place while its thread runs.
    """

    def __init__(self, share: int, senders: int) -> None:
        self._share = share
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(share * senders, thread_name_prefix="ingestion")

    async def run(self, sender: str, write: Callable[[], int]) -> int:
        """What it returns; raises `Refused` at once if too many of the sender are running."""
        with self._lock:
            if self._running[sender] >= self._share:
                raise unavailable()
            self._running[sender] += 1
        written = self._threads.submit(write)
        written.add_done_callback(lambda _: self._leave(sender))
        return await asyncio.wrap_future(written)

    def _leave(self, sender: str) -> None:
        with self._lock:
            self._running[sender] -= 1
