"""Items whose true class is known: requested as all others are, and no part of what is said of the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from store_site import NOW, Record, Site, message, outcomes, page, record

from service.monitoring import label_truth
from service.monitoring.item_drawer import Drawer, Pooled
from service.monitoring.label_truth import KnownItems
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.activity import activity
from service.serving.documents.models import model_state
from service.store.connection import Connection
from service.store.labels import LabelEvent
from service.store.records import GoldItem, PoolRecord
from service.store.request_registry import locate_record, request_id_of

GOLD = [f"g{number}" for number in range(30)]
USUAL = [f"i{number}" for number in range(60)]
CLASSES = ("cat", "dog")


@pytest.fixture(autouse=True)
def few_imputations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds learn little of people, which takes most of their time: few tests are about that."""
    monkeypatch.setattr(label_truth, "IMPUTATIONS", 2)


def gold_item(item: str, true_class: str = "cat") -> GoldItem:
    """The model predicts a cat."""
    return GoldItem(PoolRecord(item, "cat", 0.75, 0.0, {}, payload=b'{"text":"of gold"}'), true_class)


class Labelling:
    """A leader with gold items, and people who label all that is requested."""

    def __init__(
        self,
        connection: Connection,
        *,
        gold: list[GoldItem] | None = None,
        usual: list[str] = USUAL,
        budget: int = 20,
        share: float = 0.5,
        reveal: bool = False,
        **policy: Any,
    ) -> None:
        assessment = {"budget": {"labels": budget}, "max_attempts": 1, "max_in_flight": 200}
        assessment["reveal_prediction"] = reveal
        model = {
            "classes": CLASSES,
            "score_bins": 1,
            "draw_half_life_hours": None,
            "assessments": {"ask": assessment},
            "labels_per_item": {"gold": {"file": "gold.jsonl", "share": share}, **policy},
        }
        self.site = Site(connection, {"m": model})
        made = [message(item, payload={"text": "usual"}) for item in usual]
        self.site.take_in([record(offset, each) for offset, each in enumerate(made)])
        self.gold = [gold_item(each) for each in GOLD] if gold is None else gold
        self.now, self._offset = NOW, 0
        self._steps = self.site.label_step()
        self._steps.assign(0, 0)
        self.restart()

    def restart(self, gold: list[GoldItem] | None = None) -> None:
        """Another process leads, perhaps with another file."""
        self.monitor = self.site.monitor("m", gold=self.gold if gold is None else gold)

    def round(self) -> ModelSnapshot:
        self.now += 1
        snapshot = self.monitor.refresh(self.now)
        self.monitor.ask(epoch=1, now=self.now)
        return snapshot

    def opened(self) -> dict[str, dict[str, Any]]:
        """Messages of open requests, by item, in the order in which they are published."""
        known = self.site.reader("m").requests().open
        waiting = [json.loads(text) for text in self.site.requests("m").read_outbox().values()]
        return {one["item_id"]: one for one in waiting if one["request_id"] in known}

    def label(self, item: str, true_class: str | None = "cat", by: str = "ana", **more: Any) -> None:
        self.now += 1
        request = more.pop("request_id", None) or request_id_of("m", item)
        label = {"request_id": request, "model": "m", "item_id": item, "annotator": by, **more}
        if true_class is not None:
            label["true_class"] = true_class
        self._steps.process(0, [Record(self._offset, json.dumps(label).encode())], self.now)
        self._offset += 1

    def known(self) -> KnownItems | None:
        ledger = OutcomeLedger(self.site.space("m"), may_err=True)
        ledger.fold(page(self.site).entries)
        return ledger.gold_items(at=self.now)


def only_gold(connection: Connection, *names: str, **more: Any) -> Labelling:
    """A leader that has requested these gold items, and usual ones beside them."""
    found = Labelling(connection, gold=[gold_item(name) for name in names], share=0.5, **more)
    found.round()
    found.round()
    assert set(names) <= set(found.opened())
    return found


