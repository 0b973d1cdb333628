"""Label requests: drawn once, paid once, published at least once, and never by a leader of the past."""

from __future__ import annotations

import secrets
from dataclasses import replace
from itertools import count, islice
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_site import NOW, Site, draws_of, issue, message, outcomes, page, record, wired

from service.demo.servers import EmbeddedRedis
from service.domain.errors import FenceRefused, Unavailable
from service.domain.grouping_pool import EMPTY_SKETCH
from service.monitoring.outcome_table import OutcomeLedger
from service.store.connection import Connection
from service.store.labels import LabelEvent, LabelStore
from service.store.outcome_entries import SharedDraw
from service.store.records import decode_fact, decode_pool_record
from service.store.request_registry import BUCKETS, locate_record
from service.store.requests import Draw, DueRequest, ExpiryStatus, Payment, Renewal, RequestStore
from service.store.shards import pack_hash

ASK = {"ask": {"budget": {"labels": 1_000}}}
MODELS = {"m": {"classes": ["cat", "dog"], "score_bins": 1, "assessments": ASK}}
LATER = NOW + 100


@pytest.fixture
def site(connection: Connection) -> Site:
    """A model with the items a to e in its pool."""
    made = Site(connection, MODELS)
    made.take_in([record(i, message(item)) for i, item in enumerate("abcde")])
    return made


def answer(item: str) -> LabelEvent:
    return LabelEvent(f"r-{item}", item, "answer", "cat", secrets.token_hex(8), NOW, "ana")


def renew(site: Site, *, deadline: float | None = None, epoch: int = 1) -> list[ExpiryStatus]:
    """Renew whatever is due `LATER`."""
    store = site.requests("m")
    renewals = [Renewal(due, deadline, b'{"attempt":2}') for due in store.due_requests(now=LATER)]
    return store.renew(epoch=epoch, renewals=renewals, now=LATER)


def test_an_issued_request_is_listed_as_drawn_and_waits_to_be_published(site: Site) -> None:
    first, *_ = draws_of(site)
    assert issue(site, [first]) == ["issued"]
    client, keys = site.connection.client, site.keys("m")
    assert client.lrange(keys.drawn(0), 0, -1) == [first.field + pack_hash(first.item_hash)]
    assert site.requests("m").read_outbox() == {"r-a/1": first.message}
    facts = site.reader("m").requests()
    assert facts.open == {"r-a": first.open}
    assert facts.outbox_size == 1
    assert facts.budget == {"ask|0": 1}
    assert facts.tallies == {("issued", "ask"): 1}


def test_the_owner_of_the_pool_gets_group_and_whole_hash_of_what_was_drawn(site: Site) -> None:
    draws = draws_of(site)
    issue(site, draws)
    shown = site.connection.client.lrange(site.keys("m").drawn(0), 0, -1)
    assert shown == [draw.field + pack_hash(draw.item_hash) for draw in draws]
    assert max(draw.item_hash for draw in draws) > 2**53, "so that a rounded hash would show"


def test_a_budget_is_never_exceeded(site: Site) -> None:
    draws = draws_of(site)
    assert issue(site, draws[:2], budget=3) == ["issued", "issued"]
    assert issue(site, draws[2:], budget=3) == ["issued", "budget", "budget"]
    assert issue(site, draws[3:], budget=3) == ["budget", "budget"]
    assert site.reader("m").requests().budget == {"ask|0": 3}
    assert site.connection.client.llen(site.keys("m").drawn(0)) == 3, "what is not paid for stays"


@pytest.mark.parametrize(
    ("now", "answered", "outcomes", "kept"),
    [
        (NOW + 1_000, [0, 1, 2], 0, [2, 3]),
        (NOW + 1_000, [0, 1, 2], 2, [1, 2, 3]),
        (NOW + 1_000, [0, 1, 2], 3, [0, 1, 2, 3]),
        (NOW + 1_000, [1], 0, [0, 2, 3]),
        (NOW + 1_000, [], 0, [0, 1, 2, 3]),
        (NOW + 61, [0, 1, 2], 0, [1, 2, 3]),
        (NOW + 59, [0, 1, 2], 0, [0, 1, 2, 3]),
    ],
)
def test_a_full_hash_of_records_gives_up_the_oldest_but_none_on_which_something_hangs(
    connection: Connection, now: float, answered: list[int], outcomes: int, kept: list[int]
) -> None:
    site = Site(connection, MODELS)
    items = list(islice((f"{n}" for n in count() if locate_record(f"r-{n}").bucket == 7), 4))
    site.take_in([record(i, message(item)) for i, item in enumerate(items)])
    draws = {draw.item_id: draw for draw in draws_of(site)}
    bounds = {"closed_seconds": 60, "outcome_limit": 2 * BUCKETS}
    store = RequestStore(connection, site.keys("m"), **bounds)
    labels = LabelStore(connection, site.keys("m"), **bounds)

    def ask(number: int, at: float) -> None:
        store.issue(
            epoch=1, assessment="ask", payment=Payment("ask|0", 9), now=at, draws=[draws[items[number]]]
        )

    for number in range(3):
        ask(number, NOW + number)
    for number in answered:
        labels.apply(0, [answer(items[number])], now=NOW + number)
    connection.client.xtrim(site.keys("m").outcomes, maxlen=outcomes, approximate=False)
    ask(3, now)
    there = connection.client.hkeys(site.keys("m").asked(7))
    assert set(there) == {locate_record(f"r-{items[number]}").field for number in kept}


