"""Tables and bar charts of instant queries that are joined by the labels that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grafana_foundation_sdk.builders import barchart, common, table
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as formats

from deploy.grafana import looks, promql
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
        words: shown instead of some values.
        missing: shown where a row has no value.
        width: in pixels; as Grafana divides the room, where None.
    """

    name: str
    expression: str
    unit: str
    decimals: int | None = None
    steps: looks.Steps | None = None
    words: looks.Words = ()
    missing: str = "-"
    width: int | None = None

    def override(self) -> list[model.DynamicConfigValue]:
        """How the column differs from the others."""
        found = [
            model.DynamicConfigValue("unit", looks.written(self.unit, self.decimals)),
            model.DynamicConfigValue(
                "mappings",
                looks.mappings(self.words, self.missing, probability=self.steps is looks.PROBABILITY),
            ),
        ]
        if self.decimals is not None:
            found.append(model.DynamicConfigValue("decimals", self.decimals))
        if self.steps is not None:
            found += [
                model.DynamicConfigValue("thresholds", looks.thresholds(self.steps).build()),
                model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
            ]
        if self.width is not None:
            found.append(_wide(self.width))
        return found


def _wide(pixels: int) -> model.DynamicConfigValue:
    return model.DynamicConfigValue("custom.width", pixels)


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
        panel = panel.override_by_name(column.name, column.override())
    for name in keys.values():
        panel = panel.override_by_name(name, [model.DynamicConfigValue("unit", looks.TEXT)])
    for name, chosen in (links or {}).items():
        panel = panel.override_by_name(name, [model.DynamicConfigValue("links", list(chosen))])
    if sort:
        panel = panel.sort_by([common.TableSortByFieldState().display_name(sort).desc(descending)])
    return panel


_RANKS = {"critical": 3, "warning": 2, "info": 1}
_COLUMNS = {"Alert": 260, "Severity": 80, "Since": 130, "Model": 120, "Group": 120}
"""Widths in pixels: names of alerts are long, and the group must be seen without scrolling."""


def firing_alerts(*, of_model: bool = False, width: int = 24, height: int = 7) -> table.Panel:
    """The alerts that are firing, the most severe first, each with a link to what it is about.

    Args:
        of_model: only those about `$model`, and those about no model: they are about the whole pipeline.
        width: of the panel, of 24.
        height: of the panel.
    """
    says = Says(
        "Alerts firing",
        "Firing alerts of Credence, the most severe first; the table is empty if there are none. Click an "
        "alert to open its runbook, and a group to open its dashboard.",
        looks.PLAIN,
    )
    chosen = [promql.firing(about) for about in (('model="$model"', 'model=""') if of_model else ("",))]
    ranked = " or ".join(
        f'{rank} * max without (alertstate) ({one[:-1]},severity="{severity}"}})'
        for severity, rank in _RANKS.items()
        for one in chosen
    )
    began = " or ".join(
        f"1000 * max without (alertstate) ({promql.began(one)}) and max without (alertstate) ({one})"
        for one in chosen
    )
    queries = [
        Query(text, name, instant=True, format=formats.PromQueryFormat.TABLE, ref=ref)
        for ref, name, text in (("A", "Rank", ranked), ("B", "Since", began))
    ]
    names = {
        "alertname": "Alert",
        "severity": "Severity",
        "Value #B": "Since",
        "model": "Model",
        "group": "Group",
        "grouping": "Grouping",
        "assessment": "Assessment",
        "measure": "Measure",
        "vendor": "Vendor",
        "part": "Part",
        "job": "Job",
    }
    hidden = ("Time", "Value #A", "__name__", *(("model", "job") if of_model else ()))
    organize = {
        "excludeByName": dict.fromkeys(hidden, True),
        "indexByName": {name: place for place, name in enumerate(names)},
        "renameByName": names,
    }
    sort = {"fields": {}, "sort": [{"field": "Value #A", "desc": True}]}
    panel = (
        dressed(table.Panel(), says, queries, width=width, height=height)
        .transformations(
            [
                model.DataTransformerConfig("merge", options={}),
                model.DataTransformerConfig("sortBy", options=sort),
                model.DataTransformerConfig("organize", options=organize),
            ]
        )
        .show_header(True)
    )
    shown = {label: name for label, name in names.items() if label not in hidden}
    for label, name in shown.items():
        unit = looks.AGO if label == "Value #B" else looks.TEXT
        override = [model.DynamicConfigValue("unit", unit)]
        if name in _COLUMNS:
            override.append(_wide(_COLUMNS[name]))
        if name == "Alert":
            override.append(model.DynamicConfigValue("links", [link_to_runbook("Alert")]))
        if name in {"Model", "Group"}:
            link = link_to_model("" if of_model else "Model", "Grouping", "Group")
            override.append(model.DynamicConfigValue("links", [link]))
        panel = panel.override_by_name(name, override)
    return panel


def columns_chart(
    says: Says,
    key: tuple[str, str],
    columns: Sequence[Column],
    *,
    colours: Mapping[str, str],
    stacked: bool = False,
    across: bool = False,
    width: int = 12,
    height: int = 9,
) -> barchart.Panel:
    """Bars for each value of one label, a colour for each query; without data one bar says why.

    Args:
        says: what the panel says of itself.
        key: the label, and what to call it.
        columns: the queries.
        colours: of the columns, by name.
        stacked: one bar made of all columns, instead of one bar each.
        across: bars are horizontal, in the order of the query.
        width: of the panel, of 24.
        height: of the panel.
    """
    label, name = key
    first = replace(columns[0], expression=promql.or_zero(columns[0].expression, label, called=says.nothing))
    columns = [first, *columns[1:]]
    by_name = model.DataTransformerConfig("sortBy", options={"fields": {}, "sort": [{"field": name}]})
    orientation = kinds.VizOrientation.HORIZONTAL if across else kinds.VizOrientation.VERTICAL
    panel = (
        dressed(barchart.Panel(), says, _queries(columns), width=width, height=height)
        .transformations([*_joined({label: name}, columns), *([] if across else [by_name])])
        .override_by_name(name, [model.DynamicConfigValue("unit", looks.TEXT)])
        .x_field(name)
        .orientation(orientation)
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
