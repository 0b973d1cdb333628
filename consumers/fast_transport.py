"""A transport of the Kafka client that receives in large pieces; a part of `consumers.fast_fetch`."""

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
    """A plain-text connection; the client's own receives four kilobytes at a time."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received: list[bytes] = []
        error: Exception | None = None
        try:
            while data := self._sock.recv(_RECEIVED_BYTES):
                received.append(data)
            error = KafkaConnectionError("socket disconnected")
        except (BlockingIOError, InterruptedError):
            pass  # nothing more to receive yet
        except OSError as failure:
            error = KafkaConnectionError(failure)
        return b"".join(received), error


def use_fast_transport() -> None:
    """Use it for all connections that clients of this process make from now on."""
    manager.KafkaTCPTransport = FastTransport


def receives_alike(fast: type[Any]) -> bool:
    """Whether a transport receives sample data as the client's own does."""
    return all(received(fast, sample) == received(KafkaTCPTransport, sample) for sample in _SAMPLES)


def received(transport: type[Any], sent: bytes, *, ends: bool = False) -> tuple[bytes, str]:
    """Data that a transport receives, and the error.

    Args:
        transport: its class.
        sent: by the other side.
        ends: whether the other side then shuts down its end.
    """
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.sendall(sent)
        if ends:
            there.shutdown(socket.SHUT_WR)
        data, error = transport._sock_recv(SimpleNamespace(_sock=here))  # noqa: SLF001 - see fast_fetch
    return data, repr(error)
