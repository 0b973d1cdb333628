"""Senders of predictions neither keep vendors waiting nor learn about the models of others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from sender_site import GOOD, SenderSite, prediction
from test_ingestion_api import send

from service.app.ingestion_wiring import build_examine
from service.serving.ingestion.app import WAITING_CALLS
from service.serving.ingestion.writer import PredictionWriter
from service.store.connection import Connection


@pytest.fixture
def site(connection: Connection, bootstrap_servers: str) -> Iterator[SenderSite]:
    with SenderSite(connection, bootstrap_servers) as site:
        yield site


class SlowWriter:
    """Writes when it is allowed to, as if Kafka answered only then."""

    def __init__(self, writer: PredictionWriter) -> None:
        self.calls = writer.calls
        self._writer = writer
        self._waiting = threading.Semaphore(0)
        self._allowed = threading.Event()

    def write(self, sender: str, value: bytes) -> int:
        self._waiting.release()
        assert self._allowed.wait(60)
        return self._writer.write(sender, value)

    def wait_until_waiting(self, count: int) -> None:
        for _ in range(count):
            assert self._waiting.acquire(timeout=60)

    def allow(self) -> None:
        self._allowed.set()


def test_a_burst_of_predictions_while_kafka_is_slow_keeps_nobody_else_waiting(site: SenderSite) -> None:
    assert site.serving._predictions is not None
    slow = SlowWriter(site.serving._predictions)
    site.serving._predictions = cast("PredictionWriter", slow)
    share = WAITING_CALLS // len(site.settings.senders)
    with ThreadPoolExecutor(share + 1) as senders:
        burst = [senders.submit(send, site.caller("shop"), GOOD) for _ in range(share)]
        try:
            slow.wait_until_waiting(share)
            assert site.caller("acme").get("/models").status == 200
            refused = send(site.caller("shop"), GOOD, Idempotency_Key="again")
            of_another = senders.submit(send, site.caller("bank"), prediction(model="other"))
            slow.wait_until_waiting(1)
        finally:
            slow.allow()
        assert {call.result().status for call in [*burst, of_another]} == {202}
    assert (refused.problem, refused.headers["retry-after"]) == ("unavailable", "2")
    assert send(site.caller("shop"), GOOD, Idempotency_Key="again").status == 202


@pytest.mark.parametrize("model", ["other", "nobodys"])
def test_a_prediction_of_a_model_of_others_is_not_examined(site: SenderSite, model: str) -> None:
    unfit: Any = prediction(model=model, predicted_class="horse")
    examine = build_examine(site.settings)
    (examined,) = examine(json.dumps(unfit).encode(), {"m"})
    assert (examined.model, examined.problem) == (model, "")
    (examined,) = examine(json.dumps(unfit | {"model": "m"}).encode(), {"m"})
    assert "unknown_class" in examined.problem
