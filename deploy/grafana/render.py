"""Dashboards as the text of files."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana.fleet import fleet
from deploy.grafana.model import model
from deploy.grafana.pipeline import pipeline


def dashboard_files() -> dict[str, str]:
    """The JSON of all dashboards, by the file's name."""
    boards = [_finished(board) for board in (fleet(), model(), pipeline())]
    return {f"{board['uid']}.json": json.dumps(board, indent=2) + "\n" for board in boards}


def _finished(board: build.Dashboard) -> dict[str, Any]:
    """A dashboard as Grafana reads it, with what the SDK gets wrong or leaves out."""
    made: dict[str, Any] = json.loads(json.dumps(board.build(), cls=JSONEncoder))
    # Links to a single panel hold its number, so Grafana must not make one up at every import.
    for number, panel in zip(count(1), made["panels"], strict=False):
        panel["id"] = number
    # The SDK gives all variables the same id, and Grafana keeps one variable for each id.
    for variable in made["templating"]["list"]:
        variable.pop("id", None)
    made["panels"] = _folded(made["panels"])
    return made


def _folded(panels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The panels of collapsed rows within these rows, and what follows moved up."""
    found: list[dict[str, Any]] = []
    moved, row = 0, None
    for panel in panels:
        if panel["type"] == "row":
            if row is not None:
                ends = [one["gridPos"]["y"] + one["gridPos"]["h"] for one in row["panels"]]
                moved += max(ends) - row["gridPos"]["y"] - 1
            row = panel if panel.get("collapsed") else None
        panel["gridPos"]["y"] -= moved
        (found if row is None or row is panel else row["panels"]).append(panel)
    return found
