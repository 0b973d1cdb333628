"""Predictions and labels on their way in: what is refused and why, and what happens when a server is away."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from store_site import (
    NOW,
    Record,
    Site,
    assert_same_facts,
    draws_of,
    issue,
    message,
    outcome_log,
    outcomes,
    record,
    restore,
    save,
    wired,
)

from consumers.prediction_times import FUTURE_SECONDS
from service.demo.servers import EmbeddedRedis
from service.domain.errors import FlushRefused, TooManyBadMessages, Unavailable
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE
from service.store.connection import Connection
from service.store.records import PoolRecord, decode_pool_record
from service.store.requests import Renewal

REGION = {"region": {"by": "attribute", "attribute": "region"}}
ASK = {"ask": {"budget": {"labels": 1_000}}}
MODELS = {
    "m": {"classes": ["cat", "dog", "owl"], "score_bins": 4, "groupings": REGION, "assessments": ASK},
    "n": {"classes": ["cat", "dog"], "score_bins": 1, "assessments": ASK},
}
BOUNDS = {"message_bytes": 2_000, "payload_bytes": 50}
SPREAD = {"predicted_class": ..., "score": ...}


@pytest.fixture
def site(connection: Connection) -> Site:
    return Site(connection, MODELS, bounds=BOUNDS)


def count(site: Site, model: str = "m") -> int:
    return site.reader(model).traffic().traffic.predictions


def pooled(site: Site, model: str = "m", partition: int = 0) -> dict[str, PoolRecord]:
    values = site.connection.client.hvals(site.keys(model).items(partition))
    return {kept.item_id: kept for kept in map(decode_pool_record, values)}


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


GOOD = message("good")
BAD: dict[str, tuple[str, Record]] = {
    "no JSON": ("malformed_json", record(1, b"{'model': 'm'}")),
    "a tombstone": ("malformed_json", Record(1, None)),
    "text that is not UTF-8": ("malformed_json", record(1, b'{"model":"m","item_id":"\xff"}')),
    "a payload that is not UTF-8": (
        "malformed_json",
        record(1, json.dumps(message("bad"))[:-1].encode() + b',"payload":"\xff"}'),
    ),
    "a number that is none": ("malformed_json", record(1, message("bad", score=float("nan")))),
    "no model": ("missing_field", record(1, message("bad", model=...))),
    "no score": ("missing_field", record(1, message("bad", score=...))),
    "no class": ("missing_field", record(1, message("bad", predicted_class=...))),
    "a score as text": ("invalid_field", record(1, message("bad", score="0.5"))),
    "no object": ("invalid_field", record(1, b"5")),
    "an over-long item id": ("invalid_field", record(1, message("x" * 257))),
    "a score beyond rounding": ("invalid_score", record(1, message("bad", score=1.00011))),
    "a score below rounding": ("invalid_score", record(1, message("bad", score=-0.00011))),
    "a score without end": ("invalid_field", record(1, b'{"model":"m","item_id":"a","score":1e999}')),
    "probabilities of another label set": (
        "invalid_probabilities",
        record(1, message("bad", probabilities=[0.5, 0.5], **SPREAD)),
    ),
    "probabilities that do not sum to 1": (
        "invalid_probabilities",
        record(1, message("bad", probabilities=[0.5, 0.2, 0.2], **SPREAD)),
    ),
    "a probability beyond rounding": (
        "invalid_probabilities",
        record(1, message("bad", probabilities=[1.00011, 0.0, 0.0], **SPREAD)),
    ),
    "an unknown model": ("unknown_model", record(1, message("bad", model="z"))),
    "an unknown class": ("unknown_class", record(1, message("bad", predicted_class="Cat"))),
    "an unknown vote": ("unknown_class", record(1, message("bad", votes={"first": "bird"}))),
    "an over-long message": ("message_too_large", record(1, message("bad", attributes={"a": "x" * 2_000}))),
    "an over-long payload": ("payload_too_large", record(1, message("bad", payload="x" * 49))),
    "a payload and its address": (
        "invalid_field",
        record(1, message("bad", payload={"x": 1}, payload_uri="s3://a")),
    ),
    "another event": ("unsupported_event", record(1, GOOD, headers=[("ce_type", LABEL_TYPE.encode())])),
    "an event of no type": ("unsupported_event", record(1, GOOD, headers=[("ce_type", None)])),
    "another CloudEvents": ("unsupported_event", record(1, GOOD, headers=[("ce_specversion", b"0.3")])),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_message_is_a_dead_letter_and_stops_nothing(site: Site, what: str) -> None:
    reason, bad = BAD[what]
    site.take_in([record(0, message("before")), bad, record(2, message("after"))])
    assert pooled(site).keys() == {"before", "after"}
    assert count(site) == 2
    (letter,) = site.letters.kept
    assert letter.error.reason == reason
    assert (letter.place.partition, letter.place.offset, letter.index) == (0, 1, None)
    assert letter.value == (bad.value or b"")
    assert site.facts("m").offsets == {0: 3}


def test_a_bad_element_of_an_array_does_not_take_the_others_with_it(site: Site) -> None:
    elements = [message("a"), message("b", score=2), 5, message("c", model=...), message("d")]
    site.take_in([record(0, *elements, key=b"k")])
    assert pooled(site).keys() == {"a", "d"}
    assert [(letter.index, letter.error.reason) for letter in site.letters.kept] == [
        (1, "invalid_score"),
        (2, "invalid_field"),
        (3, "missing_field"),
    ]
    assert [json.loads(letter.value) for letter in site.letters.kept] == elements[1:4]
    assert {letter.record.key for letter in site.letters.kept} == {b"k"}


def test_an_element_that_is_not_utf_8_does_not_take_the_others_with_it(site: Site) -> None:
    good = json.dumps(message("a")).encode()
    bad = good[:-1] + b',"payload":"\xff"}'
    site.take_in([record(0, b"[" + bad + b"," + good + b"]")])
    assert pooled(site).keys() == {"a"}
    assert [(letter.index, letter.value) for letter in site.letters.kept] == [(0, bad)]


@pytest.mark.parametrize("text", [b"[]", b" [ ] "])
def test_an_empty_array_is_nothing_at_all(site: Site, text: bytes) -> None:
    site.take_in([record(0, text)])
    assert site.letters.kept == []
    assert site.facts("m").offsets == {0: 1}


def test_an_array_with_very_many_bad_elements_is_refused_in_linear_time(connection: Connection) -> None:
    site = Site(connection, MODELS, pause_window=10**6)
    began = time.process_time()
    element = b'"%060d"' % 0
    site.take_in([record(0, b"[" + b",".join([element] * 10_000) + b"]")])
    assert [letter.index for letter in site.letters.kept] == list(range(10_000))
    assert {letter.value for letter in site.letters.kept} == {element}
    assert time.process_time() - began < 5, "searching the array again for every element takes much longer"


@pytest.mark.parametrize(("score", "clipped"), [(1.00009, 1.0), (-0.00009, 0.0), (1, 1.0), (0, 0.0)])
def test_a_score_that_rounding_has_pushed_out_is_clipped(site: Site, score: float, clipped: float) -> None:
    site.take_in([record(0, message("a", score=score))])
    assert site.letters.kept == []
    assert pooled(site)["a"].score == clipped
    (cell,) = site.reader("m").traffic().traffic.whole.counts[0].nonzero()[0]
    assert cell % 4 == (3 if clipped else 0), "1 belongs in the last bin, 0 in the first"


def test_probabilities_are_clipped_before_they_are_summed(connection: Connection) -> None:
    classes = [str(i) for i in range(200)]
    site = Site(connection, {"m": {"classes": classes, "assessments": ASK}})
    probabilities = [-0.00009] * 198 + [0.5, 0.5]
    site.take_in([record(0, message("a", probabilities=probabilities, **SPREAD))])
    assert site.letters.kept == []
    assert pooled(site)["a"].predicted_class == "198"
    assert sum(value for name, value in site.facts("m").weights.items() if "sums" in name) == 1.0


def test_class_and_score_come_from_the_probabilities_unless_they_are_given(site: Site) -> None:
    probabilities = [0.25, 0.625, 0.125]
    site.take_in(
        [
            record(0, message("neither", probabilities=probabilities, **SPREAD)),
            record(1, message("class", probabilities=probabilities, predicted_class="owl", score=...)),
            record(2, message("both", probabilities=probabilities, predicted_class="owl", score=0.5)),
        ]
    )
    said = {item: (kept.predicted_class, kept.score) for item, kept in pooled(site).items()}
    assert said == {"neither": ("dog", 0.625), "class": ("owl", 0.125), "both": ("owl", 0.5)}


def test_the_pool_keeps_what_a_labeller_needs(site: Site) -> None:
    fields = {"attributes": {"region": "north", "long": "x" * 65}, "votes": {"first": "dog"}}
    site.take_in(
        [
            record(0, message("inline", payload={"text": "grün"}, **fields)),
            record(1, message("linked", payload=None, payload_uri="s3://a")),
        ]
    )
    kept = pooled(site)["inline"]
    assert json.loads(kept.payload) == {"text": "grün"}
    assert kept.attributes == {"region": "north", "long": "__other__"}
    assert kept.votes == {"first": "dog"}
    linked = pooled(site)["linked"]
    assert (linked.payload, linked.payload_uri) == (b"", "s3://a")


def test_attributes_that_are_nothing_but_space_are_none_however_long_it_is(site: Site) -> None:
    text = json.dumps(message("spacious", attributes={})).replace("{}", "{" + " " * 300 + "}")
    site.take_in([record(0, text.encode())])
    assert pooled(site)["spacious"].attributes == {}


ARRIVED = NOW - 1_000


@pytest.mark.parametrize(
    ("fields", "headers", "arrived", "observed"),
    [
        ({}, [], ARRIVED, ARRIVED),
        ({"time": iso(ARRIVED - 9e6)}, [], ARRIVED, ARRIVED - 9e6),
        ({"time": iso(ARRIVED + FUTURE_SECONDS)}, [], ARRIVED, ARRIVED + FUTURE_SECONDS),
        ({"time": iso(ARRIVED + FUTURE_SECONDS + 1)}, [], ARRIVED, ARRIVED),
        ({}, [("ce_time", iso(ARRIVED - 5).encode())], ARRIVED, ARRIVED - 5),
        ({"time": iso(ARRIVED - 7)}, [("ce_time", iso(ARRIVED - 5).encode())], ARRIVED, ARRIVED - 7),
        ({}, [("ce_time", iso(ARRIVED + 1e6).encode())], ARRIVED, ARRIVED),
        ({}, [("ce_time", b"2027-01-15T08:00:00")], ARRIVED, ARRIVED),
        ({}, [("ce_time", b"yesterday")], ARRIVED, ARRIVED),
        ({}, [("ce_time", b"\xff")], ARRIVED, ARRIVED),
        ({}, [("ce_time", None)], ARRIVED, ARRIVED),
        ({}, [], NOW + 1e6, NOW + FUTURE_SECONDS),
        ({"time": "0001-01-01T00:00:00+14:00"}, [], ARRIVED, -62_135_647_200.0),
    ],
)
def test_a_prediction_counts_as_of_when_it_was_made_and_never_of_a_far_future(
    site: Site, fields: dict[str, Any], headers: list[Any], arrived: float, observed: float
) -> None:
    headers = [("ce_type", PREDICTION_TYPE.encode()), *headers]
    late = record(0, message("a", **fields), headers=headers, timestamp=int(arrived * 1_000))
    site.take_in([late])
    assert pooled(site)["a"].time == observed


@pytest.mark.parametrize(
    ("claimed", "observed", "direction"),
    [
        (ARRIVED - 3_600, ARRIVED - 3_600, None),
        (ARRIVED - 2 * 3_600, ARRIVED - 2 * 3_600, None),
        (ARRIVED - 2 * 3_600 - 1, ARRIVED - 2 * 3_600, "past"),
        (ARRIVED - 9e6, ARRIVED - 2 * 3_600, "past"),
        (ARRIVED + FUTURE_SECONDS + 1, ARRIVED, "future"),
    ],
)
def test_a_claimed_time_is_clipped_to_its_bounds_and_counted(
    connection: Connection, claimed: float, observed: float, direction: str | None
) -> None:
    site = Site(connection, MODELS, bounds={"lateness_hours": 2})
    site.take_in([record(0, message("a", time=iso(claimed)), timestamp=int(ARRIVED * 1_000))])
    assert pooled(site)["a"].time == observed
    name = "credence_prediction_times_clipped_total"
    for which in ("past", "future"):
        count = site.registry.get_sample_value(name, {"model": "m", "direction": which})
        assert count == (which == direction)


def test_a_prediction_of_the_distant_past_weighs_nothing_and_harms_nothing(site: Site) -> None:
    site.take_in([record(0, message("old", time="0001-01-01T00:00:00Z"))])
    site.take_in([record(1, message("new"))])
    outcome_log = site.reader("m").traffic().traffic
    outcome_log.move_landmark(NOW, site.decay("m"))
    assert outcome_log.predictions == 2
    assert outcome_log.whole.weights.sum() == 1.0


def test_two_models_of_one_topic_are_kept_apart(site: Site) -> None:
    site.take_in([record(0, message("a")), record(1, message("b", model="n"), message("c"))])
    assert pooled(site).keys() == {"a", "c"}
    assert pooled(site, "n").keys() == {"b"}
    assert (count(site), count(site, "n")) == (2, 1)


def test_the_offset_of_an_idle_model_advances(site: Site) -> None:
    site.take_in([record(i, message(i)) for i in range(5)])
    assert site.facts("m").offsets == site.facts("n").offsets == {0: 5}


def test_the_offset_of_an_idle_model_is_stored_now_and_then(site: Site) -> None:
    step = site.prediction_step()
    step.assign(0, 0)
    step.process(0, [record(0, message("a"))], NOW)
    step.flush(0, NOW)
    step.process(0, [record(1, message("b"))], NOW)
    assert step.flush(0, NOW + 9) == 2
    assert site.facts("n").offsets == {0: 1}
    step.flush(0, NOW + 10)
    assert site.facts("n").offsets == {0: 2}


def test_a_redis_that_lost_what_it_held_is_noticed_though_nothing_new_comes(site: Site) -> None:
    step = site.prediction_step()
    step.assign(0, 0)
    step.process(0, [record(0, message("a"))], NOW)
    step.flush(0, NOW)
    saved = save(site.connection)
    step.process(0, [record(1, message("b"))], NOW)
    step.flush(0, NOW)
    step.flush(0, NOW + 10)
    restore(site.connection, saved)
    step.flush(0, NOW + 19)
    with pytest.raises(FlushRefused):
        step.flush(0, NOW + 20)
    step.revoke(0)
    assert step.assign(0, 0) == 1


def test_labels_that_redis_has_lost_are_noticed_though_no_more_come(site_with_requests: Site) -> None:
    saved = save(site_with_requests.connection)
    step = site_with_requests.label_step()
    step.assign(0, 0)
    step.process(0, [label(0)], NOW)
    step.flush(0, NOW)
    restore(site_with_requests.connection, saved)
    step.flush(0, NOW + 9)
    with pytest.raises(FlushRefused):
        step.flush(0, NOW + 10)
    step.revoke(0)
    assert step.assign(0, 0) == 0


def test_offsets_are_stored_at_once_behind_bad_messages_so_that_these_are_not_kept_again(site: Site) -> None:
    step = site.prediction_step()
    step.assign(0, 0)
    step.flush(0, NOW)
    step.process(0, [record(0, b"{")], NOW)
    step.flush(0, NOW + 1)
    assert site.facts("m").offsets == site.facts("n").offsets == {0: 1}


def test_models_that_stand_at_different_offsets_count_every_prediction_once(site: Site) -> None:
    records = [record(i, message(i, model="mn"[i % 2])) for i in range(10)]
    step = site.prediction_step()
    step.assign(0, 0)
    step.process(0, records[:1], NOW)
    step.flush(0, NOW)
    step.process(0, records[1:5:2], NOW)
    step.flush(0, NOW + 1)
    assert site.facts("m").offsets != site.facts("n").offsets
    again = site.prediction_step()
    start = again.assign(0, 0)
    assert start == 1
    again.process(0, records[start:], NOW)
    again.flush(0, NOW)
    assert (count(site), count(site, "n")) == (5, 5)


def test_a_partition_that_nobody_has_read_begins_at_the_configured_start(site: Site) -> None:
    assert site.prediction_step().assign(3, 17) == 17


def test_a_model_that_is_new_in_the_configuration_begins_where_the_others_are(site: Site) -> None:
    records = [record(i, message(i, model="mn"[i % 2])) for i in range(10)]
    step = site.prediction_step(models=["m"])
    step.assign(0, 0)
    step.process(0, records[:6], NOW)
    step.flush(0, NOW)
    site.letters.kept.clear()
    assert site.prediction_step().assign(0, 0) == 6
    site.take_in(records)
    assert (count(site), count(site, "n")) == (5, 2)
    assert site.facts("n").offsets == {0: 10}


def test_a_batch_whose_flush_redis_fails_is_stored_once_by_a_later_flush(
    redis_server: EmbeddedRedis, connection: Connection, site: Site
) -> None:
    batch = [
        record(0, message("a", model="n"), message("b", attributes={"region": "north"})),
        record(1, b"{"),
        record(2, message("c")),
    ]
    with wired(redis_server, connection) as (wire, far):
        step = site.prediction_step(far)
        step.assign(0, 0)
        wire.become("cut")
        step.process(0, batch, NOW)
        for _ in range(3):
            with pytest.raises(Unavailable):
                step.flush(0, NOW)
        wire.become("whole")
        step.flush(0, NOW)
    assert site.letters.reasons == ["malformed_json"]
    clean = Site(Connection(connection.client, f"{connection.prefix}.clean"), MODELS, bounds=BOUNDS)
    clean.take_in(batch)
    for model in MODELS:
        assert_same_facts(site.facts(model), clean.facts(model))


def test_a_batch_whose_dead_letters_cannot_be_kept_is_not_counted_yet(site: Site) -> None:
    batch = [record(0, message("a"), "no object", message("b"))]
    step = site.prediction_step()
    step.assign(0, 0)
    site.letters.closed = True
    for _ in range(3):
        with pytest.raises(Unavailable):
            step.process(0, batch, NOW)
    assert step.flush(0, NOW) == 0
    assert count(site) == 0
    site.letters.closed = False
    step.process(0, batch, NOW)
    step.flush(0, NOW)
    assert count(site) == 2
    assert site.letters.reasons == ["invalid_field"]


def test_models_that_could_not_all_be_stored_are_stored_later(
    redis_server: EmbeddedRedis, connection: Connection, site: Site
) -> None:
    batch = [record(0, message("a"), message("b", model="n"))]
    with wired(redis_server, connection) as (wire, far):
        step = site.prediction_step(far)
        step.assign(0, 0)
        step.flush(0, NOW)
        step.process(0, batch, NOW)
        wire.become("loses_replies")
        for _ in range(2):
            with pytest.raises(Unavailable):
                step.flush(0, NOW)
        assert (count(site), count(site, "n")) == (1, 0)
        wire.become("whole")
        assert step.flush(0, NOW) == 1
    assert (count(site), count(site, "n")) == (1, 1)


def test_too_many_bad_messages_pause_the_consumer_before_anything_is_discarded(
    connection: Connection,
) -> None:
    site = Site(connection, MODELS, pause_window=10)
    step = site.prediction_step()
    step.assign(0, 0)
    step.process(0, [record(i, message(i)) for i in range(4)], NOW)
    step.flush(0, NOW)
    too_many = [record(4 + i, b"{") for i in range(6)]
    for _ in range(2):
        with pytest.raises(TooManyBadMessages):
            step.process(0, too_many, NOW)
    assert site.letters.kept == []
    step.flush(0, NOW + 100)
    assert site.facts("m").offsets == {0: 4}


def test_retries_while_a_server_is_unavailable_count_bad_messages_once(connection: Connection) -> None:
    site = Site(connection, MODELS, pause_window=50)
    step = site.prediction_step()
    step.assign(0, 0)
    step.process(0, [record(i, message(i)) for i in range(40)], NOW)
    site.letters.closed = True
    for _ in range(20):
        with pytest.raises(Unavailable):
            step.process(0, [record(40 + i, b"{") for i in range(5)], NOW)
    site.letters.closed = False
    step.process(0, [record(40 + i, b"{") for i in range(5)], NOW)
    assert len(site.letters.kept) == 5


def label(offset: int, item: str = "a", **fields: Any) -> Record:
    plain = {"request_id": f"r-{item}", "model": "m", "item_id": item, "kind": "answer", "true_class": "dog"}
    filled = {name: value for name, value in (plain | fields).items() if value is not ...}
    return record(offset, filled)


@pytest.fixture
def site_with_requests(site: Site) -> Site:
    """Requests for a, b and c are in flight; that for c has expired."""
    site.take_in([record(i, message(item)) for i, item in enumerate("abc")])
    a, b, c = draws_of(site)
    issue(site, [a, b])
    issue(site, [c])
    store = site.requests("m")
    due = [one for one in store.due_requests(now=NOW + 60) if one.request_id == "r-c"]
    store.renew(epoch=1, renewals=[Renewal(one) for one in due], now=NOW + 60)
    return site


BAD_LABELS: dict[str, tuple[str, Record]] = {
    "no JSON": ("malformed_json", record(0, b"no")),
    "a tombstone": ("malformed_json", Record(0, None)),
    "an array": ("invalid_field", record(0, b"[]")),
    "no request": ("missing_field", label(0, request_id=...)),
    "an answer without a class": ("invalid_field", label(0, true_class=...)),
    "a skip with a class": ("invalid_field", label(0, kind="skip")),
    "a kind that is none": ("invalid_field", label(0, kind="guess")),
    "an unknown model": ("unknown_model", label(0, model="z")),
    "an unknown class": ("unknown_class", label(0, true_class="bird")),
    "an unknown request": ("unknown_request", label(0, item="z")),
    "an expired request": ("expired_request", label(0, item="c")),
    "another item": ("item_mismatch", label(0, item_id="b")),
    "nothing to retract": ("nothing_to_retract", label(0, kind="retraction", true_class=...)),
    "an over-long message": ("message_too_large", label(0, note="x" * 2_000)),
    "another event": ("unsupported_event", Record(0, label(0).value, None, [("ce_type", b"other")])),
}


@pytest.mark.parametrize("what", BAD_LABELS)
def test_a_bad_label_is_a_dead_letter_and_stops_nothing(site_with_requests: Site, what: str) -> None:
    reason, bad = BAD_LABELS[what]
    step = site_with_requests.label_step()
    step.assign(0, 0)
    step.process(0, [bad, label(1, item="b")], NOW)
    (letter,) = site_with_requests.letters.kept
    assert letter.error.reason == reason
    assert (letter.place.partition, letter.place.offset, letter.index, letter.value) == (
        0,
        0,
        None,
        bad.value or b"",
    )
    assert [entry.fact.request_id for entry in outcomes(site_with_requests)] == ["r-b"]
    assert step.flush(0, NOW) == 2


def test_a_label_says_who_gave_it_and_when(site_with_requests: Site) -> None:
    step = site_with_requests.label_step()
    step.assign(0, 0)
    step.process(
        0, [label(0, time=iso(NOW - 5.5), annotator="ana"), label(1, item="b", time=iso(NOW + 9))], NOW
    )
    first, second = outcomes(site_with_requests)
    times = {entry.fact.request_id: entry.label.time for entry in (first, second)}
    assert times == {"r-a": NOW - 5.5, "r-b": NOW}, "a label of the future was given now"
    assert first.label.annotator == "ana"


def test_a_label_that_is_delivered_twice_counts_once(site_with_requests: Site) -> None:
    step = site_with_requests.label_step()
    step.assign(0, 0)
    step.process(0, [label(0), label(1)], NOW)
    step.process(0, [label(2, time=iso(NOW)), label(3, kind="correction", true_class="dog")], NOW)
    assert len(outcomes(site_with_requests)) == 1
    assert site_with_requests.letters.kept == []
    consumed = "credence_labels_consumed_total"
    assert site_with_requests.registry.get_sample_value(consumed, {"result": "applied"}) == 1
    assert site_with_requests.registry.get_sample_value(consumed, {"result": "duplicate"}) == 3


def test_labels_are_read_on_from_the_stored_offset(site_with_requests: Site) -> None:
    step = site_with_requests.label_step()
    assert step.assign(0, 7) == 7
    step.process(0, [label(7)], NOW)
    assert site_with_requests.label_step().assign(0, 0) == 0, "what was applied is stored by a flush"
    assert step.flush(0, NOW) == 8
    assert site_with_requests.label_step().assign(0, 0) == 8
    assert site_with_requests.label_step().assign(1, 3) == 3


def test_labels_after_a_crash_are_applied_again_without_harm(site_with_requests: Site) -> None:
    history = [label(0), label(1, kind="correction", true_class="owl"), label(2, kind="skip", true_class=...)]
    crashed = site_with_requests.label_step()
    crashed.assign(0, 0)
    crashed.process(0, history, NOW)
    restarted = site_with_requests.label_step()
    start = restarted.assign(0, 0)
    restarted.process(0, history[start:], NOW)
    restarted.flush(0, NOW)
    assert outcome_log(site_with_requests) == [(False, "dog"), (True, "owl")]
    assert site_with_requests.letters.reasons == ["conflicting_label"] * 2, (
        "dead letters are kept at least once"
    )


def test_an_emptied_redis_loses_no_labels_of_a_model_beside_one_that_never_had_any(
    connection: Connection,
) -> None:
    model = {"classes": ["cat", "dog"]}
    site = Site(connection, {"a-model-without-labels": model, "m": model})
    step = site.label_step()
    step.assign(0, 0)
    step.process(0, [label(0)], NOW)
    assert step.flush(0, NOW) == 1
    restore(connection, {})
    step.process(0, [label(1)], NOW)
    with pytest.raises(FlushRefused):
        step.flush(0, NOW)
    assert site.label_step().assign(0, 0) == 0


def test_labels_wait_for_redis_and_are_then_applied_once(
    redis_server: EmbeddedRedis, connection: Connection, site_with_requests: Site
) -> None:
    with wired(redis_server, connection) as (wire, far):
        step = site_with_requests.label_step(far)
        step.assign(0, 0)
        step.process(0, [label(0, item="b")], NOW)
        batch = [label(1), label(2, kind="correction", true_class="owl"), record(3, b"{")]
        wire.become("loses_replies")
        for _ in range(2):
            with pytest.raises(Unavailable):
                step.process(0, batch, NOW)
        wire.become("whole")
        step.process(0, batch, NOW)
    assert [revises for revises, _ in outcome_log(site_with_requests)] == [False, False, True]
    assert site_with_requests.letters.reasons == ["malformed_json"]


def test_labels_whose_dead_letters_cannot_be_kept_are_given_again(site_with_requests: Site) -> None:
    step = site_with_requests.label_step()
    step.assign(0, 0)
    batch = [label(0), label(1, kind="retraction", item="b", true_class=...), label(2, item="b")]
    site_with_requests.letters.closed = True
    with pytest.raises(Unavailable):
        step.process(0, batch, NOW)
    assert step.flush(0, NOW) == 0
    site_with_requests.letters.closed = False
    step.process(0, batch, NOW)
    assert site_with_requests.letters.reasons == ["nothing_to_retract"]
    assert [revises for revises, _ in outcome_log(site_with_requests)] == [False, False]
    assert step.flush(0, NOW) == 3


@pytest.mark.parametrize("flushed", [1, 2, 3])
def test_labels_that_redis_has_lost_are_applied_again(site_with_requests: Site, flushed: int) -> None:
    history = [label(0), label(1, item="b"), label(2, kind="correction", true_class="owl")]
    step = site_with_requests.label_step()
    step.assign(0, 0)
    step.process(0, history[:1], NOW)
    step.flush(0, NOW)
    backup = save(site_with_requests.connection)
    for offset in (1, 2):
        step.process(0, history[offset : offset + 1], NOW)
        if offset < flushed:
            step.flush(0, NOW)
    restore(site_with_requests.connection, backup)
    step.process(0, [record(3, b"{")], NOW)
    with pytest.raises(FlushRefused):
        step.flush(0, NOW)
    step.revoke(0)
    start = step.assign(0, 0)
    assert start == 1
    step.process(0, history[start:], NOW)
    assert step.flush(0, NOW) == 3
    assert [revises for revises, _ in outcome_log(site_with_requests)] == [False, False, True]


def test_tries_whose_replies_were_lost_do_not_stand_for_labels_that_redis_has_lost(
    redis_server: EmbeddedRedis, connection: Connection, site_with_requests: Site
) -> None:
    backup = save(connection)
    with wired(redis_server, connection) as (wire, far):
        step = site_with_requests.label_step(far)
        step.assign(0, 0)
        step.process(0, [label(0)], NOW)
        restore(connection, backup)
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            step.process(0, [label(1, item="b")], NOW)
        wire.become("whole")
        step.process(0, [label(1, item="b")], NOW)
        with pytest.raises(FlushRefused):
            step.flush(0, NOW)
    assert site_with_requests.label_step().assign(0, 0) == 0


def test_labels_after_a_lost_reply_are_read_again_and_then_go_on(
    redis_server: EmbeddedRedis, connection: Connection, site_with_requests: Site
) -> None:
    with wired(redis_server, connection) as (wire, far):
        step = site_with_requests.label_step(far)
        step.assign(0, 0)
        step.process(0, [label(0)], NOW)
        wire.become("loses_replies")
        with pytest.raises(Unavailable):
            step.process(0, [label(1, item="b")], NOW)
        wire.become("whole")
        step.process(0, [label(1, item="b")], NOW)
        with pytest.raises(FlushRefused):
            step.flush(0, NOW)
        assert step.assign(0, 0) == 0
        step.process(0, [label(0), label(1, item="b")], NOW)
        assert step.flush(0, NOW) == 2
    assert len(outcomes(site_with_requests)) == 2


def test_too_many_bad_labels_pause_the_consumer_before_anything_is_discarded(
    connection: Connection,
) -> None:
    site = Site(connection, MODELS, pause_window=10)
    step = site.label_step()
    step.assign(0, 0)
    with pytest.raises(TooManyBadMessages):
        step.process(0, [record(i, b"{") for i in range(10)], NOW)
    assert site.letters.kept == []
    assert step.flush(0, NOW) == 0


def test_retries_count_bad_labels_once(connection: Connection) -> None:
    site = Site(connection, MODELS, pause_window=50)
    step = site.label_step()
    step.assign(0, 0)
    site.letters.closed = True
    for _ in range(20):
        with pytest.raises(Unavailable):
            step.process(0, [record(i, b"{") for i in range(5)], NOW)
    site.letters.closed = False
    step.process(0, [record(i, b"{") for i in range(5)], NOW)
    assert len(site.letters.kept) == 5


def test_a_partition_that_was_taken_away_is_forgotten(site_with_requests: Site) -> None:
    for step in (site_with_requests.label_step(), site_with_requests.prediction_step()):
        step.assign(4, 0)
        step.revoke(4)
        step.revoke(4)
        with pytest.raises(KeyError):
            step.flush(4, NOW)


def test_the_delay_of_a_label_is_reported_once_however_often_it_comes(site_with_requests: Site) -> None:
    step = site_with_requests.label_step()
    step.assign(0, 0)
    history = [label(0, time=iso(NOW + 40)), label(1, kind="correction", true_class="owl")]
    step.process(0, history, NOW + 60)
    again = site_with_requests.label_step()
    again.assign(0, 0)
    again.process(0, history, NOW + 60)
    delays = "credence_label_delay_seconds"
    assert site_with_requests.registry.get_sample_value(f"{delays}_count", {"model": "m"}) == 1
    assert site_with_requests.registry.get_sample_value(f"{delays}_sum", {"model": "m"}) == 40
