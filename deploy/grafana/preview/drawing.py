"""Panels as HTML: each says what it would say in Grafana, and is as large."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from itertools import pairwise

from deploy.grafana.preview.cells import Field
from deploy.grafana.preview.source import Panel, Series, Source
from deploy.grafana.queries import Board

STYLE = """
body{font:13px sans-serif;margin:8px;width:1584px;background:#f4f5f5}
.grid{display:grid;grid-template-columns:repeat(24,1fr);grid-auto-rows:30px;gap:8px}
.panel{background:#fff;border:1px solid #ddd;padding:4px 8px;overflow:auto}
h1,h2,h3{font-size:15px;margin:4px 0}h3{font-size:12px}summary{font-weight:bold;margin:8px 0}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:2px 6px;border-bottom:1px solid #eee}
.big{font-size:26px;font-weight:bold}.bar{display:inline-block;height:10px;margin-right:6px}
svg{width:100%;height:110px;background:#fafafa}
"""
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8E8E8E")


def page(board: Board, source: Source, now: float) -> str:
    """The whole dashboard; collapsed rows are open, and say that they are collapsed."""
    chosen = ", ".join(f"{name} = {value}" for name, value in source.chosen.items() if value)
    body = [f"<h1>{escape(board['title'])}</h1><p>{escape(chosen)}</p><div class=grid>"]
    body += [*(_placed(panel, source, now) for panel in board["panels"]), "</div>"]
    for row in board["panels"]:
        if row["type"] == "row" and row.get("panels"):
            inside = "".join(_placed(panel, source, now, row["gridPos"]["y"]) for panel in row["panels"])
            body.append(f"<details open><summary>{escape(source.title(row['title']))} (collapsed)</summary>")
            body.append(f"<div class=grid>{inside}</div></details>")
    head = f"<!doctype html><meta charset=utf-8><title>{escape(board['title'])}</title>"
    return f"{head}<style>{STYLE}</style>{''.join(body)}\n"


def _placed(panel: Panel, source: Source, now: float, above: int = -1) -> str:
    at = panel["gridPos"]
    place = f"grid-column:{at['x'] + 1}/span {at['w']};grid-row:{at['y'] - above}/span {at['h']}"
    if panel["type"] == "row":
        collapsed = f" (collapsed: {len(panel['panels'])} panels below)" if panel.get("panels") else ""
        return f'<h2 style="{place}">{escape(source.title(panel["title"]) + collapsed)}</h2>'
    title = f'<h3 title="{escape(panel.get("description", ""))}">{escape(source.title(panel["title"]))}</h3>'
    return f'<div class=panel style="{place}">{title}{"".join(_content(panel, source, now))}</div>'


def _content(panel: Panel, source: Source, now: float) -> Iterator[str]:
    if panel["type"] in ("table", "barchart"):
        yield from _table(panel, source, now)
        return
    series = [one for target in panel["targets"] for one in source.series(target)]
    if not series:
        yield f"<p class=big>{escape(Field(panel, '').text(None, now))}</p>"
    elif panel["type"] == "stat":
        yield from _stat(panel, series, now)
    elif panel["type"] == "bargauge":
        largest = max(abs(one.values[-1][1]) for one in series) or 1.0
        for one in series:
            value = one.values[-1][1]
            field = Field(panel, one.name)
            bar = _bar(value, largest, field.colour(value), field.text(value, now))
            yield f"<div>{escape(one.name)} {bar}</div>"
    else:
        yield from _graph(panel, series, now)


def _stat(panel: Panel, series: list[Series], now: float) -> Iterator[str]:
    for one in series:
        value, field = one.values[-1][1], Field(panel, one.name)
        name = f"{escape(one.name)}: " if panel["options"]["textMode"] == "value_and_name" else ""
        yield f'<p class=big style="color:{field.colour(value)}">{name}{escape(field.text(value, now))}</p>'


def _bar(value: float, largest: float, colour: str, text: str) -> str:
    width = 0 if math.isnan(value) else 120 * abs(value) / largest
    return f'<span class=bar style="width:{width:.0f}px;background:{colour}"></span>{escape(text)}'


def _table(panel: Panel, source: Source, now: float) -> Iterator[str]:
    rows = source.rows(panel)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    fields = {column: Field(panel, column) for column in columns}
    largest = max((abs(one) for row in rows for one in row.values() if isinstance(one, float)), default=1.0)
    yield "<table><tr>"
    for column, field in fields.items():
        width = f' style="min-width:{field.width}px"' if field.width else ""
        yield f"<th{width}>{escape(column)}"
    for row in rows:
        yield "<tr>"
        for column, field in fields.items():
            value = row.get(column)
            text, colour = field.text(value, now), field.colour(value)
            if panel["type"] == "barchart" and isinstance(value, float):
                yield f"<td>{_bar(value, largest or 1.0, colour, text)}"
            else:
                yield f'<td style="color:{colour if field.is_coloured else "inherit"}">{escape(text)}'
    yield "</table>"


def _graph(panel: Panel, series: list[Series], now: float) -> Iterator[str]:
    field = Field(panel, "")
    points = [point for one in series for point in one.values if math.isfinite(point[1])]
    low, high = (choose((value for _, value in points), default=0.0) for choose in (min, max))
    start, end = (choose((time for time, _ in points), default=0.0) for choose in (min, max))
    wide, tall = (end - start) or 1.0, (high - low) or 1.0
    yield f"<div>{escape(field.text(low, now))} to {escape(field.text(high, now))}</div>"
    yield '<svg viewBox="0 0 100 100" preserveAspectRatio="none">'
    for number, one in enumerate(series):
        places = [(100 * (time - start) / wide, 99 - 98 * (value - low) / tall) for time, value in one.values]
        lines = [(a, b) for a, b in pairwise(places) if math.isfinite(a[1] + b[1])] or [(places[-1],) * 2]
        drawn = "".join(f"M{a[0]:.2f} {a[1]:.2f}L{b[0]:.2f} {b[1]:.2f}" for a, b in lines)
        style = f'stroke="{_COLOURS[number % len(_COLOURS)]}" vector-effect="non-scaling-stroke" fill="none"'
        yield f'<path d="{drawn}" {style}/>'
    yield "</svg><div>"
    for number, one in enumerate(series):
        text = f"{one.name}: {Field(panel, one.name).text(one.values[-1][1], now)}"
        yield f'<span style="color:{_COLOURS[number % len(_COLOURS)]}">{escape(text)}</span> '
    yield "</div>"
