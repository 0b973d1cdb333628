"""A request that ends without a label leaves an outcome that says so, once."""

from __future__ import annotations

import json

import pytest
from store_site import (
    NOW,
    Record,
    Site,
    draws_of,
    issue,
    message,
    outcome_log,
    outcomes,
    page,
    record,
    unanswered,
)

from service.domain.cells import CellSpace
from service.monitoring.outcome_aggregates import EXPIRED_CLASS
from service.monitoring.outcome_table import OutcomeLedger
from service.store.connection import Connection
from service.store.outcome_entries import SharedDraw
from service.store.records import decode_fact
from service.store.requests import Draw, ExpiryStatus, Renewal

MODEL = {
    "classes": ["cat", "dog"],
    "score_bins": 1,
    "draw_half_life_hours": None,
    "groupings": {"g": {"by": "predicted_class"}},
    "assessments": {
        "ask": {"budget": {"labels": 1_000}},
        "other": {"grouping": "g", "budget": {"labels": 1_000}},
    },
}
LATER = NOW + 1_000_000
MOST_UNHEARD = 256  # as expire_requests.lua says


@pytest.fixture
def site(connection: Connection) -> Site:
    made = Site(connection, {"m": MODEL})
    made.take_in([record(offset, message(item)) for offset, item in enumerate("abc")])
    return made


class Labelling:
    """Labels about the requests `r-a` and so on."""

    def __init__(self, site: Site) -> None:
        self._step = site.label_step()
        self._step.assign(0, 0)
        self._offset = 0

    def send(self, item: str, kind: str, true_class: str | None = None) -> None:
        label = {"request_id": f"r-{item}", "model": "m", "item_id": item, "kind": kind}
        label |= {"time": f"2027-01-15T08:00:{self._offset:02}Z", "label_id": str(self._offset)}
        if true_class is not None:
            label["true_class"] = true_class
        self._step.process(0, [Record(self._offset, json.dumps(label).encode())], NOW)
        self._offset += 1


def renew(site: Site, *, deadline: float | None = None, now: float = LATER) -> list[ExpiryStatus]:
    store = site.requests("m")
    due = store.due_requests(now=now)
    return store.renew(epoch=1, renewals=[Renewal(one, deadline, b"{}") for one in due], now=now)


def further(site: Site) -> Draw:
    """A draw of a later prediction of the item a, which says something else."""
    later = message("a", time="2027-01-15T08:00:01Z", predicted_class="dog")
    site.take_in([record(3, later)])
    (found,) = (each for each in draws_of(site) if decode_fact(each.fact).predicted_at == NOW + 1)
    return found


def ledger(site: Site) -> OutcomeLedger:
    space: CellSpace = site.space("m")
    found = OutcomeLedger(space)
    found.fold(page(site).entries)
    found.place()
    return found


