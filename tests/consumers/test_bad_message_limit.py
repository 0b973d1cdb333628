"""The limit on bad messages: a few pass, too many pause the consumer, whatever the offsets are."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.dead_letters import BadMessageLimit
from service.domain.errors import TooManyBadMessages


def fed(limit: BadMessageLimit, *batches: tuple[int, int]) -> BadMessageLimit:
    """A limit that has admitted batches of (messages, bad)."""
    for messages, bad in batches:
        limit.admit(messages=messages, bad=bad)
    return limit


def test_good_messages_always_pass() -> None:
    limit = BadMessageLimit(ratio=0.0, window=10)
    fed(limit, *[(7, 0)] * 100)


def test_bad_messages_pass_up_to_the_ratio() -> None:
    fed(BadMessageLimit(ratio=0.5, window=10), *[(10, 5)] * 100)


def test_more_bad_messages_than_the_ratio_exceed_the_limit() -> None:
    with pytest.raises(TooManyBadMessages):
        fed(BadMessageLimit(ratio=0.5, window=10), (10, 6))


def test_few_bad_messages_at_the_start_do_not_exceed_the_limit_though_there_are_no_others_yet() -> None:
    fed(BadMessageLimit(ratio=0.5, window=10), *[(1, 1)] * 5)


def test_the_limit_is_exceeded_at_the_start_as_soon_as_no_good_message_could_change_that() -> None:
    limit = fed(BadMessageLimit(ratio=0.5, window=10), (5, 5))
    with pytest.raises(TooManyBadMessages, match="6 of the last 6 messages"):
        limit.admit(messages=1, bad=1)


def test_a_good_message_never_exceeds_the_limit() -> None:
    limit = fed(BadMessageLimit(ratio=0.0, window=10), (10, 0))
    with pytest.raises(TooManyBadMessages):
        limit.admit(messages=1, bad=1)
    limit.admit(messages=1, bad=0)


def test_one_record_with_very_many_bad_elements_exceeds_the_limit() -> None:
    limit = fed(BadMessageLimit(ratio=0.5, window=1_000), *[(1, 0)] * 1_000)
    with pytest.raises(TooManyBadMessages, match="500000 of the last 501000 messages"):
        limit.admit(messages=500_000, bad=500_000)


def test_a_batch_larger_than_the_window_is_judged_as_a_whole() -> None:
    limit = BadMessageLimit(ratio=0.5, window=10)
    fed(limit, (100, 50))
    with pytest.raises(TooManyBadMessages, match="150 of the last 200 messages"):
        limit.admit(messages=100, bad=100)


def test_looking_counts_nothing() -> None:
    limit = BadMessageLimit(ratio=0.5, window=10)
    for _ in range(100):
        limit.check(messages=1, bad=1)
    with pytest.raises(TooManyBadMessages):
        limit.check(messages=6, bad=6)
    fed(limit, (5, 5))


def test_batches_without_messages_leave_nothing_behind() -> None:
    limit = fed(BadMessageLimit(ratio=0.5, window=10), *[(0, 0)] * 1_000, (3, 1), *[(0, 0)] * 1_000)
    assert len(limit._batches) == 1


@settings(derandomize=True)
@given(
    batches=st.lists(
        st.integers(0, 30).flatmap(lambda messages: st.tuples(st.just(messages), st.integers(0, messages)))
    ),
    window=st.integers(1, 40),
    ratio=st.floats(0, 1),
)
def test_memory_is_bounded_by_the_window_and_what_is_left_of_it_is_less_than_one(
    batches: list[tuple[int, int]], window: int, ratio: float
) -> None:
    limit = BadMessageLimit(ratio=ratio, window=window)
    for messages, bad in batches:
        with suppress(TooManyBadMessages):
            limit.admit(messages=messages, bad=bad)
        assert len(limit._batches) <= window
        assert limit._messages == sum(kept for kept, _ in limit._batches)
        assert limit._messages - (limit._batches[0][0] if limit._batches else 0) < window


def test_many_small_batches_exceed_the_limit_like_one_large_batch() -> None:
    limit = fed(BadMessageLimit(ratio=0.5, window=100), *[(1, 0)] * 100)
    with pytest.raises(TooManyBadMessages):
        fed(limit, *[(1, 1)] * 60)


def test_what_lies_behind_the_window_is_forgotten() -> None:
    limit = fed(BadMessageLimit(ratio=0.5, window=10), (5, 4), *[(5, 0)] * 4)
    fed(limit, (5, 4))


def test_a_long_good_past_does_not_raise_the_limit() -> None:
    limit = fed(BadMessageLimit(ratio=0.5, window=10), *[(1, 0)] * 10_000)
    with pytest.raises(TooManyBadMessages):
        fed(limit, *[(1, 1)] * 10)


def test_a_batch_that_was_refused_is_not_counted_and_refused_again() -> None:
    limit = fed(BadMessageLimit(ratio=0.5, window=10), (10, 0))
    for _ in range(3):
        with pytest.raises(TooManyBadMessages, match="30 of the last 40 messages"):
            limit.admit(messages=30, bad=30)
    fed(limit, (10, 5))


def test_with_a_ratio_of_1_everything_passes() -> None:
    fed(BadMessageLimit(ratio=1.0, window=10), *[(10, 10)] * 10)


def test_with_a_ratio_of_0_one_bad_message_among_enough_stops() -> None:
    with pytest.raises(TooManyBadMessages):
        fed(BadMessageLimit(ratio=0.0, window=10), (10, 1))


def test_the_window_and_what_is_asked_about_decide_and_nothing_older() -> None:
    rng = random.Random(5)
    limit = BadMessageLimit(ratio=0.3, window=50)
    admitted: list[bool] = []
    refusals = 0
    for _ in range(2_000):
        bad = rng.random() < 0.3
        last = [*admitted[-50:], bad]
        if bad and sum(last) > 0.3 * max(50, len(last)):
            refusals += 1
            with pytest.raises(TooManyBadMessages):
                limit.admit(messages=1, bad=1)
        else:
            limit.admit(messages=1, bad=int(bad))
            admitted.append(bad)
    assert refusals > 20
