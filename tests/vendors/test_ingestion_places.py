"""What a sender may occupy of the calls that wait for Kafka, whatever becomes of its calls."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
from harness import wait_for
from office import Told
from sender_site import GOOD, SENDER_TOKENS, SenderSite, prediction
from test_ingestion_api import PATH, send
from test_ingestion_isolation import SlowWriter

from service.serving.ingestion.app import WAITING_CALLS, _KafkaWaits
from service.serving.ingestion.writer import PredictionWriter
from service.serving.vendor_api.problems import Refused
from service.store.connection import Connection


@pytest.fixture
def site(connection: Connection, bootstrap_servers: str) -> Iterator[SenderSite]:
    with SenderSite(connection, bootstrap_servers) as site:
        yield site


def slowed(site: SenderSite) -> SlowWriter:
    assert site.serving._predictions is not None
    slow = SlowWriter(site.serving._predictions)
    site.serving._predictions = cast("PredictionWriter", slow)
    return slow


def share_of(site: SenderSite) -> int:
    return WAITING_CALLS // len(site.settings.senders)


def test_a_sender_that_hangs_up_keeps_its_places_until_kafka_answers(site: SenderSite) -> None:
    slow, share = slowed(site), share_of(site)
    opened = []
    for _ in range(share):
        caller = http.client.HTTPConnection("127.0.0.1", site.server.port, timeout=30)
        caller.request(
            "POST",
            PATH,
            json.dumps(GOOD),
            {"Authorization": f"Bearer {SENDER_TOKENS['shop']}", "Content-Type": "application/json"},
        )
        opened.append(caller)
    slow.wait_until_waiting(share)
    for caller in opened:
        caller.close()
    with ThreadPoolExecutor(1) as others:
        try:
            assert send(site.caller("shop"), GOOD).status == 503
            of_another = others.submit(send, site.caller("bank"), prediction(model="other"))
            slow.wait_until_waiting(1)
        finally:
            slow.allow()
        assert of_another.result().status == 202
    accepted: Callable[[], bool] = lambda: send(site.caller("shop"), GOOD).status == 202  # noqa: E731
    wait_for(accepted, seconds=30, what="a place of the sender that hung up")


def test_calls_that_fail_give_their_places_back(site: SenderSite) -> None:
    share = share_of(site)
    unfit = prediction(model="m", predicted_class="horse")
    replies: list[Told] = [send(site.caller("shop"), unfit) for _ in range(2 * share)]
    replies += [send(site.caller("shop"), b"{") for _ in range(2 * share)]
    assert {reply.status for reply in replies} == {400, 422}
    assert send(site.caller("shop"), GOOD).status == 202


def test_a_cancelled_call_keeps_its_place_while_its_thread_waits() -> None:
    async def other_waits() -> bool:
        waits, free = _KafkaWaits(1, 2), threading.Event()
        began: list[int] = []

        def slow() -> int:
            began.append(1)
            free.wait(20)
            return 1

        try:
            for _ in range(2):
                call = asyncio.ensure_future(waits.run("shop", slow))
                await asyncio.sleep(0)
                call.cancel()
                with contextlib.suppress(asyncio.CancelledError, Refused):
                    await call
            try:
                async with asyncio.timeout(2):
                    return await waits.run("bank", lambda: 1) != 1
            except TimeoutError:
                return True
        finally:
            free.set()

    # In a thread of its own: the browsers' tests leave an event loop in this one.
    with ThreadPoolExecutor(1) as elsewhere:
        assert not elsewhere.submit(asyncio.run, other_waits()).result()
