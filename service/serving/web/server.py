"""The server of every application, which gives up connections whose requests are too long in coming."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.domain.errors import ConfigurationError
from service.serving.web.guard import Guard

_CONNECTIONS = 500
_HEAD_BYTES = 16_384
_KEEP_ALIVE_SECONDS = 15

HEAD_SECONDS = 10.0
"""So long the first line and the headers of a request may take, and a body behind its answer."""


class TimelyProtocol(H11Protocol):
    """As uvicorn's, but a client that sends a request's head byte by byte, or none at all, is left.

    So is one that was answered and does not end its request's body. uvicorn itself gives up only connections
    that idle between two requests; so a few hundred clients that dawdle would take all places of a listener.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take in some bytes; the head of a request may be complete by now."""
        super().data_received(data)
        # Also while the body of a request comes that was answered without it: nobody else gives up on that.
        if not self._answering():
            self._await_head()
        elif self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._head_due is not None:
            self._head_due.cancel()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        # Not from the last byte on: one byte at a time must not win more time.
        if self._head_due is None:
            self._head_due = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._head_due = None
        if not self._answering():
            self.transport.close()


class WebServer:
    """Serves an application, behind `Guard`, from a thread of its own.

    Port 0 takes a free one. With PEM files of a `certificate` and its key it serves HTTPS. More `connections`
    than these at the same time are answered with 503.

    Raises:
        ConfigurationError: the certificate cannot be used.
        OSError: the address cannot be listened on.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        name: str,
        host: str,
        port: int,
        certificate: tuple[str, str] | None = None,
        connections: int = _CONNECTIONS,
    ) -> None:
        config = uvicorn.Config(
            Guard(app),
            http=TimelyProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            # Headers that claim another client address are ignored.
            proxy_headers=False,
            limit_concurrency=connections,
            h11_max_incomplete_event_size=_HEAD_BYTES,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            ssl_certfile=certificate and certificate[0],
            ssl_keyfile=certificate and certificate[1],
            # No key's password: OpenSSL would ask the terminal for it, and wait.
            ssl_keyfile_password=secrets.token_hex(16),
        )
        try:
            config.load()
        except OSError as error:
            raise ConfigurationError(
                [(f"{name}.certificate_file", "cannot be used with key_file")]
            ) from error
        self._socket = socket.create_server((host, port))
        self.port: int = self._socket.getsockname()[1]
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
