"""Wires fail as they are set to, and carry on when they are repaired."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from harness import wait_for
from wires import Wire, Wires


@pytest.fixture
def heard() -> list[bytes]:
    """What the server of a test received."""
    return []


@pytest.fixture
def wire(heard: list[bytes], wires: Wires) -> Iterator[Wire]:
    """A wire to a server that says everything back."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                while logged := connection.recv(1_024):
                    heard.append(logged)
                    connection.sendall(logged)
            except OSError:
                return  # the wire was cut

    def listen() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # the test is over
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    made = wires.wire(listener.getsockname()[1])
    yield made
    made.close()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def connect(wire: Wire) -> socket.socket:
    return socket.create_connection(("127.0.0.1", wire.port), timeout=60)


def ask(client: socket.socket, text: bytes) -> bytes:
    client.sendall(text)
    return client.recv(1_024)


def is_ended(client: socket.socket, text: bytes) -> bool:
    """Whether a connection ends when something is asked, instead of an answer."""
    try:
        return ask(client, text) == b""
    except ConnectionError:
        return True


def test_a_whole_wire_carries_both_ways(wire: Wire) -> None:
    with connect(wire) as client:
        assert ask(client, b"one") == b"one"
        assert ask(client, b"two") == b"two"


def test_a_cut_wire_resets_old_and_new_connections(wire: Wire) -> None:
    with connect(wire) as client:
        assert ask(client, b"one") == b"one"
        wire.become("cut")
        assert is_ended(client, b"two")
    with connect(wire) as client:
        assert is_ended(client, b"three")
    wire.become("whole")
    with connect(wire) as client:
        assert ask(client, b"four") == b"four"


def test_a_silent_wire_delivers_when_it_is_whole_again(wire: Wire) -> None:
    with connect(wire) as client:
        assert ask(client, b"one") == b"one"
        wire.become("silent")
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            ask(client, b"two")
        wire.become("whole")
        client.settimeout(60)
        assert client.recv(1_024) == b"two"


def test_a_wire_that_loses_replies_lets_the_server_hear(wire: Wire, heard: list[bytes]) -> None:
    with connect(wire) as client:
        wire.become("loses_replies")
        assert is_ended(client, b"one")
    assert heard == [b"one"]


def test_a_half_closed_wire_ends_replies_alone(wire: Wire, heard: list[bytes]) -> None:
    with connect(wire) as client:
        assert ask(client, b"one") == b"one"
        wire.become("half_closed")
        assert client.recv(1_024) == b""
        client.sendall(b"two")
        client.shutdown(socket.SHUT_WR)
        wait_for(lambda: heard == [b"one", b"two"], seconds=5, what="the second thing said")
