"""Answers over HTTP: signed, in Kafka before they are confirmed, and safe to repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest
from apache_kafka import ApacheKafka
from harness import wait_for
from office import LABEL_KEYS, LEASE_SECONDS, Caller, Office, Open, fresh_connection
from store_site import outcomes

from service.demo.servers import EmbeddedBroker, EmbeddedRedis
from service.domain.errors import Unavailable
from service.domain.label_signatures import verify
from service.store.connection import Connection
from service.store.idempotency import Call, IdempotencyRecords


def test_an_answer_is_in_kafka_signed_when_it_is_confirmed(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    reply = acme.answer(claim, "dog", annotator="ana", time="2027-01-15T08:00:00+01:00")
    assert (reply.status, reply.body) == (202, {"state": "submitted"})
    records = next(iter(office._consumer.poll(60_000).values()))
    keys = {name: [key.encode()] for name, key in LABEL_KEYS.items()}
    assert verify(records[0].headers, records[0].value, keys) == "acme"
    assert records[0].key.decode() == claim["request"]["item_id"]
    headers = dict(records[0].headers)
    assert headers["ce_type"] == b"dev.credence.label.v1"
    assert headers["ce_source"] == b"/credence/vendors/acme"


def test_an_answer_becomes_an_outcome(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    acme.answer(claim, "dog", annotator="ana", time="2027-01-15T08:00:00+01:00")
    (label,) = office.read_labels()
    assert label == {
        "request_id": claim["request_id"],
        "model": "m",
        "item_id": claim["request"]["item_id"],
        "kind": "answer",
        "true_class": "dog",
        "annotator": "ana",
        "time": "2027-01-15T08:00:00+01:00",
    }
    assert [entry.label.true_class for entry in outcomes(office.site)] == ["dog"]
    assert office.site.letters.reasons == []


def test_a_submitted_request_is_given_to_nobody_until_it_is_closed(office: Office, acme: Caller) -> None:
    claim = acme.claim(20)[0]
    acme.answer(claim)
    office.clock.now += 1_000
    assert claim["request_id"] not in {c["request_id"] for c in acme.claim(20)}
    (held,) = [c for c in acme.get("/claims").claims if c["request_id"] == claim["request_id"]]
    assert held["state"] == "submitted"


def test_the_same_answer_again_is_taken_again_and_counts_once(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    assert [acme.answer(claim).status for _ in range(3)] == [202, 202, 202]
    office.read_labels()
    assert acme.answer(claim).status == 202, "also once it is closed"
    assert len(outcomes(office.site)) == 1


class Forgetting(IdempotencyRecords):
    """Redis is away when an answer is to be remembered, as often as it is set to."""

    times = 1

    def finish(self, call: Call, response: bytes) -> None:
        if response == b"" and self.times:
            self.times -= 1
            raise Unavailable("redis", ConnectionError())
        super().finish(call, response)


@pytest.mark.parametrize("fields", [{"true_class": "cat"}, {}])
@pytest.mark.parametrize("key", [None, "k"])
def test_an_answer_that_was_read_before_it_was_confirmed_is_confirmed_when_it_is_repeated(
    office: Office, acme: Caller, bolt: Caller, fields: dict[str, str], key: str | None
) -> None:
    (claim,) = acme.claim()
    assert office.service is not None
    office.service.calls = Forgetting(office.connection)
    path = f"/models/m/requests/{claim['request_id']}/{'answer' if fields else 'skip'}"
    body = {"claim_id": claim["claim_id"], **fields}
    headers = {} if key is None else {"Idempotency_Key": key}
    assert acme.post(path, body, **headers).status == 503
    office.read_labels()
    assert bolt.post(path, body).problem == "not-found"
    other = {"claim_id": "made-up", **fields}
    assert acme.post(path, other).problem == "not-found"
    assert [acme.post(path, body, **headers).status for _ in range(2)] == [202, 202]
    assert not office._consumer.poll(300)


def test_another_answer_under_the_same_claim_is_refused(acme: Caller) -> None:
    (claim,) = acme.claim()
    acme.answer(claim, "cat")
    refused = acme.answer(claim, "dog")
    assert (refused.status, refused.problem) == (409, "answered-differently")
    assert acme.of(claim, "skip").problem == "answered-differently"


def test_a_class_that_is_none_of_the_requests_is_refused(acme: Caller) -> None:
    (claim,) = acme.claim()
    refused = acme.answer(claim, "yak")
    assert (refused.status, refused.problem) == (422, "unknown-class")
    assert "yak" not in str(refused.body)
    assert acme.answer(claim, "cat").status == 202, "the claim still holds"


def test_a_class_that_was_taken_out_of_the_configuration_is_refused(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    assert office.service is not None
    office.service.claims._models = {"m": replace(office.service.claims._models["m"], classes=("cat", "dog"))}
    assert acme.answer(claim, "owl").problem == "unknown-class"
    assert acme.answer(claim, "cat").status == 202


def test_a_skip_closes_the_request(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    assert acme.of(claim, "skip", annotator="ana").status == 202
    (label,) = office.read_labels()
    assert (label["kind"], "true_class" in label) == ("skip", False)
    assert outcomes(office.site) == []


def test_an_answer_is_corrected_and_taken_back_by_who_gave_it(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    acme.answer(claim, "cat")
    assert acme.of(claim, "correction", true_class="dog").status == 202, "also before it is read"
    office.read_labels(2)
    assert acme.of(claim, "retraction").status == 202
    office.read_labels()
    assert [entry.label.true_class for entry in outcomes(office.site)] == ["cat", "dog", ""]
    assert office.site.letters.reasons == []


def test_a_request_is_revised_so_often_and_then_refused(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    acme.answer(claim, "cat")
    for i in range(31):
        reply = acme.of(claim, "correction", true_class=("dog", "cat")[i % 2], annotator=str(i))
        assert reply.status == 202
    office.read_labels(32)
    refused = acme.of(claim, "correction", true_class="cat")
    assert (refused.status, refused.problem) == (409, "too-many-revisions")
    assert acme.of(claim, "retraction").problem == "too-many-revisions"
    assert office.site.letters.reasons == [], "what is taken here is taken there too"


def test_what_was_not_answered_cannot_be_corrected(acme: Caller) -> None:
    (claim,) = acme.claim()
    refused = acme.of(claim, "correction", true_class="dog")
    assert (refused.status, refused.problem) == (409, "not-answered")
    assert acme.of(claim, "retraction").problem == "not-answered"


def test_a_correction_names_the_item_of_its_request(office: Office, acme: Caller) -> None:
    first, second = acme.claim(2)
    acme.answer(first)
    office.read_labels()
    mixed = {**first, "request": second["request"]}
    assert acme.of(mixed, "correction", true_class="dog").status == 404
    assert acme.of(first, "correction", true_class="yak").problem == "unknown-class"


def test_a_request_that_expired_takes_no_answer_and_no_correction(open_office: Open) -> None:
    office = open_office(assessment={"max_attempts": 1})
    office.ask(10)
    acme = office.caller("acme")
    (claim,) = acme.claim()
    office.clock.now += LEASE_SECONDS + 1
    office.round()
    assert (acme.answer(claim).status, acme.answer(claim).problem) == (404, "not-found")
    assert acme.of(claim, "correction", true_class="dog").problem == "request-expired"


def test_an_answer_that_kafka_cannot_take_is_given_again_later(
    connection: Connection, own_broker: tuple[str, ApacheKafka | EmbeddedBroker]
) -> None:
    address, broker = own_broker
    with Office(connection, address, delivery_seconds=3) as office:
        office.ask(20)
        acme = office.caller("acme")
        (claim,) = acme.claim()
        broker.pause()
        refused = acme.answer(claim)
        assert (refused.status, refused.problem) == (503, "unavailable")
        assert int(refused.headers["retry-after"]) >= 1
        assert [c["state"] for c in acme.get("/claims").claims] == ["claimed"]
        broker.resume()
        wait_for(lambda: acme.answer(claim).status == 202, seconds=30, what="the answer in Kafka")
        with office.reading():
            office.await_outcomes("cat")
        assert office.site.letters.reasons == []


def test_why_vendors_are_asked_to_retry_later_is_logged(
    bootstrap_servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedRedis() as server:
        connection = fresh_connection(server, timeout_seconds=1)
        with Office(connection, bootstrap_servers) as office:
            acme = office.caller("acme")
            server.pause()
            for headers in ({}, {"Idempotency_Key": "k"}):
                assert acme.post("/claims", {}, **headers).status == 503
            server.resume()
        connection.client.close()
    reply = [r for r in caplog.records if r.getMessage() == "a call cannot be served now"]
    assert [vars(r)["vendor"] for r in reply] == ["acme", "acme"]
    causes = ("redis is unavailable", "Cannot connect to Redis at")
    assert all(vars(r)["cause"].startswith(causes) for r in reply)


def test_while_redis_is_away_vendors_are_asked_to_retry_later(bootstrap_servers: str) -> None:
    with EmbeddedRedis() as server:
        connection = fresh_connection(server, timeout_seconds=1)
        with Office(connection, bootstrap_servers) as office:
            office.ask(20)
            acme = office.caller("acme")
            (claim,) = acme.claim()
            server.pause()
            for reply in (
                acme.get("/models"),
                acme.post("/claims", {}),
                acme.post("/claims", {}, Idempotency_Key="k"),
                acme.answer(claim),
                acme.post("/models/m/label-studio/tasks", {}),
            ):
                assert (reply.status, reply.problem) == (503, "unavailable")
                assert int(reply.headers["retry-after"]) >= 1
            server.resume()
            assert acme.answer(claim).status == 202
        connection.client.close()


def test_before_redis_and_kafka_are_reached_vendors_are_asked_to_retry_later(
    office: Office, acme: Caller
) -> None:
    office.service = None
    for reply in (
        acme.get("/models"),
        acme.post("/claims", {}),
        acme.post("/claims", {}, Idempotency_Key="k"),
    ):
        assert (reply.status, reply.problem) == (503, "unavailable")


def test_what_vendors_do_is_counted(office: Office, acme: Caller) -> None:
    claim = acme.claim(3)[0]
    acme.answer(claim)
    assert office.sample("credence_vendor_claims_total", vendor="acme", model="m") == 3
    assert office.sample("credence_vendor_labels_total", vendor="acme", model="m", kind="answer") == 1
    route = "/models/{model}/requests/{request_id}/answer"
    assert office.sample("credence_vendor_api_calls_total", vendor="acme", route=route, status="2xx") == 1
