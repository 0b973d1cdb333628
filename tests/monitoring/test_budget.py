"""Budgets that renew last their period, whatever traffic, labellers and restarts do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.config.assessments import EstimationSettings
from service.monitoring.budget import DAY, BudgetState, budget_state
from service.store.facts import RequestFacts
from service.store.requests import Spending

BEGAN = 20_000 * DAY
HOUR = 3_600.0
MINUTE = 60.0


@dataclass
class Spender:
    """Spends a budget as the service does: what is issued is counted, and the bucket's record kept."""

    settings: EstimationSettings
    used: dict[str, int] = field(default_factory=dict)
    record: bytes = b""

    def state(self, now: float, traffic: Sequence[tuple[float, int]] = ()) -> BudgetState:
        buckets = {"a": self.record} if self.record else {}
        return budget_state(
            "a", self.settings, RequestFacts({}, 0, self.used, buckets, {}), now=now, traffic=traffic
        )

    def spend(self, state: BudgetState, labels: int, *, from_reserve: int = 0) -> None:
        self.used[state.window] = self.used.get(state.window, 0) + labels
        if (spending := state.spending) is not None and labels:
            after = replace(
                spending,
                reserve_used=spending.reserve_used + from_reserve,
                tokens=spending.tokens - labels + from_reserve,
            )
            self.record = f"{after.window}|{after.reserve_used}|{after.tokens}|{after.at}".encode()


def spender(labels: int = 300, **budget: float) -> Spender:
    budget = {"per_days": 1.0} | budget
    return Spender(EstimationSettings.model_validate({"budget": {"labels": labels, **budget}}))


