"""What is one vendor's is not there for another one: neither to be read, nor changed, nor guessed."""

from __future__ import annotations

import json

import pytest
from office import VENDORS, Caller, Office, Open, Told
from store_site import outcomes

GUESSED = {
    "model": "m",
    "request_id": "f" * 24,
    "claim_id": "no-such-claim",
    "request": {"item_id": "no-such-item"},
}


def same(one: Told, other: Told) -> bool:
    """Whether two answers tell the same, to the byte."""
    unlike = {"date"}
    return (one.status, one.body) == (other.status, other.body) and {
        k: v for k, v in one.headers.items() if k not in unlike
    } == {k: v for k, v in other.headers.items() if k not in unlike}


def test_a_vendor_is_given_its_own_requests_alone(acme: Caller, bolt: Caller) -> None:
    given = {
        who: {c["request"]["vendor"] for c in caller.claim(20)}
        for who, caller in {"acme": acme, "bolt": bolt}.items()
    }
    assert given == {"acme": {"acme"}, "bolt": {"bolt"}}
    assert {c["request"]["vendor"] for c in acme.get("/claims").claims} == {"acme"}


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ("renew", {}),
        ("release", {}),
        ("answer", {"true_class": "cat"}),
        ("skip", {}),
        ("correction", {"true_class": "cat"}),
        ("retraction", {}),
    ],
)
def test_another_vendors_request_is_as_one_that_is_not_there(
    office: Office, acme: Caller, bolt: Caller, verb: str, fields: dict[str, str]
) -> None:
    (claim,) = acme.claim()
    before = acme.get("/claims").body
    tried = bolt.of(claim, verb, **fields)
    assert (tried.status, tried.problem) == (404, "not-found")
    assert same(tried, bolt.of(GUESSED, verb, **fields))
    assert acme.get("/claims").body == before
    assert not office._consumer.poll(200)


@pytest.mark.parametrize(("verb", "fields"), [("correction", {"true_class": "cat"}), ("retraction", {})])
def test_another_vendors_answer_is_neither_corrected_nor_taken_back(
    office: Office, acme: Caller, bolt: Caller, verb: str, fields: dict[str, str]
) -> None:
    (claim,) = acme.claim()
    acme.answer(claim, "dog")
    office.read_labels()
    assert same(bolt.of(claim, verb, **fields), bolt.of(GUESSED, verb, **fields))
    assert [entry.label.true_class for entry in outcomes(office.site)] == ["dog"]


def test_another_vendors_annotations_are_not_taken(office: Office, acme: Caller, bolt: Caller) -> None:
    (task,) = acme.post("/models/m/label-studio/tasks", {}).body
    annotation = {
        "id": 1,
        "result": [{"from_name": "true_class", "type": "choices", "value": {"choices": ["cat"]}}],
        "task": 1,
    }
    export = [{"id": 1, "data": task["data"], "annotations": [annotation]}]
    reply = bolt.post("/models/m/label-studio/annotations", export)
    assert [one["state"] for one in reply.body["tasks"]] == ["not-found"]
    assert not office._consumer.poll(200)


def test_a_model_that_is_not_this_vendors_is_as_one_that_is_not_there(open_office: Open) -> None:
    vendors = {"acme": VENDORS["acme"], "bolt": VENDORS["bolt"] | {"models": ["other"]}}
    office = open_office(vendors=vendors)
    office.ask(5)
    acme, bolt = office.caller("acme"), office.caller("bolt")
    assert bolt.get("/models").body == {"models": []}
    assert bolt.claim(20) == []
    assert same(bolt.post("/claims", {"models": ["m"]}), bolt.post("/claims", {"models": ["n"]}))
    (claim,) = acme.claim()
    assert same(bolt.answer(claim), bolt.answer({**claim, "model": "n"}))
    paths = [f"/models/{model}/label-studio/config" for model in ("m", "n")]
    assert same(bolt.get(paths[0]), bolt.get(paths[1]))


def test_idempotency_keys_of_two_vendors_have_nothing_to_do_with_one_another(
    acme: Caller, bolt: Caller
) -> None:
    first = acme.post("/claims", {"most": 2}, Idempotency_Key="one")
    second = bolt.post("/claims", {"most": 2}, Idempotency_Key="one")
    assert {c["request"]["vendor"] for c in second.claims} == {"bolt"}
    assert not {c["claim_id"] for c in first.claims} & {c["claim_id"] for c in second.claims}


def test_nothing_shows_a_labeller_what_the_model_predicted(acme: Caller) -> None:
    text = json.dumps(acme.claim(20))
    assert "prediction" not in text
    assert "score" not in text
