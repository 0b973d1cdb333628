"""Claims: a request is one annotator's for a while, its vendor's in any case, and nothing is left of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from store_site import NOW, Site, outcomes, wired
from vendor_site import (
    LEASE_SECONDS,
    VENDORS,
    apply,
    claim_keys,
    claims,
    issued_requests,
    label,
    opened,
    other,
    round_,
    sent,
    site_of,
)

from service.demo.servers import EmbeddedRedis
from service.domain.errors import Unavailable
from service.domain.messages import LabelRequest
from service.store.claims import Claim, ClaimChange, ClaimStore
from service.store.connection import Connection

LEASE = 20.0
"""Of a claim; requests themselves run `LEASE_SECONDS`."""


@pytest.fixture
def site(connection: Connection) -> Site:
    """A model with thirty open requests."""
    made = site_of(connection)
    issued_requests(made, 30)
    return made


def of(site: Site, vendor: str) -> list[str]:
    """Ids of a vendor's open requests."""
    return sorted(i for i, request in opened(site).items() if request.vendor == vendor)


def claim(site: Site, vendor: str = "acme", most: int = 1, *, now: float = NOW) -> list[Claim]:
    ids = [secrets.token_hex(16) for _ in range(most)]
    return claims(site).claim(vendor, claim_ids=ids, lease_seconds=LEASE, now=now)


def claim_until_the_deadline(site: Site) -> Claim:
    (held,) = claims(site).claim("acme", claim_ids=[secrets.token_hex(16)], lease_seconds=9_999, now=NOW)
    return held


def test_a_vendor_claims_its_own_requests_and_no_others(site: Site) -> None:
    given = claim(site, "acme", 100)
    assert sorted(one.request_id for one in given) == of(site, "acme")
    for one in given:
        request = LabelRequest.model_validate_json(one.message)
        assert (request.request_id, request.vendor) == (one.request_id, "acme")
        assert one.leased_until == NOW + LEASE


def test_what_is_claimed_is_not_given_again(site: Site) -> None:
    first, second = claim(site, most=3), claim(site, most=100)
    assert not {one.request_id for one in first} & {one.request_id for one in second}
    assert len(first) + len(second) == len(of(site, "acme"))
    assert claim(site) == []


def test_waiting_counts_what_may_be_claimed_now(site: Site) -> None:
    everything = len(of(site, "acme"))
    assert claims(site).count_claimable("acme", now=NOW) == everything
    claim(site, most=3)
    assert claims(site).count_claimable("acme", now=NOW) == everything - 3
    assert claims(site).count_claimable("acme", now=NOW + LEASE) == everything
    assert claims(site).count_claimable("nobody", now=NOW) == 0


def test_claiming_again_with_the_same_ids_gives_the_same_claims(site: Site) -> None:
    ids = [secrets.token_hex(16) for _ in range(3)]
    store = claims(site)
    first = store.claim("acme", claim_ids=ids, lease_seconds=LEASE, now=NOW)
    assert store.claim("acme", claim_ids=ids, lease_seconds=LEASE, now=NOW + 1) == first
    assert len(store.list_claims("acme", now=NOW + 1)) == 3
    assert store.claim("bolt", claim_ids=ids, lease_seconds=LEASE, now=NOW + 1) == [], "ids are no passport"


def test_claiming_again_does_not_revive_a_lease_that_ended(site: Site) -> None:
    ids = [secrets.token_hex(16)]
    store = claims(site)
    store.claim("acme", claim_ids=ids, lease_seconds=LEASE, now=NOW)
    assert store.claim("acme", claim_ids=ids, lease_seconds=LEASE, now=NOW + LEASE) == []


def test_a_claim_whose_reply_was_lost_is_found_by_its_ids(
    redis_server: EmbeddedRedis, connection: Connection, site: Site
) -> None:
    ids = [secrets.token_hex(16) for _ in range(2)]
    with wired(redis_server, connection) as (wires, far):
        store = ClaimStore(far, site.keys("m"))
        store.count_claimable("acme", now=NOW)
        wires.become("loses_replies")
        with pytest.raises(Unavailable):
            store.claim("acme", claim_ids=ids, lease_seconds=LEASE, now=NOW)
        wires.become("whole")
        again = store.claim("acme", claim_ids=ids, lease_seconds=LEASE, now=NOW + 1)
    assert [one.claim_id for one in again] == ids
    assert len(claims(site).list_claims("acme", now=NOW + 1)) == 2


