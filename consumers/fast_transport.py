"""A connection of the Kafka client of which much is received at once; a part of `consumers.fast_fetch`."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

from kafka.errors import KafkaConnectionError
from kafka.net import manager
from kafka.net.transport import KafkaTCPTransport

_RECEIVED_BYTES = 256 * 1024

_SAMPLES = (b"", b"x", b"0123456789" * 500)


class FastTransport(KafkaTCPTransport):  # type: ignore[misc]  # the library has no types
    """A connection in plain text; the client takes four kilobytes out of the socket at a time."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received: list[bytes] = []
        error: Exception | None = None
        try:
            while data := self._sock.recv(_RECEIVED_BYTES):
                received.append(data)
            error = KafkaConnectionError("socket disconnected")
        except (BlockingIOError, InterruptedError):
            pass  # there is no more for now
        except OSError as failure:
            error = KafkaConnectionError(failure)
        return b"".join(received), error


def use_fast_transport() -> None:
    """Have connections that are made from now on be such ones, of all clients of the process."""
    manager.KafkaTCPTransport = FastTransport


def receives_alike(fast: type[Any]) -> bool:
    """Whether what came over a connection is received as the client does it."""
    return all(received(fast, said) == received(KafkaTCPTransport, said) for said in _SAMPLES)


def received(transport: type[Any], said: bytes, *, ends: bool = False) -> tuple[bytes, str]:
    """What a kind of connection makes of what the other side says.

    Args:
        transport: the kind.
        said: before it is received.
        ends: whether the other side says nothing more then.

    Returns:
        What was received, and the error.
    """
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.sendall(said)
        if ends:
            there.shutdown(socket.SHUT_WR)
        data, error = transport._sock_recv(SimpleNamespace(_sock=here))  # noqa: SLF001 - see fast_fetch
    return data, repr(error)
