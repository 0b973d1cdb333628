"""Several people label an item, one after the other: who is asked, what counts, and nothing twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from store_site import NOW, Record, Site, message, outcomes, record

from service.monitoring import further_labels, label_truth
from service.monitoring.label_truth import IMPUTATIONS
from service.monitoring.monitor import ModelMonitor
from service.monitoring.outcome_table import OutcomeLedger
from service.serving.documents.models import model_state
from service.store import labelled_items
from service.store.connection import Connection
from service.store.labelled_items import LabelledItem, LabelledItemStore
from service.store.labels import LabelEvent
from service.store.request_registry import first_request_id, locate_record, opinion_of, request_id_of

FIRST, SECOND = request_id_of("m", "a"), request_id_of("m", "a", 2)
"""Requests about the item a."""


@pytest.fixture(autouse=True)
def few_imputations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds learn little of people, which takes most of their time: these tests are about who is asked."""
    monkeypatch.setattr(label_truth, "IMPUTATIONS", 2)


def model(**policy: object) -> dict[str, object]:
    """Every item that is asked for is labelled by two people or more, but for what is said otherwise."""
    return {
        "classes": ["cat", "dog"],
        "score_bins": 1,
        "draw_half_life_hours": None,
        "assessments": {"ask": {"budget": {"labels": 100}}},
        "labels_per_item": {"least": 2, "most": 3, "audit_share": 0.0} | policy,
    }


def site_of(connection: Connection, items: str = "a", **policy: object) -> Site:
    made = Site(connection, {"m": model(**policy)})
    made.take_in([record(offset, message(item)) for offset, item in enumerate(items)])
    return made


