"""What has happened recently, by counts of earlier times: noticed no later than by the alerts, and small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from service.domain.arrays import Floats
from service.monitoring.count_trends import CountTrends, count_trends, due_history
from service.store.count_histories import CountHistory, CountsAt

NOW = 1_800_000_000.0
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0


def lived(until: float, since: float, counted: Callable[[float], Mapping[str, Any]]) -> CountTrends:
    """The trends at a time, of a model that was looked at every minute since another."""
    history: CountHistory = ()
    for now in np.arange(since, until, MINUTE).tolist():
        history = due_history(history, counts(now, counted)) or history
    return count_trends(history, counts(until, counted))


def counts(now: float, counted: Callable[[float], Mapping[str, Any]]) -> CountsAt:
    fields = {"predictions": 0, "clipped": {}, "issued": 0, "expired": {}, "answered": {}, "short": {}}
    return CountsAt(at=now, **(fields | dict(counted(now))))


def rose(events: Floats, begin: float, end: float) -> bool:
    return bool(((events > begin) & (events <= end)).any())


@pytest.mark.parametrize("seed", range(12))
def test_draws_that_find_no_item_are_noticed_before_the_alert(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Bursts with pauses up to a quarter of an hour, which the alert takes for one.
    events = NOW + np.cumsum(rng.uniform(0, 15.5 * MINUTE, 12))
    end = float(events[-1])
    trends = lived(
        end, NOW - HOUR, lambda now: {"predictions": int(now), "short": {"a": int((events <= now).sum())}}
    )
    looks = np.arange(end - 30 * MINUTE, end + 1, MINUTE)
    fires = all(rose(events, at - 15 * MINUTE, at) for at in looks.tolist())
    assert not fires or "a" in trends.short


def test_one_draw_that_finds_no_item_is_no_problem() -> None:
    trends = lived(
        NOW, NOW - 2 * HOUR, lambda now: {"predictions": int(now), "short": {"a": int(now >= NOW - MINUTE)}}
    )
    assert trends.short == {}


@pytest.mark.parametrize("seed", range(6))
def test_requests_that_nobody_answers_are_noticed_before_the_alert(seed: int) -> None:
    rng = np.random.default_rng(seed)
    expired = NOW - rng.uniform(0, 1.2 * DAY, 6)
    answered = NOW - rng.uniform(0.9 * DAY, 1.5 * DAY, 3)
    trends = lived(
        NOW,
        NOW - 1.6 * DAY,
        lambda now: {
            "expired": {"a": int((expired <= now).sum())},
            "answered": {"a": int((answered <= now).sum())},
        },
    )
    fires = (
        ((expired > NOW - DAY).sum() >= 3)
        and rose(expired, NOW - DAY / 2, NOW)
        and (answered > NOW - DAY).sum() * 9 < (expired > NOW - DAY).sum()
    )
    assert not fires or "a" in trends.unanswered


@pytest.mark.parametrize(("answers", "unanswered"), [(1, True), (3, False)])
def test_answers_end_it_if_they_are_one_in_ten(answers: int, *, unanswered: bool) -> None:
    def counted(now: float) -> dict[str, Any]:
        hours = int((now - NOW) // HOUR) + 40
        return {"expired": {"a": hours}, "answered": {"a": answers * (now >= NOW - HOUR)}}

    assert lived(NOW - 2 * HOUR, NOW - 40 * HOUR, counted).unanswered.keys() == {"a"}
    assert ("a" in lived(NOW, NOW - 40 * HOUR, counted).unanswered) == unanswered


@pytest.mark.parametrize(("share", "clipped"), [(0.012, True), (0.008, False)])
def test_times_are_clipped_too_often_above_one_in_a_hundred(share: float, *, clipped: bool) -> None:
    trends = lived(
        NOW,
        NOW - 2 * HOUR,
        lambda now: {
            "predictions": int(now - NOW) + 10_000,
            "clipped": {"past": int(share * (now - NOW + 10_000))},
        },
    )
    assert ("past" in trends.clipped) == clipped


def test_a_shard_that_is_filled_again_clips_nothing() -> None:
    trends = lived(
        NOW, NOW - HOUR, lambda now: {"predictions": int(NOW - now), "clipped": {"past": int(NOW - now)}}
    )
    assert trends.clipped == {}


def test_a_clock_that_was_ahead_leaves_no_counts_of_the_future() -> None:
    history = due_history((counts(NOW + DAY, lambda _: {}),), counts(NOW, lambda _: {}))
    assert history is not None
    assert [one.at for one in history] == [NOW]


def test_a_history_is_small_however_long_a_model_lives() -> None:
    history: CountHistory = ()
    busy = {f"assessment-{i}": 1_000_000 for i in range(10)}
    fields = {"expired": busy, "answered": busy, "short": busy}
    for now in np.arange(NOW, NOW + 6 * DAY, 5.0 * MINUTE).tolist():
        history = due_history(history, counts(now, lambda _: fields)) or history
    assert len(history) < 110
    assert len(msgspec.msgpack.encode(history)) < 100_000
    assert history[0].at <= history[-1].at - 1.5 * DAY


def test_labels_that_were_not_joined_are_counted_over_the_last_day() -> None:
    def counted(now: float) -> dict[str, Any]:
        hours = int((now - NOW) // HOUR)  # two labels an hour are too late, and all early ones are older
        return {"not_joined": {"too_late": 2 * (100 + hours), "early": 5}}

    assert lived(NOW, NOW - 30 * HOUR, counted).not_joined == {"too_late": 2 * 24}
