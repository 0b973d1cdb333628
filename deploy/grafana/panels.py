"""Panels of every kind, each with a title, a description, a unit, thresholds and a text for no data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from grafana_foundation_sdk.builders import (
    barchart,
    bargauge,
    common,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as formats

from deploy.grafana import looks, promql
from deploy.grafana.frame import DATASOURCE

Panel = TypeVar(
    "Panel",
    barchart.Panel,
    bargauge.Panel,
    heatmap.Panel,
    stat.Panel,
    table.Panel,
    timeseries.Panel,
)


_WIDE = 12
"""From this width on a legend is a table; in a narrower panel it would leave no room for lines."""

_COUNTS = frozenset({looks.COUNT, looks.PER_SECOND, looks.PER_HOUR})


@dataclass(frozen=True)
class Says:
    """What a panel says of itself.

    Attributes:
        title: a few words.
        description: what it shows and what to think of it, for somebody who is on call.
        unit: of its values.
        decimals: of its values; as Grafana likes, where None.
        nothing: said where there are no data. Numbers and lines say it themselves; bars have it as a label if
            their queries have no series; Grafana would write it into every empty cell of a table.
        steps: thresholds.
        bounds: lowest and highest value that there can be; as the data are, where None.
        words: shown instead of some values.
    """

    title: str
    description: str
    unit: str
    decimals: int | None = None
    nothing: str = "no data"
    steps: looks.Steps = looks.NEUTRAL
    bounds: tuple[float, float] | None = None
    words: looks.Words = ()


@dataclass(frozen=True)
class Query:
    """One query: its PromQL, and the legend of its series."""

    expression: str
    legend: str = ""
    instant: bool = False
    format: formats.PromQueryFormat = formats.PromQueryFormat.TIME_SERIES
    ref: str = ""


def _target(query: Query, number: int) -> prometheus.Dataquery:
    target = (
        prometheus.Dataquery()
        .expr(query.expression)
        .ref_id(query.ref or chr(ord("A") + number))
        .editor_mode(formats.QueryEditorMode.CODE)
        .format(query.format)
        .legend_format(query.legend or "__auto")
        .datasource(DATASOURCE)
    )
    return target.instant() if query.instant else target.range()


def dressed(panel: Panel, says: Says, queries: Sequence[Query], *, width: int, height: int) -> Panel:
    """A panel with everything that all kinds have."""
    panel = (
        panel.title(says.title)
        .description(says.description)
        .datasource(DATASOURCE)
        .targets([_target(query, number) for number, query in enumerate(queries)])
        .unit(looks.written(says.unit, says.decimals))
        .thresholds(looks.thresholds(says.steps))
        .color_scheme(looks.by_threshold())
        .span(width)
        .height(height)
    )
    if says.bounds is not None:
        panel = panel.min(says.bounds[0]).max(says.bounds[1])
    if says.words:
        panel = panel.mappings(looks.mappings(says.words))
    return panel if says.decimals is None else panel.decimals(says.decimals)


def number(says: Says, *queries: Query, width: int = 4, height: int = 4, text: bool = False) -> stat.Panel:
    """Big numbers; with several queries, each with its legend."""
    queries = tuple(replace(query, instant=True) for query in queries)
    return (
        dressed(stat.Panel(), says, queries, width=width, height=height)
        .no_value(says.nothing)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .graph_mode(kinds.BigValueGraphMode.NONE)
        .color_mode(kinds.BigValueColorMode.VALUE)
        .text_mode(kinds.BigValueTextMode.VALUE_AND_NAME if text else kinds.BigValueTextMode.VALUE)
    )


def lines(
    says: Says,
    *queries: Query,
    width: int = 8,
    height: int = 8,
    colours: Mapping[str, str] | None = None,
    stacked: bool = False,
    decades: bool = False,
) -> timeseries.Panel:
    """Series over time; the legend of a wide panel has the last value of each.

    Args:
        says: what the panel says of itself.
        queries: of the series.
        width: of the panel, of 24.
        height: of the panel.
        colours: of series, by name.
        stacked: one on the other.
        decades: on a logarithmic scale.
    """
    # An axis of whole numbers that are rounded has the same tick several times.
    says = replace(says, decimals=None) if says.unit == looks.COUNT else says
    wide = width >= _WIDE
    panel = (
        dressed(timeseries.Panel(), says, queries, width=width, height=height)
        .no_value(says.nothing)
        .color_scheme(looks.by_name())
        .line_width(2)
        .fill_opacity(30 if stacked else 0)
        .show_points(kinds.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(kinds.LegendDisplayMode.TABLE if wide else kinds.LegendDisplayMode.LIST)
            .placement(kinds.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull"] if wide else [])
        )
        .tooltip(
            common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING)
        )
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL).group("A"))
    if says.bounds is None and says.unit in _COUNTS:
        # Without it, a series of zeros has an axis to 100.
        panel = panel.axis_soft_min(0).axis_soft_max(1)
    if decades:
        log = kinds.ScaleDistribution.LOG
        panel = panel.scale_distribution(common.ScaleDistributionConfig().type(log).log(10))
    for name, colour in (colours or {}).items():
        panel = panel.override_by_name(name, [looks.fixed(colour)])
    return panel


def quantile_lines(says: Says, name: str, *, width: int = 8) -> timeseries.Panel:
    """The median and two high quantiles of a histogram over time."""
    shares = {"median": (0.5, looks.BLUE), "90%": (0.9, looks.ORANGE), "99%": (0.99, looks.VERMILLION)}
    return lines(
        says,
        *(Query(promql.quantile(share, name), legend) for legend, (share, _) in shares.items()),
        width=width,
        colours={legend: colour for legend, (_, colour) in shares.items()},
    )


def band(
    says: Says,
    name: str,
    matchers: Sequence[str],
    threshold: str = "",
    *,
    limit: str = "threshold",
    point: Literal["mean", "median"] = "mean",
    width: int = 8,
    height: int = 8,
) -> timeseries.Panel:
    """A credible interval over time: lower to upper filled, the estimate as a line, the threshold dashed.

    Args:
        says: what the panel says of itself.
        name: of the metrics, with `{}` for lower, the point estimate, and upper.
        matchers: what chooses one group, or one measure.
        threshold: the metric of the threshold, chosen by as many of these as it has labels; none if empty.
        limit: what the legend calls the threshold.
        point: the estimate that the metrics have.
        width: of the panel, of 24.
        height: of the panel.
    """
    ends = ("lower", point, "upper")
    queries = [Query(promql.shown(name.format(end), *matchers, by=""), end) for end in ends]
    if threshold:
        fitting = promql.fitting(threshold, matchers)
        queries.append(Query(promql.shown(threshold, *fitting, by=""), limit))
    thin = model.DynamicConfigValue("custom.lineWidth", 1)
    dashed = model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]})
    panel = (
        lines(says, *queries, width=width, height=height)
        .override_by_name(point, [looks.fixed(looks.BLUE)])
        .override_by_name("lower", [looks.fixed(looks.SKY), thin])
        .override_by_name(
            "upper",
            [
                looks.fixed(looks.SKY),
                thin,
                model.DynamicConfigValue("custom.fillBelowTo", "lower"),
                model.DynamicConfigValue("custom.fillOpacity", 25),
            ],
        )
    )
    return panel.override_by_name(limit, [looks.fixed(looks.VERMILLION), dashed]) if threshold else panel


def bars(says: Says, *queries: Query, key: str = "group", width: int = 8, height: int = 8) -> bargauge.Panel:
    """One horizontal bar from 0 for each series, in the order of the query; without data one says why.

    Args:
        says: what the panel says of itself.
        queries: of the series.
        key: a label that is in the legend of the first query.
        width: of the panel, of 24.
        height: of the panel.
    """
    first = replace(queries[0], expression=promql.or_zero(queries[0].expression, key, called=says.nothing))
    queries = tuple(replace(query, instant=True) for query in (first, *queries[1:]))
    panel = (
        dressed(bargauge.Panel(), says, queries, width=width, height=height)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .orientation(kinds.VizOrientation.HORIZONTAL)
        .display_mode(kinds.BarGaugeDisplayMode.BASIC)
        .show_unfilled(True)
    )
    return panel if says.bounds else panel.min(0)


def heat(says: Says, expression: str, *, width: int = 8, height: int = 8) -> heatmap.Panel:
    """How a histogram's observations spread over time."""
    query = Query(expression, "{{le}}", format=formats.PromQueryFormat.HEATMAP)
    return (
        dressed(heatmap.Panel(), says, [query], width=width, height=height)
        .calculate(False)
        .y_axis(heatmap.YAxisConfig().unit(looks.SECONDS))
        .color(heatmap.HeatmapColorOptions().scheme("Blues").steps(64))
        .show_tooltip()
    )