def test_the_share_of_requests_is_for_gold_items_and_the_budget_pays(connection: Connection) -> None:
    labelling = Labelling(connection, budget=40)
    labelling.round()
    labelling.round()
    opened = labelling.opened()
    assert len(opened) == 40
    assert 10 <= len(set(opened) & set(GOLD)) <= 30
    assert labelling.site.reader("m").requests().budget == {"ask|0": 40}


def test_no_gold_item_is_requested_twice_whatever_process_leads(connection: Connection) -> None:
    labelling = Labelling(connection, budget=400)
    requested: list[str] = []
    for _ in range(6):
        labelling.restart()
        labelling.round()
        labelling.round()
        for item in labelling.opened():
            labelling.label(item)
            requested.append(item)
        labelling.site.requests("m").remove_published([*labelling.site.requests("m").read_outbox()])
    assert sorted(requested) == sorted(set(requested))
    assert set(GOLD) <= set(requested), "all were requested once"


def test_a_gold_item_whose_record_was_dropped_is_not_requested_again(connection: Connection) -> None:
    labelling = only_gold(connection, "g1")
    labelling.label("g1")
    place = locate_record(request_id_of("m", "g1"))
    connection.client.hdel(labelling.site.keys("m").asked(place.bucket), place.field)
    labelling.restart()
    assert labelling.monitor.issuer.gold.next(1) == []


@pytest.mark.parametrize("reveal", [False, True])
def test_a_message_about_a_gold_item_is_like_any_other(connection: Connection, reveal: bool) -> None:
    labelling = Labelling(connection, reveal=reveal)
    labelling.round()
    labelling.round()
    opened = labelling.opened()
    gold, usual = (
        [one for item, one in opened.items() if (item in GOLD) is is_gold] for is_gold in (True, False)
    )
    assert gold
    assert usual
    of_item = {"request_id", "item_id", "payload"}
    alike = {json.dumps({key: one[key] for key in one if key not in of_item}) for one in (*gold, *usual)}
    assert len(alike) == 1
    assert {tuple(one) for one in gold} == {tuple(one) for one in usual}, "keys in the same order"
    assert {len(one["request_id"]) for one in gold} == {len(one["request_id"]) for one in usual}


def test_gold_items_are_anywhere_among_the_requests_of_a_round(connection: Connection) -> None:
    labelling = Labelling(connection, budget=30)
    labelling.round()
    labelling.round()
    is_gold = [item in GOLD for item in labelling.opened()]
    assert len({*is_gold[:10]}) == len({*is_gold[10:20]}) == len({*is_gold[20:]}) == 2


@pytest.mark.parametrize(
    ("sent", "requested"),
    [
        (b'{ "text": "caf\\u00e9 a\\/b", "size": 1.50E2 }', '{"text":"café a/b","size":150.0}'),
        (b'"{ \\"text\\": 1 }"', '"{ \\"text\\": 1 }"'),  # a string, as of a CSV file, stays one
        (b"123456789012345678901234567890", "123456789012345678901234567890"),
        (b"[1e999, 1]", "[1e999, 1]"),  # what cannot be read stays as it is
    ],
)
def test_the_spelling_of_a_payload_does_not_show_who_wrote_it(
    connection: Connection, sent: bytes, requested: str
) -> None:
    labelling = Labelling(
        connection, gold=[GoldItem(PoolRecord("g", "cat", 0.75, 0.0, {}, payload=sent), "cat")]
    )
    builder, item = labelling.monitor.issuer.builder, labelling.gold[0]
    pooled = Pooled(0, b"all", 0, item.record, "all")
    for made in (builder.gold_request(item, "ask", now=NOW), builder.request(pooled, "ask", now=NOW)):
        assert f'"payload":{requested}' in made.message.decode()


