"""An outage is logged once, then by the minute, and once when it is over."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from service.telemetry.logs import configure_logs
from service.telemetry.outages import Outages

KAFKA = "kafka is unavailable"


class Watch:
    """A stopwatch that a test sets, and what was logged by it."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        self.now = 0.0
        self.outages = Outages(lambda: self.now)
        self._caplog = caplog

    def lines(self) -> list[tuple[str, Any]]:
        """What was logged since this was asked last, with the length of the outage."""
        found = [(record.getMessage(), vars(record)["down_seconds"]) for record in self._caplog.records]
        self._caplog.clear()
        return found


@pytest.fixture
def watch(caplog: pytest.LogCaptureFixture) -> Watch:
    return Watch(caplog)


def test_an_outage_is_logged_once_and_then_by_the_minute_with_its_length(watch: Watch) -> None:
    for second in range(150):
        watch.now = float(second)
        watch.outages.failed("labels", KAFKA, "refused")
    assert watch.lines() == [(KAFKA, 0), (KAFKA, 60), (KAFKA, 120)]


def test_parts_that_see_the_same_outage_log_it_once(watch: Watch) -> None:
    for source in ("predictions", "labels", "rounds"):
        watch.outages.failed(source, KAFKA, "refused")
    assert watch.lines() == [(KAFKA, 0)]


def test_the_end_of_an_outage_is_logged_once_when_all_parts_work_again(watch: Watch) -> None:
    for source in ("predictions", "labels"):
        watch.outages.failed(source, KAFKA, "refused")
    watch.now = 30.0
    watch.outages.failed("labels", KAFKA, "refused")
    watch.outages.works("predictions")
    assert watch.lines() == [(KAFKA, 0)]
    watch.now = 60.0
    for source in ("predictions", "labels", "labels"):
        watch.outages.works(source)
    assert watch.lines() == [(f"over: {KAFKA}", 30)]


def test_a_moment_without_a_failure_does_not_end_an_outage(watch: Watch) -> None:
    for second in range(0, 60, 5):
        watch.now = float(second)
        watch.outages.failed("labels", KAFKA, "refused")
        watch.outages.works("labels")
    assert watch.lines() == [(KAFKA, 0)]


def test_a_part_that_has_reached_the_server_ends_its_outage_at_once(watch: Watch) -> None:
    watch.outages.failed("start", KAFKA, "refused")
    watch.now = 5.0
    watch.outages.works("start", contact=True)
    assert watch.lines() == [(KAFKA, 0), (f"over: {KAFKA}", 5)]


def test_another_problem_of_the_same_part_takes_the_place_of_the_first(watch: Watch) -> None:
    watch.outages.failed("labels", KAFKA, "refused")
    for watch.now in (1.0, 9.0):
        watch.outages.failed("labels", "topic labels does not exist", "")
    assert watch.lines() == [(KAFKA, 0), ("topic labels does not exist", 0)]
    watch.now = 30.0
    watch.outages.works("labels")
    assert watch.lines() == [("over: topic labels does not exist", 8)]


def test_a_part_that_never_failed_logs_nothing(watch: Watch) -> None:
    watch.outages.works("labels")
    watch.outages.failed("labels", KAFKA, "refused")
    watch.outages.works("rounds", contact=True)
    assert watch.lines() == [(KAFKA, 0)]


@pytest.mark.parametrize(("level", "is_shown"), [("info", False), ("debug", True)])
def test_the_kafka_client_s_account_of_failures_is_shown_for_debugging_alone(
    level: str, is_shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    handlers, before = root.handlers, root.level
    try:
        configure_logs(level)
        logging.getLogger("kafka.net.manager").error("Connection failed")
        logging.getLogger("kafka.producer").error("unforeseen", exc_info=ValueError("x"))
        logging.getLogger("redis").warning("another library")
    finally:
        root.handlers, root.level = handlers, before
    lines = capsys.readouterr().err
    assert ("Connection failed" in lines) is is_shown
    assert "unforeseen" in lines
    assert "another library" in lines
