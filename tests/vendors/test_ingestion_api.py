"""Predictions over HTTP: by the contract, with tokens of their own, and accepted once Kafka has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from apache_kafka import ApacheKafka
from office import V1, Caller, Told
from sender_site import GOOD, SenderSite, prediction

from service.demo.servers import EmbeddedBroker
from service.store.connection import Connection

PATH = "/v1/predictions"


@pytest.fixture
def site(connection: Connection, bootstrap_servers: str) -> Iterator[SenderSite]:
    with SenderSite(connection, bootstrap_servers) as site:
        yield site


@pytest.fixture
def shop(site: SenderSite) -> Caller:
    return site.caller("shop")


def send(caller: Caller, body: Any, **headers: str) -> Told:
    return caller.call("POST", PATH, body, **headers)


def test_a_prediction_is_in_kafka_as_it_was_sent_once_it_is_accepted(site: SenderSite, shop: Caller) -> None:
    body = b'{"item_id": "a", "model": "m", "probabilities": [0.25, 0.75], "of_a_newer_version": 1}'
    answer = send(shop, body)
    assert (answer.status, answer.body) == (202, {"accepted": 1})
    (record,) = site.records(1)
    assert (record.key, record.value) == (b"a", body)
    headers = dict(record.headers)
    assert headers["ce_type"] == b"dev.credence.prediction.v1"
    assert headers["ce_source"] == b"/credence/senders/shop"
    assert site.calls(vendor="shop", route=PATH, status="2xx") == 1


def test_an_array_is_one_record_so_that_kafka_has_all_of_it_or_nothing(
    site: SenderSite, shop: Caller
) -> None:
    body = [prediction(item_id=f"item-{number}") for number in range(500)]
    assert send(shop, body).body == {"accepted": 500}
    (record,) = site.records(1)
    assert record.key == b"item-0"
    assert json.loads(record.value) == body


BAD: list[tuple[Any, list[tuple[str, str]]]] = [
    (
        prediction(score=None),
        [("body", "missing_field: give predicted_class and score, or probabilities")],
    ),
    (
        [GOOD, prediction(predicted_class="horse"), prediction(score="0.9")],
        [
            ("body.1", "unknown_class: predicted_class is not in the model's label set"),
            ("body.2", "invalid_field: score: expected a number, got a string"),
        ],
    ),
    (
        prediction(predicted_class=None, score=None, probabilities=[0.5, 0.2, 0.3]),
        [("body", "invalid_probabilities: 3 probabilities for 2 classes")],
    ),
    (
        prediction(payload="x" * 20_000),
        [("body", "payload_too_large: the payload is over 16384 bytes")],
    ),
    ([], [("body", "must have at least 1 entry")]),
]


@pytest.mark.parametrize(("body", "errors"), BAD)
def test_what_the_consumer_would_refuse_is_refused_as_a_whole(
    site: SenderSite, shop: Caller, body: Any, errors: list[tuple[str, str]]
) -> None:
    answer = send(shop, body)
    assert (answer.status, answer.problem) == (422, "invalid")
    assert [(error["at"], error["problem"]) for error in answer.body["errors"]] == errors
    assert send(shop, GOOD).status == 202
    assert [json.loads(record.value) for record in site.records(1)] == [GOOD]


@pytest.mark.parametrize("body", [b"", b"{", b"[1, 2", b'"\xff"'])
def test_what_is_not_json_is_malformed(shop: Caller, body: bytes) -> None:
    answer = send(shop, body)
    assert (answer.status, answer.problem) == (400, "malformed")


def test_no_more_than_twenty_errors_are_listed(shop: Caller) -> None:
    assert len(send(shop, [prediction(score=2.0)] * 100).body["errors"]) == 20


def test_a_sender_sends_predictions_of_its_own_models_alone(site: SenderSite, shop: Caller) -> None:
    foreign = send(shop, [GOOD, prediction(model="other")])
    unknown = send(shop, prediction(model="nobodys"))
    # Not even whether it fits the model.
    unfit = send(shop, prediction(model="other", predicted_class="horse"))
    assert (foreign.status, foreign.problem) == (404, "not-found")
    assert foreign.body == unknown.body == unfit.body
    assert send(site.caller("bank"), prediction(model="other")).status == 202
    assert [json.loads(record.value)["model"] for record in site.records(1)] == ["other"]


def test_tokens_of_vendors_send_no_predictions_and_those_of_senders_see_no_requests(site: SenderSite) -> None:
    acme, shop = site.caller("acme"), site.caller("shop")
    assert acme.get("/models").status == 200
    assert send(acme, GOOD).problem == "unauthorized"
    assert shop.get("/models").problem == "unauthorized"
    assert send(site.caller(None), GOOD).problem == "unauthorized"
    assert acme.call("GET", "/v1/openapi.json").problem == "unauthorized"


def test_calls_are_bounded_in_length_and_number(connection: Connection, bootstrap_servers: str) -> None:
    limits = {"body_bytes": 20_000, "requests_per_second": 0.001, "burst": 3}
    with SenderSite(connection, bootstrap_servers, **limits) as site:
        shop = site.caller("shop")
        assert send(shop, [GOOD] * 1_000).problem == "too-large"
        assert send(shop, b"x", Content_Type="text/plain").problem == "unsupported-media-type"
        assert send(shop, GOOD).status == 202
        refused = send(shop, GOOD)
        assert (refused.problem, "retry-after" in refused.headers) == ("too-many-calls", True)


def test_a_call_that_is_repeated_with_its_key_counts_once(site: SenderSite, shop: Caller) -> None:
    for _ in range(3):
        assert send(shop, GOOD, Idempotency_Key="batch-1").body == {"accepted": 1}
    assert send(shop, prediction(item_id="b"), Idempotency_Key="batch-1").problem == "idempotency-key-reused"
    assert send(shop, prediction(item_id="c")).status == 202
    assert [record.key for record in site.records(2)] == [b"a", b"c"]


def test_nothing_is_accepted_while_kafka_does_not_answer(
    connection: Connection, own_broker: tuple[str, ApacheKafka | EmbeddedBroker]
) -> None:
    servers, broker = own_broker
    with SenderSite(connection, servers) as site:
        shop = site.caller("shop")
        assert send(shop, prediction(item_id="before")).status == 202
        broker.pause()
        refused = send(shop, prediction(item_id="during"), Idempotency_Key="during")
        assert (refused.problem, refused.headers["retry-after"]) == ("unavailable", "2")
        broker.resume()
        accepted = send(shop, prediction(item_id="during"), Idempotency_Key="during")
        while accepted.status == 503:
            accepted = send(shop, prediction(item_id="during"), Idempotency_Key="during")
        assert accepted.status == 202
        # What was refused may have been written all the same.
        assert [record.key for record in site.records(2)][:2] == [b"before", b"during"]


def test_calls_are_asked_to_come_later_until_kafka_is_reached(
    connection: Connection, bootstrap_servers: str
) -> None:
    site = SenderSite(connection, bootstrap_servers)
    try:
        assert send(site.caller("shop"), GOOD).problem == "unavailable"
        site.start()
        assert send(site.caller("shop"), GOOD).status == 202
    finally:
        site.__exit__()


def test_the_description_has_the_schema_of_the_contract(shop: Caller) -> None:
    document = shop.call("GET", "/v1/openapi.json").body
    assert set(document["paths"]) == {PATH}
    assert {"model", "item_id"} == set(document["components"]["schemas"]["Prediction"]["required"])


def test_the_vendor_api_is_served_without_senders_as_before(site: SenderSite) -> None:
    assert site.caller("acme").call("GET", f"{V1}/openapi.json").status == 200