def test_every_window_has_a_budget_of_its_own(site: Site) -> None:
    draws = draws_of(site)
    issue(site, draws[:1], budget=1)
    assert issue(site, draws[1:2], budget=1, window="ask|1") == ["issued"]
    assert issue(site, draws[2:3], budget=1, window="other|0", assessment="other") == ["issued"]
    assert site.reader("m").requests().budget == {"ask|0": 1, "ask|1": 1, "other|0": 1}


def test_budgets_of_windows_that_are_long_over_are_forgotten(site: Site) -> None:
    draws = draws_of(site)
    issue(site, draws[:1], window="other|0", assessment="other")
    for n, window in enumerate([1, 2, 3, 9], start=1):
        issue(site, draws[n : n + 1], window=f"ask|{window}")
    assert site.reader("m").requests().budget == {"other|0": 1, "ask|3": 1, "ask|9": 1}


def test_a_clock_that_was_ahead_does_not_forget_what_was_spent(site: Site) -> None:
    for n, window in enumerate([7, 17, 8]):
        issue(site, draws_of(site)[n : n + 1], window=f"ask|{window}")
    assert site.reader("m").requests().budget == {"ask|7": 1, "ask|8": 1, "ask|17": 1}


def test_a_budget_that_does_not_renew_is_not_forgotten_while_it_renews_for_a_time(site: Site) -> None:
    for n, window in enumerate([0, 7, 8, 9]):
        issue(site, draws_of(site)[n : n + 1], window=f"ask|{window}")
    assert site.reader("m").requests().budget["ask|0"] == 1


def test_a_window_that_comes_late_takes_none_that_is_newer(site: Site) -> None:
    draws = draws_of(site)
    issue(site, draws[:1], window="ask|9")
    issue(site, draws[1:2], window="ask|3")
    assert site.reader("m").requests().budget == {"ask|3": 1, "ask|9": 1}


def test_a_request_that_expires_when_its_window_is_forgotten_leaves_no_budget_behind(site: Site) -> None:
    draws = draws_of(site)
    for n, window in enumerate([1, 5, 6]):
        issue(site, draws[n : n + 1], window=f"ask|{window}")
    renew(site)
    assert site.reader("m").requests().budget == {"ask|5": 0, "ask|6": 0}


def test_issuing_the_same_draws_again_is_harmless(site: Site) -> None:
    draws = draws_of(site)
    issue(site, draws[:3])
    before = site.reader("m").requests()
    assert issue(site, draws[:3]) == ["gone", "gone", "gone"]
    assert site.reader("m").requests() == before


def test_issuing_again_after_a_lost_reply_takes_nothing_twice(
    redis_server: EmbeddedRedis, connection: Connection, site: Site
) -> None:
    first, second, third, *_ = draws_of(site)
    with wired(redis_server, connection) as (wire, far):
        assert issue(site, [first], connection=far) == ["issued"]
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            issue(site, [second, third], connection=far)
        wire.become("whole")
        assert issue(site, [second, third], connection=far) == ["gone", "gone"]
    facts = site.reader("m").requests()
    assert facts.budget == {"ask|0": 3}
    assert facts.open.keys() == {"r-a", "r-b", "r-c"}


def test_an_item_of_two_partitions_is_requested_once(site: Site) -> None:
    site.take_in([record(0, message("a")), record(1, message("f"))], partition=1)
    assert issue(site, draws_of(site)) == ["issued"] * 5
    other = draws_of(site, partition=1)
    assert [draw.item_id for draw in other] == ["a", "f"]
    assert issue(site, other) == ["shared", "issued"]
    assert site.connection.client.llen(site.keys("m").drawn(1)) == 2
    assert site.reader("m").requests().budget == {"ask|0": 6}


