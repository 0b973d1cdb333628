"""Letters are sent back once, whatever is cut off in between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from letter_site import Site, rejected
from slow_broker import WiredBroker

from consumers.dead_letter_format import Letter
from consumers.dead_letter_redrive import REPLAYED, WOULD_BE_REPLAYED, read_letters, refusal, replay
from consumers.dead_letters import Place
from service.domain.errors import Refused, Unavailable
from service.kafka.clients import build_reader
from service.store.connection import Connection
from service.store.keys import replay_key
from service.store.redrives import ReplayMarks

NOW = time.time()


def letter(offset: int = 0, **fields: Any) -> Letter:
    plain: dict[str, Any] = {
        "partition": 0,
        "offset": offset,
        "timestamp_ms": int(NOW * 1_000),
        "reason": "unknown_model",
        "detail": "",
        "place": Place("source", 0, offset, None, 5_000),
        "key": b"k",
        "value": b"{}",
        "headers": (("ce_time", b"noon"),),
        "truncated": False,
        "replayed_from": "",
    }
    return Letter(**(plain | fields))


def refused(one: Letter, *, read_again: tuple[str, ...] = ()) -> str | None:
    return refusal(one, topics={"source"}, read_again=read_again, now=NOW)


def test_a_whole_letter_of_a_topic_that_is_read_can_be_replayed() -> None:
    assert refused(letter()) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"place": None},
        {"place": Place("label-requests", 0, 0, None, None)},
        {"truncated": True},
        {"timestamp_ms": int((NOW - 401 * 86_400) * 1_000)},
    ],
)
def test_letters_that_cannot_be_replayed_say_why(fields: dict[str, Any]) -> None:
    assert refused(letter(**fields))


def test_letters_that_a_change_of_classes_mends_wait_for_their_topic_to_be_read_again() -> None:
    assert refused(letter(reason="unknown_class"), read_again=("source",))
    assert refused(letter(reason="unknown_class")) is None
    assert refused(letter(reason="unknown_model"), read_again=("source",)) is None


def test_marks_tell_what_was_begun_from_what_was_done(connection: Connection) -> None:
    marks = ReplayMarks(connection)
    assert marks.begin(["a", "b"], retry_unfinished=False) == ["begun", "begun"]
    marks.finish(["a"])
    assert marks.begin(["a", "b", "c"], retry_unfinished=False) == ["replayed", "unfinished", "begun"]
    assert marks.check(["a", "b", "d"], retry_unfinished=False) == ["replayed", "unfinished", "begun"]
    assert marks.begin(["a", "b", "d"], retry_unfinished=True) == ["replayed", "begun", "begun"]


def test_marks_go_in_the_end(connection: Connection) -> None:
    marks = ReplayMarks(connection)
    marks.begin(["a", "b"], retry_unfinished=False)
    marks.finish(["a"])
    for place in "ab":
        lifetime = connection.client.ttl(replay_key(connection.prefix, place))
        assert 399 * 86_400 < lifetime <= 400 * 86_400


@pytest.fixture
def source(bootstrap_servers: str) -> Iterator[Site]:
    """A topic that letters go back to."""
    made = Site(bootstrap_servers)
    yield made
    made.producer.close(timeout=5)


def outcomes(site: Site, connection: Connection, letters: list[Letter], **options: Any) -> list[str]:
    plain: dict[str, Any] = {
        "producer": site.producer,
        "marks": ReplayMarks(connection),
        "topics": {site.topic},
        "read_again": (),
        "retry_unfinished": False,
        "now": NOW,
    }
    return [what for _, what in replay(letters, **(plain | options))]


def test_a_message_goes_back_as_it_was(source: Site, connection: Connection) -> None:
    place = Place(source.topic, 0, 7, 2, 5_000)
    assert outcomes(source, connection, [letter(3, place=place)]) == [REPLAYED]
    (record,) = source.records()
    assert (record.key, record.value, record.timestamp) == (b"k", b"{}", 5_000)
    assert record.headers == [("ce_time", b"noon"), ("credence-replayed-from", b"0/3")]


def test_of_letters_of_the_same_message_one_is_sent(source: Site, connection: Connection) -> None:
    place = Place(source.topic, 0, 7, None, 5_000)
    letters = [letter(offset, place=place) for offset in range(3)]
    printed = outcomes(source, connection, letters)
    assert printed[0] != REPLAYED, "what is passed over is reported first"
    assert printed.count(REPLAYED) == 1
    assert outcomes(source, connection, letters[1:]).count(REPLAYED) == 0
    assert len(source.records()) == 1


def test_elements_of_one_array_are_different_messages(source: Site, connection: Connection) -> None:
    letters = [letter(i, place=Place(source.topic, 0, 7, i, 5_000)) for i in range(450)]
    assert outcomes(source, connection, letters) == [REPLAYED] * 450
    assert len(source.records()) == 450


def test_without_a_producer_nothing_is_marked(source: Site, connection: Connection) -> None:
    letters = [letter(place=Place(source.topic, 0, 7, None, None))]
    for _ in range(2):
        assert outcomes(source, connection, letters, producer=None) == [WOULD_BE_REPLAYED]
    assert outcomes(source, connection, letters) == [REPLAYED]


def test_what_may_have_been_sent_is_not_sent_again_unless_that_is_asked_for(connection: Connection) -> None:
    with WiredBroker() as broker:
        site = Site(broker.bootstrap_server)
        letters = [letter(i, place=Place(site.topic, 0, i, None, 5_000)) for i in range(3)]
        site.producer.send(site.topic, value=b"warm").get(timeout=20)
        broker.wire.become("holds_replies")
        with pytest.raises(Unavailable):
            outcomes(site, connection, letters, send_seconds=0.3)
        broker.wire.become("whole")
        site.producer.flush(timeout=20)
        (again,) = set(outcomes(site, connection, letters))
        assert "cut off" in again
        assert len(site.records()) == 4, "they had arrived"
        assert outcomes(site, connection, letters, retry_unfinished=True) == [REPLAYED] * 3
        site.producer.close(timeout=5)


def test_letters_are_read_up_to_where_the_topic_ended_at_first(source: Site) -> None:
    source.letters().send([rejected(offset) for offset in range(3_000)])
    reader = build_reader(source.settings)
    try:
        letters = read_letters(reader, source.topic)
        first = next(letters)
        source.letters().send([rejected(offset) for offset in range(3_000, 3_010)])
        rest = list(letters)
    finally:
        reader.close()
    assert [one.place.offset for one in (first, *rest) if one.place] == list(range(3_000))


def test_a_topic_that_is_not_there_is_told_with_what_to_do(source: Site) -> None:
    reader = build_reader(source.settings)
    try:
        with pytest.raises(Refused, match="topics create"):
            list(read_letters(reader, "no-such-topic"))
    finally:
        reader.close()
