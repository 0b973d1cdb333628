"""The committed dashboards' queries, with variables filled in as Grafana fills them in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "dashboards"
ALL = "$__all"

Board = dict[str, Any]
Values = Mapping[str, str | Sequence[str]]

_REFERENCE = re.compile(r"\$(\w+)|\$\{(\w+)[^}]*\}")


@dataclass(frozen=True)
class DashboardQuery:
    """One query of a dashboard.

    Attributes:
        where: dashboard, panel or variable or annotation, and the query's letter.
        expression: PromQL with variables.
        instant: whether it is asked at one time only.
        repeated: the variable whose every value has a panel of its own; empty without one.
    """

    where: str
    expression: str
    instant: bool
    repeated: str = ""


def boards() -> dict[str, Board]:
    """The committed dashboards, by the name of their file without its ending."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def rows_and_panels(board: Board) -> Iterator[dict[str, Any]]:
    """All rows of a dashboard, each followed by its panels, which a collapsed row holds."""
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", ())


def panels(board: Board) -> list[dict[str, Any]]:
    """All panels of a dashboard but its rows."""
    return [panel for panel in rows_and_panels(board) if panel["type"] != "row"]


def variables(board: Board) -> dict[str, dict[str, Any]]:
    """The variables of a dashboard, by name."""
    return {variable["name"]: variable for variable in board["templating"]["list"]}


def panel_queries(board: Board) -> Iterator[DashboardQuery]:
    """The queries of all panels."""
    repeated = ""
    for panel in rows_and_panels(board):
        if panel["type"] == "row":
            repeated = panel.get("repeat", "")
            continue
        for target in panel["targets"]:
            yield DashboardQuery(
                f"{board['uid']}: {panel['id']} {panel['title']}: {target['refId']}",
                target["expr"],
                target["instant"],
                repeated,
            )


def annotation_queries(board: Board) -> Iterator[DashboardQuery]:
    """The queries of all annotations."""
    for annotation in board["annotations"]["list"]:
        yield DashboardQuery(f"{board['uid']}: {annotation['name']}", annotation["expr"], instant=False)


def variable_queries(board: Board) -> dict[str, str]:
    """What variables ask, by name; variables that ask nothing are left out."""
    return {
        name: variable["query"]["query"]
        for name, variable in variables(board).items()
        if variable["type"] == "query"
    }


def references(text: str) -> set[str]:
    """Names of the variables that a text refers to."""
    return {plain or braced for plain, braced in _REFERENCE.findall(text)}


def filled_in(expression: str, board: Board, values: Values, built_in: Mapping[str, str]) -> str:
    """An expression with variables filled in, and escaped, as Grafana's Prometheus data source does.

    Args:
        expression: PromQL with variables.
        board: whose variables they are.
        values: of the variables.
        built_in: values of `__range` and the like.
    """
    known = variables(board)

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name in built_in:
            return built_in[name]
        variable, chosen = known[name], values[name]
        if not variable["multi"] and not variable["includeAll"]:
            return str(chosen).replace("\\", "\\\\").replace('"', '\\"')
        if chosen == ALL:
            return str(variable["allValue"])
        escaped = [_escaped(one) for one in ([chosen] if isinstance(chosen, str) else chosen)]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"

    return _REFERENCE.sub(value, expression)


def _escaped(value: str) -> str:
    # Twice: once for the regular expression, once for the string that PromQL reads it from.
    return re.sub(r"[$^*{}\[\]'+?.()|]", r"\\\\\g<0>", value.replace("\\", "\\\\\\\\"))
