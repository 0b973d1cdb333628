"""Ports of 127.0.0.1 for servers, each given to one process at a time."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import tempfile
import threading
from functools import cache
from pathlib import Path

from service.domain.errors import EmbeddedServerError

SERVER_PORTS = range(16_000, 32_000)
"""What `free_port` chooses from."""
_RESERVED: set[int] = set()
"""Ports that this process has reserved: its own locks would not keep it from them."""
_RESERVING = threading.Lock()


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nothing listens on now, reserved for this process.

    It is outside of the range of outgoing connections, so that a server that is down for a while finds its
    port free when it comes back: else a client that tries to reach it may be given just this port, and be
    connected to itself.

    Raises:
        EmbeddedServerError: no port can be reserved.
    """
    while True:
        port = secrets.choice(SERVER_PORTS)
        if reserve(port):
            return port


def reserve(port: int) -> bool:
    """Reserve a port until this process ends; False if it is reserved or something listens on it.

    A server listens only some time after its port was chosen, and may be down for a while later. Other
    processes of the same user that start servers must not choose it then.

    Raises:
        EmbeddedServerError: no port can be reserved.
    """
    with _RESERVING:
        if port in _RESERVED:
            return False
        try:
            # A lock on one byte: the kernel gives it up when this process ends, however it ends.
            fcntl.lockf(_table(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except (BlockingIOError, PermissionError):
            return False
        # Tried only now: to bind a port that is another's, even for a moment, may fail its server.
        if not is_free(port):
            fcntl.lockf(_table(), fcntl.LOCK_UN, 1, port)
            return False
        _RESERVED.add(port)
        return True


def is_free(port: int) -> bool:
    """Whether nothing listens on a TCP port of 127.0.0.1."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@cache
def _table() -> int:
    """Descriptor of the file whose bytes stand for ports. Never closed: that would give up all locks."""
    path = Path(tempfile.gettempdir()) / f"credence-ports-{os.getuid()}"
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EmbeddedServerError(
            f"cannot open {path}, in which ports are reserved: {error.strerror}"
        ) from error
