"""A broker that is reached through a wire which can hold back or lose its replies."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

from service.embedded import Child, _broker_binary, free_port


class Wire:
    """A TCP wire to one port of this machine.

    Attributes:
        port: to connect to.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._open = threading.Event()
        self._open.set()
        self._loses = False
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def hold_replies(self) -> None:
        """From now on requests get through, and replies wait."""
        self._open.clear()

    def release_replies(self) -> None:
        """Let replies through that waited, and those to come."""
        self._open.set()

    def lose_replies(self) -> None:
        """From now on requests get through, and instead of a reply the connection ends."""
        self._loses = True

    def mend(self) -> None:
        """Lose nothing more."""
        self._loses = False

    def close(self) -> None:
        """End all connections."""
        self._open.set()
        for one in (self._listener, *self._sockets):
            _end(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._sockets += [client, server]
                for source, target, replies in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._carry, args=(source, target, replies), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, replies: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if replies:
                    self._open.wait()
                    if self._loses:
                        break
                target.sendall(data)
        _end(source)
        _end(target)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


class WiredBroker(Child):
    """The bundled broker, which tells its clients the address of a wire as its own."""

    def __init__(self) -> None:
        port = free_port()
        self.wire = Wire(port)
        self.bootstrap_server = f"127.0.0.1:{self.wire.port}"
        super().__init__(
            "the bundled broker",
            [
                _broker_binary(),
                "broker",
                f"--listener-url=tcp://127.0.0.1:{port}",
                f"--advertised-listener-url=tcp://{self.bootstrap_server}",
                "--storage-engine=memory://tansu/",
                "--silent",
            ],
        )
        self.wait_until(lambda: _accepts(port))

    def __enter__(self) -> Self:
        return self

    def stop(self) -> int:
        """Stop the broker, and end the wire."""
        self.wire.close()
        return super().stop()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
