"""Drift while traffic stops and returns: through a consumer, Redis and the rounds of a leader."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from store_site import NOW, Record, Site, message, record

from service.monitoring.monitor import ModelMonitor
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.drifts import drift_summary, group_drift
from service.store.connection import Connection

HOUR = 3_600.0
REGIONS = ("north", "south")
MODEL = {
    "classes": ["cat", "dog"],
    "groupings": {"region": {"by": "attribute", "attribute": "region"}},
    "assessments": {"ask": {"grouping": "region", "budget": {"labels": 10}}},
    "drift": {"window_hours": 8, "reference_predictions": 500},
    # Nobody answers, and drift needs no labels. Intervals that allow for missing ones take thrice as long,
    # and a prior that is learned twice as long.
    "unanswered": {"expired": "at_random"},
    "prior": "informed_jeffreys",
}


class Life:
    """A model whose traffic a test chooses hour by hour, with a leader that looks every hour."""

    def __init__(self, connection: Connection) -> None:
        self.site = Site(connection, {"m": MODEL})
        self.now = NOW
        self.offset = 0
        self.rng = np.random.default_rng(5)
        self.monitor = self.site.monitor("m")

    def hours(
        self,
        count: int,
        *,
        rate: int = 60,
        poor: tuple[str, ...] = (),
        without: tuple[str, ...] = (),
        seen: bool = True,
    ) -> None:
        """Hours of traffic: `rate` predictions an hour and region, with low scores in the poor ones.

        Unless nobody has `seen` them, the leader looks after each.
        """
        for _ in range(count):
            records = [
                self._record(region, poor=region in poor)
                for region in REGIONS
                if region not in without
                for _ in range(rate)
            ]
            if records:
                self.take_in(records)
            if seen:
                self.look()
            self.now += HOUR

    def take_in(self, records: Sequence[Record]) -> None:
        """Records of now, taken in and stored by a consumer that then goes away."""
        step = self.site.prediction_step()
        step.assign(0, 0)
        step.process(0, records, self.now)
        step.flush(0, self.now)

    def look(self) -> ModelSnapshot:
        taken = self.monitor.refresh(self.now)
        self.monitor.ask(epoch=1, now=self.now)
        return taken

    def restart(self) -> ModelMonitor:
        self.monitor = self.site.monitor("m")
        return self.monitor

    def drifted(self) -> list[str]:
        """Regions that have drifted, by a process that has just started."""
        taken = self.restart().refresh(self.now)
        assert taken.drift is not None
        names = taken.groupings["region"].groups
        return [names[group] for group in np.flatnonzero(taken.drift.groupings["region"].drifted)]

    def _record(self, region: str, *, poor: bool) -> Record:
        score = self.rng.uniform(0.5, 0.6) if poor else self.rng.uniform(0.9, 1.0)
        self.offset += 1
        sent = message(self.offset, score=round(score, 4), attributes={"region": region})
        return record(self.offset - 1, sent, timestamp=int(self.now * 1_000))


@pytest.fixture
def life(connection: Connection) -> Life:
    """A model with a reference, and healthy traffic of a window since."""
    life = Life(connection)
    # Traffic is counted by the hour whoever looks; a look takes a tenth of a second.
    life.hours(16, seen=False)
    life.hours(4)
    return life


def test_no_traffic_is_a_state_of_its_own(life: Life) -> None:
    assert drift_summary(life.look()).state == "like_reference"
    life.hours(20, without=REGIONS)
    found = drift_summary(life.look())
    assert (found.state, found.recent_predictions) == ("no_traffic", 0)
    assert found.sentence.startswith("No recent traffic: the newest record is of ")
    assert "like the reference" not in found.sentence
    assert group_drift(life.look(), "region", "north").state == "no_traffic"


def test_little_traffic_is_not_said_to_be_like_the_reference(life: Life) -> None:
    life.hours(20, without=REGIONS)
    life.hours(1, rate=1)
    found = drift_summary(life.look())
    assert (found.state, found.recent_predictions) == ("too_little_traffic", 2)


def test_drift_does_not_end_because_traffic_stops(life: Life) -> None:
    life.hours(8, poor=("south",))
    assert life.drifted() == ["south"]
    # Without traffic a verdict that is gone does not come back, so none is gone in between.
    for _ in range(6):
        life.hours(5, without=REGIONS)
        assert life.drifted() == ["south"]
    found = drift_summary(life.look())
    assert found.state == "no_traffic"
    assert (found.drifted_groups, found.held_groups) == (3, 3)  # all, the score bin is one of them
    group = group_drift(life.look(), "region", "south")
    assert group.state == "no_traffic"
    assert group.drifted
    assert group.verdict_at is not None
    assert life.now - 31 * HOUR <= group.verdict_at <= life.now - 20 * HOUR


def test_a_group_whose_traffic_stops_stays_drifted_while_others_go_on(life: Life) -> None:
    life.hours(8, poor=("south",))
    for _ in range(8):
        life.hours(5, without=("south",))
        assert life.drifted() == ["south"]
    found = drift_summary(life.look())
    assert found.quiet_groups == 1
    assert "No recent traffic: region south." in found.sentence


def test_a_group_that_has_not_drifted_and_stops_is_not_accused(life: Life) -> None:
    life.hours(20, without=("south",))
    assert life.drifted() == []
    assert drift_summary(life.look()).quiet_groups == 1


def test_a_trickle_does_not_withdraw_a_verdict_and_healthy_traffic_does(life: Life) -> None:
    life.hours(8, poor=("south",))
    life.hours(12, without=REGIONS)
    life.hours(2, rate=1)
    assert life.drifted() == ["south"]
    life.hours(10)
    assert life.drifted() == []


def test_drift_that_goes_on_at_less_traffic_is_no_verdict_of_the_past(life: Life) -> None:
    life.hours(8, poor=("south",))
    life.hours(12, rate=30, poor=("south",))
    assert group_drift(life.look(), "region", "south").verdict_at == life.now


def test_no_label_is_directed_to_a_drifted_group_without_recent_traffic(life: Life) -> None:
    life.hours(8, poor=("south",))
    assert life.look().assessments["ask"].aim is not None
    life.hours(20, without=("south",))
    assert life.drifted() == ["south"]
    aim = life.look().assessments["ask"].aim
    assert aim is None


def test_records_without_a_time_count_as_current(connection: Connection) -> None:
    site = Site(connection, {"m": MODEL})
    site.take_in([record(0, message(0), timestamp=-1)])
    assert site.reader("m").traffic().newest_record == np.inf
