"""Dead letters on a real broker: each is there once, however often its replies are late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from harness import wait_for
from letter_site import MESSAGE_BYTES, Site, rejected
from letter_topic import header
from slow_broker import WiredBroker

from consumers.dead_letter_producer import KafkaDeadLetters
from consumers.dead_letters import Rejected
from service.domain.errors import Unavailable


@pytest.fixture
def site(bootstrap_servers: str) -> Iterator[Site]:
    made = Site(bootstrap_servers)
    yield made
    made.producer.close(timeout=5)


@pytest.fixture
def far() -> Iterator[tuple[Site, WiredBroker]]:
    """A topic behind a wire."""
    with WiredBroker() as broker:
        made = Site(broker.bootstrap_server)
        yield made, broker
        broker.wire.become("whole")
        made.producer.close(timeout=5)


def test_a_letter_says_where_it_stood_and_why_it_is_refused(site: Site) -> None:
    headers = [("ce_time", b"2026-01-31T12:00:00Z"), ("empty", None)]
    site.letters().send([rejected(7, b"value", partition=3, index=2, key=b"k", headers=headers)])
    (letter,) = site.kept()
    assert letter.place is not None
    assert str(letter.place) == "source/3/7#2"
    assert letter.place.timestamp_ms == 17
    assert (letter.reason, letter.detail) == ("malformed_json", "not JSON")
    assert (letter.key, letter.value, letter.truncated) == (b"k", b"value", False)
    assert letter.headers == (("ce_time", b"2026-01-31T12:00:00Z"), ("empty", b""))


def test_a_message_cannot_pose_as_another_one(site: Site) -> None:
    spoofed = [("credence-source-topic", b"elsewhere"), ("credence-reason", b"\xff"), ("credence-x", b"")]
    site.letters().send([rejected(0, headers=spoofed)])
    (record,) = site.records()
    assert [name for name, _ in record.headers].count("credence-source-topic") == 1
    assert header(record, "credence-source-topic") == "source"
    assert header(record, "credence-x") is None


def test_a_message_that_brings_very_long_headers_is_kept_and_says_that_it_is_not_whole(site: Site) -> None:
    headers = [("long", b"x" * 3_000), ("short", b"y")]
    site.letters().send([rejected(0, headers=headers)])
    (letter,) = site.kept()
    assert letter.headers == (("short", b"y"),)
    assert letter.truncated


def test_a_value_or_key_that_no_record_can_hold_is_cut_and_stops_nothing(site: Site) -> None:
    huge = b"x" * 1_100_000
    batch = [rejected(0, huge), rejected(1, key=huge), rejected(2, huge, key=huge), rejected(3)]
    site.letters().send(batch)
    letters = site.kept()
    assert [letter.truncated for letter in letters] == [True, True, True, False]
    assert all(len(letter.value) <= MESSAGE_BYTES and len(letter.key or b"") <= 1_024 for letter in letters)


def test_very_many_letters_of_one_array_are_all_kept_in_order(site: Site) -> None:
    site.letters().send([rejected(0, b"0", index=index) for index in range(5_000)])
    assert [letter.place.index for letter in site.kept() if letter.place] == list(range(5_000))


def send_in_the_end(letters: KafkaDeadLetters, batch: Sequence[Rejected]) -> None:
    """Send as a consumer does: again, until Kafka has confirmed everything."""

    def is_sent() -> bool:
        try:
            letters.send(batch)
        except Unavailable:
            return False
        return True

    wait_for(is_sent, seconds=60, what="confirmed letters")


def test_letters_whose_replies_are_late_are_there_once(far: tuple[Site, WiredBroker]) -> None:
    site, broker = far
    letters = site.letters(send_seconds=0.3)
    site.letters().send([rejected(0)])
    broker.wire.become("holds_replies")
    batch = [rejected(offset) for offset in range(1, 6)]
    for _ in range(3):
        with pytest.raises(Unavailable):
            letters.send(batch)
    with pytest.raises(Unavailable):
        letters.send([*batch, rejected(6)])
    broker.wire.become("whole")
    site.producer.flush(timeout=20)
    send_in_the_end(letters, [*batch, rejected(6)])
    assert sorted(letter.place.offset for letter in site.kept() if letter.place) == list(range(7))


def test_letters_of_another_partition_do_not_wait_for_those_that_were_given_before(
    far: tuple[Site, WiredBroker],
) -> None:
    site, broker = far
    # A broker on a busy machine has to answer in this time once its wire is whole.
    letters = site.letters(send_seconds=3.0)
    site.letters().send([rejected(0)])
    broker.wire.become("holds_replies")
    with pytest.raises(Unavailable):
        letters.send([rejected(1)])
    broker.wire.become("whole")
    site.producer.flush(timeout=20)
    letters.send([rejected(1, partition=4)])
    letters.send([rejected(1)])
    places = [(letter.place.partition, letter.place.offset) for letter in site.kept() if letter.place]
    assert sorted(places) == [(0, 0), (0, 1), (4, 1)]
    assert letters._futures == {}


def test_letters_whose_replies_are_lost_are_there_once(far: tuple[Site, WiredBroker]) -> None:
    site, broker = far
    letters = site.letters(send_seconds=0.3)
    site.letters().send([rejected(0)])
    broker.wire.become("loses_replies")
    batch = [rejected(offset) for offset in range(1, 6)]
    for _ in range(5):
        with pytest.raises(Unavailable):
            letters.send(batch)
    broker.wire.become("whole")
    site.producer.flush(timeout=20)
    send_in_the_end(letters, batch)
    assert sorted(letter.place.offset for letter in site.kept() if letter.place) == list(range(6))
