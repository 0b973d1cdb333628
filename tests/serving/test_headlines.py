"""The state of a model in a line: all is well only where that could be known."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from snapshots import NOW, drifting, mail, performance, snapshot

from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.pipeline_problem import PipelineProblem
from service.monitoring.problem import Severity
from service.monitoring.problems import problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.models import model_state
from service.serving.documents.problems import Headline, model_headline
from service.serving.web.api import SnapshotView
from service.serving.web.pages import page_app
from service.serving.web.server import WebServer

DAY = 86_400.0


def well() -> ModelSnapshot:
    return snapshot(8, alerts={"min_accuracy": 0.5})


def line(taken: ModelSnapshot | None, *, now: float = NOW + 1) -> Headline:
    return model_headline(taken, now=now, tick_seconds=5.0)


def with_traffic_at(time: float) -> ModelSnapshot:
    return replace(well(), trends=replace(well().trends, traffic_at=time))


def test_with_traffic_labels_and_fresh_estimates_no_problem_is_told_as_well() -> None:
    assert line(well()).status == "ok"
    assert line(well()).title == "No problems"
    assert line(well()).detail == (
        "None of 6 groups violates a threshold (95% confidence). "
        "Undecided, more labels needed: 3 of 3 by class."
    )


@pytest.mark.parametrize(
    ("taken", "now", "status", "title"),
    [
        (lambda: None, NOW, "no_estimates", "No estimates yet"),
        (lambda: snapshot(0, traffic=False), NOW, "no_traffic", "No traffic yet"),
        (lambda: with_traffic_at(NOW - 1.01 * DAY), NOW, "no_traffic", "No recent traffic"),
        (lambda: with_traffic_at(NOW - 0.99 * DAY), NOW, "ok", "No problems"),
        (lambda: snapshot(0, alerts={"min_accuracy": 0.5}), NOW, "no_labels", "No labels yet"),
        (lambda: snapshot(8), NOW, "no_threshold", "No threshold is configured"),
        (lambda: mail(None, alerts={"max_ece": 0.9}), NOW, "no_estimates", "No estimate of performance yet"),
        (lambda: mail(performance(), alerts={"max_ece": 0.9}), NOW, "ok", "No problems"),
        (well, NOW + 20, "ok", "No problems"),
        (well, NOW + 21, "no_estimates", "Estimates are late"),
        (well, NOW + 301, "critical", "1 problem: 1 critical"),
    ],
)
def test_what_is_missing_is_told_instead(
    taken: Callable[[], ModelSnapshot | None], now: float, status: str, title: str
) -> None:
    found = line(taken(), now=now)
    assert (found.status, found.title) == (status, title)


def test_the_line_tells_numbers_then_the_worst_problem() -> None:
    found = line(drifting())
    assert found.title == "2 problems: 2 warning"
    assert found.detail.startswith("Drift: all traffic. Drift score 0.1")
    assert (found.critical, found.warning, found.info) == (0, 2, 0)


def miscalibrated(max_ece: float | None) -> ModelSnapshot:
    """A model whose miscalibration labels confirm."""
    watched: Any = {"reference": {"labels": 20}, "forgetting": {"after_change": False}}
    alerts = {"min_accuracy": 0.3} | ({} if max_ece is None else {"max_ece": max_ece})
    taken = snapshot(100, alerts=alerts, **watched)
    assert all(one.evidence and one.evidence.confirmed["miscalibrated"].any() for one in groupings(taken))
    return taken


def groupings(taken: ModelSnapshot) -> list[GroupingSnapshot]:
    return [one for name, one in taken.groupings.items() if name != "all"]


def test_calibration_that_is_known_to_be_within_its_threshold_is_neither_a_problem_nor_a_note() -> None:
    for most, kinds in ((0.9, set()), (None, {"miscalibrated"})):
        assert {one.kind for one in miscalibrated(most).notes} == kinds


def test_miscalibration_that_no_alert_fires_about_is_a_note_and_the_model_is_well() -> None:
    taken = miscalibrated(None)
    assert [one.kind for one in problems(taken, NOW)] == []
    assert (line(taken).status, line(taken).title, line(taken).info) == ("ok", "No problems", 0)
    state = model_state(taken, now=NOW, tick_seconds=5.0)
    assert {one.grouping for one in state.notes} == {"class", "score_bin"}
    assert {(one.severity, one.alert) for one in state.notes} == {("info", None)}
    assert all("set alerts.max_ece" in one.action for one in state.notes)
    assert state.problems == []
    assert not any(one.problems for one in state.groupings)


def test_above_the_threshold_the_same_miscalibration_is_a_problem() -> None:
    taken = miscalibrated(0.1)
    assert {one.severity for one in problems(taken, NOW) if one.kind == "miscalibrated"} >= {"critical"}


def test_an_answer_that_a_client_has_grows_old() -> None:
    clock = [NOW + 1]
    view = SnapshotView(["m"], {"m": well()}, 5.0, lambda: clock[0])
    server = WebServer(page_app(view), name="page", host="127.0.0.1", port=0)
    try:
        tags, statuses = [], []
        for now in (NOW + 1, NOW + 2, NOW + 60, NOW + 400):
            clock[0] = now
            status, tag = asked(server.port, tags[-1] if tags else "")
            statuses.append(status)
            tags.append(tag)
        assert statuses == [200, 304, 200, 200]
    finally:
        server.stop()


def asked(port: int, known: str) -> tuple[int, str]:
    """Status and tag of the answer about the model."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/api/v1/models/m", headers={"If-None-Match": known} if known else {})
    reply = connection.getresponse()
    reply.read()
    return reply.status, reply.getheader("ETag") or ""


@pytest.mark.parametrize("severity", ["critical", "warning"])
def test_a_problem_of_the_pipeline_is_worse_than_that_nothing_is_known(severity: Severity) -> None:
    trouble = PipelineProblem("no_leader", severity, "CredenceNoLeader", None, "No process leads.")
    found = model_headline(well(), pipeline=[trouble], now=NOW + 1, tick_seconds=5.0)
    assert (found.status, found.title) == (severity, "The pipeline has a problem")
    assert (found.problem_count, found.pipeline_problem_count) == (0, 1)


def test_the_worst_of_model_and_pipeline_comes_first() -> None:
    trouble = PipelineProblem("redis_reset", "critical", "CredenceRedisReset", NOW, "Redis was emptied.")
    found = model_headline(drifting(), pipeline=[trouble], now=NOW + 1, tick_seconds=5.0)
    assert (found.status, found.detail) == ("critical", "Redis was emptied.")
    assert found.problem_count == 2
    lesser = replace(trouble, severity="info")
    found = model_headline(drifting(), pipeline=[lesser], now=NOW + 1, tick_seconds=5.0)
    assert found.title == "2 problems: 2 warning"
