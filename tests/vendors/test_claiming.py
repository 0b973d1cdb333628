"""Claims over HTTP: given, kept, given back, waited for, and nobody else's."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from harness import wait_for
from office import LEASE_SECONDS, TOKENS, V1, Caller, Office, Open
from store_site import NOW

from service.domain.messages import LabelRequest


def test_a_vendor_sees_its_models_and_how_many_requests_wait(office: Office, acme: Caller) -> None:
    waiting = len(office.asked_of("acme"))
    assert 0 < waiting < 20
    (model,) = acme.get("/models").body["models"]
    assert model == {"model": "m", "classes": ["cat", "dog", "owl"], "waiting": waiting}


def test_a_claim_comes_with_its_request(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    request = LabelRequest.model_validate_json(json.dumps(claim["request"]))
    assert request in office.asked_of("acme")
    assert (claim["model"], claim["state"]) == ("m", "claimed")
    assert claim["request_id"] == request.request_id


def test_nothing_is_given_to_two_people(office: Office, acme: Caller) -> None:
    with ThreadPoolExecutor(8) as people:
        claims = [c for found in people.map(lambda _: acme.claim(3), range(8)) for c in found]
    ids = [claim["request_id"] for claim in claims]
    assert sorted(ids) == sorted(r.request_id for r in office.asked_of("acme"))


def test_claims_are_listed_while_they_are_held(acme: Caller) -> None:
    claims = acme.claim(2)
    held = acme.get("/claims").claims
    assert sorted(c["claim_id"] for c in held) == sorted(c["claim_id"] for c in claims)


def test_a_lease_ends_as_asked_for_and_never_after_the_deadline(acme: Caller) -> None:
    (short,) = acme.claim(lease_seconds=10.0)
    (long,) = acme.claim(lease_seconds=100_000.0)
    assert seconds_left(short) == 10
    assert seconds_left(long) == LEASE_SECONDS


def seconds_left(claim: dict[str, Any]) -> float:
    return datetime.fromisoformat(claim["leased_until"]).timestamp() - NOW


def test_a_renewed_lease_begins_again(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim(lease_seconds=10.0)
    office.clock.now += 9
    renewed = acme.of(claim, "renew", lease_seconds=20.0)
    assert renewed.status == 200
    assert seconds_left(renewed.body) == 29


def test_a_lease_that_ended_gives_the_request_to_another_annotator(office: Office, acme: Caller) -> None:
    everything = acme.claim(20, lease_seconds=10.0)
    assert acme.claim() == []
    office.clock.now += 11
    again = acme.claim(20)
    assert {c["request_id"] for c in again} == {c["request_id"] for c in everything}
    late = acme.answer(everything[0])
    assert (late.status, late.problem) == (409, "claim-lost")
    assert acme.of(everything[0], "renew").problem == "claim-lost"


def test_a_lease_that_ended_is_not_renewed_though_nobody_else_has_claimed(
    office: Office, acme: Caller
) -> None:
    (claim,) = acme.claim(lease_seconds=10.0)
    office.clock.now += 11
    assert (acme.of(claim, "renew").status, acme.of(claim, "renew").problem) == (409, "claim-ended")


def test_a_released_request_can_be_claimed_at_once(acme: Caller) -> None:
    everything = acme.claim(20)
    assert acme.of(everything[3], "release").body == {"state": "released"}
    (again,) = acme.claim(20)
    assert again["request_id"] == everything[3]["request_id"]
    assert acme.answer(everything[3]).problem == "claim-lost"


def test_releasing_twice_is_harmless(acme: Caller) -> None:
    (claim,) = acme.claim()
    assert [acme.of(claim, "release").status for _ in range(2)] == [200, 200]


def test_who_waits_is_given_a_request_as_soon_as_it_is_issued(open_office: Open) -> None:
    office = open_office()
    acme = office.caller("acme")
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.extend(acme.claim(5, wait_seconds=20.0)))
    began = time.monotonic()
    waiting.start()
    wait_for(lambda: waits_of(office, "acme"), seconds=5, what="a waiting call")
    office.ask(10)
    waiting.join()
    assert found
    assert time.monotonic() - began < 20, "before its time is over"


def waits_of(office: Office, vendor: str) -> bool:
    """Whether a call of the vendor has looked once in vain, and waits."""
    return office.sample("credence_vendor_api_waits", vendor=vendor) > 0


def test_who_waits_in_vain_is_told_so_when_the_time_is_over(open_office: Open) -> None:
    office = open_office(api={"wait_seconds": 0.5})
    began = time.monotonic()
    assert office.caller("acme").claim(wait_seconds=100.0) == []
    assert 0.5 <= time.monotonic() - began < 100


def test_waiting_ends_when_the_process_does(open_office: Open) -> None:
    office = open_office()
    found: list[Any] = [None]
    waiting = threading.Thread(target=lambda: found.append(office.caller("acme").claim(wait_seconds=25.0)))
    waiting.start()
    wait_for(lambda: waits_of(office, "acme"), seconds=5, what="a waiting call")
    office.stopping = True
    waiting.join(20)
    assert found[-1] == []


def test_a_vendor_may_wait_in_so_many_calls_and_others_too(open_office: Open) -> None:
    office = open_office(api={"waits": 1})
    waiting = threading.Thread(target=lambda: office.caller("acme").claim(wait_seconds=25.0))
    waiting.start()
    wait_for(lambda: waits_of(office, "acme"), seconds=5, what="a waiting call")
    refused = office.caller("acme").post("/claims", {"wait_seconds": 3.0})
    assert (refused.status, refused.problem, refused.headers["retry-after"]) == (429, "too-many-waits", "1")
    assert office.caller("acme").claim() == [], "without waiting"
    assert office.caller("bolt").claim(wait_seconds=0.3) == []
    office.stopping = True
    waiting.join()


def hang_up_waiting(office: Office) -> None:
    """Make a call that waits for requests, and end the connection while it does."""
    body = b'{"most": 5, "wait_seconds": 25.0}'
    head = (
        f"POST {V1}/claims HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['acme']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", office.server.port)) as wire:
        wire.sendall(head.encode() + body)
        wait_for(lambda: waits_of(office, "acme"), seconds=5, what="a waiting call")


def test_what_a_client_that_hung_up_would_have_been_given_is_not_claimed(open_office: Open) -> None:
    office = open_office()
    hang_up_waiting(office)
    wait_for(lambda: not waits_of(office, "acme"), seconds=5, what="the end of waiting")
    office.ask(10)
    assert office.caller("acme").get("/claims").claims == []


def test_a_client_that_leaves_while_it_waits_is_no_failure_of_the_server(open_office: Open) -> None:
    office = open_office()
    hang_up_waiting(office)
    name, of = "credence_vendor_api_calls_total", {"vendor": "acme", "route": "/claims"}
    wait_for(lambda: office.sample(name, **of, status="4xx"), seconds=5, what="the end of the wait")
    assert not office.sample(name, **of, status="5xx")
