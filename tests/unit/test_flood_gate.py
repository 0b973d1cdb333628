"""The flood gate: a few bad messages pass, a flood stops the consumer, whatever the offsets are."""

from __future__ import annotations

import random

import pytest

from consumers.dead_letters import FloodGate
from service.errors import DeadLetterFlood


def fed(gate: FloodGate, *batches: tuple[int, int]) -> FloodGate:
    """A gate that has admitted batches of (messages, bad)."""
    for messages, bad in batches:
        gate.admit(messages=messages, bad=bad)
    return gate


def test_good_messages_always_pass() -> None:
    gate = FloodGate(ratio=0.0, window=10)
    fed(gate, *[(7, 0)] * 100)


def test_bad_messages_pass_up_to_the_ratio() -> None:
    fed(FloodGate(ratio=0.5, window=10), *[(10, 5)] * 100)


def test_more_bad_messages_than_the_ratio_are_a_flood() -> None:
    with pytest.raises(DeadLetterFlood):
        fed(FloodGate(ratio=0.5, window=10), (10, 6))


def test_nothing_is_called_a_flood_before_the_window_is_full() -> None:
    gate = fed(FloodGate(ratio=0.5, window=10), (9, 9))
    with pytest.raises(DeadLetterFlood):
        gate.admit(messages=1, bad=1)


def test_a_good_message_that_fills_the_window_is_no_flood() -> None:
    gate = fed(FloodGate(ratio=0.5, window=10), (9, 9), (1, 0))
    with pytest.raises(DeadLetterFlood):
        gate.admit(messages=1, bad=1)


def test_a_flood_in_many_small_batches_is_seen_like_one_in_a_large_batch() -> None:
    gate = fed(FloodGate(ratio=0.5, window=100), *[(1, 0)] * 100)
    with pytest.raises(DeadLetterFlood):
        fed(gate, *[(1, 1)] * 60)


def test_what_lies_behind_the_window_is_forgotten() -> None:
    gate = fed(FloodGate(ratio=0.5, window=10), (5, 4), *[(5, 0)] * 4)
    fed(gate, (5, 4))


def test_a_long_good_past_does_not_excuse_a_flood() -> None:
    gate = fed(FloodGate(ratio=0.5, window=10), *[(1, 0)] * 10_000)
    with pytest.raises(DeadLetterFlood):
        fed(gate, *[(1, 1)] * 10)


def test_a_batch_that_was_refused_is_not_counted_and_refused_again() -> None:
    gate = fed(FloodGate(ratio=0.5, window=10), (10, 0))
    for _ in range(3):
        with pytest.raises(DeadLetterFlood, match="30 of the last 40 messages"):
            gate.admit(messages=30, bad=30)
    fed(gate, (10, 5))


def test_with_a_ratio_of_1_everything_passes() -> None:
    fed(FloodGate(ratio=1.0, window=10), *[(10, 10)] * 10)


def test_with_a_ratio_of_0_one_bad_message_among_enough_stops() -> None:
    with pytest.raises(DeadLetterFlood):
        fed(FloodGate(ratio=0.0, window=10), (10, 1))


def test_the_window_and_what_is_asked_about_decide_and_nothing_older() -> None:
    rng = random.Random(5)
    gate = FloodGate(ratio=0.3, window=50)
    admitted: list[bool] = []
    refusals = 0
    for _ in range(2_000):
        bad = rng.random() < 0.3
        last = [*admitted[-50:], bad]
        if bad and len(last) >= 50 and sum(last) > 0.3 * len(last):
            refusals += 1
            with pytest.raises(DeadLetterFlood):
                gate.admit(messages=1, bad=1)
        else:
            gate.admit(messages=1, bad=int(bad))
            admitted.append(bad)
    assert refusals > 20