def spent(
    one: Spender,
    *,
    begin: float = BEGAN,
    seconds: float = DAY,
    step: float = MINUTE,
    most: Callable[[float], int] = lambda _: 10**9,
    predictions: Callable[[float], int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Times of rounds, and labels spent in each, where as many are spent as the budget and `most` allow."""
    times = np.arange(begin, begin + seconds, step)
    counts = []
    seen: list[tuple[float, int]] = []
    for now in times:
        if predictions is not None:
            seen.append((now, predictions(now)))
        state = one.state(now, seen)
        labels = min(state.available, most(now))
        one.spend(state, labels)
        counts.append(labels)
    return times, np.array(counts)


def gini(amounts: np.ndarray) -> float:
    ordered = np.sort(amounts)
    ranks = np.arange(1, len(ordered) + 1)
    return float((2 * ranks - len(ordered) - 1) @ ordered / (len(ordered) * ordered.sum()))


def by_hour(counts: np.ndarray) -> np.ndarray:
    return counts.reshape(-1, 60).sum(axis=1)


def test_labels_are_spread_evenly_over_the_period() -> None:
    one = spender()
    _, first = spent(one)
    _, second = spent(one, begin=BEGAN + DAY)
    assert gini(by_hour(first)) < 0.2
    assert gini(by_hour(second)) < 0.1
    assert first.sum() == pytest.approx(240, abs=1)
    assert second.sum() == pytest.approx(240, abs=1)


def test_at_most_the_burst_is_spent_at_once() -> None:
    assert spender().state(BEGAN).available == 30
    assert spender(burst=0.5).state(BEGAN).available == 150


def test_a_burst_of_less_than_a_label_is_one_label() -> None:
    assert spender(labels=4).state(BEGAN).available == 1


def test_what_nobody_could_answer_is_spent_later_in_the_period_and_in_no_rush() -> None:
    _, counts = spent(spender(), most=lambda now: 0 if now < BEGAN + DAY / 2 else 10**9)
    assert counts.sum() == pytest.approx(240, abs=2)
    hours = by_hour(counts)[13:]
    assert hours.max() <= 2 * 10 + 1


def test_a_budget_that_begins_late_in_its_period_is_not_spent_in_a_rush() -> None:
    _, counts = spent(spender(), begin=BEGAN + DAY - HOUR, seconds=HOUR)
    assert counts.sum() <= 30 + 2 * 10


def test_what_expires_unanswered_is_spent_again() -> None:
    one = spender()
    spent(one, seconds=DAY / 2)
    one.used[one.state(BEGAN + DAY / 2).window] -= 50
    _, counts = spent(one, begin=BEGAN + DAY / 2, seconds=DAY / 2)
    assert sum(one.used.values()) == pytest.approx(240, abs=1)
    assert counts.sum() == pytest.approx(105 + 50, abs=1)


def test_the_reserve_is_left_for_suspected_groups_however_late() -> None:
    one = spender()
    spent(one)
    state = one.state(BEGAN + DAY - 1)
    assert (state.available, state.reserve) == (0, 60)
    assert state.remaining == pytest.approx(60, abs=1)


def test_what_suspected_groups_take_from_the_reserve_is_not_missed_by_others() -> None:
    one = spender()
    state = one.state(BEGAN)
    one.spend(state, 60, from_reserve=60)
    assert one.state(BEGAN).reserve == 0
    _, counts = spent(one)
    assert counts.sum() == pytest.approx(240, abs=1)


def test_a_new_period_has_its_reserve_and_no_second_burst() -> None:
    one = spender()
    spent(one)
    state = one.state(BEGAN + DAY)
    assert (state.remaining, state.reserve) == (300, 60)
    assert state.available <= 1


def test_a_budget_unused_for_days_begins_with_its_burst() -> None:
    one = spender()
    spent(one, seconds=HOUR)
    assert one.state(BEGAN + 5 * DAY).available == 30


def test_a_budget_that_does_not_renew_has_neither_pace_nor_reserve() -> None:
    one = Spender(EstimationSettings.model_validate({"budget": {"labels": 300}}))
    state = one.state(BEGAN)
    assert (state.available, state.reserve, state.renews_at) == (300, 0, None)
    one.spend(state, 300)
    assert one.state(BEGAN + 100 * DAY).is_exhausted


def test_labels_follow_traffic_by_day_and_by_night() -> None:
    # Nine tenths of the predictions come in the second half of each day.
    def predictions(now: float) -> int:
        days, part = divmod((now - BEGAN) / DAY, 1)
        return int(1e6 * (days + (0.2 * part if part < 0.5 else 0.1 + 1.8 * (part - 0.5))))

    one = spender()
    spent(one, predictions=predictions, seconds=2 * DAY)
    seen = [(now, predictions(now)) for now in np.arange(BEGAN, BEGAN + 2 * DAY, HOUR)]
    counts = []
    for now in np.arange(BEGAN + 2 * DAY, BEGAN + 3 * DAY, HOUR):
        seen.append((now, predictions(now)))
        state = one.state(now, seen)
        one.spend(state, state.available)
        counts.append(state.available)
    quiet, busy = sum(counts[4:12]), sum(counts[16:])
    assert busy > 1.5 * quiet
    assert sum(counts) > 200


def test_labels_of_one_batch_a_night_are_spent_within_the_day() -> None:
    def predictions(now: float) -> int:
        return 5_000 * (1 + int((now - BEGAN) // DAY))

    one = spender()
    spent(one, predictions=predictions, seconds=2 * DAY)
    before = sum(one.used.values())
    seen = [(now, predictions(now)) for now in np.arange(BEGAN, BEGAN + 2 * DAY, HOUR)]
    for now in np.arange(BEGAN + 2 * DAY, BEGAN + 3 * DAY, HOUR / 4):
        seen.append((now, predictions(now)))
        state = one.state(now, seen)
        one.spend(state, state.available)
    assert sum(one.used.values()) - before > 0.9 * 240


def test_where_no_predictions_have_come_for_a_period_nothing_is_asked_for_and_the_budget_is_kept() -> None:
    seen = [(BEGAN - DAY, 10_000), (BEGAN, 10_000), (BEGAN + HOUR, 10_000)]
    one = spender()
    one.spend(one.state(BEGAN, seen[:2]), 30)
    assert one.state(BEGAN + HOUR, seen).available == 0
    assert one.state(BEGAN + HOUR, seen).remaining == 270


@given(
    labels=st.integers(1, 5_000),
    burst=st.floats(0.01, 1.0),
    reserve=st.floats(0.0, 0.9),
    days=st.floats(0.01, 40.0),
    rounds=st.lists(
        st.tuples(st.floats(0.0, 0.3), st.integers(0, 200), st.integers(0, 50)), min_size=1, max_size=40
    ),
)
def test_no_history_of_rounds_spends_more_than_the_budget_or_touches_the_reserve(
    labels: int, burst: float, reserve: float, days: float, rounds: list[tuple[float, int, int]]
) -> None:
    one = spender(labels, burst=burst, reserve=reserve, per_days=days)
    now, period = BEGAN, days * DAY
    for gap, wanted, suspected in rounds:
        now += gap * period
        state = one.state(now)
        from_reserve = min(suspected, state.reserve)
        count = min(wanted, state.available, state.remaining - from_reserve)
        one.spend(state, count + from_reserve, from_reserve=from_reserve)
        after = one.state(now)
        assert 0 <= after.available <= max(1.0, burst * labels)
        assert after.remaining >= after.reserve == state.reserve - from_reserve
        assert one.used[state.window] <= labels if count + from_reserve else True


def test_a_clock_that_goes_back_spends_nothing_twice() -> None:
    one = spender()
    spent(one, seconds=2 * HOUR)
    used = sum(one.used.values())
    state = one.state(BEGAN + HOUR)
    assert state.available <= 1
    assert state.remaining == 300 - used


@pytest.mark.parametrize("labels", [1, 2, 3, 5, 10, 50])
def test_every_label_of_a_period_is_requested_in_it_however_few_they_are(labels: int) -> None:
    one = spender(labels)
    for day in range(5):
        # Rounds are not at midnight.
        _, counts = spent(one, begin=BEGAN + day * DAY + 3, seconds=DAY - 3)
        assert counts.sum() == labels - one.settings.reserved_labels


@pytest.mark.parametrize("labels", [1, 2, 10, 300])
def test_a_budget_that_lasts_its_period_is_never_called_exhausted(labels: int) -> None:
    one = spender(labels, reserve=0.0)
    for now in np.arange(BEGAN, BEGAN + 2 * DAY, MINUTE):
        state = one.state(now)
        assert not state.is_exhausted
        one.spend(state, state.available)
    assert sum(one.used.values()) == 2 * labels


def test_a_budget_that_is_lowered_below_what_was_spent_is_exhausted() -> None:
    one = spender(300)
    spent(one, seconds=DAY / 2)
    one.settings = spender(100).settings
    assert one.state(BEGAN + DAY / 2).is_exhausted


def test_one_label_at_least_is_not_reserved() -> None:
    assert spender(1, reserve=0.9).settings.reserved_labels == 0
    assert spender(3, reserve=0.9).settings.reserved_labels == 2


def test_a_clock_that_was_days_ahead_for_a_round_neither_stops_requests_nor_spends_a_label_twice() -> None:
    one = spender()
    spent(one, seconds=DAY / 2)
    ahead = one.state(BEGAN + 10 * DAY)
    one.spend(ahead, ahead.available)
    spent(one, begin=BEGAN + DAY / 2, seconds=DAY / 2)
    assert one.used["a|20000"] == 240
    _, counts = spent(one, begin=BEGAN + DAY)
    assert counts.sum() == 240


def test_a_period_of_another_length_begins_with_its_own_reserve() -> None:
    one = spender()
    one.spend(one.state(BEGAN + HOUR), 60, from_reserve=60)
    one.settings = spender(per_days=7.0).settings
    state = one.state(BEGAN + 2 * HOUR)
    assert (state.reserve, state.remaining) == (60, 300)
    assert state.available == 30


def test_the_record_of_a_bucket_is_read_as_it_was_written() -> None:
    assert Spending.parse(b"20000|3|1.500000|1728000000.25") == Spending(20_000, 3, 1.5, 1_728_000_000.25)
