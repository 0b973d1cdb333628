"""Labels become outcomes, each once: in any state, doubled, late, corrected, applied all over again."""

from __future__ import annotations

import hashlib
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from store_site import (
    NOW,
    Site,
    draws_of,
    issue,
    message,
    outcome_log,
    outcomes,
    page,
    record,
    restore,
    save,
    wired,
)

from service.demo.servers import EmbeddedRedis
from service.domain.errors import Unavailable
from service.store.connection import Connection
from service.store.labels import LabelEvent
from service.store.outcome_entries import BEGINNING, OutcomePage
from service.store.records import LabelFact
from service.store.request_registry import locate_record
from service.store.requests import Renewal

ASK = {"ask": {"budget": {"labels": 1_000}}}
MODELS = {"m": {"classes": ["cat", "dog", "owl"], "score_bins": 1, "assessments": ASK}}


def opened(connection: Connection, items: str = "ab") -> Site:
    """A model with a request in flight for every letter."""
    site = Site(connection, MODELS)
    site.take_in([record(i, message(item)) for i, item in enumerate(items)])
    assert issue(site, draws_of(site)) == ["issued"] * len(items)
    return site


@pytest.fixture
def site(connection: Connection) -> Site:
    return opened(connection)


def label(
    kind: str, true_class: str = "", *, item: str = "a", by: str = "ana", time: float = NOW
) -> LabelEvent:
    """A label; the same arguments give the same label."""
    identity = repr((kind, true_class, by, time)).encode()
    digest = hashlib.blake2b(identity, digest_size=8).hexdigest()
    return LabelEvent(f"r-{item}", item, kind, true_class, digest, time, by)


ANSWER = label("answer", "cat")
SKIP = label("skip")
TO_DOG = label("correction", "dog")
RETRACTION = label("retraction")


def applied(site: Site, *labels: LabelEvent) -> list[str]:
    return [done.status for done in site.labels("m").apply(0, labels, now=NOW)]


def remembered(site: Site, item: str) -> bytes:
    """The record of a request."""
    location = locate_record(f"r-{item}")
    found: bytes = site.connection.client.hget(site.keys("m").asked(location.bucket), location.field)
    return found


def known(site: Site, items: str = "ab") -> list[Any]:
    """All that labels have left in Redis, but for where in the stream an outcome stands."""
    client, keys = site.connection.client, site.keys("m")
    records = [remembered(site, item) for item in items]
    states = [(record[:17], record[17:27] != bytes(10), record[27:]) for record in records]
    requests = [client.hgetall(keys.request(f"r-{item}")) for item in items]
    entries = [(entry.assessment, entry.fact, entry.label) for entry in outcomes(site)]
    facts = site.reader("m").requests()
    return [states, requests, entries, outcome_log(site), facts, client.zrange(keys.deadlines, 0, -1)]


@pytest.mark.parametrize(
    ("before", "then", "status"),
    [
        ([], ANSWER, "applied"),
        ([], SKIP, "applied"),
        ([], TO_DOG, "applied"),
        ([], RETRACTION, "nothing_to_retract"),
        ([ANSWER], ANSWER, "duplicate"),
        ([ANSWER], label("answer", "cat", by="bob"), "duplicate"),
        ([ANSWER], label("answer", "dog"), "conflicting_label"),
        ([ANSWER], SKIP, "conflicting_label"),
        ([ANSWER], TO_DOG, "applied"),
        ([ANSWER], label("correction", "cat"), "duplicate"),
        ([ANSWER], RETRACTION, "applied"),
        ([SKIP], SKIP, "duplicate"),
        ([SKIP], label("skip", by="bob"), "duplicate"),
        ([SKIP], ANSWER, "conflicting_label"),
        ([SKIP], TO_DOG, "applied"),
        ([SKIP], RETRACTION, "nothing_to_retract"),
        ([ANSWER, TO_DOG], ANSWER, "duplicate"),
        ([ANSWER, TO_DOG], label("answer", "cat", by="bob"), "conflicting_label"),
        ([ANSWER, TO_DOG], label("answer", "dog", by="bob"), "duplicate"),
        ([ANSWER, TO_DOG], TO_DOG, "duplicate"),
        ([ANSWER, TO_DOG], label("correction", "owl"), "applied"),
        ([ANSWER, TO_DOG], label("correction", "cat", time=NOW + 1), "applied"),
        ([ANSWER, RETRACTION], ANSWER, "duplicate"),
        ([ANSWER, RETRACTION], label("answer", "dog"), "conflicting_label"),
        ([ANSWER, RETRACTION], SKIP, "conflicting_label"),
        ([ANSWER, RETRACTION], RETRACTION, "duplicate"),
        ([ANSWER, RETRACTION], label("retraction", by="bob"), "duplicate"),
        ([ANSWER, RETRACTION], TO_DOG, "applied"),
        ([SKIP, TO_DOG], RETRACTION, "applied"),
        ([SKIP, TO_DOG], SKIP, "duplicate"),
        ([ANSWER, RETRACTION, TO_DOG], RETRACTION, "duplicate"),
        ([ANSWER, RETRACTION, TO_DOG], label("retraction", time=NOW + 1), "applied"),
    ],
)
def test_what_a_label_does_depends_on_the_state_of_its_request(
    site: Site, before: list[LabelEvent], then: LabelEvent, status: str
) -> None:
    assert applied(site, *before) == ["applied"] * len(before)
    as_it_was, told_before = known(site), outcome_log(site)
    assert applied(site, then) == [status]
    if status == "applied":
        assert known(site) != as_it_was
    else:
        assert known(site)[1:] == as_it_was[1:]
        assert outcome_log(site) == told_before


