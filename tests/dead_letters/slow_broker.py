"""A broker that is reached through a wire which can hold back or lose its replies."""

from __future__ import annotations

import socket
from typing import Self

from wires import Wires

from service.demo.ports import free_port
from service.demo.servers import Child, _broker_binary


class WiredBroker(Child):
    """The bundled broker, which tells its clients the address of a wire as its own."""

    def __init__(self) -> None:
        port = free_port()
        self._wires = Wires()
        self.wire = self._wires.wire(port)
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
        self._wires.close()
        return super().stop()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
