"""The alert rules, their tests, their runbooks, and the metrics that they stand on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.serving.prometheus import SPECS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/prometheus"
RUNBOOKS = ROOT / "docs/runbooks"


def _read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def _rules(name: str) -> list[dict[str, Any]]:
    return [rule for group in _read(name)["groups"] for rule in group["rules"]]


@cache
def _tests() -> list[dict[str, Any]]:
    return [test for path in FOLDER.glob("*.test.yaml") for test in yaml.safe_load(path.read_text())["tests"]]


@cache
def _cases() -> list[dict[str, Any]]:
    return [case for test in _tests() for case in test.get("alert_rule_test", [])]


RULES = _rules("credence.rules.yaml")
RECORDING = _rules("credence.recording.rules.yaml")
ALERTS = {rule["alert"]: rule for rule in RULES}
RECORDED = {rule["record"] for rule in RECORDING}
EXPRESSIONS = {rule.get("alert") or rule["record"]: rule["expr"] for rule in RULES + RECORDING}

LEVELS = {
    "instance_model": {"namespace", "job", "instance", "model"},
    "instance_assessment": {"namespace", "job", "instance", "model", "assessment"},
    "job": {"namespace", "job"},
    "model": {"namespace", "job", "model"},
    "grouping": {"namespace", "job", "model", "grouping"},
    "group": {"namespace", "job", "model", "grouping", "group"},
    "evidence": {"namespace", "job", "model", "grouping", "group", "kind"},
    "assessment": {"namespace", "job", "model", "assessment"},
    "measure": {"namespace", "job", "model", "assessment", "measure"},
    "member": {"namespace", "job", "model", "assessment", "member"},
    "vendor": {"namespace", "job", "model", "vendor"},
    "challenged": {"namespace", "job", "model", "assessment", "grouping", "group"},
    "rate": {"namespace", "job", "model", "assessment", "grouping", "rate"},
    "rated": {"namespace", "job", "model", "assessment", "grouping", "group", "rate"},
    "grouped": {"namespace", "job", "model", "assessment", "grouping", "group"},
    "topic": {"namespace", "job", "topic"},
    "topic_reason": {"namespace", "job", "topic", "reason"},
}
TARGET = {"namespace", "job", "instance"}
PAGE = "https://credence.example/"
DASHBOARDS = "https://grafana.example/d/"
WORDS = {"and", "or", "unless", "by", "on", "without", "ignoring", "group_left", "group_right", "offset"}
NAME = re.compile(r"(?<![\w:.])[a-zA-Z_:][\w:]*")
LABEL_LIST = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")
MATCHERS = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
TOLD_IN_TEXTS = re.compile(r'printf "([\w:]+)%s"')


def _metrics(expression: str) -> set[str]:
    """Names of the metrics in an expression: what is no word of the language, no function, no label."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]', " ", LABEL_LIST.sub(" ", expression))
    functions = set(re.findall(r"([a-z_0-9]+)\s*\(", bare))
    return set(NAME.findall(bare)) - functions - WORDS


def _labels_of(metric: str) -> set[str]:
    if metric in SPECS:
        return TARGET | set(SPECS[metric].labels)
    return TARGET if metric == "up" else LEVELS[metric.split(":", maxsplit=1)[0]]


def _known(metric: str) -> bool:
    family = re.sub(r"_(bucket|sum|count)$", "", metric)
    histogram = family in SPECS and SPECS[family].kind == "histogram"
    return metric in SPECS or histogram or metric in RECORDED or metric == "up"


def _cases_of(alert: str) -> Iterator[dict[str, Any]]:
    return (case for case in _cases() if case["alertname"] == alert)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_metric_of_a_rule_is_in_the_catalogue_or_recorded(name: str) -> None:
    metrics = _metrics(EXPRESSIONS[name])
    assert metrics
    assert {metric for metric in metrics if not _known(metric)} == set()


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_label_of_a_rule_is_one_that_its_metric_has(name: str) -> None:
    expression = EXPRESSIONS[name]
    for metric, matchers in MATCHERS.findall(expression):
        assert set(re.findall(r"(\w+)\s*[!=]", matchers)) <= _labels_of(metric)
    there = set().union(*map(_labels_of, _metrics(expression)))
    for labels in LABEL_LIST.findall(expression):
        assert set(re.findall(r"\w+", labels)) <= there


@pytest.mark.parametrize("rule", RECORDING, ids=lambda rule: str(rule["record"]))
def test_a_recorded_metric_is_called_by_level_metric_and_operation(rule: dict[str, Any]) -> None:
    level, metric, operation = rule["record"].split(":")
    assert level in LEVELS
    assert metric.startswith("credence_")
    assert operation
    assert "avg" not in rule["expr"]  # an average of ratios is no ratio