def test_any_of_the_items_of_a_round_may_stay_in_the_pool_for_gold_items(connection: Connection) -> None:
    labelling = Labelling(connection)
    issuer = labelling.monitor.issuer
    drawer = Drawer(issuer.requests, [0], issuer.pool_ids["all"])
    order = [item.record.item_id for item in drawer.draw(["all"] * len(USUAL)) if item is not None]
    labelling.round()
    labelling.round()
    usual = set(labelling.opened()) - set(GOLD)
    assert usual <= set(order[:20])
    assert usual != set(order[: len(usual)]), "not the last ones alone"


def test_the_order_of_gold_items_follows_from_the_hash_key_and_not_from_the_file(
    connection: Connection,
) -> None:
    labelling = Labelling(connection)
    order = [item.record.item_id for item in labelling.monitor.issuer.gold.next(30)]
    labelling.restart(labelling.gold[::-1])
    assert [item.record.item_id for item in labelling.monitor.issuer.gold.next(30)] == order
    assert order != GOLD


def test_nothing_that_is_said_of_the_model_knows_gold_labels(connection: Connection) -> None:
    labelling = Labelling(connection, budget=40, gold=[gold_item(each, "dog") for each in GOLD])
    labelling.round()
    labelling.round()
    opened = labelling.opened()
    for number, item in enumerate(opened):
        labelling.label(item, "dog" if item in GOLD else "cat", by=f"p{number % 4}")
    usual = len(set(opened) - set(GOLD))
    snapshot = labelling.round()
    state = model_state(snapshot, now=labelling.now, tick_seconds=5)
    shown = activity(snapshot)
    assert snapshot.outcomes == usual
    assert {one.item_id for one in shown.labels} == set(opened) - set(GOLD)
    assert sum(one.correct for one in shown.flow) == usual
    assert sum(one.incorrect for one in shown.flow) == 0
    events = snapshot.assessments["ask"].events
    assert (events["issued"], events["answered"]) == (usual, usual)
    assert snapshot.unanswered.ended == usual
    assert state.label_agreement is None
    assert snapshot.groupings["all"].beliefs.accuracy.mean()[0] > 0.8, (
        "though all predictions of gold items are wrong"
    )


def test_gold_labels_are_shown_by_vendor_and_person(connection: Connection) -> None:
    labelling = Labelling(connection, budget=40)
    labelling.round()
    labelling.round()
    opened = labelling.opened()
    for item in opened:
        labelling.label(item, "dog" if item in GOLD[:3] else "cat")
    (vendor,) = model_state(labelling.round(), now=labelling.now, tick_seconds=5).vendors
    gold = set(opened) & set(GOLD)
    assert vendor.gold_labels == len(gold)
    assert vendor.labels == len(opened)
    assert vendor.gold_wrong is not None
    assert vendor.gold_wrong.mean == pytest.approx(len(gold & set(GOLD[:3])) / len(gold))


def test_the_answer_of_a_gold_item_is_right_if_it_is_the_true_class_of_the_file(
    connection: Connection,
) -> None:
    labelling = Labelling(connection, gold=[gold_item("g1"), gold_item("g2", "dog")])
    labelling.round()
    labelling.round()
    labelling.label("g1", "dog")
    labelling.label("g2", "dog")
    known = labelling.known()
    assert known is not None
    assert known.is_correct.tolist() == [True, False]
    assert known.is_wrong.tolist() == [True, False]


def test_a_gold_label_may_be_corrected_and_retracted(connection: Connection) -> None:
    labelling = only_gold(connection, "g1")
    labelling.label("g1", "dog")
    labelling.label("g1", "cat", kind="correction")
    known = labelling.known()
    assert known is not None
    assert known.is_wrong.tolist() == [False]
    labelling.label("g1", None, kind="retraction")
    assert labelling.known() is None
    tallies = labelling.site.reader("m").requests().tallies
    gold = {event: count for (event, _), count in tallies.items() if event.startswith("gold_")}
    assert gold == {"gold_issued": 1, "gold_answered": 1, "gold_corrected": 1, "gold_retracted": 1}
    assert tallies.keys() == {(event, "ask") for event in (*gold, "issued")}


