"""Several people of a vendor label an item: each gets it once, over the API and from Label Studio."""

from __future__ import annotations

import pytest
from office import VENDORS, Caller, Office, Open
from store_site import outcomes

from service.store.request_registry import opinion_of

ONE_VENDOR = {"acme": VENDORS["acme"]}
EVERY_ITEM_TWICE = {"labels_per_item": {"least": 2, "most": 2}}


@pytest.fixture
def office(open_office: Open) -> Office:
    """A vendor with one request, whose item two people are to label."""
    office = open_office(vendors=ONE_VENDOR, model=EVERY_ITEM_TWICE)
    office.ask(1)
    return office


@pytest.fixture
def acme(office: Office) -> Caller:
    return office.caller("acme")


def label_first(office: Office, acme: Caller, by: str = "ana") -> None:
    (claim,) = acme.claim(annotator=by)
    assert acme.answer(claim, "dog", annotator=by).status == 202
    office.read_labels()
    office.round()


def test_a_second_person_gets_the_item_and_the_first_does_not(office: Office, acme: Caller) -> None:
    label_first(office, acme)
    assert acme.claim(annotator="ana") == []
    (claim,) = acme.claim(annotator="ben")
    assert (opinion_of(claim["request_id"]), claim["request"]["opinion"]) == (2, 2)
    acme.answer(claim, "cat", annotator="ben")
    office.read_labels()
    assert [(e.label.vendor, e.label.annotator, e.label.true_class) for e in outcomes(office.site)] == [
        ("acme", "ana", "dog"),
        ("acme", "ben", "cat"),
    ]
    assert office.site.letters.reasons == []


def test_an_answer_of_somebody_who_has_labelled_the_item_is_refused(office: Office, acme: Caller) -> None:
    label_first(office, acme)
    (claim,) = acme.claim()
    refused = acme.answer(claim, "dog", annotator="ana")
    assert (refused.status, refused.problem) == (409, "same-annotator")
    assert acme.of(claim, "skip", annotator="ana").problem == "same-annotator"
    assert acme.answer(claim, "dog", annotator="ben").status == 202, "the claim still holds"


def test_an_answer_or_a_correction_without_an_annotator_is_refused(office: Office, acme: Caller) -> None:
    (claim,) = acme.claim()
    refused = acme.answer(claim)
    assert (refused.status, refused.problem) == (422, "annotator-needed")
    assert acme.answer(claim, annotator="ana").status == 202
    office.read_labels()
    assert acme.of(claim, "correction", true_class="dog").problem == "annotator-needed"
    assert acme.of(claim, "correction", true_class="dog", annotator="ana").status == 202


def test_a_second_persons_answer_is_corrected_and_retracted_by_its_own_request(
    office: Office, acme: Caller
) -> None:
    label_first(office, acme)
    (claim,) = acme.claim(annotator="ben")
    acme.answer(claim, "cat", annotator="ben")
    office.read_labels()
    assert acme.of(claim, "correction", true_class="owl", annotator="ben").status == 202
    assert acme.of(claim, "retraction", annotator="ben").status == 202
    office.read_labels(2)
    assert [entry.label.true_class for entry in outcomes(office.site)] == ["dog", "cat", "owl", ""]
    assert office.site.letters.reasons == []


def annotated(task: dict[str, object], person: int, number: int) -> dict[str, object]:
    """A task of an export that a person has annotated."""
    choice = {"from_name": "true_class", "type": "choices", "value": {"choices": ["dog"]}}
    time = f"2027-01-15T08:0{number}:00Z"
    annotation = {"id": number, "result": [choice], "completed_by": person, "updated_at": time}
    return {"id": number, "data": task["data"], "annotations": [annotation]}


def test_label_studio_is_told_if_it_gave_the_item_to_the_same_person(office: Office, acme: Caller) -> None:
    path = "/models/m/label-studio"

    def states(*tasks: dict[str, object]) -> list[str]:
        return [task["state"] for task in acme.post(f"{path}/annotations", list(tasks)).body["tasks"]]

    (task,) = acme.post(f"{path}/tasks", {"most": 5}).body
    assert states(annotated(task, person=7, number=1)) == ["submitted"]
    office.read_labels()
    office.round()
    (again,) = acme.post(f"{path}/tasks", {"most": 5}).body
    assert states(annotated(again, person=7, number=2)) == ["same-annotator"]
    assert states(annotated(again, person=8, number=3)) == ["submitted"]
    office.read_labels()
    assert [entry.label.annotator for entry in outcomes(office.site)] == ["label-studio:7", "label-studio:8"]
