"""The server of every application."""

from __future__ import annotations

import secrets
import socket
import threading

import uvicorn
from starlette.types import ASGIApp

from service.domain.errors import ConfigurationError
from service.serving.web.guard import Guard
from service.serving.web.timely import TimelyProtocol

_CONNECTIONS = 500
_HEAD_BYTES = 16_384
_KEEP_ALIVE_SECONDS = 15


class WebServer:
    """Serves an application, behind `Guard`, from a thread of its own.

    Args:
        app: served.
        name: of the thread.
        host: address to listen on.
        port: to listen on; 0 takes a free one.
        certificate: PEM files of a certificate and its key, to serve HTTPS; HTTP, if absent.
        connections: open at the same time; more are answered with 503.

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
