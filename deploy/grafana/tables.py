"""Tables and bar charts of instant queries that are joined by the labels that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import barchart, common, table
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as formats

from deploy.grafana import looks
from deploy.grafana.frame import link_to_model, link_to_runbook
from deploy.grafana.panels import Query, Says, dressed

Link = Mapping[str, object]


@dataclass(frozen=True)
class Column:
    """A column: one query, one value for each row.

    Attributes:
        name: at its head.
        expression: PromQL.
        unit: of its values.
        decimals: of its values.
        steps: colours of the text by value; none where it is None.
    """

    name: str
    expression: str
    unit: str
    decimals: int | None = None
    steps: looks.Steps | None = None


def _queries(columns: Sequence[Column]) -> list[Query]:
    return [
        Query(column.expression, column.name, instant=True, format=formats.PromQueryFormat.TABLE, ref=ref)
        for ref, column in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", columns, strict=False)
    ]


def _joined(keys: Mapping[str, str], columns: Sequence[Column]) -> list[model.DataTransformerConfig]:
    # Grafana calls the values of one table query `Value`, and those of several `Value #A`, `Value #B`, …
    values = {f"Value #{query.ref}": query.legend for query in _queries(columns)}
    if len(columns) == 1:
        values = {"Value": columns[0].name}
    names = dict(keys) | values
    return [
        model.DataTransformerConfig("merge", options={}),
        model.DataTransformerConfig(
            "organize",
            options={
                "excludeByName": {"Time": True},
                "indexByName": {name: place for place, name in enumerate(names)},
                "renameByName": names,
            },
        ),
    ]


def grid(
    says: Says,
    keys: Mapping[str, str],
    columns: Sequence[Column],
    *,
    links: Mapping[str, Sequence[Link]] | None = None,
    sort: str = "",
    descending: bool = True,
    width: int = 24,
    height: int = 8,
) -> table.Panel:
    """A table with one row for each value of the labels that its queries share.

    Args:
        says: what the panel says of itself.
        keys: labels, and what to call them at the head of their columns.
        columns: after the labels.
        links: of the cells of some columns.
        sort: the column that rows are sorted by.
        descending: the highest value first.
        width: of the panel, of 24.
        height: of the panel.
    """
    panel = (
        dressed(table.Panel(), says, _queries(columns), width=width, height=height)
        .transformations(_joined(keys, columns))
        .show_header(True)
    )
    for column in columns:
        override = [model.DynamicConfigValue("unit", column.unit)]
        if column.decimals is not None:
            override.append(model.DynamicConfigValue("decimals", column.decimals))
        if column.steps is not None:
            override += [
                model.DynamicConfigValue("thresholds", looks.thresholds(column.steps).build()),
                model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
            ]
        panel = panel.override_by_name(column.name, override)
    for name, chosen in (links or {}).items():
        panel = panel.override_by_name(name, [model.DynamicConfigValue("links", list(chosen))])
    if sort:
        panel = panel.sort_by([common.TableSortByFieldState().display_name(sort).desc(descending)])
    return panel


def firing_alerts(expression: str, *, width: int = 24, height: int = 6) -> table.Panel:
    """The alerts that are firing, each with a link to what it is about."""
    says = Says(
        "Alerts firing",
        "Firing alerts of Credence. Click an alert to open its runbook, and a model to open its dashboard.",
        looks.PLAIN,
        nothing="no alert is firing",
    )
    query = Query(expression, instant=True, format=formats.PromQueryFormat.TABLE)
    names = {
        "alertname": "Alert",
        "severity": "Severity",
        "model": "Model",
        "grouping": "Grouping",
        "group": "Group",
        "assessment": "Assessment",
        "measure": "Measure",
        "vendor": "Vendor",
        "job": "Job",
    }
    organize = {
        "excludeByName": {"Time": True, "Value": True, "__name__": True, "alertstate": True},
        "indexByName": {name: place for place, name in enumerate(names)},
        "renameByName": names,
    }
    return (
        dressed(table.Panel(), says, [query], width=width, height=height)
        .transformations([model.DataTransformerConfig("organize", options=organize)])
        .show_header(True)
        .override_by_name(
            "Model", [model.DynamicConfigValue("links", [link_to_model("Model", "Grouping", "Group")])]
        )
        .override_by_name("Alert", [model.DynamicConfigValue("links", [link_to_runbook("Alert")])])
    )


def columns_chart(
    says: Says,
    key: tuple[str, str],
    columns: Sequence[Column],
    *,
    colours: Mapping[str, str],
    stacked: bool = False,
    width: int = 12,
    height: int = 9,
) -> barchart.Panel:
    """Bars for each value of one label, a colour for each query.

    Args:
        says: what the panel says of itself.
        key: the label, and what to call it.
        columns: the queries.
        colours: of the columns, by name.
        stacked: one bar made of all columns, instead of one bar each.
        width: of the panel, of 24.
        height: of the panel.
    """
    label, name = key
    panel = (
        dressed(barchart.Panel(), says, _queries(columns), width=width, height=height)
        .transformations(
            [
                *_joined({label: name}, columns),
                model.DataTransformerConfig("sortBy", options={"fields": {}, "sort": [{"field": name}]}),
            ]
        )
        .x_field(name)
        .orientation(kinds.VizOrientation.VERTICAL)
        .stacking(kinds.StackingMode.NORMAL if stacked else kinds.StackingMode.NONE)
        .show_value(kinds.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(kinds.LegendDisplayMode.LIST)
            .placement(kinds.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI))
    )
    for column in columns:
        panel = panel.override_by_name(column.name, [looks.fixed(colours[column.name])])
    return panel
