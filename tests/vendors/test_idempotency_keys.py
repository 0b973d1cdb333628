"""Idempotency keys: the same call with the same key is done once, and answered alike."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from harness import wait_for
from office import LABEL_KEYS, TOKENS, V1, Caller, Office, Open

from service.store.claims import ClaimStore
from service.store.idempotency import Call


def test_a_claim_made_again_with_the_same_key_is_answered_alike(office: Office, acme: Caller) -> None:
    first = acme.post("/claims", {"most": 3}, Idempotency_Key="a key")
    office.clock.now += 5
    again = acme.post("/claims", {"most": 3}, Idempotency_Key='"a key"')
    assert len(first.claims) == 3
    assert {c["claim_id"]: c for c in again.claims} == {c["claim_id"]: c for c in first.claims}
    assert len(acme.get("/claims").claims) == 3


def test_a_claim_whose_reply_was_lost_is_not_lost(office: Office, acme: Caller) -> None:
    body = b'{"most": 3}'
    head = (
        f"POST {V1}/claims HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['acme']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nIdempotency-Key: k1\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", office.server.port)) as wire:
        wire.sendall(head.encode() + body)
    held = wait_for(lambda: acme.get("/claims").claims, seconds=5, what="the claims")

    def repeated() -> list[dict[str, Any]] | None:
        """The claims of the call made again; none while the first one is still running."""
        answer = acme.post("/claims", {"most": 3}, Idempotency_Key="k1")
        return None if answer.status == 409 else answer.claims

    answer = wait_for(repeated, seconds=5, what="the end of the first call")
    assert {c["claim_id"] for c in answer} == {c["claim_id"] for c in held}


def test_no_payload_is_kept_with_a_key(office: Office, acme: Caller) -> None:
    acme.post("/claims", {"most": 2}, Idempotency_Key="k")
    acme.post("/models/m/label-studio/tasks", {"most": 2}, Idempotency_Key="l")
    client = office.connection.client
    kept = list(client.scan_iter(match=f"{office.connection.prefix}:*:idempotency:*"))
    texts = [client.get(key) for key in kept if not key.endswith(b":recent")]
    assert len(texts) == 2
    assert not any(b"picture" in text or b"request" in text for text in texts)


def test_a_claim_is_made_again_after_the_label_key_was_changed(open_office: Open) -> None:
    office = open_office()
    office.ask(20)
    acme = office.caller("acme")
    first = acme.post("/claims", {"most": 3}, Idempotency_Key="k")
    assert office.service is not None
    office.service.claims._claim_keys = {"acme": [b"c" * 32, LABEL_KEYS["acme"].encode()]}
    again = acme.post("/claims", {"most": 3}, Idempotency_Key="k")
    assert {c["claim_id"] for c in again.claims} == {c["claim_id"] for c in first.claims}


def test_an_answer_made_again_with_the_same_key_is_written_once(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    for _ in range(3):
        answer = acme.post(
            f"/models/m/requests/{claim['request_id']}/answer",
            {"claim_id": claim["claim_id"], "true_class": "cat"},
            Idempotency_Key="answer-1",
        )
        assert (answer.status, answer.body) == (202, {"state": "submitted"})
    office.read_labels(1)
    assert not office._consumer.poll(300)


def test_a_refusal_is_repeated_too(acme: Caller) -> None:
    refused = acme.post("/claims", {"models": ["n"]}, Idempotency_Key="k")
    again = acme.post("/claims", {"models": ["n"]}, Idempotency_Key="k")
    assert (refused.status, refused.problem) == (again.status, again.problem) == (404, "not-found")


def test_what_says_to_come_later_is_not_kept(office: Office, acme: Caller) -> None:
    service, office.service = office.service, None
    assert acme.post("/claims", {}, Idempotency_Key="k").status == 503
    office.service = service
    assert acme.post("/claims", {}, Idempotency_Key="k").status == 200


def test_a_key_is_not_used_for_another_call(acme: Caller) -> None:
    acme.post("/claims", {"most": 1}, Idempotency_Key="k")
    other = acme.post("/claims", {"most": 2}, Idempotency_Key="k")
    assert (other.status, other.problem) == (422, "idempotency-key-reused")
    elsewhere = acme.post("/models/m/label-studio/tasks", {"most": 1}, Idempotency_Key="k")
    assert elsewhere.problem == "idempotency-key-reused"


def test_a_call_that_is_under_way_is_not_done_a_second_time(open_office: Open) -> None:
    office = open_office()
    acme = office.caller("acme")
    with ThreadPoolExecutor(1) as one:
        waiting = one.submit(acme.post, "/claims", {"wait_seconds": 25.0}, Idempotency_Key="k")
        wait_for(lambda: office.sample("credence_vendor_api_waits", vendor="acme"), seconds=5, what="a wait")
        second = acme.post("/claims", {"wait_seconds": 25.0}, Idempotency_Key="k")
        assert (second.status, second.problem) == (409, "still-running")
        assert int(second.headers["retry-after"]) >= 1
        office.stopping = True
        assert waiting.result().claims == []


def test_a_call_counts_as_running_for_as_long_as_it_may_wait(open_office: Open) -> None:
    office = open_office(api={"wait_seconds": 300})
    assert office.service is not None
    office.service.calls.begin(Call("acme", "k", b"call"))
    (key,) = office.connection.client.scan_iter(match=f"{office.connection.prefix}:*:idempotency:*")
    assert office.connection.client.ttl(key) > 300


@pytest.mark.parametrize("key", ["", " ", "ä", "x" * 256, '""'])
def test_a_key_that_cannot_be_is_refused(acme: Caller, key: str) -> None:
    answer = acme.post("/claims", {}, Idempotency_Key=key.encode("latin-1").decode("latin-1"))
    assert (answer.status, answer.problem) == (400, "bad-idempotency-key")


def test_claim_ids_cannot_be_told_from_the_key_without_a_secret(office: Office) -> None:
    assert office.service is not None
    claims = office.service.claims
    ids = {vendor: claims.claim_ids(vendor, most=2, key="the same") for vendor in ("acme", "bolt")}
    assert not set(ids["acme"]) & set(ids["bolt"])
    assert ids["acme"] == claims.claim_ids("acme", most=2, key="the same")
    assert claims.claim_ids("acme", most=1, key=None) != claims.claim_ids("acme", most=1, key=None)
    assert isinstance(claims.models_of("acme")["m"].claims, ClaimStore)