def test_the_soonest_deadline_is_claimed_first(connection: Connection) -> None:
    site = site_of(connection)
    issued_requests(site, 10)
    urgent = of(site, "acme")[-1]
    site.connection.client.zadd(site.keys("m").deadlines, {urgent: NOW + 5})
    (given,) = claim(site)
    assert given.request_id == urgent
    assert given.leased_until == NOW + 5, "a lease ends with the deadline at the latest"


def test_a_request_whose_deadline_has_passed_is_not_given(site: Site) -> None:
    assert claim(site, most=100, now=NOW + LEASE_SECONDS) == []


def test_a_lease_that_ended_gives_the_request_to_another_annotator(site: Site) -> None:
    first = {one.request_id: one for one in claim(site, most=100)}
    then = NOW + LEASE
    second = claim(site, most=100, now=then)
    assert {one.request_id for one in second} == first.keys()
    late = first[second[0].request_id]
    store = claims(site)
    for change in (store.submit, store.release):
        assert change("acme", late.request_id, late.claim_id, now=then).status == "lost"
    renewed = store.renew("acme", late.request_id, late.claim_id, lease_seconds=LEASE, now=then)
    assert renewed == ClaimChange("lost")


def test_a_lease_that_ended_is_over_though_nobody_has_claimed_since(site: Site) -> None:
    (held,) = claim(site)
    store, then = claims(site), NOW + LEASE
    at = ("acme", held.request_id, held.claim_id)
    assert store.submit(*at, now=then - 0.001).status == "ok"
    assert store.unsubmit(*at, now=then).status == "ok"
    assert store.submit(*at, now=then).status == "expired"
    assert store.renew(*at, lease_seconds=LEASE, now=then).status == "expired"
    assert store.release(*at, now=then).status == "ok"


def test_renewing_prolongs_the_lease_up_to_the_deadline(site: Site) -> None:
    (held,) = claim(site)
    at = ("acme", held.request_id, held.claim_id)
    store = claims(site)
    assert store.renew(*at, lease_seconds=LEASE, now=NOW + 15) == ClaimChange("ok", NOW + 15 + LEASE)
    assert store.submit(*at, now=NOW + LEASE + 1).status == "ok"
    store.unsubmit(*at, now=NOW + LEASE + 1)
    assert store.renew(*at, lease_seconds=999, now=NOW + 30) == ClaimChange("ok", NOW + LEASE_SECONDS)


def test_a_released_request_is_claimed_by_somebody_else(site: Site) -> None:
    everything = claim(site, most=100)
    one = everything[0]
    store = claims(site)
    for _ in range(2):
        assert store.release("acme", one.request_id, one.claim_id, now=NOW + 1) == ClaimChange("ok")
    assert store.renew("acme", one.request_id, one.claim_id, lease_seconds=9, now=NOW + 1).status == "lost"
    assert [again.request_id for again in claim(site, most=2, now=NOW + 1)] == [one.request_id]


def test_a_submitted_request_is_not_given_out_again_however_late(site: Site) -> None:
    (held,) = claim(site)
    at = ("acme", held.request_id, held.claim_id)
    store = claims(site)
    for _ in range(2):
        assert store.submit(*at, now=NOW + 1).status == "ok"
    assert held.request_id not in {one.request_id for one in claim(site, most=100, now=NOW + LEASE + 1)}
    assert store.renew(*at, lease_seconds=9, now=NOW + 1).status == "submitted"
    assert store.release(*at, now=NOW + 1).status == "submitted"
    assert [(one.request_id, one.state) for one in store.list_claims("acme", now=NOW + LEASE + 1)][-1] == (
        held.request_id,
        "submitted",
    )


def test_what_kafka_could_not_take_goes_on_as_a_claim(site: Site) -> None:
    (held,) = claim(site)
    at = ("acme", held.request_id, held.claim_id)
    store = claims(site)
    store.submit(*at, now=NOW + 1)
    for _ in range(2):
        assert store.unsubmit(*at, now=NOW + 2) == ClaimChange("ok", NOW + LEASE)
    assert store.list_claims("acme", now=NOW + 2) == [held]
    assert held.request_id in {one.request_id for one in claim(site, most=100, now=NOW + LEASE)}


