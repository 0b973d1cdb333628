"""Commands that fail say what is wrong, where, and what to do; and they end as other Unix tools do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from service.app.cli import main
from service.demo.ports import free_port
from service.demo.servers import EmbeddedRedis

CLI = [sys.executable, "-m", "service.app.cli"]


@pytest.fixture
def free() -> int:
    """A port at which nothing listens."""
    return free_port()


def configured(folder: Path, **sections: Any) -> list[str]:
    """Options of a command with a configuration."""
    path = folder / "credence.yaml"
    document = {"models": {"animals": {"classes": ["cat", "dog"]}}} | sections
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return ["--config", str(path)]


def failure(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """What a command that fails says, in one line."""
    assert main(command) == 1
    [line] = capsys.readouterr().err.splitlines()
    return line.removeprefix("credence: ")


@pytest.mark.parametrize("command", ["topics create", "dead-letters list", "dead-letters list --summary"])
def test_a_command_names_the_kafka_that_it_cannot_reach(
    command: str, tmp_path: Path, free: int, capsys: pytest.CaptureFixture[str]
) -> None:
    options = configured(tmp_path, kafka={"bootstrap_servers": [f"127.0.0.1:{free}"]})
    assert failure(capsys, *command.split(), *options) == (
        f"Cannot connect to Kafka at 127.0.0.1:{free}: connection refused; "
        "check `kafka.bootstrap_servers`, and that Kafka is running"
    )


@pytest.mark.parametrize(
    "command", ["status", "layouts list", "layouts remove", "reference show", "reference set animals"]
)
@pytest.mark.parametrize("login", ["", ":hunter2@"])
def test_a_command_names_the_redis_that_it_cannot_reach(
    command: str, login: str, tmp_path: Path, free: int, capsys: pytest.CaptureFixture[str]
) -> None:
    options = configured(tmp_path, redis={"url": f"redis://{login}127.0.0.1:{free}/0"})
    assert failure(capsys, *command.split(), *options) == (
        f"Cannot connect to Redis at 127.0.0.1:{free}: connection refused; "
        "check `redis.url`, and that Redis is running"
    )


@pytest.mark.parametrize("cluster", [False, True])
def test_a_host_without_an_address_is_named(
    cluster: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = configured(tmp_path, redis={"url": "redis://nowhere.invalid:6379", "cluster": cluster})
    line = failure(capsys, "layouts", "list", *options)
    assert line.startswith(
        "Cannot connect to Redis at nowhere.invalid:6379: the host name cannot be resolved"
    )


def test_every_server_that_cannot_be_reached_is_named_with_the_causes(
    tmp_path: Path, free: int, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = ["nowhere.invalid:9092", f"127.0.0.1:{free}"]
    line = failure(capsys, "topics", "create", *configured(tmp_path, kafka={"bootstrap_servers": servers}))
    assert f"at nowhere.invalid:9092, 127.0.0.1:{free}: " in line
    assert "the host name cannot be resolved; connection refused" in line


def test_the_port_of_another_service_is_not_taken_for_kafka(
    tmp_path: Path, redis_server: EmbeddedRedis, capsys: pytest.CaptureFixture[str]
) -> None:
    server = redis_server.url.removeprefix("redis://").partition("/")[0]
    options = configured(tmp_path, kafka={"bootstrap_servers": [server]})
    line = failure(capsys, "topics", "create", *options)
    assert line.startswith(f"Cannot connect to Kafka at {server}: ")
    assert "the port is another service's, or `kafka.security.protocol` is not the broker's" in line


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no answer as Redis gives it; the port is another service's"),
        (b"", "it closed the connection; check `redis.url`"),
    ],
)
def test_the_port_of_another_service_is_not_taken_for_redis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: bytes, said: str
) -> None:
    def serve() -> None:
        client, _ = server.accept()
        with client:
            client.recv(1_000)
            client.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        line = failure(capsys, "reset", "show", *configured(tmp_path, redis={"url": f"redis://{address}/0"}))
    assert line.startswith(f"Cannot connect to Redis at {address}: {said}")


def test_a_broker_that_does_not_answer_in_tls_is_not_waited_for(
    tmp_path: Path, bootstrap_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka = {"bootstrap_servers": [bootstrap_servers], "security": {"protocol": "ssl"}}
    line = failure(capsys, "topics", "create", *configured(tmp_path, kafka=kafka))
    assert line.startswith(f"Cannot connect to Kafka at {bootstrap_servers}: ")
    assert "`kafka.security.protocol`" in line


def test_a_topic_that_does_not_exist_is_named_with_the_command_that_creates_it(
    tmp_path: Path, bootstrap_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka = {"bootstrap_servers": [bootstrap_servers], "topics": {"dead_letters": "none.such"}}
    line = failure(capsys, "dead-letters", "list", "--json", *configured(tmp_path, kafka=kafka))
    assert "topic none.such does not exist; create it with `credence topics create`" in line


@pytest.mark.parametrize("password", ["", ":wrong@"])
def test_a_redis_that_wants_another_password_says_which_keys_to_check(
    password: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedRedis() as server:
        with redis.Redis.from_url(server.url) as admin:
            admin.config_set("requirepass", "right")
        url = server.url.replace("redis://", f"redis://{password}")
        line = failure(capsys, "layouts", "list", *configured(tmp_path, redis={"url": url}))
    assert line.endswith("the login failed; check username and password of `redis`")


def test_a_database_that_redis_does_not_have_is_an_error_of_its_url(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedRedis() as server:
        url = f"{server.url.removesuffix('/0')}/99"
        line = failure(capsys, "layouts", "list", *configured(tmp_path, redis={"url": url}))
    assert line.endswith("it has no such database; `redis.url` should end in /0, or in no number")


def test_a_single_redis_is_not_taken_for_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedRedis() as server:
        options = configured(tmp_path, redis={"url": server.url, "cluster": True})
        line = failure(capsys, "layouts", "list", *options)
    assert "it is no Redis Cluster; set `redis.cluster: false`" in line


def test_a_configuration_that_is_missing_is_an_error_of_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "absent.yaml"
    assert main(["check", "--config", str(path)]) == 2
    assert capsys.readouterr().err.startswith(
        f"credence: {path} does not exist; name another one with --config"
    )


@pytest.mark.parametrize("code", ["0 done", "1 failed", "2 the configuration", "130 interrupted", "141 "])
def test_the_help_documents_exit_codes(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert code in capsys.readouterr().out


# Pipes


@pytest.mark.parametrize(
    "command", ["check", "rights kafka", "layouts list", "status", "dead-letters list --summary"]
)
def test_a_command_whose_reader_has_gone_ends_without_a_word(
    command: str, tmp_path: Path, bootstrap_servers: str, redis_server: EmbeddedRedis
) -> None:
    options = configured(
        tmp_path,
        kafka={
            "bootstrap_servers": [bootstrap_servers],
            "topics": {"dead_letters": f"{tmp_path.name}.letters"},
        },
        redis={"url": redis_server.url, "cluster": not isinstance(redis_server, EmbeddedRedis)},
    )
    assert main(["topics", "create", *options]) == 0
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*CLI, *command.split(), *options],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
