"""Rounds come at every tick, whatever happens to the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from harness import wait_for

from service.app.scheduler import EveryTick, start_schedule

TICK = timedelta(seconds=0.05)


class Counted:
    """Rounds that are counted."""

    def __init__(self) -> None:
        self.ticks = 0

    def tick(self) -> None:
        self.ticks += 1

    def wait_for(self, ticks: int) -> None:
        wait_for(lambda: self.ticks >= ticks, seconds=10, what=f"{ticks} ticks")


def test_ticks_that_a_clock_set_forward_has_skipped_are_not_made_up_for() -> None:
    now = datetime.now(UTC)
    assert EveryTick(TICK).get_next_fire_time(now - timedelta(days=365), now) == now + TICK


def test_a_clock_set_back_stops_no_rounds() -> None:
    rounds = Counted()
    scheduler = start_schedule(rounds.tick, tick_seconds=TICK.total_seconds(), on_failure=lambda: None)
    try:
        rounds.wait_for(2)
        (job,) = scheduler.get_jobs()
        # As it stands to a clock that was set back by a day.
        job.modify(next_run_time=datetime.now(UTC) + timedelta(days=1))
        rounds.wait_for(rounds.ticks + 3)
    finally:
        scheduler.shutdown(wait=True)