def again(site: Site, item: str = "a", *, offset: int = 5, **fields: Any) -> Draw:
    """A draw of a later prediction of an item."""
    later = message(item, time="2027-01-15T08:00:01Z", **fields)
    site.take_in([record(offset, later)])
    known = {draw.item_hash for draw in draws_of(site)}
    (found,) = [
        d for d in draws_of(site) if d.item_id == item and decode_fact(d.fact).predicted_at == NOW + 1
    ]
    assert found.item_hash in known
    return found


def test_an_item_is_requested_once_whichever_assessment_asks(site: Site) -> None:
    first, *_ = draws_of(site)
    issue(site, [first])
    assert issue(site, [again(site)], assessment="other", window="other|0") == ["shared"]
    facts = site.reader("m").requests()
    assert facts.budget == {"ask|0": 1}
    assert facts.open["r-a"].assessment == "ask"
    assert facts.tallies == {("issued", "ask"): 1, ("shared", "other"): 1}


def test_the_answer_of_an_item_that_was_drawn_twice_is_the_outcome_of_both_draws(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    further = again(site, predicted_class="dog")
    issue(site, [further], assessment="other")
    site.labels("m").apply(0, [answer("a")], now=NOW)
    outcome, shared = outcomes(site)
    assert isinstance(shared, SharedDraw)
    assert (shared.of, shared.assessment) == (outcome.position, "other")
    assert shared.fact == decode_fact(further.fact)


def test_an_item_that_was_answered_before_it_is_drawn_again_counts_for_that_draw(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    site.labels("m").apply(0, [answer("a")], now=NOW)
    assert issue(site, [again(site)], assessment="other") == ["shared"]
    outcome, shared = outcomes(site)
    assert isinstance(shared, SharedDraw)
    assert shared.of == outcome.position


def test_a_skipped_item_that_was_drawn_again_counts_for_both_draws_when_it_is_corrected(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    skip = LabelEvent("r-a", "a", "skip", "", secrets.token_hex(8), NOW, "ana")
    site.labels("m").apply(0, [skip], now=NOW)
    assert issue(site, [again(site)], assessment="other") == ["shared"]
    correction = LabelEvent("r-a", "a", "correction", "cat", secrets.token_hex(8), NOW, "ana")
    site.labels("m").apply(0, [correction], now=NOW)
    ledger = OutcomeLedger(site.space("m"))
    ledger.fold(page(site).entries)
    assert len(ledger) == 2


def test_drawing_again_after_a_lost_reply_counts_once(
    redis_server: EmbeddedRedis, connection: Connection, site: Site
) -> None:
    further = again(site)
    with wired(redis_server, connection) as (wire, far):
        issue(site, draws_of(site)[:1], connection=far)
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            issue(site, [further], connection=far)
        wire.become("whole")
        assert issue(site, [further], connection=far) == ["gone"]
    site.labels("m").apply(0, [answer("a")], now=NOW)
    assert len(outcomes(site)) == 2


def test_an_item_whose_budget_is_used_up_is_drawn_if_it_costs_nothing(site: Site) -> None:
    issue(site, draws_of(site)[:1], budget=1)
    assert issue(site, [again(site)], budget=1) == ["shared"]


def test_an_item_that_is_forgotten_begins_again_unless_its_request_is_still_open(site: Site) -> None:
    issue(site, draws_of(site)[:2])
    skip = LabelEvent("r-a", "a", "skip", "", secrets.token_hex(8), NOW, "ana")
    site.labels("m").apply(0, [skip], now=NOW)
    client, keys = site.connection.client, site.keys("m")
    location = locate_record("r-a")
    client.hdel(
        keys.asked(location.bucket), location.field
    )  # as if very many others had been requested since
    assert issue(site, [again(site, "a"), again(site, "b", offset=6)]) == ["issued", "shared"]
    assert client.ttl(keys.request("r-a")) == -1, "it must not end with the skipped one"
    assert [done.status for done in site.labels("m").apply(0, [answer("a")], now=NOW)] == ["applied"]
    assert site.reader("m").requests().budget == {"ask|0": 3}


def test_an_item_that_has_left_the_pool_is_not_drawn(site: Site) -> None:
    first, *_ = draws_of(site)
    site.connection.client.hset(site.keys("m").pool(0), first.field, EMPTY_SKETCH.encode())
    assert issue(site, [first]) == ["gone"]
    assert not site.reader("m").requests().open


def test_a_leader_of_the_past_is_refused_everything(site: Site) -> None:
    draws = draws_of(site)
    issue(site, draws[:1], epoch=10)
    before = site.reader("m").requests()
    with pytest.raises(FenceRefused):
        issue(site, draws[1:], epoch=9)
    with pytest.raises(FenceRefused):
        renew(site, epoch=9)
    assert site.reader("m").requests() == before
    assert site.connection.client.llen(site.keys("m").drawn(0)) == 1


def test_a_leader_goes_on_under_its_own_epoch_and_a_new_one_under_a_higher(site: Site) -> None:
    draws = draws_of(site)
    issue(site, draws[:1], epoch=9)
    assert issue(site, draws[1:2], epoch=9) == ["issued"]
    assert issue(site, draws[2:3], epoch=10) == ["issued"]


def test_requests_are_due_after_their_deadline_the_oldest_first(site: Site) -> None:
    draws = draws_of(site)
    times = [NOW + 30.25, NOW + 10, NOW + 50, NOW + 20, NOW + 40]
    issue(site, [replace(draw, deadline=time) for draw, time in zip(draws, times, strict=True)])
    store = site.requests("m")
    assert store.due_requests(now=NOW) == []
    due = store.due_requests(now=NOW + 40)
    assert [one.request_id for one in due] == ["r-b", "r-d", "r-a", "r-e"]
    assert due[0] == DueRequest("r-b", draws[1].open, draws[1].message)
    assert [one.request_id for one in store.due_requests(now=LATER, limit=2)] == ["r-b", "r-d"]


def test_a_request_that_is_issued_once_more_has_a_new_attempt_and_deadline(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    assert renew(site, deadline=LATER + 60) == ["reissued"]
    store = site.requests("m")
    assert store.read_outbox() == {"r-a/2": b'{"attempt":2}'}, (
        "the first attempt need not be published any more"
    )
    assert store.due_requests(now=LATER) == []
    (due,) = store.due_requests(now=LATER + 60)
    assert due.open.attempt == 2
    assert due.message == b'{"attempt":2}'
    facts = site.reader("m").requests()
    assert facts.budget == {"ask|0": 1}
    assert facts.tallies == {("issued", "ask"): 1, ("reissued", "ask"): 1}


def test_a_request_that_ends_unanswered_gives_its_budget_back(site: Site) -> None:
    issue(site, draws_of(site)[:2])
    assert renew(site) == ["expired", "expired"]
    facts = site.reader("m").requests()
    assert facts.open == {}
    assert facts.outbox_size == 0
    assert facts.budget == {"ask|0": 0}
    assert facts.tallies == {("issued", "ask"): 2, ("expired", "ask"): 2}
    assert site.requests("m").due_requests(now=LATER) == []


def test_an_item_whose_request_has_expired_is_not_asked_for_again(site: Site) -> None:
    issue(site, draws_of(site)[:1])
    renew(site)
    assert issue(site, [again(site)]) == ["shared"]
    assert site.reader("m").requests().open == {}


def test_of_a_closed_request_a_record_is_left(site: Site) -> None:
    issue(site, draws_of(site)[:3])
    client, keys = site.connection.client, site.keys("m")
    skip = LabelEvent("r-c", "c", "skip", "", secrets.token_hex(8), NOW, "ana")
    site.labels("m").apply(0, [answer("b"), skip], now=NOW)
    renew(site)
    locations = [locate_record(f"r-{item}") for item in "abc"]
    records = [client.hget(keys.asked(location.bucket), location.field) for location in locations]
    assert [record[:1] for record in records] == [b"e", b"a", b"s"]
    assert client.exists(*(keys.request(f"r-{item}") for item in "abc")) == 0


@pytest.mark.parametrize("deadline", [None, LATER + 60])
def test_a_request_that_was_answered_meanwhile_is_not_renewed(site: Site, deadline: float | None) -> None:
    issue(site, draws_of(site)[:1])
    store = site.requests("m")
    due = store.due_requests(now=LATER)
    site.labels("m").apply(0, [answer("a")], now=NOW)
    before = site.reader("m").requests()
    assert store.renew(epoch=1, renewals=[Renewal(one, deadline, b"{}") for one in due], now=LATER) == [
        "changed"
    ]
    assert site.reader("m").requests() == before


@pytest.mark.parametrize("deadline", [None, LATER + 60])
def test_renewing_again_after_a_lost_reply_changes_nothing_more(
    redis_server: EmbeddedRedis, connection: Connection, site: Site, deadline: float | None
) -> None:
    issue(site, draws_of(site)[:1])
    with wired(redis_server, connection) as (wire, far):
        store = site.requests("m", far)
        renewals = [Renewal(due, deadline, b"{}") for due in store.due_requests(now=LATER)]
        store.renew(
            epoch=1,
            renewals=[replace(renewals[0], due=replace(renewals[0].due, request_id="r-none"))],
            now=LATER,
        )
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            store.renew(epoch=1, renewals=renewals, now=LATER)
        wire.become("whole")
        after_one = site.reader("m").requests()
        assert store.renew(epoch=1, renewals=renewals, now=LATER) == ["changed"]
    assert after_one.tallies["expired" if deadline is None else "reissued", "ask"] == 1
    assert site.reader("m").requests() == after_one


def test_what_was_published_leaves_the_outbox_and_nothing_else_does(site: Site) -> None:
    issue(site, draws_of(site)[:2])
    store = site.requests("m")
    published = list(store.read_outbox())[:1]
    renew(site, deadline=LATER + 60)
    store.remove_published(published)
    assert store.read_outbox().keys() == {"r-a/2", "r-b/2"}, "a later attempt is a message of its own"
    store.remove_published(["r-a/2"])
    assert store.read_outbox().keys() == {"r-b/2"}


def test_nothing_is_asked_of_redis_where_there_is_nothing_to_do(site: Site) -> None:
    store = site.requests("m")
    assert issue(site, []) == []
    assert store.renew(epoch=1, renewals=[], now=LATER) == []
    assert store.read_pools([], [b"all:"]) == []
    assert store.items([]) == []


def test_pooled_records_are_read_by_partition_and_hash(site: Site) -> None:
    site.take_in([record(0, message("f"))], partition=1)
    (other,) = draws_of(site, partition=1)
    first, *_ = draws_of(site)
    read = site.requests("m").items([(0, first.item_hash), (0, 99), (1, other.item_hash)])
    assert [None if one is None else decode_pool_record(one).item_id for one in read] == ["a", None, "f"]


@settings(
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rounds=st.lists(
        st.tuples(
            st.sampled_from(["issue", "issue", "expire", "reissue", "answer"]),
            st.integers(1, 3),
            st.sampled_from(["ask", "other"]),
            st.lists(st.integers(0, 9), min_size=1, max_size=6),
        ),
        max_size=14,
    )
)
def test_whatever_leaders_do_every_item_is_asked_for_once_and_paid_once(
    connection: Connection, rounds: list[tuple[str, int, str, list[int]]]
) -> None:
    site = Site(Connection(connection.client, f"{connection.prefix}.{secrets.token_hex(4)}"), MODELS)
    site.take_in([record(i, message(item)) for i, item in enumerate("abcde")])
    site.take_in([record(i, message(item)) for i, item in enumerate("defgh")], partition=1)
    candidates = {
        name: draws_of(site, assessment=name) + draws_of(site, assessment=name, partition=1)
        for name in ("ask", "other")
    }
    due: list[DueRequest] = []
    highest = 0
    for what, epoch, assessment, chosen in rounds:
        store = site.requests("m")
        refused = False
        try:
            if what == "issue":
                draws = [candidates[assessment][i] for i in chosen]
                window = f"{assessment}|0"
                issue(site, draws, epoch=epoch, assessment=assessment, window=window, budget=3)
            elif what == "answer":
                site.labels("m").apply(0, [answer("abcdefghxy"[chosen[0]])], now=NOW)
            else:
                due = store.due_requests(now=LATER) or due
                deadline = LATER - 1 if what == "reissue" else None
                renewals = [Renewal(one, deadline, b"{}") for one in due[: len(chosen)]]
                store.renew(epoch=epoch, renewals=renewals, now=LATER)
        except FenceRefused:
            refused = True
        if what != "answer":
            assert refused <= (epoch < highest)
            highest = max(highest, epoch)
        facts = site.reader("m").requests()
        happened = facts.tallies
        for name in ("ask", "other"):
            issued = happened.get(("issued", name), 0)
            expired = happened.get(("expired", name), 0)
            assert facts.budget.get(f"{name}|0", 0) == issued - expired <= 3
            still_open = sum(one.assessment == name for one in facts.open.values())
            assert still_open == issued - expired - happened.get(("answered", name), 0)
        locations = [locate_record(f"r-{item}") for item in "abcdefgh"]
        asked = [
            site.connection.client.hexists(site.keys("m").asked(one.bucket), one.field) for one in locations
        ]
        assert sum(asked) == sum(count for (event, _), count in happened.items() if event == "issued")
