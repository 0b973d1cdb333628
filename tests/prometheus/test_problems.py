"""While an alert fires, no surface says that all is well; the rules are the committed ones."""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from alerting_states import MINUTE, State, pipeline_states, states
from committed_alerting import ROOT
from missing_programs import program
from monitoring_servers import get_json
from prometheus_client import CollectorRegistry
from rich.console import Console
from starlette.types import ASGIApp

from service.app.status_command import status_view
from service.monitoring.pipeline_problems import pipeline_problems
from service.monitoring.problems import problems
from service.serving.documents.problems import Headline, model_headline
from service.serving.prometheus import SnapshotCollector
from service.serving.web.api import SnapshotView
from service.serving.web.monitoring import monitoring_app
from service.serving.web.pages import page_app
from service.serving.web.server import WebServer
from service.telemetry.health import Health

RULES = ROOT / "deploy/prometheus"
RULE_FILES = [RULES / "credence.recording.rules.yaml", RULES / "credence.rules.yaml"]
RECORDING, GROUPS = (yaml.safe_load(path.read_text())["groups"] for path in RULE_FILES)
ALL_GROUPS = [*RECORDING, *GROUPS]
ALL_RULES = [rule for group in ALL_GROUPS for rule in group["rules"]]
SEVERITIES = {rule["alert"]: rule["labels"]["severity"] for group in GROUPS for rule in group["rules"]}
_EXAMPLE = "an example for Sloth about past weeks"
NOT_SHOWN = {
    "CredenceTargetAbsent": "no process runs that could show it",
    "CredenceRecordingRulesMissing": "no process knows which rules Prometheus evaluates",
    "CredenceLabelsNotJoined": "only the consumer of labels counts what becomes of them",
    "CredenceReplicaDown": "no process knows which targets Prometheus scrapes; a silent consumer is `info`",
    "CredenceObjectiveBurning": f"{_EXAMPLE}; groups that miss their target now are problems",
    "CredenceObjectiveUndecided": f"{_EXAMPLE}; the page counts undecided groups",
}
"""Alerts that no surface can show, and why."""

SHOWN = sorted(set(SEVERITIES) - set(NOT_SHOWN))
DOCUMENT = ROOT / "docs/alerting.md"
TICK = 5.0

the_states = cache(states)


def found(alert: str) -> tuple[str, tuple[str, ...]]:
    """Severity and alerts of the problem that stands for an alert in its state."""
    state = the_states()[alert]
    if state.pipeline is not None:
        every = [one for one in pipeline_problems(state.pipeline, state.now) if one.alert is not None]
        return next((one.severity, (alert,)) for one in every if one.alert == alert)
    return next((one.severity, one.alerts) for one in problems(state.taken, state.now) if alert in one.alerts)


@contextmanager
def listening(app: ASGIApp) -> Iterator[str]:
    """The address of a served application."""
    server = WebServer(app, name="test", host="127.0.0.1", port=0)
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()


def api(state: State) -> tuple[Any, Any]:
    """What the API says of all models and the pipeline, and of the one model."""
    view = SnapshotView(["m"], {"m": state.taken}, TICK, lambda: state.now, pipeline=lambda: state.pipeline)
    with listening(page_app(view)) as url:
        return get_json(f"{url}/api/v1/models"), get_json(f"{url}/api/v1/models/m")


def shown_problem(alert: str, overview: Any, model: Any) -> Any:
    """The problem that stands for an alert, as the API shows it."""
    of_pipeline = (overview["pipeline"] or {"problems": []})["problems"]
    return next(
        one for one in (*of_pipeline, *model["problems"]) if alert in one.get("alerts", [one.get("alert")])
    )


def headline(state: State) -> Headline:
    pipeline = pipeline_problems(state.pipeline, state.now)
    return model_headline(state.taken, pipeline=pipeline, now=state.now, tick_seconds=TICK)


def committed_alerts() -> Iterator[str]:
    """Names of all alerts of deploy/prometheus: of rule files, and of objectives."""
    for path in RULES.glob("*.yaml"):
        document = yaml.safe_load(path.read_text())
        if path.name.endswith(".test.yaml"):
            continue
        for group in document.get("groups", ()):
            yield from (rule["alert"] for rule in group["rules"] if "alert" in rule)
        yield from (slo["alerting"]["name"] for slo in document.get("slos", ()))


def test_every_alert_has_a_state_or_a_reason_why_no_surface_can_show_it() -> None:
    assert sorted((*the_states(), *NOT_SHOWN)) == sorted(committed_alerts())


@pytest.mark.parametrize("alert", SHOWN)
def test_a_problem_stands_for_an_alert_and_is_as_severe_as_the_most_severe_of_its_alerts(alert: str) -> None:
    severity, alerts = found(alert)
    order = ["critical", "warning", "info"]
    assert severity == min((SEVERITIES[one] for one in alerts), key=order.index)
    assert SEVERITIES[alerts[0]] == severity


