"""What a consumer counts and logs of the messages that it refuses."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from consumers.dead_letters import Rejected
from consumers.formats.native import decode_label, decode_predictions
from consumers.refusals import LOG_SECONDS, Refusals, field_of
from service.domain.errors import BadMessage

NOW = 1_800_000_000.0
SECRET = "what-nobody-may-see"


def rejected(reason: str = "invalid_field", *, offset: int = 7, index: int | None = None) -> Rejected:
    record = SimpleNamespace(
        topic="p", partition=1, offset=offset, timestamp=17, value=SECRET.encode(), key=None
    )
    return Rejected(record, BadMessage(reason, f"about {reason}"), index)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="consumers.refusals")
    return caplog


def counts(logged: pytest.LogCaptureFixture) -> list[tuple[str, int]]:
    return [(vars(one)["reason"], vars(one)["refused"]) for one in logged.records]


def test_the_first_refusal_of_every_reason_is_logged_at_once(logged: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    refusals.note([rejected("a"), rejected("b"), rejected("a")], messages=3, now=NOW)
    assert counts(logged) == [("a", 1), ("b", 1)]
    assert {"topic", "partition", "offset", "index", "detail", "field"} <= vars(logged.records[0]).keys()
    assert SECRET not in str([vars(one) for one in logged.records])


def test_further_refusals_are_logged_once_a_minute_with_their_number(
    logged: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals()
    for second in range(150):
        refusals.note([rejected(offset=second)], messages=1, now=NOW + second)
    assert counts(logged) == [("invalid_field", n) for n in (1, 60, 60)]
    refusals.log_due(NOW + 2 * LOG_SECONDS + 60)
    assert sum(count for _, count in counts(logged)) == 150
    refusals.log_due(NOW + 10 * LOG_SECONDS)
    assert len(logged.records) == 4, "nothing new"


def test_a_clock_that_is_set_back_stops_no_line(logged: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    refusals.note([rejected()], messages=1, now=NOW)
    refusals.note([rejected()], messages=1, now=NOW - 86_400)
    assert counts(logged) == [("invalid_field", 1), ("invalid_field", 1)]
    assert [one.at for one in refusals.unreported("labels")] == [NOW, NOW - 86_400]


def test_counts_by_reason_keep_the_first_as_an_example() -> None:
    refusals = Refusals()
    refusals.note([rejected(offset=3, index=2)], messages=10, now=NOW)
    refusals.note([rejected(offset=4), rejected("b")], messages=20, now=NOW + 7_200)
    first, second = refusals.by_reason()
    assert (first.reason, first.count, first.offset, first.index) == ("invalid_field", 2, 3, 2)
    assert (first.last_at, second.reason, second.count) == (NOW + 7_200, "b", 1)


def test_every_five_minutes_are_reported_until_redis_has_them() -> None:
    refusals = Refusals()
    refusals.note([rejected()], messages=10, now=NOW + 1)
    refusals.note([], messages=20, now=NOW + 299)
    refusals.note([rejected("b")], messages=40, now=NOW + 300)

    def unreported() -> list[tuple[float, int, list[tuple[str, int]]]]:
        found = refusals.unreported("labels")
        return [(one.at, one.messages, [(each.reason, each.count) for each in one.refused]) for one in found]

    first, second = (NOW, 30, [("invalid_field", 1)]), (NOW + 300, 40, [("b", 1)])
    assert unreported() == [first, second]
    assert unreported() == [first, second], "Redis did not answer"
    refusals.reported()
    assert unreported() == []
    refusals.note([rejected("b")], messages=2, now=NOW + 310)
    assert unreported() == [(NOW + 300, 42, [("b", 2)])]


def test_five_minutes_that_a_clock_comes_to_again_are_one_report() -> None:
    refusals = Refusals()
    for now in (NOW + 1, NOW + 300, NOW + 2):
        refusals.note([], messages=5, now=now)
    assert [(one.at, one.messages) for one in refusals.unreported("labels")] == [(NOW, 10), (NOW + 300, 5)]


def test_without_redis_no_more_than_an_hour_is_kept() -> None:
    refusals = Refusals()
    for minute in range(200):
        refusals.note([], messages=1, now=NOW + 60 * minute)
    kept = refusals.unreported("labels")
    assert len(kept) == 13
    assert sum(one.messages for one in kept) >= 60


def detail_of(value: bytes) -> BadMessage:
    ((_, found),) = decode_predictions(value)
    assert isinstance(found, BadMessage)
    return found


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (b'{"model": "m", "item_id": "i", "predicted_class": 3, "score": 0.5}', "predicted_class"),
        (b'{"model": "m", "item_id": "i", "predicted_class": "a", "score": "high"}', "score"),
        (b'{"model": "m", "predicted_class": "a", "score": 0.5}', "item_id"),
        (b'{"model": "m", "item_id": "i", "votes": {"x": 3}}', "votes"),
        (b"{", ""),
        (b"7", ""),
    ],
)
def test_the_field_that_is_wrong_is_named(value: bytes, name: str) -> None:
    error = detail_of(value)
    assert field_of(error.reason, error.detail) == name


def test_the_field_of_a_label_is_named_too() -> None:
    with pytest.raises(BadMessage) as caught:
        decode_label(b'{"request_id": 7, "model": "m", "item_id": "i"}')
    assert field_of(caught.value.reason, caught.value.detail) == "request_id"


@pytest.mark.parametrize(
    ("reason", "detail", "name"),
    [
        ("unknown_class", "predicted_class is not in the model's label set", "predicted_class"),
        ("unknown_model", "the configuration has no model of this name", "model"),
        ("invalid_tensor", "score: the shape must be [n]", "score"),
        ("missing_field", "a signed label needs a `time` of its own", "time"),
        ("expired_request", "the request expired before this label came", ""),
    ],
)
def test_the_field_of_other_reasons_is_named_where_there_is_one(reason: str, detail: str, name: str) -> None:
    assert field_of(reason, detail) == name
