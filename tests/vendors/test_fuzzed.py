"""Calls made from the APIs' own descriptions, good ones and bad ones: none is answered with a server error.

schemathesis makes them up. Half of those of the vendor API name a request that is really held, so that they
come further than to a 404.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from office import TOKENS, V1, Office, fresh_connection
from sender_site import SENDER_TOKENS, SenderSite
from snapshots import NOW as SNAPSHOT_TAKEN
from snapshots import snapshot

from service.demo.servers import EmbeddedRedis
from service.serving.web.api import API_PATH, SnapshotView
from service.serving.web.pages import page_app
from service.serving.web.server import WebServer
from service.store.connection import Connection

if os.environ.get("CI") == "true":
    import schemathesis
else:
    schemathesis = pytest.importorskip("schemathesis")
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
EXAMPLES = 12
"""Per operation and kind of call: about half a minute on a busy machine."""

MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@pytest.fixture(scope="module")
def office(connection_of_module: Connection, bootstrap_servers: str) -> Iterator[Office]:
    limits = {"wait_seconds": 0.0, "most": 3}
    with Office(connection_of_module, bootstrap_servers, api=limits) as office:
        yield office


@pytest.fixture(scope="module")
def connection_of_module(redis_server: EmbeddedRedis) -> Iterator[Connection]:
    connection = fresh_connection(redis_server)
    yield connection
    connection.client.close()


@pytest.fixture(scope="module")
def page() -> Iterator[int]:
    """The status page with one model."""
    view = SnapshotView(["m", "new"], {"m": snapshot()}, 5.0, clock=lambda: SNAPSHOT_TAKEN + 2)
    server = WebServer(page_app(view), name="page", host="127.0.0.1", port=0)
    yield server.port
    server.stop()


def described(document: dict[str, Any], base: str) -> Any:
    """What schemathesis makes of a description."""
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=base)
    return schema


def operations(schema: Any) -> Iterator[Any]:
    for found in schema.get_all_operations():
        yield found.ok()


def tried(operation: Any, mode: Any, answer: Any, *, examples: int = EXAMPLES) -> None:
    """Make calls of one operation, the same ones each time."""

    @seed(20_270_115)
    @settings(
        max_examples=examples,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
    def trial(case: Any, real: bool) -> None:
        answer(case, real)

    trial()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_no_call_of_the_vendor_api_is_answered_but_as_described(office: Office, mode: Any) -> None:
    acme = office.caller("acme")
    document = acme.get("/openapi.json").body
    turns = itertools.count()
    held: list[Any] = []

    def answer(case: Any, real: bool) -> None:
        if real and "request_id" in (case.path_parameters or {}):
            if not held:
                office.ask(20)
                held.extend(acme.claim(3))
            claim = held[next(turns) % len(held)]
            case.path_parameters |= {"model": "m", "request_id": claim["request_id"]}
            if isinstance(case.body, dict) and "claim_id" in case.body:
                case.body["claim_id"] = claim["claim_id"]
            if isinstance(case.body, dict) and "item_id" in case.body:
                case.body["item_id"] = claim["request"]["item_id"]
        elif real and case.path_parameters:
            case.path_parameters |= {"model": "m"}
        case.headers["Authorization"] = f"Bearer {TOKENS['acme']}"
        case.validate_response(case.call(), checks=CHECKS)

    for operation in operations(described(document, f"http://127.0.0.1:{office.server.port}")):
        tried(operation, mode, answer)
    assert office.sample("credence_vendor_claims_total", vendor="acme", model="m") > 0


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_no_call_of_the_ingestion_api_is_answered_but_as_described(
    connection_of_module: Connection, bootstrap_servers: str, mode: Any
) -> None:
    with SenderSite(connection_of_module, bootstrap_servers) as site:
        document = site.caller("shop").call("GET", "/v1/openapi.json").body

        def answer(case: Any, real: bool) -> None:
            for prediction in case.body if isinstance(case.body, list) else [case.body]:
                if real and isinstance(prediction, dict):
                    prediction |= {"model": "m"}
            case.headers["Authorization"] = f"Bearer {SENDER_TOKENS['shop']}"
            case.validate_response(case.call(), checks=CHECKS)

        for operation in operations(described(document, f"http://127.0.0.1:{site.server.port}")):
            tried(operation, mode, answer, examples=5 * EXAMPLES)
        assert site.calls(vendor="shop", route="/v1/predictions", status="4xx") > 0


def test_without_a_token_no_call_is_answered(office: Office) -> None:
    document = office.caller("acme").get("/openapi.json").body

    def answer(case: Any, _: bool) -> None:
        case.headers.pop("Authorization", None)
        assert case.call().status_code in {401, 429}

    for operation in operations(described(document, f"http://127.0.0.1:{office.server.port}")):
        assert operation.path.startswith(V1)
        tried(operation, GenerationMode.POSITIVE, answer, examples=3)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_no_call_of_the_status_pages_api_is_answered_but_as_described(page: int, mode: Any) -> None:
    base = f"http://127.0.0.1:{page}"
    document = schemathesis.openapi.from_url(f"{base}{API_PATH}/openapi.json").raw_schema

    calls = itertools.count()

    def answer(case: Any, real: bool) -> None:
        next(calls)
        if real and case.path_parameters:
            case.path_parameters |= {"model": "m"}
        case.validate_response(case.call(), checks=CHECKS)

    for operation in operations(described(document, base + API_PATH)):
        # Where any text will do, no call is a bad one.
        with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
            tried(operation, mode, answer)
    assert next(calls) > EXAMPLES