def test_everything_that_is_recorded_is_used() -> None:
    texts = [*EXPRESSIONS.values(), str([rule["annotations"] for rule in RULES])]
    used = " ".join(texts) + (FOLDER / "credence.slo.yaml").read_text()
    assert {name for name in RECORDED if name not in used} == set()


@pytest.mark.parametrize("rule", RULES, ids=ALERTS)
def test_an_alert_says_how_bad_it_is_what_it_is_and_where_to_look(rule: dict[str, Any]) -> None:
    name, found = rule["alert"], rule["annotations"]
    assert re.fullmatch(r"Credence([A-Z][a-z]+)+", name)
    assert set(rule["labels"]) == {"severity"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert set(found) == {"summary", "description", "runbook_url", "page_url", "dashboard_url"}
    assert found["runbook_url"] == f"{PAGE}docs/runbooks/{name}"
    assert found["page_url"].startswith(PAGE)
    assert re.match(rf"{DASHBOARDS}credence-(fleet|model|pipeline)\b", found["dashboard_url"])


@pytest.mark.parametrize("rule", RULES, ids=ALERTS)
def test_values_in_links_are_escaped(rule: dict[str, Any]) -> None:
    for link in ("page_url", "dashboard_url"):
        values = re.findall(r"\{\{\s*(?:\$labels|\.)[^}]*\}\}", rule["annotations"][link])
        assert all("| urlquery }}" in value for value in values)


@pytest.mark.parametrize("rule", RULES, ids=ALERTS)
def test_every_metric_that_an_alerts_text_asks_for_is_known(rule: dict[str, Any]) -> None:
    asked = set(TOLD_IN_TEXTS.findall(rule["annotations"]["description"]))
    assert {metric for metric in asked if not _known(metric)} == set()


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_is_tested_by_what_fires_it_and_by_what_must_not(alert: str) -> None:
    cases = list(_cases_of(alert))
    assert any(case["exp_alerts"] for case in cases)
    assert any(not case["exp_alerts"] for case in cases)


@pytest.mark.parametrize("alert", ALERTS)
def test_what_an_alert_says_is_tested_word_for_word_and_in_whole_sentences(alert: str) -> None:
    for case in _cases_of(alert):
        for expected in case["exp_alerts"]:
            found = expected["exp_annotations"]
            assert set(found) == set(ALERTS[alert]["annotations"])
            assert re.fullmatch(r"[A-Z][^{}]*\.", found["summary"])
            assert re.fullmatch(r"[A-Z][^{}]*\.", found["description"])
            assert "<no value>" not in str(found)


def test_no_test_is_of_an_alert_that_is_gone() -> None:
    assert {case["alertname"] for case in _cases()} == set(ALERTS)


def test_the_objectives_queries_are_those_that_are_tested() -> None:
    tested = {
        re.sub(r"\[\d+m\]|\s", "", case["expr"])
        for test in _tests()
        for case in test.get("promql_expr_test", [])
    }
    for objective in _read("credence.slo.yaml")["slos"]:
        events = objective["sli"]["events"]
        error, total = (
            re.sub(r"\[\{\{\.window\}\}\]|\s", "", events[key]).replace('model="sorter"', 'model="m"')
            for key in ("error_query", "total_query")
        )
        assert f"round({error}/{total},0.001)" in tested


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"} == set(ALERTS)


def test_the_index_of_runbooks_lists_every_alert_with_its_severity() -> None:
    index = (RUNBOOKS / "README.md").read_text()
    rows = dict(re.findall(r"^\| \[(\w+)\]\(\1\.md\) \| (\w+) \|", index, flags=re.MULTILINE))
    assert rows == {name: rule["labels"]["severity"] for name, rule in ALERTS.items()}


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_has_the_same_sections_as_all_others_and_is_short(alert: str) -> None:
    lines = (RUNBOOKS / f"{alert}.md").read_text().splitlines()
    assert lines[0] == f"# {alert}"
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == [
        "What it means",
        "How sure it is",
        "Look first",
        "Likely causes",
        "What to do",
        "When it ends",
        "False alarms",
    ]
    assert len(lines) <= 60


@pytest.mark.parametrize("alert", ALERTS)
def test_the_queries_of_a_runbook_name_metrics_that_exist(alert: str) -> None:
    text = (RUNBOOKS / f"{alert}.md").read_text()
    blocks = re.findall(r"```promql\n(.*?)```", text, flags=re.DOTALL)
    queries = [line for block in blocks for line in block.splitlines()]
    assert queries
    for query in queries:
        assert {metric for metric in _metrics(query) if not _known(metric)} == set()
