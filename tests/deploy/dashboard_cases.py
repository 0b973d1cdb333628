"""Every committed dashboard, and every panel of one, as cases of tests."""

from __future__ import annotations

import pytest

from deploy.grafana.queries import boards, panels

BOARDS = boards()
PANELS = [
    pytest.param(panel, id=f"{uid}: {panel['title']}")
    for uid, board in BOARDS.items()
    for panel in panels(board)
]
each_board = pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
each_panel = pytest.mark.parametrize("panel", PANELS)
