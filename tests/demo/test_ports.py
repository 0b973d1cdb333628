"""Ports are reserved: no two processes that start servers at once choose the same."""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from service.demo import ports
from service.demo.ports import free_port, is_free, reserve
from service.domain.errors import EmbeddedServerError

RESERVE = """
import sys
from service.demo.ports import reserve
print(reserve(int(sys.argv[1])), flush=True)
input()
"""


@pytest.fixture
def port() -> int:
    """A port that nothing else here chooses: below those of servers and of outgoing connections."""
    while not is_free(port := secrets.choice(range(10_000, 16_000))):
        pass
    return port


def reserving(port: int) -> subprocess.Popen[str]:
    """Another process that reserves a port if it can, says whether it did, and ends with its input."""
    command = [sys.executable, "-c", RESERVE, str(port)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_port_given_out_is_not_given_to_another_process() -> None:
    port = free_port()
    with reserving(port) as other:
        assert answer(other) == "False"
        other.communicate("\n")


def test_a_port_is_given_out_again_when_the_process_that_reserved_it_was_killed(port: int) -> None:
    with reserving(port) as other:
        assert answer(other) == "True"
        assert not reserve(port)
        other.kill()
    assert reserve(port)


def test_a_port_is_given_out_once() -> None:
    assert not reserve(free_port())


def test_a_port_on_which_something_listens_is_not_reserved(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        assert not reserve(port)
    with reserving(port) as other:  # nor was it kept from others
        assert answer(other) == "True"
        other.communicate("\n")


def test_ports_that_cannot_be_reserved_are_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports.tempfile, "tempdir", str(tmp_path / "missing"))
    ports._table.cache_clear()
    try:
        with pytest.raises(EmbeddedServerError, match=r"missing/credence-ports-.*: No such file"):
            free_port()
    finally:
        ports._table.cache_clear()
