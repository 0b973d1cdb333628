"""The dashboards are what their builders make, and nothing in them leads nowhere."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from dashboard_cases import BOARDS, each_board, each_panel

from deploy.grafana import promql
from deploy.grafana.queries import (
    FOLDER,
    annotation_queries,
    panel_queries,
    panels,
    references,
    rows_and_panels,
    variable_queries,
    variables,
)
from deploy.grafana.render import dashboard_files
from service.serving.prometheus import CATALOGUE, SPECS

HISTOGRAM_PARTS = re.compile("_(bucket|sum|count)$")


def expressions(board: dict[str, Any]) -> list[str]:
    queries = [*panel_queries(board), *annotation_queries(board)]
    return [*(query.expression for query in queries), *variable_queries(board).values()]


def metrics(expression: str) -> set[str]:
    return set(re.findall(r"(?<!\$)\bcredence_\w+", expression))


def links(node: Any) -> Iterator[str]:
    """Every URL in a part of a dashboard."""
    if isinstance(node, dict):
        if url := node.get("url"):
            yield url
        for child in node.values():
            yield from links(child)
    elif isinstance(node, list):
        for child in node:
            yield from links(child)


def test_the_committed_json_is_what_the_builders_make() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert committed == dashboard_files(), "run `make docs`"


def test_uids_are_those_that_links_and_alerts_hold() -> None:
    assert [board["uid"] for board in BOARDS.values()] == list(BOARDS)
    assert set(BOARDS) == {"credence-fleet", "credence-model", "credence-pipeline"}


def test_titles_differ() -> None:
    assert len({board["title"] for board in BOARDS.values()}) == len(BOARDS)


def test_alerts_find_the_variables_that_their_links_set() -> None:
    assert {"model", "grouping", "group", "assessment", "ensemble"} <= set(
        variables(BOARDS["credence-model"])
    )


@each_board
def test_panels_have_numbers_of_their_own(board: dict[str, Any]) -> None:
    numbers = [panel["id"] for panel in rows_and_panels(board)]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param([row, *row["panels"]] if row else board["panels"], id=f"{uid}: {row and row['title']}")
        for uid, board in BOARDS.items()
        for row in (None, *(panel for panel in board["panels"] if panel.get("collapsed")))
    ],
)
def test_panels_do_not_overlap_or_stick_out(shown: list[dict[str, Any]]) -> None:
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in shown)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


@each_panel
def test_a_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")


@each_panel
def test_a_panel_has_a_unit_and_thresholds(panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    assert defaults["thresholds"]["steps"]


@each_panel
def test_every_override_by_name_names_a_column_or_a_series(panel: dict[str, Any]) -> None:
    legends = {target["legendFormat"] for target in panel["targets"]}
    columns = {
        name
        for transformation in panel.get("transformations", ())
        for name in transformation["options"].get("renameByName", {}).values()
    }
    named = {
        o["matcher"]["options"] for o in panel["fieldConfig"]["overrides"] if o["matcher"]["id"] == "byName"
    }
    assert named <= legends | columns or any("{{" in legend for legend in legends)


@each_board
def test_every_metric_is_in_the_catalogue(board: dict[str, Any]) -> None:
    for expression in expressions(board):
        assert {HISTOGRAM_PARTS.sub("", name) for name in metrics(expression)} <= set(SPECS), expression


def test_every_metric_of_the_catalogue_is_on_a_dashboard_or_left_out_on_purpose() -> None:
    shown = {
        HISTOGRAM_PARTS.sub("", name)
        for board in BOARDS.values()
        for expression in expressions(board)
        for name in metrics(expression)
    }
    left_out = {spec.name for spec in CATALOGUE if spec.off_dashboards}
    assert set(SPECS) - shown == left_out


@each_board
def test_every_query_chooses_the_jobs(board: dict[str, Any]) -> None:
    variable = variable_queries(board)["job"]
    for expression in expressions(board):
        if expression != variable:
            selectors = len(re.findall(r"(?<!\$)\bcredence_\w+\{job=~\"\$job\"[,}]", expression))
            assert selectors == len(re.findall(r"(?<!\$)\bcredence_\w+", expression)), expression


@each_board
def test_the_data_source_is_always_the_chosen_one(board: dict[str, Any]) -> None:
    text = json.dumps(board)
    chosen = '{"type": "prometheus", "uid": "${datasource}"}'
    assert text.count('"datasource":') == text.count(f'"datasource": {chosen}')


@each_board
def test_every_variable_that_is_used_is_defined(board: dict[str, Any]) -> None:
    used = {name for name in references(json.dumps(board)) if not name.startswith("__")}
    assert used <= set(variables(board))


@each_board
def test_variables_of_several_values_are_matched_as_regular_expressions(board: dict[str, Any]) -> None:
    several = {name for name, v in variables(board).items() if v["multi"] or v["includeAll"]}
    for expression in expressions(board):
        for operator, name in re.findall(r'(=~|!~|!=|=)"\$(\w+)"', expression):
            assert (operator in {"=~", "!~"}) == (name in several), expression


@each_board
def test_ratios_are_never_averaged(board: dict[str, Any]) -> None:
    for expression in expressions(board):
        assert not re.search(r"\bavg(_over_time)?\b", expression)


@each_board
def test_histograms_are_read_as_rates_of_buckets(board: dict[str, Any]) -> None:
    for expression in expressions(board):
        for name in metrics(expression):
            if SPECS[HISTOGRAM_PARTS.sub("", name)].kind == "histogram":
                assert f"rate({name}" in expression
                assert name.endswith("_bucket")


@each_board
def test_counters_are_read_as_rates(board: dict[str, Any]) -> None:
    for expression in expressions(board):
        for name in metrics(expression):
            if name in SPECS and SPECS[name].kind == "counter":
                assert re.search(rf"(rate|increase)\({name}\{{", expression), expression


@each_board
def test_links_lead_to_dashboards_and_variables_that_exist(board: dict[str, Any]) -> None:
    for url in links(board):
        if not url.startswith("/"):
            continue
        parts = urlsplit(url)
        target = BOARDS[parts.path.removeprefix("/d/")]
        set_there = {name.removeprefix("var-") for name in parse_qs(parts.query) if name.startswith("var-")}
        kept = set(re.findall(r"\$\{(\w+):queryparam\}", url))
        assert set_there | kept <= set(variables(target)), url


@each_board
def test_links_between_dashboards_keep_time_and_variables(board: dict[str, Any]) -> None:
    between = [link for link in board["links"] if link["url"].startswith("/d/")]
    assert {link["url"].removeprefix("/d/") for link in between} == set(BOARDS) - {board["uid"]}
    assert all(link["keepTime"] and link["includeVars"] for link in between)


@each_board
def test_firing_alerts_are_shown_as_annotations_and_in_a_table(board: dict[str, Any]) -> None:
    annotation = next(annotation_queries(board))
    firing = re.search(r'ALERTS\{alertstate="firing",alertname=~"Credence[^}]*\}', annotation.expression)
    assert firing is not None
    (found,) = (
        panel for panel in panels(board) if panel["title"] == "Alerts firing" and panel["type"] == "table"
    )
    assert firing[0] in found["targets"][1]["expr"]


def test_changes_of_a_models_groups_are_annotations_at_their_own_time() -> None:
    found = BOARDS["credence-model"]["annotations"]["list"][1]
    assert found["name"] == "Changes"
    assert found["useValueForTime"] is True
    assert "credence_group_confirmed_change_timestamp_seconds" in found["expr"]
    assert found["expr"].endswith("* 1000")


def test_a_query_of_an_unknown_metric_cannot_be_built() -> None:
    with pytest.raises(KeyError, match="credence_nothing"):
        promql.series("credence_nothing")


def test_a_query_by_an_unknown_label_cannot_be_built() -> None:
    with pytest.raises(KeyError, match="no label group"):
        promql.series("credence_pool_items", 'group="north"')


def test_groups_count_as_miscalibrated_with_twice_the_labels_as_in_the_alert() -> None:
    counts = {
        "credence_group_ece_above" in expression: re.sub(r"\{[^}]*\}", "", expression)
        for board in BOARDS.values()
        for expression in expressions(board)
        if "credence_alert_min_labels" in expression
    }
    least = "max by (model) (credence_alert_min_labels)"
    assert f"group_left () (2 * {least})" in counts[True]
    assert f"group_left () {least}" in counts[False]


def test_colours_of_fixed_series_are_told_apart_by_the_colour_blind() -> None:
    okabe_ito = {"#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#CC79A7", "#009E73", "#8E8E8E"}
    used = set(
        itertools.chain.from_iterable(re.findall("#[0-9A-Fa-f]{6}", json.dumps(b)) for b in BOARDS.values())
    )
    assert used <= okabe_ito


@pytest.mark.parametrize("kind", ["datasources", "dashboards"])
def test_the_provisioning_example_is_of_the_version_that_grafana_reads(kind: str) -> None:
    (path,) = (FOLDER.parent / "provisioning" / kind).glob("*.yaml")
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["apiVersion"] == 1
