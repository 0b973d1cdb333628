"""Since when something is known to be wrong, and what is remembered of earlier beliefs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from snapshots import NOW, snapshot

from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.history import POINTS, Fault, Moment, Since, Timeline, faults_since, moment

DOG: Fault = ("accuracy_low", "class", "dog")


@cache
def by_class() -> GroupingSnapshot:
    return snapshot(alerts={"min_accuracy": 0.8}).groupings["class"]


def grouping(*, low: bool) -> GroupingSnapshot:
    """By class; of the dogs it is known that they are bad, or not."""
    return replace(by_class(), low=np.array([False, low, False]))


def believed(time: float, *, low: bool) -> Moment:
    return moment(time, {"class": grouping(low=low)}, {"class": by_class().groups})


def since(*past: Moment, before: dict[Fault, Since] | None = None, low: bool = True) -> dict[Fault, Since]:
    return faults_since([DOG] if low else [], before=before, past=past, now=NOW)


def test_what_is_well_is_wrong_since_no_time() -> None:
    assert since(believed(NOW - 9, low=True), low=False) == {}


def test_what_the_last_look_saw_well_is_wrong_since_now() -> None:
    past = [believed(NOW - 20, low=True), believed(NOW - 10, low=False)]
    assert since(*past, before={}) == {DOG: Since(NOW, or_earlier=False)}
    assert since(believed(NOW - 20, low=True), before={}) == {DOG: Since(NOW, or_earlier=False)}


def test_what_the_last_look_saw_wrong_goes_on() -> None:
    last = {DOG: Since(NOW - 5, or_earlier=False)}
    assert since(believed(NOW - 10, low=False), before=last) == last


def test_a_process_that_has_just_started_does_not_know() -> None:
    assert since() == {DOG: Since(NOW, or_earlier=True)}


def test_a_process_that_has_just_started_learns_from_what_it_recalls() -> None:
    first = since()
    recalled = [believed(NOW - 20, low=True), believed(NOW - 10, low=True)]
    longer = since(*recalled, before=first)
    assert longer == {DOG: Since(NOW - 20, or_earlier=True)}
    assert since(believed(NOW - 30, low=False), *recalled, before=longer) == {
        DOG: Since(NOW - 20, or_earlier=False)
    }


def test_a_group_that_was_not_remembered_may_have_been_wrong_before() -> None:
    unknown = Moment(NOW - 10, {"class": replace(believed(0, low=True).groupings["class"], index={})})
    assert since(unknown) == {DOG: Since(NOW, or_earlier=True)}


def test_memory_holds_one_moment_a_step_and_no_more_than_its_span() -> None:
    timeline = Timeline(span_seconds=POINTS * 10.0)
    for tick in range(5 * POINTS):
        timeline.remember(believed(NOW + 5 * tick, low=False))
    times = [one.time for one in timeline.moments]
    assert len(times) == POINTS
    assert np.diff(times) == pytest.approx(10)


def test_memory_asks_for_the_latest_moment_that_it_lacks_and_for_none_before_the_first_label() -> None:
    timeline = Timeline(span_seconds=POINTS * 10.0)
    timeline.remember(believed(NOW, low=False))
    asked = []
    while (at := timeline.missing(now=NOW, first_label_at=NOW - 35)) is not None:
        asked.append(at)
        timeline.remember(believed(at, low=False))
    assert asked == [NOW - 10, NOW - 20, NOW - 30]
    assert timeline.missing(now=NOW, first_label_at=None) is None


def test_only_the_named_groups_are_remembered() -> None:
    kept = moment(NOW, {"class": by_class()}, {"class": ["owl", "dog", "gone"]}).groupings["class"]
    assert kept.index == {"dog": 0, "owl": 1}
    assert kept.accuracy.mean.tolist() == by_class().accuracy.mean[[1, 2]].tolist()


def test_the_latest_moment_is_known() -> None:
    timeline = Timeline(span_seconds=POINTS * 10.0)
    assert timeline.latest is None
    timeline.remember(believed(NOW, low=False))
    timeline.remember(believed(NOW - 50, low=False))
    assert timeline.latest is not None
    assert timeline.latest.time == NOW


def test_a_step_with_a_moment_lacks_no_other() -> None:
    timeline = Timeline(span_seconds=POINTS * 10.0)
    assert timeline.lacks(NOW)
    timeline.remember(believed(NOW, low=False))
    assert not timeline.lacks(NOW + 1)
    assert timeline.lacks(NOW + 10)
