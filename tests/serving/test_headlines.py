"""The state of a model in a line: all is well only where that could be known."""

from __future__ import annotations

import http.client
from dataclasses import replace
from typing import Any

import pytest
from snapshots import NOW, drifting, mail, performance, snapshot

from service.monitoring.pipeline_problem import PipelineProblem
from service.monitoring.problem import Severity
from service.monitoring.problems import problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.problems import Headline, model_headline, problem_states
from service.serving.web.api import SnapshotView
from service.serving.web.pages import page_app
from service.serving.web.server import WebServer

WELL = snapshot(8, alerts={"min_accuracy": 0.5})
DAY = 86_400.0


def line(taken: ModelSnapshot | None, *, now: float = NOW + 1) -> Headline:
    return model_headline(taken, now=now, tick_seconds=5.0)


def with_traffic_at(time: float) -> ModelSnapshot:
    return replace(WELL, trends=replace(WELL.trends, traffic_at=time))


def test_with_traffic_labels_and_fresh_estimates_no_problem_is_told_as_well() -> None:
    assert line(WELL).status == "ok"
    assert line(WELL).title == "No problems"
    assert line(WELL).detail == (
        "None of 6 groups violates a threshold (95% confidence). "
        "Undecided, more labels needed: 3 of 3 by class."
    )


@pytest.mark.parametrize(
    ("taken", "now", "status", "title"),
    [
        (None, NOW, "no_estimates", "No estimates yet"),
        (snapshot(0, traffic=False), NOW, "no_traffic", "No traffic yet"),
        (with_traffic_at(NOW - 1.01 * DAY), NOW, "no_traffic", "No recent traffic"),
        (with_traffic_at(NOW - 0.99 * DAY), NOW, "ok", "No problems"),
        (snapshot(0, alerts={"min_accuracy": 0.5}), NOW, "no_labels", "No labels yet"),
        (snapshot(8), NOW, "no_threshold", "No threshold is configured"),
        (mail(None, alerts={"max_ece": 0.9}), NOW, "no_estimates", "No estimate of performance yet"),
        (mail(performance(), alerts={"max_ece": 0.9}), NOW, "ok", "No problems"),
        (WELL, NOW + 20, "ok", "No problems"),
        (WELL, NOW + 21, "no_estimates", "Estimates are late"),
        (WELL, NOW + 301, "critical", "1 problem: 1 critical"),
    ],
)
def test_what_is_missing_is_told_instead(
    taken: ModelSnapshot | None, now: float, status: str, title: str
) -> None:
    found = line(taken, now=now)
    assert (found.status, found.title) == (status, title)


def test_the_line_tells_numbers_then_the_worst_problem() -> None:
    found = line(drifting())
    assert found.title == "4 problems: 2 warning, 2 info"
    assert found.detail.startswith("Drift: all traffic. Drift score 0.1")
    assert (found.critical, found.warning, found.info) == (0, 2, 2)


def test_calibration_that_is_known_to_be_within_its_threshold_is_no_problem() -> None:
    watched: Any = {"reference": {"labels": 20}, "forgetting": {"after_change": False}}
    for most, kinds in ((0.9, set()), (None, {"miscalibrated"})):
        taken = snapshot(100, alerts={"max_ece": most} if most else {}, **watched)
        assert {one.kind for one in problems(taken, NOW)} - {"less_accurate"} == kinds


def test_miscalibration_without_a_threshold_is_one_entry_for_every_grouping_and_fires_no_alert() -> None:
    found = [one for one in problem_states(problems(snapshot(), NOW)) if one.kind == "miscalibrated"]
    assert {one.grouping for one in found} == {"class", "score_bin"}
    assert {(one.severity, one.alert) for one in found} == {("info", None)}


def test_an_answer_that_a_client_has_grows_old() -> None:
    clock = [NOW + 1]
    view = SnapshotView(["m"], {"m": WELL}, 5.0, lambda: clock[0])
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
    found = model_headline(WELL, pipeline=[trouble], now=NOW + 1, tick_seconds=5.0)
    assert (found.status, found.title) == (severity, "The pipeline has a problem")
    assert (found.problem_count, found.pipeline_problem_count) == (0, 1)


def test_the_worst_of_model_and_pipeline_comes_first() -> None:
    trouble = PipelineProblem("redis_reset", "critical", "CredenceRedisReset", NOW, "Redis was emptied.")
    found = model_headline(drifting(), pipeline=[trouble], now=NOW + 1, tick_seconds=5.0)
    assert (found.status, found.detail) == ("critical", "Redis was emptied.")
    assert found.problem_count == 4
    lesser = replace(trouble, severity="info")
    found = model_headline(drifting(), pipeline=[lesser], now=NOW + 1, tick_seconds=5.0)
    assert found.title == "4 problems: 2 warning, 2 info"