def test_an_answer_closes_its_request(site: Site) -> None:
    applied(site, ANSWER)
    facts = site.reader("m").requests()
    assert facts.open.keys() == {"r-b"}
    assert facts.budget == {"ask|0": 2}, "an answer costs what it cost"
    assert facts.tallies["answered", "ask"] == 1
    assert site.connection.client.zrange(site.keys("m").deadlines, 0, -1) == [b"r-b"]


def test_an_answer_takes_what_was_not_published_yet_out_of_the_outbox(site: Site) -> None:
    applied(site, ANSWER)
    assert site.requests("m").read_outbox().keys() == {"r-b/1"}


def test_an_answer_after_a_re_issue_counts_and_empties_the_outbox_of_the_new_attempt(site: Site) -> None:
    store = site.requests("m")
    store.renew(
        epoch=1,
        renewals=[Renewal(due, NOW + 99, b"{}") for due in store.due_requests(now=NOW + 60)],
        now=NOW + 60,
    )
    assert applied(site, ANSWER) == ["applied"]
    assert store.read_outbox().keys() == {"r-b/2"}
    assert len(outcomes(site)) == 1


def test_an_answer_after_the_last_attempt_expired_comes_too_late(site: Site) -> None:
    store = site.requests("m")
    store.renew(epoch=1, renewals=[Renewal(due) for due in store.due_requests(now=NOW + 60)], now=NOW + 60)
    assert applied(site, ANSWER, TO_DOG, RETRACTION, SKIP) == ["expired_request"] * 4
    assert outcomes(site) == []


def test_a_label_for_a_request_that_nobody_made_is_reported(site: Site) -> None:
    assert applied(site, label("answer", "cat", item="z")) == ["unknown_request"]


def test_a_label_with_the_item_of_another_request_is_reported(site: Site) -> None:
    mixed_up = LabelEvent("r-a", "b", "answer", "cat", "0" * 16, NOW, "ana")
    assert applied(site, mixed_up) == ["item_mismatch"]
    assert outcomes(site) == []


def test_labels_of_a_batch_are_applied_in_their_order(site: Site) -> None:
    other = label("answer", "owl", item="b")
    assert applied(site, RETRACTION, ANSWER, other, TO_DOG, ANSWER) == [
        "nothing_to_retract",
        "applied",
        "applied",
        "applied",
        "duplicate",
    ]


def test_an_outcome_joins_the_prediction_with_its_label(site: Site) -> None:
    applied(site, label("answer", "dog", time=NOW + 5.25))
    (entry,) = outcomes(site)
    assert entry.of == entry.position
    assert entry.label == LabelFact("dog", NOW + 5.25, "ana")
    assert (entry.assessment, entry.fact.grouping, entry.fact.group) == ("ask", "all", "all")
    assert (entry.fact.request_id, entry.fact.item_id) == ("r-a", "a")
    assert (entry.fact.predicted_class, entry.fact.score) == ("cat", 0.75)
    assert (entry.fact.predicted_at, entry.fact.requested_at) == (NOW, NOW)