def test_a_skipped_request_leaves_an_outcome_without_a_label(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    Labelling(site).send("a", "skip")
    assert unanswered(site) == [("a", "skipped", 1)]
    assert outcomes(site) == []
    assert len(ledger(site)) == 0


def test_a_skip_that_is_sent_again_leaves_nothing_more(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    labelling = Labelling(site)
    labelling.send("a", "skip")
    labelling.send("a", "skip")
    assert unanswered(site) == [("a", "skipped", 1)]


def test_an_expired_request_leaves_an_outcome_with_its_last_attempt(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    assert renew(site, deadline=LATER - 1) == ["reissued"]
    assert unanswered(site) == []
    assert renew(site) == ["expired"]
    assert unanswered(site) == [("a", "expired", 2)]


def test_the_answer_of_a_later_attempt_says_which_one_it_was(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    renew(site, deadline=LATER + 1)
    Labelling(site).send("a", "answer", "cat")
    (entry,) = page(site).labelled
    assert (entry.attempt, entry.label.true_class) == (2, "cat")


def test_a_corrected_skip_is_a_label_in_its_place(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    labelling = Labelling(site)
    labelling.send("a", "skip")
    labelling.send("a", "correction", "dog")
    assert outcome_log(site) == [(True, "dog")]
    found = ledger(site)
    assert (len(found.ended_requests(9).reasons), len(found)) == (1, 1)
    assert found.ended_requests(9).is_answered.all()


def test_a_corrected_skip_may_be_corrected_again_and_retracted(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    labelling = Labelling(site)
    labelling.send("a", "skip")
    labelling.send("a", "correction", "dog")
    labelling.send("a", "correction", "cat")
    assert len(ledger(site)) == 1
    labelling.send("a", "retraction")
    assert len(ledger(site)) == 0
    assert outcome_log(site) == [(True, "dog"), (True, "cat"), (True, "")]
    assert len(ledger(site).ended_requests(9).reasons) == 0


def test_an_item_without_a_label_is_without_one_for_whoever_draws_it_later(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    renew(site)
    assert issue(site, [further(site)], assessment="other", window="other|0") == ["shared"]
    assert isinstance(page(site).entries[-1], SharedDraw)
    found = ledger(site)
    assert (len(found.ended_requests(9).reasons), len(found)) == (2, 0)
    assert found.ended_requests(9).reasons.tolist() == [EXPIRED_CLASS] * 2


def test_a_corrected_skip_is_a_label_of_further_predictions_too(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    labelling = Labelling(site)
    labelling.send("a", "skip")
    issue(site, [further(site)], assessment="other", window="other|0")
    labelling.send("a", "correction", "cat")
    found = ledger(site)
    assert (len(found.ended_requests(9).reasons), len(found)) == (2, 2)
    assert found.ended_requests(9).correct.tolist() == [True, False]


@pytest.mark.parametrize("how", ["skip", "expire"])
def test_whoever_drew_the_item_while_it_was_open_learns_that_it_has_no_label(site: Site, how: str) -> None:
    issue(site, draws_of(site)[:1])
    issue(site, [further(site)], assessment="other", window="other|0")
    if how == "skip":
        Labelling(site).send("a", "skip")
    else:
        renew(site)
    first, shared = page(site).entries
    assert isinstance(shared, SharedDraw)
    assert shared.of == first.position


def test_while_nobody_answers_only_the_first_expired_requests_are_noted(connection: Connection) -> None:
    site = Site(connection, {"m": MODEL})
    more = MOST_UNHEARD + 20
    site.take_in([record(offset, message(f"i{offset:04}")) for offset in range(more + 3)])
    draws = draws_of(site)
    issue(site, draws[:more], budget=1_000)
    while renew(site):
        pass
    assert len(unanswered(site)) == MOST_UNHEARD
    # One answer, and what expires is noted again.
    issue(site, draws[more:], budget=1_000)
    answered = draws[more].item_id
    Labelling(site).send(answered, "answer", "cat")
    assert renew(site) == ["expired", "expired"]
    assert len(unanswered(site)) == MOST_UNHEARD + 2


def test_all_that_expires_at_once_is_noted_if_others_of_that_time_were_answered(
    connection: Connection,
) -> None:
    site = Site(connection, {"m": MODEL})
    more = MOST_UNHEARD + 20
    site.take_in([record(offset, message(f"i{offset:04}")) for offset in range(more)])
    issue(site, draws_of(site), budget=1_000)
    Labelling(site).send("i0000", "answer", "cat")
    while renew(site):
        pass
    assert len(unanswered(site)) == more - 1


def test_requests_without_a_label_are_no_labels_anywhere(site: Site) -> None:
    issue(site, draws_of(site))
    labelling = Labelling(site)
    labelling.send("a", "answer", "cat")
    labelling.send("b", "skip")
    renew(site)
    found = ledger(site)
    assert len(found) == 1
    assert found.count_drawn_for("all") == 1
    assert found.last_label_at == found.first_label_at
    assert found.sums(at=LATER, decay=0.0).counts.sum() == 1
    assert len(found.scored_labels(at=LATER, decay=0.0).cells) == 1
    assert len(found.label_sequence("all").cells) == 1
    assert [len(each) for each in found.labels_since(0.0)] == [1, 1]
    assert len(found.recent) == 1


def test_the_snapshot_tells_how_many_requests_had_no_answer(site: Site) -> None:
    issue(site, draws_of(site))
    labelling = Labelling(site)
    labelling.send("a", "answer", "cat")
    labelling.send("b", "skip")
    renew(site)
    snapshot = site.monitor("m").refresh(LATER)
    told = snapshot.unanswered
    assert (told.ended, told.skipped, told.expired) == (3, 1, 1)
    assert told.ended_by_score.tolist() == [3]
    assert told.unanswered_by_score.tolist() == [2]
