"""Requests of vendors: each is one vendor's, and no other one's label counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from store_site import HASH_KEY, NOW, Record, Site, issue, message, outcomes, record, restore, save
from store_site import draws_of as draws_without_vendor
from vendor_site import (
    KEYS,
    LEASE_SECONDS,
    OFFSETS,
    VENDORS,
    apply,
    issued_requests,
    label,
    opened,
    other,
    round_,
    sent,
    site_of,
)

from consumers.dead_letter_format import letter_headers, read_letter
from service.domain.errors import TooManyBadMessages
from service.domain.label_signatures import sign
from service.domain.messages import LabelRequest
from service.monitoring.request_builder import VendorAssignment
from service.store.connection import Connection
from service.store.records import encode_json
from service.store.request_registry import item_digest, locate_record

LATE = NOW + LEASE_SECONDS + 1


@pytest.fixture
def site(connection: Connection) -> Site:
    return site_of(connection)


def one_of(site: Site) -> LabelRequest:
    """A request that was issued."""
    return next(iter(issued_requests(site, 4).values()))


def moved(site: Site) -> tuple[LabelRequest, LabelRequest]:
    """A request of a vendor, and its next attempt, of another one."""
    before = issued_requests(site, 30)
    site.requests("m").remove_published(list(site.requests("m").read_outbox()))
    round_(site, now=LATE)
    for request_id, request in sent(site).items():
        if request.vendor != before[request_id].vendor:
            return before[request_id], request
    raise AssertionError("half of thirty requests should have moved")


def test_every_request_says_which_vendor_is_asked(site: Site) -> None:
    requests = issued_requests(site, 30)
    assert {request.vendor for request in requests.values()} == {"acme", "bolt"}
    for request_id, request in requests.items():
        assert request.vendor == VendorAssignment({"acme": 1.0, "bolt": 1.0}, HASH_KEY).vendor(request_id, 1)
        assert opened(site)[request_id].vendor == request.vendor


def test_a_vendor_without_the_model_is_not_asked(connection: Connection) -> None:
    vendors = {"acme": VENDORS["acme"], "bolt": VENDORS["bolt"] | {"models": ["other"]}}
    site = site_of(connection, vendors)
    assert {request.vendor for request in issued_requests(site, 30).values()} == {"acme"}


def test_without_vendors_a_request_and_what_is_kept_of_it_are_as_they_were(connection: Connection) -> None:
    site = site_of(connection, {})
    request = one_of(site)
    (raw,) = [text for entry, text in site.requests("m").read_outbox().items() if request.request_id in entry]
    assert b"vendor" not in raw
    assert b"vendor" not in site.connection.client.hget(site.keys("m").open, request.request_id)
    location = locate_record(request.request_id)
    kept = site.connection.client.hget(site.keys("m").asked(location.bucket), location.field)
    assert kept[5:9] == item_digest(request.item_id)


def test_what_was_stored_without_vendors_is_read(site: Site) -> None:
    request = one_of(site)
    stored = {"assessment": "ask", "group": "all", "attributes": {}, "predicted_class": "cat"}
    stored |= {"score": 0.75, "attempt": 1, "requested_at": NOW}
    site.connection.client.hset(site.keys("m").open, request.request_id, encode_json(stored))
    assert opened(site)[request.request_id].vendor == ""


def test_the_label_of_the_vendor_that_was_asked_counts(site: Site) -> None:
    request = one_of(site)
    assert apply(site, label(request, request.vendor)) == []
    assert [entry.fact.item_id for entry in outcomes(site)] == [request.item_id]


@pytest.mark.parametrize("kind", ["answer", "skip", "correction"])
def test_no_other_vendors_label_counts(site: Site, kind: str) -> None:
    request = one_of(site)
    fields = {"kind": kind} | ({"true_class": ...} if kind == "skip" else {})
    assert apply(site, label(request, other(request.vendor), **fields)) == ["wrong_vendor"]
    assert request.request_id in opened(site)
    assert outcomes(site) == []


@pytest.mark.parametrize(
    "revision", [{"kind": "correction", "true_class": "dog"}, {"kind": "retraction", "true_class": ...}]
)
def test_an_answer_is_revised_by_its_own_vendor_alone(site: Site, revision: dict[str, Any]) -> None:
    request = one_of(site)
    apply(site, label(request, request.vendor))
    assert apply(site, label(request, other(request.vendor), **revision)) == ["wrong_vendor"]
    assert len(outcomes(site)) == 1
    assert apply(site, label(request, request.vendor, **revision)) == []
    assert len(outcomes(site)) == 2


def test_a_vendor_that_revises_one_request_over_and_over_stops_nobodys_labels(connection: Connection) -> None:
    site = site_of(connection, pause_window=50)
    mine, *_ = requests = list(issued_requests(site, 30).values())
    theirs = next(request for request in requests if request.vendor == other(mine.vendor))
    apply(site, label(mine, mine.vendor))
    revisions = [
        label(mine, mine.vendor, kind="correction", true_class=("dog", "cat")[i % 2], annotator=str(i))
        for i in range(100)
    ]
    assert set(apply(site, *revisions, label(theirs, theirs.vendor))) == {"too_many_revisions"}
    assert theirs.request_id not in opened(site)


def test_a_vendor_that_contradicts_itself_over_and_over_stops_nobodys_labels(connection: Connection) -> None:
    site = site_of(connection, pause_window=50)
    mine, *_ = requests = list(issued_requests(site, 30).values())
    theirs = next(request for request in requests if request.vendor == other(mine.vendor))
    apply(site, label(mine, mine.vendor))
    others = [label(mine, mine.vendor, true_class="dog", annotator=str(i)) for i in range(100)]
    assert set(apply(site, *others, label(theirs, theirs.vendor))) == {"conflicting_label"}
    assert theirs.request_id not in opened(site)


def test_too_many_labels_that_no_vendor_was_asked_for_pause_the_consumer(connection: Connection) -> None:
    site = site_of(connection, pause_window=50)
    request = one_of(site)
    with pytest.raises(TooManyBadMessages):
        apply(site, *[label(request, None) for _ in range(100)])


def test_an_unsigned_label_is_refused_before_anything_else_of_it_is_looked_at(site: Site) -> None:
    assert apply(site, label(one_of(site), None)) == ["unsigned_label"]
    assert apply(site, Record(1_000, b"no json")) == ["unsigned_label"]


def test_a_label_signed_with_another_vendors_key_is_refused(site: Site) -> None:
    request = one_of(site)
    assert request.vendor is not None
    posing = label(request, None)
    headers = sign(KEYS[other(request.vendor)].encode(), request.vendor, posing.value or b"")
    assert apply(site, Record(1_001, posing.value, headers=headers)) == ["bad_signature"]


def test_a_vendor_cannot_answer_with_an_item_that_is_made_to_fit(site: Site) -> None:
    request = one_of(site)
    assert request.vendor is not None
    # What is kept is short enough to be met by trying. Here it is changed instead, as if that had been done.
    location = locate_record(request.request_id)
    keys, client = site.keys("m"), site.connection.client
    kept = client.hget(keys.asked(location.bucket), location.field)
    fitting = kept[:5] + item_digest("made", other(request.vendor)) + kept[9:]
    client.hset(keys.asked(location.bucket), location.field, fitting)
    assert apply(site, label(request, other(request.vendor), item_id="made")) == ["item_mismatch"]


def test_a_label_with_the_item_of_another_request_is_an_item_mismatch(site: Site) -> None:
    request, another = list(issued_requests(site, 30).values())[:2]
    assert apply(site, label(request, request.vendor, item_id=another.item_id)) == ["item_mismatch"]


def test_the_next_attempt_may_be_another_vendors_and_the_old_ones_late_answer_is_refused(site: Site) -> None:
    before, after = moved(site)
    assert opened(site)[after.request_id].vendor == after.vendor
    assert apply(site, label(before, before.vendor), now=LATE) == ["wrong_vendor"]
    assert apply(site, label(after, after.vendor), now=LATE) == []


def test_a_label_given_again_after_a_crash_changes_nothing(site: Site) -> None:
    request = one_of(site)
    given = label(request, request.vendor)
    apply(site, given)
    assert apply(site, given, given) == []
    assert len(outcomes(site)) == 1


def test_before_there_are_vendors_a_label_may_be_signed(connection: Connection) -> None:
    site = site_of(connection, {})
    assert apply(site, label(one_of(site), "acme")) == []
    assert len(outcomes(site)) == 1


def test_a_restored_request_takes_the_answer_of_the_vendor_that_it_went_to_when_it_is_asked_again(
    site: Site,
) -> None:
    issued_requests(site, 30)
    backup = save(site.connection)
    before, after = moved(site)
    answer = label(after, after.vendor)
    assert apply(site, answer, now=LATE) == []

    restore(site.connection, backup)
    assert apply(site, answer, now=LATE) == ["wrong_vendor"]
    round_(site, now=LATE)
    assert sent(site)[before.request_id].vendor == after.vendor
    assert apply(site, answer, now=LATE) == []


def test_with_the_first_vendors_an_open_request_takes_any_vendors_label_and_is_that_vendors_then(
    connection: Connection,
) -> None:
    request = one_of(site_of(connection, {}))
    site = site_of(connection)
    assert apply(site, label(request, "bolt")) == []
    revision = {"kind": "correction", "true_class": "dog"}
    assert apply(site, label(request, "acme", **revision)) == ["wrong_vendor"]
    assert apply(site, label(request, "bolt", **revision)) == []


def test_with_the_first_vendors_an_open_request_is_given_to_one_by_its_next_attempt(
    connection: Connection,
) -> None:
    request = one_of(site_of(connection, {}))
    site = site_of(connection)
    site.requests("m").remove_published(list(site.requests("m").read_outbox()))
    round_(site, now=LATE)
    again = sent(site)[request.request_id]
    assert again.vendor in VENDORS
    assert apply(site, label(again, other(again.vendor)), now=LATE) == ["wrong_vendor"]
    assert apply(site, label(again, again.vendor), now=LATE) == []


def test_without_vendors_again_a_vendors_request_takes_no_label_until_it_is_asked_again(
    connection: Connection,
) -> None:
    request = one_of(site_of(connection))
    site = site_of(connection, {})
    assert apply(site, label(request, request.vendor)) == ["wrong_vendor"]
    site.requests("m").remove_published(list(site.requests("m").read_outbox()))
    round_(site, now=LATE)
    assert sent(site)[request.request_id].vendor is None
    assert apply(site, label(request, None), now=LATE) == []


def test_a_vendor_that_is_taken_out_answers_no_more_and_others_are_asked(connection: Connection) -> None:
    request = one_of(site_of(connection))
    left = other(request.vendor)
    site = site_of(connection, {left: VENDORS[left]})
    assert apply(site, label(request, request.vendor)) == ["unknown_vendor"]
    site.requests("m").remove_published(list(site.requests("m").read_outbox()))
    round_(site, now=LATE)
    assert sent(site)[request.request_id].vendor == left
    assert apply(site, label(request, left), now=LATE) == []


def test_a_vendor_that_loses_a_model_answers_about_it_no_more(connection: Connection) -> None:
    request = one_of(site_of(connection))
    assert request.vendor is not None
    site = site_of(connection, VENDORS | {request.vendor: VENDORS[request.vendor] | {"models": ["other"]}})
    assert apply(site, label(request, request.vendor)) == ["wrong_vendor"]


def test_a_signed_label_that_somebody_sends_again_changes_nothing(site: Site) -> None:
    request = one_of(site)
    corrected = label(request, request.vendor, kind="correction", true_class="dog")
    newer = {"kind": "correction", "time": "2027-01-15T08:00:01Z"}
    apply(site, label(request, request.vendor), corrected, label(request, request.vendor, **newer))
    again = Record(
        next(OFFSETS),
        corrected.value,
        timestamp=corrected.timestamp + 5_000,
        headers=[*corrected.headers, ("ce_time", b"2027-01-15T08:00:02Z")],
    )
    assert apply(site, again) == []
    assert [entry.label.true_class for entry in outcomes(site)] == ["cat", "dog", "cat"]


def test_a_signed_label_without_a_time_of_its_own_is_refused(site: Site) -> None:
    request = one_of(site)
    assert apply(site, label(request, request.vendor, time=...)) == ["missing_field"]
    assert request.request_id in opened(site)


def test_a_refused_label_keeps_its_signature_for_a_replay(site: Site) -> None:
    request = one_of(site)
    refused = label(request, other(request.vendor))
    apply(site, refused)
    (rejected,) = site.letters.kept
    headers = letter_headers(rejected, value_bytes=None)
    letter = read_letter(
        SimpleNamespace(partition=0, offset=0, timestamp=0, key=None, value=rejected.value, headers=headers)
    )
    assert list(letter.headers) == list(refused.headers)
    assert not letter.truncated


def test_draws_without_a_vendor_are_claimable_by_nobody(site: Site) -> None:
    site.take_in([record(0, message("a"))])
    assert issue(site, draws_without_vendor(site)) == ["issued"]
    assert not site.connection.client.exists(site.keys("m").claimable("acme"))
