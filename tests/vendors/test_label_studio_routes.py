"""Label Studio's way through the vendor API: tasks out, annotations in, by export and by webhook."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from label_studio_shapes import annotation, hook_body, minimal
from office import LEASE_SECONDS, Caller, Office, Open, Told
from store_site import NOW

from service.domain.errors import Unavailable
from service.store.claims import ClaimChange, ClaimStore

BASE = "/models/m/label-studio"
LATER = "2027-01-15T09:00:00Z"


def tasks(caller: Caller, most: int = 1) -> list[dict[str, Any]]:
    """Claimed requests, as Label Studio keeps them."""
    claimed = caller.post(f"{BASE}/tasks", {"most": most})
    assert claimed.status == 200
    return [{"id": number, **task} for number, task in enumerate(claimed.body, 1)]


def export(caller: Caller, *annotated: tuple[dict[str, Any], list[dict[str, Any]]]) -> Told:
    return caller.post(f"{BASE}/annotations", [{**task, "annotations": made} for task, made in annotated])


def hook(caller: Caller, action: str, task: dict[str, Any], made: dict[str, Any]) -> Told:
    return caller.post(
        f"{BASE}/webhook", hook_body(action, annotation={**made, "task": task["id"]}, task=task)
    )


def states(reply: Told) -> list[str]:
    assert reply.status == 200, reply.body
    return [one["state"] for one in reply.body["tasks"]]


def test_the_configuration_has_the_models_classes(acme: Caller) -> None:
    reply = acme.get(f"{BASE}/config")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/xml")
    assert [c.attrib["value"] for c in ET.fromstring(reply.body).iter("Choice")] == ["cat", "dog", "owl"]


def test_the_configuration_shows_items_as_those_that_are_held_look(open_office: Open) -> None:
    office = open_office()
    office.ask(10, payload_uri="https://images.example/1.png", payload=None)
    acme = office.caller("acme")
    assert "<Text" in acme.get(f"{BASE}/config").body
    acme.claim()
    assert "<Image" in acme.get(f"{BASE}/config").body
    assert "<Audio" in acme.get(f"{BASE}/config?shown=audio").body


def test_tasks_hold_their_requests_until_the_deadline(acme: Caller) -> None:
    (task,) = tasks(acme)
    assert set(task["data"]) == {"request_id", "claim_id", "model", "item_id", "payload"}
    (held,) = acme.get("/claims").claims
    assert held["claim_id"] == task["data"]["claim_id"]
    assert datetime.fromisoformat(held["leased_until"]).timestamp() == NOW + LEASE_SECONDS


def test_a_prediction_stands_in_a_task_only_where_it_may_be_shown(open_office: Open) -> None:
    office = open_office(assessment={"reveal_prediction": True})
    office.ask(10)
    (task,) = tasks(office.caller("acme"))
    assert task["data"]["prediction"] == {"predicted_class": "cat", "score": 0.75}


def test_an_export_answers_and_skips(office: Office, acme: Caller) -> None:
    first, second, third = tasks(acme, 3)
    reply = export(acme, (first, [annotation(1, "dog")]), (second, [annotation(2, None)]), (third, []))
    assert states(reply) == ["submitted", "submitted", "ignored"]
    labels = office.read_labels(2)
    assert [(one["kind"], one.get("true_class")) for one in labels] == [("answer", "dog"), ("skip", None)]
    assert labels[0]["annotator"] == "label-studio:1"
    assert office.true_classes() == ["dog"]


def test_the_minimal_export_answers(office: Office, acme: Caller) -> None:
    (task,) = tasks(acme)
    reply = acme.post(f"{BASE}/annotations", [minimal(**task["data"], true_class="owl")])
    assert states(reply) == ["submitted"]
    office.read_labels()
    assert office.true_classes() == ["owl"]


def test_an_export_that_is_imported_twice_changes_nothing_the_second_time(
    office: Office, acme: Caller
) -> None:
    (task,) = tasks(acme)
    export(acme, (task, [annotation(1, "dog")]))
    with office.reading():
        assert states(export(acme, (task, [annotation(1, "dog")]))) == ["unchanged"]
        changed = annotation(1, "cat", updated_at=LATER)
        assert states(export(acme, (task, [changed]))) == ["submitted"]
        office.await_outcomes("dog", "cat")
        assert states(export(acme, (task, [changed]))) == ["unchanged"]
    assert office.true_classes() == ["dog", "cat"]
    assert office.site.letters.reasons == []


def test_what_cannot_be_taken_is_reported_task_by_task(office: Office, acme: Caller) -> None:
    good, lost, unknown, foreign = tasks(acme, 4)
    lost["data"]["claim_id"] = "another"
    foreign["data"]["item_id"] = foreign["data"]["request_id"] = "guessed"
    reply = export(
        acme,
        (good, [annotation(1, "dog")]),
        (lost, [annotation(2, "dog")]),
        (unknown, [annotation(3, "yak")]),
        (foreign, [annotation(4, "dog")]),
    )
    assert states(reply) == ["submitted", "claim-lost", "unknown-class", "not-found"]
    office.read_labels(1)


def test_webhooks_answer_correct_and_take_back(office: Office, acme: Caller) -> None:
    (task,) = tasks(acme)
    with office.reading():
        assert states(hook(acme, "ANNOTATION_CREATED", task, annotation(7, "dog"))) == ["submitted"]
        changed = annotation(7, "cat", updated_at=LATER)
        assert states(hook(acme, "ANNOTATION_UPDATED", task, changed)) == ["submitted"]
        office.await_outcomes("dog", "cat")
        assert states(hook(acme, "ANNOTATION_UPDATED", task, changed)) == ["unchanged"]
        gone = hook_body("ANNOTATIONS_DELETED", annotations=[{"id": 7}])
        assert states(acme.post(f"{BASE}/webhook", gone)) == ["submitted"]
        office.await_outcomes("dog", "cat", "")
        assert states(acme.post(f"{BASE}/webhook", gone)) == ["unchanged"]
    assert office.true_classes() == ["dog", "cat", ""]
    assert office.site.letters.reasons == []


def test_an_older_annotation_that_is_deleted_takes_nothing_back(office: Office, acme: Caller) -> None:
    (task,) = tasks(acme)
    with office.reading():
        hook(acme, "ANNOTATION_CREATED", task, annotation(7, "dog"))
        hook(acme, "ANNOTATION_CREATED", task, annotation(8, "cat", updated_at=LATER))
        gone = hook_body("ANNOTATIONS_DELETED", annotations=[{"id": 7}])
        assert states(acme.post(f"{BASE}/webhook", gone)) == ["ignored"]
        office.await_outcomes("dog", "cat")


def test_an_annotation_that_nobody_told_of_is_deleted_in_vain(acme: Caller, bolt: Caller) -> None:
    (task,) = tasks(acme)
    hook(acme, "ANNOTATION_CREATED", task, annotation(7, "dog"))
    gone = hook_body("ANNOTATIONS_DELETED", annotations=[{"id": 7}])
    assert states(bolt.post(f"{BASE}/webhook", gone)) == ["ignored"]
    other = hook_body("ANNOTATIONS_DELETED", annotations=[{"id": 99}])
    assert states(acme.post(f"{BASE}/webhook", other)) == ["ignored"]


def test_other_webhooks_are_taken_and_ignored(acme: Caller) -> None:
    for action in ("TASKS_CREATED", "PROJECT_UPDATED", "SOMETHING_NEW"):
        reply = acme.post(f"{BASE}/webhook", hook_body(action, tasks=[{"id": 1}]))
        assert (reply.status, reply.body) == (200, {"tasks": []})


def test_an_answer_is_revised_before_it_is_read(office: Office, acme: Caller) -> None:
    (task,) = tasks(acme)
    hook(acme, "ANNOTATION_CREATED", task, annotation(7, "dog"))
    changed = annotation(7, "cat", updated_at=LATER)
    assert states(hook(acme, "ANNOTATION_UPDATED", task, changed)) == ["submitted"]
    assert states(hook(acme, "ANNOTATION_UPDATED", task, changed)) == ["unchanged"]
    gone = hook_body("ANNOTATIONS_DELETED", annotations=[{"id": 7}])
    assert states(acme.post(f"{BASE}/webhook", gone)) == ["submitted"]
    office.read_labels(3)
    assert office.true_classes() == ["dog", "cat", ""]
    assert office.site.letters.reasons == []


@pytest.mark.parametrize(("choice", "classes"), [("cat", ["cat"]), (None, [])])
def test_an_import_that_was_broken_off_before_kafka_is_taken_when_it_is_repeated(
    office: Office, acme: Caller, choice: str | None, classes: list[str]
) -> None:
    (task,) = tasks(acme)
    assert office.service is not None
    claims = office.service.claims.model_of("acme", "m").claims
    data = task["data"]
    assert claims.submit("acme", data["request_id"], data["claim_id"], now=office.clock()).status == "ok"
    assert states(export(acme, (task, [annotation(1, choice)]))) == ["submitted"]
    office.read_labels()
    assert office.true_classes() == classes
    assert acme.get("/claims").claims == []
    assert office.site.letters.reasons == []


class BreakingOff(ClaimStore):
    """Redis is away from the second request on, for as long as it is asked to submit."""

    times = 0

    def submit(self, vendor: str, request_id: str, claim_id: str, *, now: float) -> ClaimChange:
        self.times += 1
        if self.times == 2:
            raise Unavailable("redis", ConnectionError())
        return super().submit(vendor, request_id, claim_id, now=now)


def test_an_import_that_redis_breaks_off_leaves_nothing_submitted(office: Office, acme: Caller) -> None:
    several = [(task, [annotation(n)]) for n, task in enumerate(tasks(acme, 3))]
    assert office.service is not None
    there = office.service.claims._models["m"]
    breaking = BreakingOff(there.claims._connection, there.claims._keys)
    office.service.claims._models = {"m": replace(there, claims=breaking)}
    assert export(acme, *several).status == 503
    assert [claim["state"] for claim in acme.get("/claims").claims] == ["claimed"] * 3
    assert states(export(acme, *several)) == ["submitted"] * 3
    office.read_labels(3)


def test_an_item_that_is_not_the_requests_is_not_written(office: Office, acme: Caller) -> None:
    first, second = tasks(acme, 2)
    mixed = {**first, "data": first["data"] | {"item_id": second["data"]["item_id"]}}
    assert states(export(acme, (mixed, [annotation(1)]))) == ["not-found"]
    assert {claim["state"] for claim in acme.get("/claims").claims} == {"claimed"}
    assert states(export(acme, (first, [annotation(1)]))) == ["submitted"]
    office.read_labels()


def test_an_older_export_does_not_undo_what_a_webhook_corrected(office: Office, acme: Caller) -> None:
    (task,) = tasks(acme)
    exported = annotation(7, "dog")
    hook(acme, "ANNOTATION_CREATED", task, exported)
    hook(acme, "ANNOTATION_UPDATED", task, annotation(7, "cat", updated_at=LATER))
    assert states(export(acme, (task, [exported]))) == ["ignored"]
    office.read_labels(2)
    assert states(export(acme, (task, [exported]))) == ["ignored"]
    assert office.true_classes() == ["dog", "cat"]


def test_of_two_annotations_of_one_task_in_a_webhook_the_newer_one_answers(
    office: Office, acme: Caller
) -> None:
    (task,) = tasks(acme)
    both = [annotation(7, "cat", task=1, updated_at=LATER), annotation(8, "dog", task=1)]
    reply = acme.post(f"{BASE}/webhook", hook_body("ANNOTATIONS_CREATED", annotation=both, task=[task]))
    assert states(reply) == ["submitted", "ignored"]
    office.read_labels()
    assert office.true_classes() == ["cat"]
    assert office.site.letters.reasons == []


def test_a_request_has_two_keys_however_many_annotations_are_reported_of_it(
    office: Office, acme: Caller
) -> None:
    pattern = f"{office.connection.prefix}:*:annotat*"
    (claim,) = acme.claim()
    acme.answer(claim, "cat")
    office.read_labels()
    data = {"request_id": claim["request_id"], "claim_id": "any", "item_id": claim["request"]["item_id"]}
    task = {"id": 1, "data": data}
    assert states(hook(acme, "ANNOTATION_CREATED", task, annotation(1, "cat"))) == ["unchanged"]
    assert office.connection.client.keys(pattern) == []
    for number in range(2, 8):
        choice, time = "cat" if number % 2 else "dog", f"2027-01-15T09:00:0{number}Z"
        hook(acme, "ANNOTATION_CREATED", task, annotation(number, choice, updated_at=time))
        office.read_labels()
    assert len(office.connection.client.keys(pattern)) == 2


def test_an_export_with_too_many_tasks_is_refused(acme: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.domain.label_studio.MOST_ENTRIES", 2)
    (task,) = tasks(acme)
    several = [({**task, "data": task["data"] | {"request_id": f"r{n}"}}, [annotation(n)]) for n in range(3)]
    reply = export(acme, *several)
    assert (reply.status, reply.problem) == (422, "too-many-entries")