class Asking:
    """Rounds of a leader, and labels that answer what it asks."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._monitor = site.monitor("m")
        self._labels = site.label_step()
        self._labels.assign(0, 0)
        self._offset = 0
        self.now = NOW

    def ask(self) -> list[str]:
        """Requests that are open after a round, by id."""
        self.now += 1
        self._monitor.refresh(self.now)
        self._monitor.ask(epoch=1, now=self.now)
        return sorted(self._site.reader("m").requests().open)

    def label(
        self, request_id: str, item: str, by: str | None, true_class: str = "cat", **more: object
    ) -> None:
        self.now += 1
        label = {"request_id": request_id, "model": "m", "item_id": item, "true_class": true_class}
        label |= {"time": f"2027-01-15T08:00:{int(self.now - NOW):02}Z"} | more
        if by is not None:
            label["annotator"] = by
        value = json.dumps({key: given for key, given in label.items() if given is not ...}).encode()
        self._labels.process(0, [Record(self._offset, value)], self.now)
        self._offset += 1


def labelled_once(connection: Connection) -> tuple[Site, Asking]:
    """An item that ana has labelled."""
    site = site_of(connection)
    asking = Asking(site)
    assert asking.ask() == [FIRST]
    asking.label(FIRST, "a", "ana")
    return site, asking


def asked_again(connection: Connection) -> tuple[Site, Asking]:
    """The same, and the second request is open."""
    site, asking = labelled_once(connection)
    assert asking.ask() == [SECOND]
    return site, asking


def settle(site: Site) -> Sequence[object]:
    return LabelledItemStore(site.connection, site.keys("m")).undecided()


def test_the_second_person_is_asked_once_the_first_has_answered(connection: Connection) -> None:
    site = site_of(connection)
    asking = Asking(site)
    (first,) = asking.ask()
    assert asking.ask() == [first]
    asking.label(first, "a", "ana")
    assert asking.ask() == [request_id_of("m", "a", 2)]
    waiting = site.requests("m").read_outbox()
    sent = json.loads(waiting[f"{request_id_of('m', 'a', 2)}/1"])
    assert (sent["opinion"], sent["item_id"], sent["attempt"]) == (2, "a", 1)
    assert site.reader("m").requests().budget == {"ask|0": 2}


@pytest.mark.parametrize(
    ("labels", "asked"),
    [
        (["cat", "cat"], 2),
        (["dog", "dog"], 2),
        (["cat", "dog", "cat"], 3),
        (["dog", "cat", "dog"], 3),
    ],
)
def test_people_are_asked_until_most_agree(connection: Connection, labels: list[str], asked: int) -> None:
    site = site_of(connection)
    asking = Asking(site)
    for number, true_class in enumerate(labels):
        (request,) = asking.ask()
        assert opinion_of(request) == number + 1
        asking.label(request, "a", f"person-{number}", true_class)
    assert asking.ask() == []
    assert settle(site) == []
    assert site.reader("m").requests().budget == {"ask|0": asked}
    assert not site.connection.client.exists(site.keys("m").labelled(request_id_of("m", "a")))


@pytest.mark.parametrize(("share", "again"), [(0.0, 0), (1.0, 20), (0.5, 10)])
def test_an_item_whose_label_agrees_is_audited_at_random(
    connection: Connection, share: float, again: int
) -> None:
    items = "abcdefghijklmnopqrst"
    site = site_of(connection, items, least=1, audit_share=share)
    asking = Asking(site)
    for request in asking.ask():
        item = next(each for each in items if request_id_of("m", each) == request)
        asking.label(request, item, "ana")
    assert len(asking.ask()) == pytest.approx(again, abs=7 if 0 < share < 1 else 0)


def test_a_label_that_differs_from_the_prediction_is_checked(connection: Connection) -> None:
    site = site_of(connection, "ab", least=1)
    asking = Asking(site)
    asking.ask()
    asking.label(request_id_of("m", "a"), "a", "ana", "cat")
    asking.label(request_id_of("m", "b"), "b", "ana", "dog")
    assert asking.ask() == [request_id_of("m", "b", 2)]


def test_nobody_labels_an_item_twice(connection: Connection) -> None:
    site, asking = asked_again(connection)
    asking.label(SECOND, "a", "ana", "dog")
    assert site.letters.reasons == ["same_annotator"]
    assert asking.ask() == [SECOND], "somebody else may still answer"
    asking.label(SECOND, "a", "ben", "dog")
    assert [opinion_of(request) for request in asking.ask()] == [3]
    asking.label(request_id_of("m", "a", 3), "a", "ben")
    assert site.letters.reasons == ["same_annotator", "same_annotator"]


def test_a_correction_cannot_answer_for_somebody_who_has_labelled(connection: Connection) -> None:
    site, asking = asked_again(connection)
    asking.label(SECOND, "a", "ana", kind="correction")
    assert site.letters.reasons == ["same_annotator"]


@pytest.mark.parametrize("is_open", [False, True])
def test_whoever_corrects_a_label_has_labelled_the_item_too(connection: Connection, is_open: bool) -> None:
    site, asking = labelled_once(connection)
    if is_open:
        asking.ask()
    asking.label(FIRST, "a", "ben", "dog", kind="correction")
    assert asking.ask() == [SECOND]
    for by in ("ana", "ben"):
        asking.label(SECOND, "a", by)
    assert site.letters.reasons == ["same_annotator", "same_annotator"]
    asking.label(SECOND, "a", "eve")
    assert labels_of(site, asking.now) == [("ana", 1), ("eve", 0)], "a corrected label stays hers"


@pytest.mark.parametrize("kind", ["answer", "skip"])
def test_who_has_labelled_an_item_makes_no_label_of_somebody_else_their_own(
    connection: Connection, kind: str
) -> None:
    site, asking = asked_again(connection)
    asking.label(SECOND, "a", "ben", "cat" if kind == "answer" else ..., kind=kind)
    asking.label(SECOND, "a", "ana", "dog", kind="correction")
    by_ana = [by for by, _ in labels_of(site, asking.now) if by == "ana"]
    assert by_ana == ["ana"]
    assert site.letters.reasons == ([] if kind == "answer" else ["same_annotator"])


@pytest.mark.parametrize("kind", ["answer", "correction"])
def test_a_batch_that_is_applied_again_says_and_does_the_same(connection: Connection, kind: str) -> None:
    site, asking = asked_again(connection)
    batch = [
        LabelEvent(SECOND, "a", kind, "dog", "0" * 16, asking.now, "ana"),
        LabelEvent(SECOND, "a", "answer", "cat", "1" * 16, asking.now, "ben"),
    ]
    before = [each.status for each in site.labels("m").apply(0, batch, now=asking.now)]
    entries = outcomes(site)
    again = [each.status for each in site.labels("m").apply(0, batch, now=asking.now)]
    assert (before, again) == (["same_annotator", "applied"], ["same_annotator", "duplicate"])
    assert outcomes(site) == entries


class Between:
    """Has something happen between a leader's look at undecided items and its decision."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
        look = LabelledItemStore.undecided

        def looked(store: LabelledItemStore) -> Sequence[LabelledItem]:
            found = look(store)
            monkeypatch.setattr(LabelledItemStore, "undecided", look)
            happens()
            return found

        monkeypatch.setattr(LabelledItemStore, "undecided", looked)


