"""Dashboards as the text of files."""

from __future__ import annotations

import json
from itertools import count

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.fleet import fleet
from deploy.grafana.model import model
from deploy.grafana.pipeline import pipeline


def dashboard_files() -> dict[str, str]:
    """The JSON of all dashboards, by the file's name."""
    boards = [_numbered(board) for board in (fleet(), model(), pipeline())]
    return {f"{board.uid}.json": json.dumps(board, cls=JSONEncoder, indent=2) + "\n" for board in boards}


def _numbered(board: build.Dashboard) -> Dashboard:
    # Links to a single panel hold its number, so Grafana must not make one up at every import.
    built = board.build()
    numbers = count(1)
    for panel in built.panels or []:
        panel.id_val = next(numbers)
    return built
