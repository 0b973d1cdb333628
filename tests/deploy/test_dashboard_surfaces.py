"""What a look at the dashboards in a real Grafana found wrong, checked on their JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from dashboard_cases import BOARDS, PANELS, each_board, each_panel

from deploy.grafana.queries import panels, rows_and_panels, variable_queries

GREY = "#8E8E8E"
PIXELS = 38
"""Of one unit of height, with its gap."""


def of_type(*kinds: str) -> Any:
    return pytest.mark.parametrize("panel", [one for one in PANELS if one.values[0]["type"] in kinds])


def overrides(panel: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Properties by column or series; those of several overrides together."""
    found: dict[str, dict[str, Any]] = {}
    for one in panel["fieldConfig"]["overrides"]:
        properties = {each["id"]: each["value"] for each in one["properties"]}
        found.setdefault(one["matcher"]["options"], {}).update(properties)
    return found


def columns(panel: dict[str, Any]) -> dict[str, str]:
    """What is at the heads of a table's or a bar chart's columns, by label or value."""
    (organize,) = (one for one in panel["transformations"] if one["id"] == "organize")
    hidden = organize["options"]["excludeByName"]
    return {key: name for key, name in organize["options"]["renameByName"].items() if key not in hidden}


@each_board
def test_no_variable_has_an_id_as_grafana_keeps_one_variable_for_each_id(board: dict[str, Any]) -> None:
    assert not any("id" in variable for variable in board["templating"]["list"])


@each_board
def test_a_text_box_has_a_current_value_without_which_links_are_empty(board: dict[str, Any]) -> None:
    boxes = [one for one in board["templating"]["list"] if one["type"] == "textbox"]
    assert len(boxes) == 2
    for box in boxes:
        assert box["current"]["value"] == box["query"]
        assert [option["value"] for option in box["options"]] == [box["query"]]


@of_type("stat", "timeseries")
def test_numbers_and_lines_say_why_they_are_empty(panel: dict[str, Any]) -> None:
    assert panel["fieldConfig"]["defaults"]["noValue"]


@of_type("table", "barchart", "bargauge", "heatmap")
def test_no_text_for_no_data_fills_the_empty_cells_of_others(panel: dict[str, Any]) -> None:
    assert "noValue" not in panel["fieldConfig"]["defaults"]


@of_type("table")
def test_every_value_of_a_table_has_a_text_for_an_empty_cell(panel: dict[str, Any]) -> None:
    changed = overrides(panel)
    for key, name in columns(panel).items():
        if key.startswith("Value") and name != "Since":
            special = [one for one in changed[name]["mappings"] if one["type"] == "special"]
            assert [one["options"]["match"] for one in special] == ["null+nan"], name


@of_type("barchart", "bargauge")
def test_bars_say_why_there_are_none(panel: dict[str, Any]) -> None:
    reason = re.search(r'or on\(\) label_replace\(vector\(0\), "\w+", "([^"]+)"', panel["targets"][0]["expr"])
    assert reason is not None
    assert reason[1].startswith("no ")


@each_panel
def test_what_has_no_value_is_grey(panel: dict[str, Any]) -> None:
    found = [panel["fieldConfig"]["defaults"]["thresholds"]]
    found += [one["thresholds"] for one in overrides(panel).values() if "thresholds" in one]
    for thresholds in found:
        assert thresholds["steps"][0] == {"value": None, "color": GREY}


@each_board
def test_the_first_panel_is_vermillion_where_there_are_no_estimates_or_old_ones(
    board: dict[str, Any],
) -> None:
    first = panels(board)[0]
    assert first["title"] == "Age of estimates"
    assert first["targets"][0]["expr"].endswith("or vector(1000000000)")
    defaults = first["fieldConfig"]["defaults"]
    assert defaults["thresholds"]["steps"][-1] == {"value": 300, "color": "#D55E00"}
    assert defaults["mappings"][0]["options"]["1000000000"]["text"] == "none"