def test_who_corrects_a_label_while_the_leader_decides_is_not_asked(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, asking = labelled_once(connection)
    Between(monkeypatch, lambda: asking.label(FIRST, "a", "ben", "dog", kind="correction"))
    assert asking.ask() == [SECOND]
    asking.label(SECOND, "a", "ben", "dog")
    assert site.letters.reasons == ["same_annotator"]


def test_a_label_that_changes_while_the_leader_decides_is_decided_on_again(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_of(connection, least=1)
    asking = Asking(site)
    (first,) = asking.ask()
    asking.label(first, "a", "ana", "cat")
    Between(monkeypatch, lambda: asking.label(first, "a", "ana", "dog", kind="correction"))
    assert asking.ask() == [], "the label agreed with the prediction"
    assert [opinion_of(request) for request in asking.ask()] == [2]


def test_an_item_that_expires_while_the_leader_decides_costs_nothing(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, asking = labelled_once(connection)
    Between(monkeypatch, lambda: connection.client.delete(site.keys("m").labelled(FIRST)))
    assert asking.ask() == []
    assert asking.ask() == []
    assert settle(site) == []
    assert site.reader("m").requests().budget == {"ask|0": 1}


def test_an_item_whose_first_request_was_forgotten_is_asked_for_no_second_time(
    connection: Connection,
) -> None:
    site, asking = labelled_once(connection)
    there = locate_record(request_id_of("m", "a", 2))
    connection.client.hset(site.keys("m").asked(there.bucket), there.field, b"a" + bytes(26))
    assert asking.ask() == []
    assert settle(site) == []


def test_recent_outcomes_show_an_item_once_with_the_label_that_counts(connection: Connection) -> None:
    site = site_of(connection)
    asking = Asking(site)
    for by in ("ana", "ben"):
        (request,) = asking.ask()
        asking.label(request, "a", by)
    first, second = request_id_of("m", "a"), request_id_of("m", "a", 2)

    def recent() -> list[str]:
        return [entry.label.true_class for entry in ledger_of(site).recent]

    asking.label(second, "a", "ben", "dog", kind="correction")
    assert recent() == ["cat"]
    asking.label(first, "a", "ana", ..., kind="retraction")
    assert recent() == ["dog"]
    asking.label(second, "a", "ben", ..., kind="retraction")
    assert recent() == []


def test_a_label_of_a_class_that_the_model_has_no_more_is_a_wrong_prediction(connection: Connection) -> None:
    site = site_of(connection)
    asking = Asking(site)
    for by, true_class in (("ana", "dog"), ("ben", "cat")):
        (request,) = asking.ask()
        asking.label(request, "a", by, true_class)
    later = Site(connection, {"m": model() | {"classes": ["cat", "owl"]}})
    ledger = ledger_of(later)
    items = ledger.labelled_items(at=asking.now)
    assert items is not None
    assert (len(ledger), items.agrees.tolist()) == (1, [False, True])


def test_a_label_without_an_annotator_is_refused(connection: Connection) -> None:
    site = site_of(connection)
    asking = Asking(site)
    (first,) = asking.ask()
    asking.label(first, "a", None)
    assert site.letters.reasons == ["missing_field"]
    assert asking.ask() == [first]


def test_labels_of_an_item_are_one_outcome_with_the_class_of_the_first(connection: Connection) -> None:
    site = site_of(connection)
    asking = Asking(site)
    for by, true_class in (("ana", "dog"), ("ben", "cat"), ("eve", "cat")):
        (request,) = asking.ask()
        asking.label(request, "a", by, true_class)
    entries = outcomes(site)
    assert [entry.item for entry in entries] == [None, entries[0].position, entries[0].position]
    ledger = ledger_of(site)
    assert len(ledger) == 1
    assert ledger.people == [("", "ana"), ("", "ben"), ("", "eve")]
    items = ledger.labelled_items(at=asking.now)
    assert items is not None
    assert items.classes.tolist() == [1, 0, 0]
    assert items.agrees.tolist() == [False, True, True]


def test_items_that_the_stream_has_trimmed_leave_no_people_behind(connection: Connection) -> None:
    site = site_of(connection, "ab")
    asking = Asking(site)
    for by in ("ana", "ben"):
        asking.ask()
        opinion = 1 if by == "ana" else 2
        asking.label(request_id_of("m", "a", opinion), "a", by)
    asking.label(request_id_of("m", "b"), "b", "eve")
    ledger = ledger_of(site)
    assert [annotator for _, annotator in ledger.people] == ["ana", "ben", "eve"]
    ledger.forget(outcomes(site)[-1].position)
    assert ledger.people == [("", "eve")]
    items = ledger.labelled_items(at=asking.now)
    assert items is not None
    assert (items.people.tolist(), items.classes.tolist()) == ([0], [0])


def ledger_of(site: Site) -> OutcomeLedger:
    ledger = OutcomeLedger(site.space("m"), may_err=True)
    ledger.fold(outcomes(site))
    ledger.place()
    return ledger


def labels_of(site: Site, at: float) -> list[tuple[str, int]]:
    """Annotator and class of every label that counts."""
    ledger = ledger_of(site)
    items = ledger.labelled_items(at=at)
    assert items is not None
    names = [annotator for _, annotator in ledger.people]
    return [(names[person], label) for person, label in zip(items.people, items.classes, strict=True)]


def test_labels_are_corrected_and_retracted_one_by_one(connection: Connection) -> None:
    site = site_of(connection)
    asking = Asking(site)
    for by in ("ana", "ben"):
        (request,) = asking.ask()
        asking.label(request, "a", by)
    first, second = request_id_of("m", "a"), request_id_of("m", "a", 2)
    asking.label(second, "a", "ben", "dog", kind="correction")
    assert labels_of(site, asking.now) == [("ana", 0), ("ben", 1)]
    asking.label(first, "a", "ana", ..., kind="retraction")
    assert labels_of(site, asking.now) == [("ben", 1)]
    assert len(ledger_of(site)) == 1, "the item has a label left"
    given_at = ledger_of(site).first_label_at
    asking.label(second, "a", "ben", ..., kind="retraction")
    assert len(ledger_of(site)) == 0
    assert ledger_of(site).first_label_at == given_at
    asking.label(second, "a", "ben", "cat", kind="correction")
    assert labels_of(site, asking.now) == [("ben", 0)]
    assert len(ledger_of(site)) == 1


def test_a_further_request_that_expires_is_issued_again_and_then_given_up(connection: Connection) -> None:
    site, asking = asked_again(connection)
    asking.now += 3_601
    assert asking.ask() == [SECOND]
    assert site.reader("m").requests().open[SECOND].attempt == 2
    asking.now += 3_601
    assert asking.ask() == []
    assert site.connection.client.hlen(site.keys("m").barred) == 0
    assert site.reader("m").requests().budget == {"ask|0": 1}, "nobody answered, so nothing was used"
    assert [entry.item for entry in outcomes(site)] == [None]


def test_a_budget_pays_for_every_label(connection: Connection) -> None:
    models = {"m": model() | {"assessments": {"ask": {"budget": {"labels": 3}}}}}
    site = Site(connection, models)
    site.take_in([record(offset, message(item)) for offset, item in enumerate("abcd")])
    asking = Asking(site)
    opened = asking.ask()
    assert len(opened) == 3
    items = {request_id_of("m", item): item for item in "abcd"}
    for request in opened:
        asking.label(request, items[request], "ana")
    assert asking.ask() == [], "nothing is left for second opinions"
    assert len(settle(site)) == 3


def test_items_that_wait_for_a_budget_do_not_hold_up_others(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (further_labels, labelled_items):
        monkeypatch.setattr(module, "MOST_UNDECIDED", 2)
    poor, rich = {"budget": {"labels": 3}}, {"budget": {"labels": 100}, "grouping": "kind"}
    kinds = {"kind": {"by": "predicted_class"}}
    models = {"m": model() | {"assessments": {"poor": poor, "rich": rich}, "groupings": kinds}}
    site = Site(connection, models)
    site.take_in([record(offset, message(item)) for offset, item in enumerate("abcdef")])
    asking = Asking(site)
    items = {request_id_of("m", item): item for item in "abcdef"}
    opened = asking.ask()
    of = {request: site.reader("m").requests().open[request].assessment for request in opened}
    assert sorted(of.values()) == ["poor"] * 3 + ["rich"] * 3
    for request in sorted(opened, key=of.__getitem__):
        asking.label(request, items[request], "ana")
    for _ in range(6):
        now_open = asking.ask()
    assert len(now_open) == 3, "all of the rich one"


def test_a_skip_of_a_second_opinion_is_the_items_last_word(connection: Connection) -> None:
    site, asking = asked_again(connection)
    asking.label(SECOND, "a", "ben", ..., kind="skip")
    assert asking.ask() == []
    assert not connection.client.exists(site.keys("m").labelled(FIRST))
    asking.label(SECOND, "a", "ben", kind="correction")
    assert labels_of(site, asking.now) == [("ana", 0), ("ben", 0)]


def test_second_opinions_come_before_new_items(connection: Connection) -> None:
    models = {"m": model() | {"assessments": {"ask": {"budget": {"labels": 100}, "max_in_flight": 2}}}}
    site = Site(connection, models)
    site.take_in([record(offset, message(item)) for offset, item in enumerate("abcd")])
    asking = Asking(site)
    items = {request_id_of("m", item): item for item in "abcd"}
    for request in asking.ask():
        asking.label(request, items[request], "ana")
    assert {opinion_of(request) for request in asking.ask()} == {2}


def test_estimates_allow_for_people_who_err_and_the_api_lists_them(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_truth, "IMPUTATIONS", IMPUTATIONS)
    items = "abcdefghijklmnopqrst"
    site = site_of(connection, items)
    asking, people = Asking(site), ("ana", "ben")
    names = {request_id_of("m", item, opinion): (item, opinion) for item in items for opinion in (1, 2)}
    for _ in people:
        for request in asking.ask():
            item, opinion = names[request]
            asking.label(request, item, people[opinion - 1])
    asking.ask()
    snapshot = site.monitor("m").refresh(asking.now)
    assert snapshot.outcomes == 20
    plain = Site(connection, {"m": model(least=1, most=1)}).monitor("m").refresh(asking.now)
    estimates = [each.groupings["all"].accuracy for each in (snapshot, plain)]
    doubted, trusted = (float(each.lower[0]) for each in estimates)
    assert doubted < trusted, "the labels may be wrong"
    state = model_state(snapshot, now=asking.now, tick_seconds=1.0)
    assert {(each.annotator, each.labels) for each in state.annotators} == {("ana", 20), ("ben", 20)}
    assert all(each.reliability.lower < each.reliability.mean for each in state.annotators)
    assert snapshot.groupings["all"].evidence is None


def test_single_labels_may_be_wrong_too_if_their_reliability_is_said(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_truth, "IMPUTATIONS", IMPUTATIONS)
    site = site_of(connection, "abcdefghij", least=1, most=1, reliability=0.8)
    asking = Asking(site)
    items = {request_id_of("m", item): item for item in "abcdefghij"}
    for request in asking.ask():
        asking.label(request, items[request], None)
    assert asking.ask() == []
    ends = [
        float(each.monitor("m").refresh(asking.now).groupings["all"].accuracy.lower[0])
        for each in (site, Site(connection, {"m": model(least=1, most=1)}))
    ]
    assert ends[0] < ends[1] - 0.02


def test_requests_for_further_labels_bring_a_reference_none(connection: Connection) -> None:
    site = site_of(connection, "ab", max_error=0.05)
    asking = Asking(site)
    items = {request_id_of("m", item): item for item in "ab"}
    for request in asking.ask():
        asking.label(request, items[request], "ana")
    assert [opinion_of(request) for request in asking.ask()] == [2, 2]
    filling = site.monitor("m").refresh(asking.now).assessments["ask"].filling
    assert filling is not None
    assert (filling.collected.tolist(), filling.coming.tolist()) == ([2], [0])


def test_a_leader_of_the_past_settles_nothing(connection: Connection) -> None:
    site, _ = labelled_once(connection)
    store = LabelledItemStore(site.connection, site.keys("m"))
    connection.client.set(site.keys("m").fence, 7)
    with pytest.raises(Exception, match="newer leader"):
        store.settle(store.undecided(), epoch=6)
    assert len(store.undecided()) == 1


def test_a_policy_that_is_taken_away_leaves_nothing_behind(connection: Connection) -> None:
    site, asking = labelled_once(connection)
    plain = Site(connection, {"m": model(least=1, most=1)})
    monitor: ModelMonitor = plain.monitor("m")
    monitor.refresh(asking.now)
    monitor.ask(epoch=1, now=asking.now)
    assert settle(site) == []


def test_an_id_of_a_request_says_which_opinion_it_is() -> None:
    request = request_id_of("m", "a", 3)
    assert opinion_of(request) == 3
    assert first_request_id(request) == request_id_of("m", "a")
    assert opinion_of("made.up") == 1
