"""Gold items in the vendor API and in Label Studio: nothing tells them from others, and labels find them."""

from __future__ import annotations

from typing import Any

import pytest
from label_studio_shapes import annotation
from office import VENDORS, Caller, Office, Open

from service.monitoring.outcome_table import OutcomeLedger
from service.store.records import GoldItem, PoolRecord

PAYLOAD = {"picture": 1}
GOLD = [
    GoldItem(PoolRecord(str(1_000 + n), "cat", 0.75, 0.0, {}, payload=b'{"picture": 1}'), "dog")
    for n in range(20)
]
IDS = {item.record.item_id for item in GOLD}
MODEL = {"labels_per_item": {"gold": {"file": "gold.jsonl", "share": 0.5}}}


@pytest.fixture
def office(open_office: Open) -> Office:
    """A vendor with ten requests, some of them for gold items."""
    office = open_office(vendors={"acme": VENDORS["acme"]}, model=MODEL, gold=GOLD)
    office.ask(10)
    return office


@pytest.fixture
def acme(office: Office) -> Caller:
    return office.caller("acme")


def shape(value: Any) -> Any:
    """What is left of a document without the values of its ids, which differ anyway."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return type(value) if isinstance(value, str) else value


def test_a_claim_of_a_gold_item_is_like_any_other(acme: Caller) -> None:
    claims = acme.claim(10)
    gold = [one for one in claims if one["request"]["item_id"] in IDS]
    assert 0 < len(gold) < len(claims)
    assert all(shape(one) == shape(claims[0]) for one in claims)


def test_a_task_of_label_studio_about_a_gold_item_is_like_any_other(office: Office, acme: Caller) -> None:
    tasks = acme.post("/models/m/label-studio/tasks", {"most": 10}).body
    gold = [task for task in tasks if task["data"]["item_id"] in IDS]
    assert 0 < len(gold) < len(tasks)
    assert all(shape(task) == shape(tasks[0]) for task in tasks)
    made = [{"id": n, **task, "annotations": [annotation()]} for n, task in enumerate(gold, 1)]
    exported = acme.post("/models/m/label-studio/annotations", made).body["tasks"]
    assert {each["state"] for each in exported} == {"submitted"}
    office.read_labels(len(gold))
    assert office.site.letters.reasons == []


def test_answers_about_gold_items_are_no_outcomes(office: Office, acme: Caller) -> None:
    claims = acme.claim(10)
    replies = {one["request"]["item_id"]: acme.answer(one, "dog") for one in claims}
    assert {(each.status, shape(each.body)["state"]) for each in replies.values()} == {(202, str)}
    office.read_labels(10)
    page = office.site.reader("m").outcomes((0, 0))
    assert page is not None
    ledger = OutcomeLedger(office.site.space("m"), may_err=True)
    ledger.fold(page.entries)
    ledger.place()
    known = ledger.gold_items(at=office.clock())
    assert known is not None
    assert len(known.is_correct) == len(IDS & set(replies))
    assert not known.is_wrong.any()
    assert len(ledger) == len(set(replies) - IDS)