def test_a_gold_item_that_is_skipped_has_a_label_once_that_is_corrected(connection: Connection) -> None:
    labelling = only_gold(connection, "g1")
    labelling.label("g1", None, kind="skip")
    assert labelling.known() is None
    assert labelling.round().unanswered.ended == 0
    labelling.label("g1", "dog", kind="correction")
    known = labelling.known()
    assert known is not None
    assert known.is_wrong.tolist() == [True]


def test_a_gold_request_that_expires_is_no_missing_answer_and_is_not_repeated(connection: Connection) -> None:
    labelling = only_gold(connection, "g1")
    usual = set(labelling.opened()) - {"g1"}
    for item in usual:
        labelling.label(item)
    labelling.now += 3_601
    labelling.round()
    snapshot = labelling.round()
    assert (snapshot.unanswered.ended, snapshot.unanswered.expired) == (len(usual), 0)
    assert snapshot.assessments["ask"].events["expired"] == 0
    assert "g1" not in labelling.opened()
    assert labelling.site.reader("m").requests().budget == {"ask|0": 20}, "another item got its label"
    labelling.label("g1", "dog")
    assert labelling.site.letters.reasons == ["expired_request"]
    assert labelling.known() is None


def test_a_gold_request_that_waits_is_no_sign_that_labels_are_missing(connection: Connection) -> None:
    labelling = only_gold(connection, "g1")
    assert labelling.round().assessments["ask"].oldest_request_at is not None
    for item in set(labelling.opened()) - {"g1"}:
        labelling.label(item)
    labelling.now += 600
    asked_at = labelling.round().trends.asked_at
    labelling.now += 600
    snapshot = labelling.round()
    assert snapshot.assessments["ask"].open_requests == 1
    assert snapshot.assessments["ask"].oldest_request_at is None
    assert snapshot.trends.asked_at == asked_at


def test_labels_that_are_applied_again_count_once(connection: Connection) -> None:
    labelling = only_gold(connection, "g1")
    request = request_id_of("m", "g1")
    batch = [LabelEvent(request, "g1", "answer", "dog", "0" * 16, labelling.now, "ana")]
    for status in ("applied", "duplicate"):
        assert [each.status for each in labelling.site.labels("m").apply(0, batch, now=labelling.now)] == [
            status
        ]
    known = labelling.known()
    assert known is not None
    assert known.is_wrong.tolist() == [True]


def test_a_gold_item_gets_further_labels_as_any_other_and_of_its_first_the_share_is_made(
    connection: Connection,
) -> None:
    labelling = only_gold(connection, "g1", most=3, audit_share=0.0, usual=USUAL[:10], budget=40)
    labelling.label("g1", "dog")
    labelling.round()
    again = labelling.opened()["g1"]
    assert (again["opinion"], again["attempt"]) == (2, 1)
    labelling.label("g1", "cat", by="ana", request_id=again["request_id"])
    assert labelling.site.letters.reasons == ["same_annotator"], "nobody gets the same item twice"
    labelling.label("g1", "cat", by="ben", request_id=again["request_id"])
    known = labelling.known()
    assert known is not None
    assert known.is_wrong.tolist() == [True, False]
    assert known.is_first.tolist() == [True, False]
    tallies = labelling.site.reader("m").requests().tallies
    assert tallies["gold_answered", "ask"] == 2
    assert ("answered", "ask") not in tallies


def test_an_item_that_was_requested_is_no_gold_item(connection: Connection) -> None:
    labelling = Labelling(connection, gold=[], usual=["a"])
    labelling.round()
    labelling.round()
    labelling.label("a", "dog")
    labelling.restart([gold_item("a")])
    labelling.site.take_in(
        [record(offset, message(item)) for offset, item in enumerate(["a", "b", "c", "d"])]
    )
    for _ in range(4):
        labelling.round()
    assert labelling.monitor.issuer.gold.next(1) == []
    assert labelling.known() is None
    assert len(outcomes(labelling.site)) == 1