def test_every_alert_fires_in_its_state(tmp_path: Path) -> None:
    promtool = program("promtool", package="prometheus")
    for alert, state in the_states().items():
        rules = tmp_path / f"{alert}.rules.yaml"
        rules.write_text(yaml.safe_dump({"groups": rules_behind(alert)}))
        # An evaluation for every four scrapes: rules look minutes back, and alerts wait for longer.
        test = promtool_test(alert, state, [rules], evaluations=state.steps // 4)
        test["tests"][0]["promql_expr_test"] = [
            {
                "expr": f'group(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                "eval_time": f"{state.steps * state.step / MINUTE:.0f}m",
                "exp_samples": [{"labels": "{}", "value": 1}],
            }
        ]
        (tmp_path / f"{alert}.test.yaml").write_text(yaml.safe_dump(test))
    assert_passes(promtool, tmp_path)


def test_no_rule_fails_in_any_state(tmp_path: Path) -> None:
    promtool = program("promtool", package="prometheus")
    for alert, state in the_states().items():
        # A few evaluations of all rules show a rule that is ambiguous there.
        test = promtool_test(alert, state, RULE_FILES, evaluations=4)
        (tmp_path / f"{alert}.test.yaml").write_text(yaml.safe_dump(test))
    assert_passes(promtool, tmp_path)


def assert_passes(promtool: str, folder: Path) -> None:
    files = sorted(folder.glob("*.test.yaml"))
    done = subprocess.run([promtool, "test", "rules", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]


def rules_behind(alert: str) -> list[dict[str, Any]]:
    """The groups of rules, without those that the alert and its texts do not use, even indirectly."""
    used = {alert}
    while True:
        texts = " ".join(str(rule) for rule in ALL_RULES if _name(rule) in used)
        more = {_name(rule) for rule in ALL_RULES if "record" in rule and rule["record"] in texts} - used
        if not more:
            break
        used |= more
    kept = (
        {**group, "rules": [rule for rule in group["rules"] if _name(rule) in used]} for group in ALL_GROUPS
    )
    return [group for group in kept if group["rules"]]


def _name(rule: dict[str, Any]) -> str:
    return str(rule.get("alert") or rule["record"])


def promtool_test(alert: str, state: State, files: list[Path], *, evaluations: int) -> dict[str, Any]:
    """The state of an alert as a test of rules, which are evaluated so many times."""
    used = "".join(path.read_text() for path in files)
    return {
        "rule_files": [str(path) for path in files],
        "group_eval_order": [group["name"] for group in ALL_GROUPS],
        "evaluation_interval": f"{state.steps * state.step / MINUTE / evaluations:.0f}m",
        "tests": [
            {
                "name": alert,
                "interval": f"{state.step / MINUTE:.0f}m",
                "input_series": [
                    {"series": f"{name}{{{_labels(labels)}}}", "values": values}
                    for name, labels, values in state.series()
                    if name in used
                ],
            }
        ],
    }


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())


@pytest.mark.parametrize("alert", SHOWN)
def test_while_an_alert_fires_all_surfaces_say_the_same_and_none_that_all_is_well(alert: str) -> None:
    state = the_states()[alert]
    line = headline(state)
    assert line.status in {"critical", "warning", "info"}

    overview, model = api(state)
    assert overview["models"][0]["headline"] == model["headline"] == line.model_dump()
    assert shown_problem(alert, overview, model)["severity"] == found(alert)[0]

    console = Console(file=io.StringIO(), width=2_000)
    console.print(status_view([state.taken], state.pipeline, now=state.now, tick_seconds=TICK))
    text = console.file.getvalue()
    assert (line.title if state.pipeline is None else line.detail) in text
    assert "No problems" not in text

    health = Health()
    health.report_models(lambda: {"m": line.status})
    health.started()
    with listening(monitoring_app(CollectorRegistry(), health)) as url:
        # Status 200: a sick model takes no process out of service.
        assert get_json(f"{url}/readyz")["models"] == {"m": line.status}

    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: [state.taken], group_limit=200, clock=lambda: state.now))
    for severity in ("critical", "warning", "info"):
        labels = {"model": "m", "severity": severity}
        assert registry.get_sample_value("credence_model_problems", labels) == getattr(line, severity)


def test_the_table_of_alerts_and_surfaces_is_that_of_the_documents() -> None:
    table = re.search(
        r"<!-- surfaces[^>]*-->\n(.*?)\n<!-- end of surfaces -->", DOCUMENT.read_text(), re.DOTALL
    )
    assert table is not None
    assert table[1] == surfaces(), f"the table in {DOCUMENT} is to be:\n{surfaces()}"


@cache
def surfaces() -> str:
    """Every alert, and what the surfaces say while it fires."""
    rows = [
        "| alert | page and API: problem | headline, `credence status` | `/readyz` |",
        "| --- | --- | --- | --- |",
    ]
    for alert in SHOWN:
        state = the_states()[alert]
        shown = shown_problem(alert, *api(state))
        line = headline(state)
        title = shown["title"] if state.pipeline is None else f"pipeline: `{shown['key']}`"
        rows.append(f"| {alert} | {title} ({shown['severity']}) | {line.title} | `{line.status}` |")
    rows += [f"| {alert} | none: {why} | - | - |" for alert, why in NOT_SHOWN.items()]
    return "\n".join(rows)


@pytest.mark.parametrize("alert", sorted(pipeline_states()))
def test_the_runbook_of_an_alert_about_the_pipeline_names_its_problem(alert: str) -> None:
    key = shown_problem(alert, *api(the_states()[alert]))["key"].partition(":")[0]
    assert f"`{key}" in (ROOT / f"docs/runbooks/{alert}.md").read_text()


def test_no_cell_of_the_table_says_that_all_is_well() -> None:
    assert "No problems" not in surfaces()
    assert "`ok`" not in surfaces()