def test_the_stream_shows_every_change_and_no_skip(site: Site) -> None:
    applied(site, ANSWER, TO_DOG, RETRACTION, label("correction", "owl"), label("skip", item="b"))
    assert outcome_log(site) == [(False, "cat"), (True, "dog"), (True, ""), (True, "owl")]
    first, *others = outcomes(site)
    assert {entry.of for entry in others} == {first.position}
    assert site.reader("m").requests().tallies == {
        ("issued", "ask"): 2,
        ("answered", "ask"): 2,
        ("corrected", "ask"): 1,
        ("retracted", "ask"): 1,
        ("skipped", "ask"): 1,
    }


def test_a_request_is_revised_32_times_at_the_most(site: Site) -> None:
    revisions = [label("correction", ["cat", "dog"][i % 2], time=NOW + i) for i in range(32)]
    assert applied(site, *revisions) == ["applied"] * 32
    assert applied(site, label("correction", "owl")) == ["too_many_revisions"]
    assert applied(site, *revisions) == ["duplicate"] * 32
    assert len(outcomes(site)) == 32


def test_vain_retractions_of_an_open_request_do_not_lock_out_its_answer(site: Site) -> None:
    vain = [label("retraction", time=NOW + i) for i in range(32)]
    assert applied(site, *vain) == ["nothing_to_retract"] * 32
    assert applied(site, label("retraction", time=NOW - 1)) == ["too_many_revisions"]
    assert applied(site, ANSWER) == ["applied"]
    assert applied(site, *vain) == ["nothing_to_retract"] * 32
    assert outcome_log(site) == [(False, "cat")]


@pytest.mark.parametrize("first", [ANSWER, SKIP], ids=["answers", "skips"])
def test_repeats_of_a_label_are_reported_alike_when_they_come_again_after_a_correction(
    site: Site, first: LabelEvent
) -> None:
    repeats = [label(first.kind, first.true_class, time=NOW + i) for i in range(1, 40)]
    assert applied(site, first, *repeats, TO_DOG) == ["applied", *["duplicate"] * 39, "applied"]
    assert applied(site, first, *repeats[:15], TO_DOG) == ["duplicate"] * 17


def test_a_label_whose_reply_was_lost_is_applied_once(
    redis_server: EmbeddedRedis, connection: Connection, site: Site
) -> None:
    with wired(redis_server, connection) as (wire, far):
        store = site.labels("m", far)
        store.apply(0, [label("answer", "cat", item="b")], now=NOW)
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            store.apply(0, [ANSWER, TO_DOG], now=NOW)
        wire.become("whole")
        assert applied(site, ANSWER, TO_DOG) == ["duplicate", "duplicate"]
    assert len(outcomes(site)) == 3


def test_outcomes_are_read_on_from_the_last_one_known(site: Site) -> None:
    assert page(site) == OutcomePage(BEGINNING, [], BEGINNING, complete=True)
    applied(site, ANSWER)
    first = page(site)
    assert len(first.entries) == 1
    assert page(site, first.last) == OutcomePage(first.last, [], first.last, complete=True)
    applied(site, TO_DOG)
    second = page(site, first.last)
    assert [entry.label.true_class for entry in second.entries] == ["dog"]
    assert second.first == first.last < second.last


def test_a_request_is_open_or_has_an_outcome_whenever_a_round_reads_never_both_or_neither(
    connection: Connection,
) -> None:
    items = "".join(map(chr, range(ord("a"), ord("a") + 100)))
    site, done = opened(connection, items), threading.Event()

    def answer_all() -> None:
        for item in items:
            applied(site, label("answer", "cat", item=item))
        done.set()

    reader, all_ids = site.reader("m"), {f"r-{item}" for item in items}
    with ThreadPoolExecutor(1) as people:
        answering = people.submit(answer_all)
        while not done.is_set():
            found, requests = reader.outcomes_and_requests(BEGINNING)
            assert found is not None
            ended = {entry.fact.request_id for entry in found.entries}
            assert ended.isdisjoint(requests.open)
            assert ended | requests.open.keys() == all_ids
        answering.result()


def test_a_reader_starts_again_when_the_outcomes_were_restored_from_an_older_state(site: Site) -> None:
    applied(site, ANSWER)
    backup = save(site.connection)
    applied(site, TO_DOG)
    last = page(site).last
    restore(site.connection, backup)
    assert site.reader("m").outcomes(last) is None


def test_a_reader_starts_again_even_if_newer_outcomes_have_followed_the_restored_ones(site: Site) -> None:
    applied(site, ANSWER)
    backup = save(site.connection)
    applied(site, TO_DOG)
    last = page(site).last
    restore(site.connection, backup)
    applied(site, label("answer", "owl", item="b"))
    assert site.reader("m").outcomes(last) is None