@pytest.mark.parametrize("verb", ["renew", "release", "submit", "unsubmit"])
def test_another_vendor_learns_nothing_of_a_request(site: Site, verb: str) -> None:
    (held,) = claim(site, "acme")
    store = claims(site)
    more = {"lease_seconds": 9.0} if verb == "renew" else {}
    change: Callable[..., ClaimChange] = getattr(store, verb)
    foreign = change("bolt", held.request_id, held.claim_id, now=NOW, **more)
    unheard_of = change("bolt", "f" * 24, held.claim_id, now=NOW, **more)
    assert foreign == unheard_of == ClaimChange("unknown")
    assert store.list_claims("acme", now=NOW) == [held], "nor changes anything of it"


def test_a_vendor_finds_only_its_own_requests(site: Site) -> None:
    store = claims(site)
    (request_id, *_) = of(site, "acme")
    free = store.find("acme", request_id, now=NOW)
    assert free is not None
    assert (free.state, free.claim_id, free.deadline) == ("claimable", "", NOW + LEASE_SECONDS)
    assert LabelRequest.model_validate_json(free.message).request_id == request_id
    assert store.find("bolt", request_id, now=NOW) is None
    assert store.find("acme", "f" * 24, now=NOW) is None


def test_a_found_request_shows_who_holds_it(site: Site) -> None:
    store = claims(site)
    (held,) = claim(site)
    found = store.find("acme", held.request_id, now=NOW)
    assert found is not None
    assert (found.state, found.claim_id, found.leased_until) == ("claimed", held.claim_id, NOW + LEASE)
    lapsed = store.find("acme", held.request_id, now=NOW + LEASE)
    assert lapsed is not None
    assert (lapsed.state, lapsed.claim_id) == ("claimable", "")
    store.submit("acme", held.request_id, held.claim_id, now=NOW)
    answered = store.find("acme", held.request_id, now=NOW + LEASE)
    assert answered is not None
    assert answered.state == "submitted"


def test_a_vendor_without_a_token_has_nothing_to_claim(connection: Connection) -> None:
    site = site_of(connection, VENDORS | {"acme": VENDORS["acme"] | {"token_sha256": []}})
    issued_requests(site, 30)
    assert of(site, "acme")
    assert claim(site, "acme") == []
    assert len(claim(site, "bolt", 100)) == len(of(site, "bolt"))


def test_without_vendors_there_is_nothing_of_claims_in_redis(connection: Connection) -> None:
    site = site_of(connection, {})
    request = next(iter(issued_requests(site, 5).values()))
    apply(site, label(request, None))
    round_(site, now=NOW + LEASE_SECONDS + 1)
    assert claim_keys(site) == set()


def test_a_request_that_is_asked_again_is_held_by_nobody(site: Site) -> None:
    held = {vendor: claim(site, vendor, 100) for vendor in VENDORS}
    site.requests("m").remove_published(list(site.requests("m").read_outbox()))
    late = NOW + LEASE_SECONDS
    round_(site, now=late)
    again = sent(site)
    moved = [one for one in held["acme"] if again[one.request_id].vendor == "bolt"]
    assert moved
    store = claims(site)
    for vendor in VENDORS:
        there = {i for i, request in again.items() if request.vendor == vendor}
        assert {one.request_id for one in claim(site, vendor, 100, now=late)} == there
    for one in moved:
        assert store.submit("acme", one.request_id, one.claim_id, now=late).status == "unknown"


def test_an_answer_that_is_on_its_way_at_the_deadline_counts(site: Site) -> None:
    submitted = claim_until_the_deadline(site)
    claims(site).submit("acme", submitted.request_id, submitted.claim_id, now=NOW + LEASE_SECONDS - 1)
    request = sent(site)[submitted.request_id]
    site.requests("m").remove_published(list(site.requests("m").read_outbox()))
    round_(site, now=NOW + LEASE_SECONDS + 10)
    assert submitted.request_id not in sent(site), "it is asked of nobody else"
    assert apply(site, label(request, "acme"), now=NOW + LEASE_SECONDS + 20) == []
    assert [entry.fact.request_id for entry in outcomes(site)] == [submitted.request_id]