@of_type("stat")
def test_no_count_is_0_where_nothing_is_known(panel: dict[str, Any]) -> None:
    if panel["title"] not in {"Models", "Processes", "Leaders", "Alerts firing"}:
        assert "or vector(0)" not in panel["targets"][0]["expr"]


def test_alerts_about_no_model_make_no_row_of_models() -> None:
    (models,) = (
        one for one in panels(BOARDS["credence-fleet"]) if one["title"] == "Models" and one["type"] == "table"
    )
    for target in models["targets"]:
        if "ALERTS" in target["expr"]:
            assert 'model!=""' in target["expr"]


@each_board
def test_alerts_are_one_annotation_for_a_model_and_severity(board: dict[str, Any]) -> None:
    assert board["annotations"]["list"][0]["expr"].startswith("max by (model, severity) (ALERTS{")


@of_type("table", "barchart")
def test_labels_are_text_so_that_the_group_000_is_not_the_number_0(panel: dict[str, Any]) -> None:
    changed = overrides(panel)
    for key, name in columns(panel).items():
        if not key.startswith("Value"):
            assert changed[name]["unit"] == "string"


def test_what_is_not_confirmed_is_no_good_news() -> None:
    (confirmed,) = (
        one for one in panels(BOARDS["credence-model"]) if one["title"] == "Confirmed findings by group"
    )
    for name in ("Below target", "Declined", "Miscalibrated", "Changed"):
        column = overrides(confirmed)[name]
        assert [step["color"] for step in column["thresholds"]["steps"]] == [GREY, "#D55E00"]
        assert column["mappings"][0]["options"]["0"]["text"] == "no"


def test_a_model_does_not_open_on_the_combinations_of_votes() -> None:
    query = variable_queries(BOARDS["credence-model"])["grouping"]
    *before, last = query.split(" or 0 * ")
    assert all('!="__votes__"' in part or "__votes__" in part for part in before)
    assert "__votes__" not in last
    assert last.endswith("- 3))")


def test_e_values_are_on_a_logarithmic_scale() -> None:
    for panel in panels(BOARDS["credence-model"]):
        if panel["title"].startswith("E-values"):
            scale = panel["fieldConfig"]["defaults"]["custom"].get("scaleDistribution", {})
            assert scale.get("type") == "log" or "evidence_log10" in panel["targets"][0]["expr"]


@of_type("bargauge")
def test_bars_begin_at_0(panel: dict[str, Any]) -> None:
    assert panel["fieldConfig"]["defaults"]["min"] == 0
    assert "gap" not in panel["title"], "what may be negative has no bar"


@each_board
def test_firing_alerts_are_sorted_by_severity_with_room_for_their_names(board: dict[str, Any]) -> None:
    (alerts,) = (one for one in panels(board) if one["title"] == "Alerts firing" and one["type"] == "table")
    assert [one["id"] for one in alerts["transformations"]] == ["merge", "sortBy", "organize"]
    assert alerts["transformations"][1]["options"]["sort"] == [{"field": "Value #A", "desc": True}]
    for rank, severity in ((3, "critical"), (2, "warning"), (1, "info")):
        assert re.search(
            rf'{rank} \* max without \(alertstate\) \([^)]*severity="{severity}"',
            alerts["targets"][0]["expr"],
        )
    wide = overrides(alerts)
    assert wide["Alert"]["custom.width"] >= 250
    before = list(columns(alerts).values())
    pixels = [wide[name]["custom.width"] for name in before[: before.index("Group") + 1]]
    assert sum(pixels) <= 1600 * alerts["gridPos"]["w"] / 24


def test_columns_of_models_fit_a_screen() -> None:
    (models,) = (
        one for one in panels(BOARDS["credence-fleet"]) if one["title"] == "Models" and one["type"] == "table"
    )
    changed = overrides(models)
    values = [name for key, name in columns(models).items() if key.startswith("Value")]
    assert sum(changed[name]["custom.width"] for name in values) <= 1_150, (
        "so that 150 are left of each of three labels"
    )