def test_what_the_stream_has_let_go_of_is_reported_with_every_page(site: Site) -> None:
    applied(site, ANSWER, label("answer", "owl", item="b"))
    first, second = outcomes(site)
    assert page(site).first == first.position
    site.connection.client.xtrim(site.keys("m").outcomes, maxlen=1, approximate=False)
    assert page(site, second.position).first == second.position


def test_an_answer_that_the_stream_has_let_go_of_can_no_longer_be_revised(site: Site) -> None:
    applied(site, ANSWER, label("answer", "owl", item="b"))
    site.connection.client.xtrim(site.keys("m").outcomes, maxlen=1, approximate=False)
    before = known(site)
    assert applied(site, TO_DOG, RETRACTION) == ["unknown_request", "unknown_request"]
    assert applied(site, ANSWER) == ["duplicate"]
    assert known(site) == before


def test_a_label_is_revised_within_the_days_of_correction_and_no_later(site: Site) -> None:
    store, days = site.labels("m"), site.settings.bounds.correction_days
    applied(site, ANSWER, label("skip", item="b"))
    last = NOW + days * 86_400
    assert store.apply(0, [TO_DOG], now=last)[0].status == "applied"
    late = [RETRACTION, label("correction", "owl", item="b")]
    assert [done.status for done in store.apply(0, late, now=last + 1)] == ["unknown_request"] * 2


def test_a_skipped_request_becomes_an_outcome_when_it_is_corrected(site: Site) -> None:
    applied(site, SKIP, TO_DOG)
    (entry,) = outcomes(site)
    assert (entry.fact.item_id, entry.label.true_class) == ("a", "dog")
    assert not site.connection.client.exists(site.keys("m").request("r-a"))


def test_an_answered_request_leaves_a_short_record_beside_its_outcome(site: Site) -> None:
    applied(site, ANSWER)
    assert len(remembered(site, "a")) == 36
    assert not site.connection.client.exists(site.keys("m").request("r-a"))


def test_only_the_newest_outcomes_are_kept(connection: Connection) -> None:
    site = Site(connection, MODELS, bounds={"outcomes": 1_000})
    site.take_in([record(0, message("a"))])
    issue(site, draws_of(site))
    client, keys = connection.client, site.keys("m")
    pipeline = client.pipeline()
    for i in range(3_000):
        pipeline.xadd(keys.outcomes, {"old": i})
    pipeline.execute()
    applied(site, ANSWER)
    assert 1_000 <= client.xlen(keys.outcomes) < 1_200


contents = st.one_of(
    st.tuples(st.sampled_from(["answer", "correction"]), st.sampled_from(["cat", "dog"])),
    st.tuples(st.sampled_from(["skip", "retraction"]), st.just("")),
)
labels = st.builds(
    lambda content, **given: label(*content, **given),
    contents,
    item=st.sampled_from("ab"),
    by=st.sampled_from(["ana", "bob"]),
    time=st.sampled_from([NOW, NOW + 1]),
)


@settings(
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    history=st.lists(labels, min_size=1, max_size=9),
    crashes=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3),
)
# Each of these labels changes nothing at first, and would change something when it comes after the next.
@example(history=[RETRACTION, ANSWER], crashes=[(0, 2)])
@example(history=[ANSWER, label("correction", "cat"), TO_DOG], crashes=[(0, 3)])
@example(history=[ANSWER, RETRACTION, label("retraction", by="bob"), TO_DOG], crashes=[(0, 4)])
def test_applying_any_part_of_the_history_again_leaves_every_fact_as_without(
    connection: Connection, history: list[LabelEvent], crashes: list[tuple[int, int]]
) -> None:
    once = opened(Connection(connection.client, f"{connection.prefix}.{secrets.token_hex(4)}"))
    expected = [applied(once, one)[0] for one in history]
    disturbed = opened(Connection(connection.client, f"{connection.prefix}.{secrets.token_hex(4)}"))
    done = 0
    for first, second in crashes:
        back, reached = sorted((first, second))
        back, reached = min(back, done), max(done, min(reached, len(history)))
        applied(disturbed, *history[back:reached])
        done = reached
    applied(disturbed, *history[done:])
    assert known(disturbed) == known(once)
    again = applied(disturbed, *history)
    assert known(disturbed) == known(once)
    for status, before in zip(again, expected, strict=True):
        if before in {"applied", "nothing_to_retract"}:
            assert status == {"applied": "duplicate"}.get(before, before)
