from __future__ import annotations

from dataclasses import replace

import pytest

from service.demo.configuration import WEAKEST_CAMERA
from service.demo.journal import STREAMING, History, Mark
from service.demo.metrics import Findings, GroupReading, Reading
from service.demo.story import RECOVERY, YOU, Event, Story

BEGAN, DEGRADED = 1_000.0, 1_036.0
DOCK, NEXT = ("camera", "dock"), (WEAKEST_CAMERA, "dock")


def group(
    grouping: str, name: str, lower: float, mean: float, upper: float, *, below: float = 0.0
) -> GroupReading:
    return GroupReading(grouping, name, lower, mean, upper, share=0.5, labels=10, below=below)


def reading(
    time: float, *, half_width: float = 0.1, answered: int = 0, dock: float = 0.9, below: float = 0.0
) -> Reading:
    """What is estimated at a time, a second after the data was read."""
    groups = [
        group("all", "all", 0.9 - half_width, 0.9, 0.9 + half_width),
        group("camera", "gate", 0.85, 0.95, 0.99),
        group("camera", "dock", dock - 0.05, dock, dock + 0.05, below=below),
    ]
    return Reading(
        time=time,
        snapshot_time=time - 1,
        groups={(one.grouping, one.group): one for one in groups},
        events={"issued": answered, "answered": answered} if answered else {},
        next_requests={NEXT: 0.4},
    )


def history(**marks: float | None) -> History:
    """A history that began, and has these marks."""
    found = History()
    found.add(
        [Mark(STREAMING, BEGAN), *(Mark(name, time) for name, time in marks.items() if time is not None)]
    )
    return found


def events_of(
    *readings: Reading, degraded_at: float | None = None, story: Story | None = None
) -> list[Event]:
    """The events of these readings, of which those from 1,036 s on know of the degradation."""
    story, findings = story or Story(), Findings()
    for each in readings:
        known = degraded_at if degraded_at is not None and each.time >= degraded_at else None
        findings.watch(each, known)
        story.watch(each, findings, history(degraded=known))
    return story.events


def texts(*readings: Reading, degraded_at: float | None = None) -> list[str]:
    return [event.text for event in events_of(*readings, degraded_at=degraded_at)]


def test_an_event_is_one_line_with_its_seconds_and_who_did_it() -> None:
    assert Event(1_036.04, "demo", "degrades dock").line(BEGAN) == " 36.0 s  demo      degrades dock"


def test_nothing_happens_before_the_stream_begins() -> None:
    story = Story()
    story.watch(Reading(time=1.0), Findings(), History())
    assert story.events == []


def test_the_first_estimates_come_before_any_label() -> None:
    events = events_of(Reading(time=1_001.0), reading(1_006.0), reading(1_011.0))
    assert [event.time for event in events] == [BEGAN, 1_006.0]
    assert events[-1].text == "estimates the accuracy before any label: 90.0% (95% CI 80.0-100.0%)"


def test_requests_labels_and_a_narrower_interval_are_each_reported_once() -> None:
    wide, narrow = reading(1_011.0, answered=3), reading(1_021.0, answered=40, half_width=0.04)
    assert texts(reading(1_006.0), wide, wide, narrow, narrow)[2:] == [
        "requests the first labels",
        "gave the first label; the metrics count it",
        "narrows the interval from 20 to 8 points with 40 labels: 90.0% (95% CI 86.0-94.0%)",
    ]


def test_an_event_is_new_once() -> None:
    story = Story()
    story.watch(reading(1_006.0), Findings(), history())
    assert story.new_events() == story.events
    assert story.new_events() == []


def test_labels_are_given_by_you_if_it_is_you_who_labels() -> None:
    events = events_of(reading(1_006.0), reading(1_011.0, answered=3), story=Story(YOU))
    assert [event.actor for event in events] == ["demo", "Credence", "Credence", "you"]


def test_what_the_demo_does_is_dated_when_it_did_it() -> None:
    events = events_of(reading(1_006.0), reading(1_036.2), degraded_at=DEGRADED)
    assert (events[-1].time, events[-1].actor) == (DEGRADED, "demo")


def after(**changes: object) -> str:
    """The last event of a reading after the degradation."""
    found = replace(reading(1_041.0), **changes)  # type: ignore[arg-type] - fields by name
    return texts(reading(1_006.0), reading(1_036.5), found, degraded_at=DEGRADED)[-1]


def test_drift_is_suspected_without_labels() -> None:
    assert after(drifted={DOCK: 0.25}, expected={DOCK: 0.712}) == (
        "suspects dock from scores, without labels: drift score 0.25, expected accuracy 71.2%"
    )


def test_requests_move_once_their_probability_has_clearly_risen() -> None:
    assert (
        after(next_requests={NEXT: 0.85}) == "moves label requests to dock: 85% of the next ones, 40% before"
    )
    assert after(next_requests={NEXT: 0.55}).startswith("degrades dock")


def test_estimates_from_before_the_degradation_find_nothing() -> None:
    early = replace(reading(1_036.5), next_requests={NEXT: 0.9}, drifted={DOCK: 0.25})
    assert texts(reading(1_006.0), early, degraded_at=DEGRADED)[-1].startswith("degrades dock")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"groups": reading(0.0, dock=0.65, below=0.97).groups},
            "warns that dock is below 80%, with probability 0.97: 65.0% (95% CI 60.0-70.0%)",
        ),
        (
            {"groups": reading(0.0, dock=0.8).groups, "extremes": {NEXT: 0.98}},
            "finds that dock is the weakest camera, with probability 0.98",
        ),
        (
            {"confirmed": frozenset({DOCK})},
            "confirms that dock got worse, by evidence that holds under continuous monitoring",
        ),
        (
            {"confirmed": frozenset({DOCK}), "changed_at": {DOCK: 1_037.5}},
            "dates the change to 37.5 s; it happened at 36.0 s",
        ),
    ],
)
def test_what_credence_finds_is_an_event(changes: dict[str, object], text: str) -> None:
    assert after(**changes) == text


def repaired_story(**changes: object) -> Story:
    """The story of a camera that had drifted, after a reading since its repair."""
    story, findings = Story(), Findings()
    findings.drifted_at = 1_041.0
    known = history(degraded=DEGRADED, repaired=1_090.0)
    drifted = replace(reading(1_080.0), drifted={DOCK: 0.3})
    story.watch(drifted, findings, history(degraded=DEGRADED))
    story.watch(replace(reading(1_096.0), **changes), findings, known)  # type: ignore[arg-type] - by name
    return story


def test_a_repair_is_an_event_and_its_recovery_ends_the_story() -> None:
    story = repaired_story()
    assert [event.text for event in story.events[-3:]] == [
        "repairs dock; Credence does not know it",
        "sees no drift of dock any more",
        "finds dock above 80% again, with probability 1.00: 90.0% (95% CI 85.0-95.0%)",
    ]
    assert story.has(RECOVERY)


def test_a_camera_that_is_still_below_the_minimum_has_not_recovered() -> None:
    groups = reading(0.0, dock=0.7, below=0.8).groups
    assert not repaired_story(groups=groups, drifted={DOCK: 0.3}).has(RECOVERY)
