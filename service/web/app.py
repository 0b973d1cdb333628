"""The status page with its API, and the server of every application."""

from __future__ import annotations

import socket
import threading

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from service.web.api import API_PATH, SnapshotView, build_api
from service.web.pages import page_routes


def page_app(view: SnapshotView) -> Starlette:
    """The application that people use: status page, runbooks, and what they show as JSON.

    Args:
        view: of the snapshots.
    """
    return Starlette(routes=[*page_routes(), Mount(API_PATH, build_api(view))])


class WebServer:
    """Serves an application from a thread of its own.

    Args:
        app: served.
        name: of the thread.
        host: address to listen on.
        port: to listen on; 0 takes a free one.

    Raises:
        OSError: the address cannot be listened on.
    """

    def __init__(self, app: Starlette, *, name: str, host: str, port: int) -> None:
        self._socket = socket.create_server((host, port))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", server_header=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name=name, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Answer what is under way, then close."""
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()