def test_a_prediction_of_an_item_that_was_gold_first_gets_no_outcome(connection: Connection) -> None:
    labelling = only_gold(connection, "g1")
    labelling.label("g1", "dog")
    predicted = [*USUAL, *(f"j{number}" for number in range(20)), "g1"]
    labelling.site.take_in([record(offset, message(item)) for offset, item in enumerate(predicted)])
    for item in labelling.opened():
        if item != "g1":
            labelling.label(item)
    for _ in range(8):
        labelling.round()
    ledger = OutcomeLedger(labelling.site.space("m"), may_err=True)
    ledger.fold(page(labelling.site).entries)
    assert "g1" not in {each.fact.item_id for each in ledger.recent}


def test_an_item_that_was_gold_is_not_requested_for_the_model_when_its_record_was_dropped(
    connection: Connection,
) -> None:
    labelling = only_gold(connection, "g1", budget=200)
    for item in labelling.opened():
        labelling.label(item)
    place = locate_record(request_id_of("m", "g1"))
    connection.client.hdel(labelling.site.keys("m").asked(place.bucket), place.field)
    labelling.site.requests("m").remove_published([*labelling.site.requests("m").read_outbox()])
    labelling.site.take_in([record(offset, message(item)) for offset, item in enumerate([*USUAL, "g1", "j"])])
    for _ in range(4):
        labelling.round()
    assert "j" in labelling.opened()
    assert "g1" not in labelling.opened()


def test_a_gold_label_counts_with_the_true_class_that_the_file_had(connection: Connection) -> None:
    labelling = only_gold(connection, "g1")
    labelling.restart([gold_item("g1", "dog"), gold_item("g2")])
    labelling.label("g1", "dog")
    labelling.round()
    known = labelling.known()
    assert known is not None
    assert known.is_wrong.tolist() == [True]


def test_labels_of_gold_items_stay_when_the_file_is_removed(connection: Connection) -> None:
    labelling = only_gold(connection, "g1")
    labelling.restart([])
    labelling.label("g1", "cat")
    assert labelling.known() is not None
    assert labelling.round().outcomes == 0


def test_what_the_stream_has_trimmed_is_forgotten(connection: Connection) -> None:
    labelling = only_gold(connection, "g1", "g2")
    for item in ("g1", "g2"):
        labelling.label(item, "dog" if item == "g1" else "cat")
    entries = outcomes(labelling.site)
    ledger = OutcomeLedger(labelling.site.space("m"), may_err=True)
    ledger.fold(entries)
    ledger.forget(entries[-1].position)
    known = ledger.gold_items(at=labelling.now)
    assert known is not None
    assert len(known.is_correct) == 1


def test_requests_about_gold_items_are_not_shown_on_the_page(connection: Connection) -> None:
    labelling = Labelling(connection)
    labelling.round()
    labelling.round()
    opened = labelling.opened()
    gold = {one["request_id"] for item, one in opened.items() if item in GOLD}
    snapshot = labelling.round()
    assert len(snapshot.requests) == len(opened) - len(gold)
    assert not gold & {*snapshot.requests}
    assert snapshot.assessments["ask"].open_requests == len(opened)
    assert snapshot.assessments["ask"].in_flight.sum() == len(opened) - len(gold)


def test_gold_items_are_never_asked_about_alone(connection: Connection) -> None:
    labelling = Labelling(connection, usual=["a", "b"], budget=100)
    while not {"a", "b"} <= labelling.opened().keys():
        labelling.round()
    opened = labelling.opened()
    for _ in range(10):
        labelling.round()
    assert labelling.opened() == opened, "the pool has nothing to label"
