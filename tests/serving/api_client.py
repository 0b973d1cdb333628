"""Asks the HTTP API of a served board, over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPMessage
from typing import Any

from snapshots import NOW

from service.monitoring.snapshot import ModelSnapshot
from service.serving.web.api import SnapshotView
from service.serving.web.pages import page_app
from service.serving.web.server import WebServer


class Client:
    """Asks a served view."""

    def __init__(self, port: int, board: dict[str, ModelSnapshot]) -> None:
        self._port = port
        self.board = board

    def ask(self, path: str, **headers: str) -> tuple[int, Any, HTTPMessage]:
        """Status, body and headers."""
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read()), reply.headers
        except urllib.error.HTTPError as error:
            body = error.read()
            return error.code, json.loads(body) if body else None, error.headers

    def get(self, path: str) -> Any:
        """The body of an answer under `/api/v1/models`."""
        status, body, _ = self.ask(f"/api/v1/models{path}")
        assert status == 200, body
        return body


@contextmanager
def served(board: dict[str, ModelSnapshot]) -> Iterator[Client]:
    """A client of these snapshots; of model `new` there is none yet."""
    view = SnapshotView(models=[*board, "new"], board=board, tick_seconds=5.0, clock=lambda: NOW + 2)
    server = WebServer(page_app(view), name="page", host="127.0.0.1", port=0)
    yield Client(server.port, board)
    server.stop()