@of_type("timeseries")
def test_axes_of_counts_have_no_tick_twice_and_no_room_for_what_never_comes(panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    if defaults["unit"] == "short":
        assert "decimals" not in defaults
    if defaults["unit"] in {"short", "count:/s", "count:/h"} and "max" not in defaults:
        assert (defaults["custom"]["axisSoftMin"], defaults["custom"]["axisSoftMax"]) == (0, 1)


@each_panel
def test_rates_are_scaled_like_counts(panel: dict[str, Any]) -> None:
    assert "suffix:" not in json.dumps(panel["fieldConfig"])


@each_panel
def test_flags_are_yes_or_no(panel: dict[str, Any]) -> None:
    flags = (
        "credence_leader{",
        "credence_performance_misfit{",
        "credence_group_drifted{",
        "evidence_confirmed{",
    )
    for target in panel["targets"]:
        if any(flag in target["expr"] for flag in flags) and not target["expr"].startswith("sum("):
            changed = overrides(panel).get(target["legendFormat"], {})
            found = [*changed.get("mappings", ()), *panel["fieldConfig"]["defaults"].get("mappings", ())]
            assert {"0", "1"} in [set(one["options"]) for one in found if one["type"] == "value"]


@of_type("timeseries")
def test_narrow_panels_have_short_legends(panel: dict[str, Any]) -> None:
    legend = panel["options"]["legend"]
    assert legend["displayMode"] == ("table" if panel["gridPos"]["w"] >= 12 else "list")


def test_rows_that_most_models_have_no_use_for_are_collapsed() -> None:
    collapsed = {
        row["title"]
        for board in BOARDS.values()
        for row in rows_and_panels(board)
        if row["type"] == "row" and row["collapsed"]
    }
    assert collapsed == {
        "Performance of a binary classifier",
        "Ensembles",
        "Challenger",
        "Error rates",
        "Costs",
        "Vendors",
        "Annotators and vendors",
        "Labels without a request",
    }


@each_board
def test_the_first_screen_has_at_most_eight_panels(board: dict[str, Any]) -> None:
    rows = [one["gridPos"]["y"] for one in board["panels"] if one["type"] == "row"]
    first = [one for one in board["panels"] if one["gridPos"]["y"] < rows[1] and one["type"] != "row"]
    assert len(first) <= 8
    assert rows[1] * PIXELS <= 900 - 120, "under Grafana's own bars"
    assert rows[1] >= 13, "what follows is below the fold"


@each_panel
def test_no_count_is_rounded_to_thousands(panel: dict[str, Any]) -> None:
    for one in (panel["fieldConfig"]["defaults"], *overrides(panel).values()):
        assert one.get("unit") != "short" or "decimals" not in one, "1,763 would be 2 K"


@of_type("stat")
def test_a_number_that_is_missing_because_credence_is_down_does_not_blame_traffic(
    panel: dict[str, Any],
) -> None:
    nothing = panel["fieldConfig"]["defaults"]["noValue"]
    assert not re.match(r"no (traffic|labels?|reference)", nothing)


def test_the_page_of_a_model_lists_alerts_about_the_whole_pipeline_too() -> None:
    (table,) = (one for one in panels(BOARDS["credence-model"]) if one["title"] == "Alerts firing")
    for target in table["targets"]:
        assert 'model="$model"' in target["expr"]
        assert 'model=""' in target["expr"]


@of_type("table")
def test_no_probability_is_rounded_to_certainty(panel: dict[str, Any]) -> None:
    for name, one in overrides(panel).items():
        if name.startswith("P("):
            words = [each["options"]["result"]["text"] for each in one["mappings"] if each["type"] == "range"]
            assert words == ["over 99.9%", "under 0.1%"]