def test_an_answer_that_never_came_is_not_waited_for_longer_than_a_minute(site: Site) -> None:
    submitted = claim_until_the_deadline(site)
    claims(site).submit("acme", submitted.request_id, submitted.claim_id, now=NOW + LEASE_SECONDS - 1)
    site.requests("m").remove_published(list(site.requests("m").read_outbox()))
    round_(site, now=NOW + LEASE_SECONDS + 60)
    assert sent(site)[submitted.request_id].attempt == 2


def test_a_request_that_is_claimed_and_not_answered_is_asked_again_at_its_deadline(site: Site) -> None:
    held = claim_until_the_deadline(site)
    site.requests("m").remove_published(list(site.requests("m").read_outbox()))
    round_(site, now=NOW + LEASE_SECONDS)
    assert sent(site)[held.request_id].attempt == 2


def test_a_message_of_another_vendor_is_not_given_away_by_a_claim_made_just_before(
    site: Site,
) -> None:
    class Interrupted(Connection):
        """The leader issues all requests anew between the claim and the reading of its messages."""

        def run(self, *call: Any) -> Any:
            reply = super().run(*call)
            round_(site, now=NOW + LEASE_SECONDS)
            return reply

    store = ClaimStore(Interrupted(site.connection.client, site.connection.prefix), site.keys("m"))
    ids = [secrets.token_hex(16) for _ in range(100)]
    claimable = of(site, "acme")
    given = store.claim("acme", claim_ids=ids, lease_seconds=LEASE, now=NOW)
    assert 0 < len(given) < len(claimable), "some requests stay with their vendor"
    for one in given:
        assert LabelRequest.model_validate_json(one.message).vendor == "acme"


def end_by_answers(site: Site) -> None:
    requests = sent(site)
    apply(site, *(label(requests[i], request.vendor) for i, request in opened(site).items()))


def end_by_skips(site: Site) -> None:
    requests = sent(site)
    skips = (label(requests[i], r.vendor, kind="skip", true_class=...) for i, r in opened(site).items())
    apply(site, *skips)


def end_by_expiry(site: Site) -> None:
    for attempt in range(1, 5):  # requests that were submitted end one round later
        round_(site, now=NOW + attempt * (LEASE_SECONDS + 1))
        if attempt < 3:
            for vendor in VENDORS:
                claim(site, vendor, 10, now=NOW + attempt * (LEASE_SECONDS + 1))


def end_without_vendors(site: Site) -> None:
    bare = site_of(site.connection, {})
    for attempt in range(1, 5):  # requests that were submitted end one round later
        round_(bare, now=NOW + attempt * (LEASE_SECONDS + 1))


def end_after_claims_passed_on(site: Site) -> None:
    for vendor in VENDORS:
        store = claims(site)
        for one in claim(site, vendor, 5, now=NOW + LEASE):
            store.release(vendor, one.request_id, one.claim_id, now=NOW + LEASE)
        claim(site, vendor, 100, now=NOW + LEASE)
    end_by_answers(site)


@pytest.mark.parametrize(
    "end", [end_by_answers, end_by_skips, end_by_expiry, end_without_vendors, end_after_claims_passed_on]
)
def test_nothing_is_left_of_claims_once_requests_are_closed(site: Site, end: Callable[[Site], None]) -> None:
    store = claims(site)
    for vendor in VENDORS:
        for one in claim(site, vendor, 10)[:5]:
            store.submit(vendor, one.request_id, one.claim_id, now=NOW + 1)
    assert "claims" in claim_keys(site)
    end(site)
    assert opened(site) == {}
    assert claim_keys(site) == set()


def test_the_label_of_a_claimed_request_ends_its_claim(site: Site) -> None:
    (held,) = claim(site)
    apply(site, label(LabelRequest.model_validate_json(held.message), "acme"))
    assert claims(site).submit("acme", held.request_id, held.claim_id, now=NOW + 2) == ClaimChange("unknown")
    assert claims(site).find("acme", held.request_id, now=NOW + 2) is None


def test_a_refused_label_leaves_the_claim_as_it_is(site: Site) -> None:
    (held,) = claim(site)
    request = LabelRequest.model_validate_json(held.message)
    assert apply(site, label(request, other("acme"))) == ["wrong_vendor"]
    assert claims(site).list_claims("acme", now=NOW + 2) == [held]
