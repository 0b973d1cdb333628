"""What fuzzing once found, each with the input that showed it."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from mapped_records import refusal
from model_ingest import ingest
from properties import LONGEST_DETAIL
from pydantic import ValidationError
from store_site import NOW, Record, Site, message, record

from consumers.formats.native import WirePrediction, decode_label, decode_predictions
from service.domain.errors import BadMessage, TooManyBadMessages, Unavailable
from service.domain.messages import Prediction
from service.store.connection import Connection

MODELS = {"m": {"classes": ["cat", "dog", "owl"], "assessments": {"ask": {"budget": {"labels": 9}}}}}
PLAIN = b'{"model":"m","item_id":"a","predicted_class":"cat","score":1'


@pytest.fixture
def site(connection: Connection) -> Site:
    return Site(connection, MODELS, pause_window=10**9)


@pytest.mark.parametrize("kind", [b"it's hunter2", b"hunter2\\n'", b"''hunter2"])
def test_the_detail_of_a_refusal_quotes_no_content_whatever_quotes_are_in_it(kind: bytes) -> None:
    with pytest.raises(BadMessage) as refused:
        decode_label(b'{"request_id":"r","model":"m","item_id":"i","kind":"' + kind + b'"}')
    assert "hunter2" not in refused.value.detail


def test_the_detail_of_a_refusal_is_short_however_deep_what_is_wrong_is_nested() -> None:
    value = b'{"ts":' + b"[" * 900 + b"1e999999" + b"]" * 900 + b"}"
    reason, detail = refusal(value)
    assert (reason, detail[-24:]) == ("invalid_field", "...: number out of range")
    assert len(detail) <= LONGEST_DETAIL


@pytest.mark.parametrize(
    "value",
    [b"[" * 300 + b"]" * 300, b'{"a":' * 300 + b"1" + b"}" * 300, b"9" * 5_000],
    ids=["arrays", "objects", "digits"],
)
def test_what_the_contract_cannot_read_is_refused_before_a_labeller_gets_it(value: bytes) -> None:
    text = PLAIN + b',"payload":' + value + b"}"
    with pytest.raises(ValidationError):
        Prediction.model_validate_json(text)
    ((_, decoded),) = decode_predictions(text)
    assert isinstance(decoded, WirePrediction)
    with pytest.raises(BadMessage):
        ingest().checks.check(decoded)


def test_memory_for_an_array_of_bad_elements_is_bounded_by_its_size() -> None:
    value = b"[" + b",".join([b"0"] * 500_000) + b"]"
    tracemalloc.start()
    try:
        decode_predictions(value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(value), f"{peak / len(value):.0f} bytes for each byte of the message"


def test_time_for_an_array_of_bad_elements_is_bounded_by_its_size(site: Site) -> None:
    began = time.process_time()
    site.take_in([record(0, b"[" + b",".join([b"0"] * 500_000) + b"]")])
    assert time.process_time() - began < 2, "heartbeats and health checks wait for it"


def test_what_an_item_takes_in_the_pool_is_bounded_by_the_configuration_and_not_by_its_votes(
    site: Site,
) -> None:
    votes = {f"member-{i}": "dog" for i in range(20_000)}
    site.take_in([record(0, message("a", votes=votes))])
    kept = site.connection.client.hvals(site.keys("m").items(0))
    assert all(len(one) < 100_000 for one in kept)


@pytest.mark.parametrize("timestamp", [-1, -(2**63)])
def test_a_record_without_a_timestamp_leaves_a_prediction_its_own_time(site: Site, timestamp: int) -> None:
    site.take_in([record(0, message("a", time="2026-01-31T12:00:00Z"), timestamp=timestamp)])
    assert site.reader("m").traffic().traffic.landmark == 1_769_860_800.0


def test_a_prediction_of_no_time_at_all_counts_as_of_now(site: Site) -> None:
    site.take_in([record(0, message("a"), timestamp=-1)])
    assert site.reader("m").traffic().traffic.landmark == NOW


def test_the_dead_letter_of_a_prediction_has_the_time_and_headers_of_its_record(site: Site) -> None:
    headers = [("ce_time", b"2026-01-31T12:00:00Z")]
    site.take_in([Record(0, b"[0]", b"k", headers, 17), Record(1, b"{", b"k", headers, 17)])
    assert [(letter.record.timestamp, list(letter.record.headers)) for letter in site.letters.kept] == [
        (17, headers)
    ] * 2


def test_a_batch_that_grows_while_it_waits_counts_what_was_admitted_once(connection: Connection) -> None:
    site = Site(connection, MODELS, pause_window=100)
    step = site.prediction_step()
    step.assign(0, 0)
    bad = [record(i, b"{") for i in range(30)]
    site.letters.closed = True
    with pytest.raises(Unavailable):
        step.process(0, bad, NOW)
    site.letters.closed = False
    grown = [*bad, *[record(30 + i, message(i)) for i in range(10)]]
    try:
        step.process(0, grown, NOW)
    except TooManyBadMessages:
        pytest.fail("30 of 40 messages are bad, and the window of 100 may have 50")
