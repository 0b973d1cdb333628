"""What a Prometheus answers to the queries of a dashboard, in series and in rows of tables."""

from __future__ import annotations

import json
import re
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from deploy.grafana.queries import ALL, Board, Values, filled_in, variable_queries, variables

Panel = dict[str, Any]
Row = dict[str, Any]

_STEPS = 120
_REFERENCE = re.compile(r"\$\{?(\w+)(?::\w+)?\}?")


@dataclass(frozen=True)
class Series:
    """Values over time, as pairs of seconds and number; `name` is what the legend says."""

    name: str
    labels: dict[str, str]
    values: list[tuple[float, float]]


class Source:
    """A Prometheus at one moment, for one dashboard.

    Args:
        url: of the Prometheus.
        board: whose variables are filled in.
        until: the moment.
        seconds: length of the time that is shown.
        given: values of variables; others get the first value that they offer.
    """

    def __init__(self, url: str, board: Board, until: float, seconds: float, given: Values) -> None:
        self._url = url
        self._board = board
        self._until = until
        self._seconds = seconds
        self._built_in = {"__range": f"{seconds:.0f}s", "__rate_interval": "1m", "__interval": "15s"}
        self.chosen: dict[str, Any] = {}
        for name, variable in variables(board).items():
            default = (variable.get("current") or {}).get("value", "")
            self.chosen[name] = given.get(name) or (ALL if default == [ALL] else default)
            if not self.chosen[name] and variable["type"] == "query":
                self.chosen[name] = next(iter(self.options(name)), "")

    def options(self, name: str) -> list[str]:
        """The values that a variable offers, in their order."""
        query = filled_in(variable_queries(self._board)[name], self._board, self.chosen, self._built_in)
        if asked := re.fullmatch(r"label_values\((.*), (\w+)\)", query):
            return sorted(self._get(f"label/{asked[2]}/values", **{"match[]": asked[1]}))
        pattern = re.compile(variables(self._board)[name]["regex"].strip("/"))
        expression = query.removeprefix("query_result(").removesuffix(")")
        result = self._get("query", query=expression, time=self._until)["result"]
        texts = [
            "{" + ",".join(f'{label}="{value}"' for label, value in one["metric"].items()) + "} "
            for one in result
        ]
        return [found[1] for text in texts if (found := pattern.search(text))]

    def title(self, text: str) -> str:
        """A title with the values of its variables."""
        return _REFERENCE.sub(lambda match: str(self.chosen.get(match[1], match[0])), text)

    def series(self, target: dict[str, Any]) -> list[Series]:
        """What one query of a panel gives."""
        expression = filled_in(target["expr"], self._board, self.chosen, self._built_in)
        if target["instant"]:
            found = self._get("query", query=expression, time=self._until)["result"]
            samples = [(one["metric"], [one["value"]]) for one in found]
        else:
            span = {"start": self._until - self._seconds, "end": self._until, "step": self._seconds / _STEPS}
            found = self._get("query_range", query=expression, **span)["result"]
            samples = [(one["metric"], one["values"]) for one in found]
        return [
            Series(_legend(target, labels), labels, [(time, float(value)) for time, value in values])
            for labels, values in samples
        ]

    def rows(self, panel: Panel) -> list[Row]:
        """The rows of a table, after its transformations; columns are in their order."""
        frames = []
        for target in panel["targets"]:
            value = "Value" if len(panel["targets"]) == 1 else f"Value #{target['refId']}"
            found = self.series(target)
            missing = dict.fromkeys((label for one in found for label in one.labels), "")
            frames.append([missing | one.labels | {value: one.values[-1][1]} for one in found])
        rows = [row for frame in frames for row in frame]
        for step in panel["transformations"]:
            match step["id"]:
                case "merge":
                    rows = _merged([frame for frame in frames if frame])
                case "organize":
                    rows = [_organized(row, step["options"]) for row in rows]
                case "sortBy":
                    (order,) = step["options"]["sort"]
                    rows = _sorted(rows, order["field"], descending=order.get("desc", False))
                case other:
                    raise NotImplementedError(f"{panel['title']}: the transformation {other}")
        for order in panel["options"].get("sortBy") or ():
            rows = _sorted(rows, order["displayName"], descending=order["desc"])
        return rows

    def _get(self, path: str, **query: Any) -> Any:
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 - the address that was given
            return json.loads(reply.read())["data"]


def _legend(target: dict[str, Any], labels: dict[str, str]) -> str:
    wanted = target.get("legendFormat") or "__auto"
    if wanted == "__auto":
        return ", ".join(labels.values()) or "Value"
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), str(wanted))


def _merged(frames: list[list[Row]]) -> list[Row]:
    """Rows of all frames; those become one that agree in what every frame has, and nowhere differ."""
    columns = [{column for row in frame for column in row} for frame in frames]
    common = set.intersection(*columns) if columns else set()
    result: list[Row] = []
    for row in (row for frame in frames for row in frame):
        for other in result:
            shared = row.keys() & other.keys()
            if common <= shared and all(row[column] == other[column] for column in shared):
                other.update(row)
                break
        else:
            result.append(dict(row))
    return result


def _organized(row: Row, options: dict[str, Any]) -> Row:
    hidden = {column for column, is_hidden in options["excludeByName"].items() if is_hidden}
    names = sorted(row.keys() - hidden, key=lambda column: options["indexByName"].get(column, len(row) + 99))
    return {options["renameByName"].get(column, column): row[column] for column in names}


def _sorted(rows: list[Row], column: str, *, descending: bool) -> list[Row]:
    known = [row for row in rows if column in row]
    unknown = [row for row in rows if column not in row]
    return [*sorted(known, key=lambda row: row[column], reverse=descending), *unknown]
