"""`credence check --connect` tries what a configuration needs, says what is missing, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
import yaml

from service.app.cli import main
from service.app.permissions import redis_rules
from service.config.loader import load_settings
from service.demo.ports import free_port
from service.demo.servers import EmbeddedRedis

Check = Callable[..., tuple[int, list[str]]]


@pytest.fixture(scope="module")
def own_redis() -> Iterator[EmbeddedRedis]:
    """A Redis whose users are of these tests."""
    with EmbeddedRedis() as server:
        yield server


@pytest.fixture
def config(tmp_path: Path, bootstrap_servers: str, own_redis: EmbeddedRedis) -> Path:
    """A configuration whose topics do not exist."""
    names = ("predictions", "label_requests", "labels", "dead_letters")
    path = tmp_path / "credence.yaml"
    document = {
        "kafka": {
            "bootstrap_servers": [bootstrap_servers],
            "topics": {name: f"{tmp_path.name}.{name}" for name in names},
            "group_prefix": tmp_path.name,
        },
        "redis": {"url": own_redis.url, "prefix": tmp_path.name},
        "models": {"animals": {"classes": ["cat", "dog"]}},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.fixture
def check(config: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Runs the command; its exit code, and its lines about what it tried."""

    def run(*options: str) -> tuple[int, list[str]]:
        code = main(["check", "--connect", *options, "--config", str(config)])
        tried = ("kafka", "schema registry", "topic ", "rights on", "consumer group", "redis", "rights in")
        return code, [line for line in capsys.readouterr().out.splitlines() if line.startswith(tried)]

    return run


def change(config: Path, section: str, **keys: object) -> None:
    document = yaml.safe_load(config.read_text())
    document[section] |= keys
    config.write_text(yaml.safe_dump(document))


def test_topics_that_do_not_exist_are_named_and_not_created(check: Check, tmp_path: Path) -> None:
    for _ in range(2):
        code, lines = check()
        assert code == 1
        failed = [line for line in lines if "FAILED" in line]
        assert len(failed) == 4
        for name in ("predictions", "label_requests", "labels", "dead_letters"):
            topic = f"topic {tmp_path.name}.{name}"
            assert any(
                line.startswith(f"{topic}: FAILED: {topic} does not exist; create it") for line in failed
            )


def test_a_deployment_that_works_is_ok_and_its_partitions_are_counted(
    check: Check, config: Path, tmp_path: Path, own_redis: EmbeddedRedis
) -> None:
    assert main(["topics", "create", "--config", str(config)]) == 0
    code, lines = check()
    assert code == 0
    assert f"topic {tmp_path.name}.labels: ok (4 partitions)" in lines
    assert f"consumer group {tmp_path.name}.labels: ok" in lines
    assert "redis: ok" in lines
    assert "rights in redis for schedule: ok" in lines
    with redis.Redis.from_url(own_redis.url) as client:
        assert list(client.scan_iter(f"{tmp_path.name}*")) == []


def test_only_what_a_role_needs_is_tried(check: Check, config: Path, tmp_path: Path) -> None:
    assert main(["topics", "create", "--config", str(config)]) == 0
    code, lines = check("--role", "labels")
    assert code == 0
    assert not [line for line in lines if f"{tmp_path.name}.predictions" in line]
    assert [line for line in lines if line.startswith("rights in")] == ["rights in redis for labels: ok"]


def test_servers_that_cannot_be_reached_are_named_both(check: Check, config: Path) -> None:
    port = free_port()
    change(config, "kafka", bootstrap_servers=[f"127.0.0.1:{port}"])
    change(config, "redis", url=f"redis://127.0.0.1:{port}/0")
    code, lines = check()
    assert code == 1
    kafka, server = lines
    assert kafka.startswith(f"kafka: FAILED: Cannot connect to Kafka at 127.0.0.1:{port}: connection refused")
    assert server.startswith(
        f"redis: FAILED: Cannot connect to Redis at 127.0.0.1:{port}: connection refused"
    )


@pytest.mark.parametrize("role", ["predictions", "labels", "schedule"])
def test_the_rights_that_a_role_is_documented_to_need_are_enough(
    role: str, check: Check, config: Path, own_redis: EmbeddedRedis
) -> None:
    with_user(config, own_redis, redis_rules(load_settings(config, {}), role))
    _, lines = check("--role", role)
    assert lines[-2:] == ["redis: ok", f"rights in redis for {role}: ok"]


@pytest.mark.parametrize(("lost", "named"), [("+xadd", "XADD"), ("~", "claims")])
def test_a_right_that_is_missing_is_named(
    lost: str, named: str, check: Check, config: Path, own_redis: EmbeddedRedis
) -> None:
    rules = redis_rules(load_settings(config, {}), "labels")
    kept = [rule for rule in rules if rule != lost and not (lost == "~" and rule.endswith(":claims"))]
    assert len(kept) == len(rules) - 1
    with_user(config, own_redis, kept)
    code, lines = check("--role", "labels")
    assert code == 1
    assert lines[-1].startswith("rights in redis for labels: FAILED: missing ")
    assert named in lines[-1]
    assert lines[-1].endswith("grant the rights that `credence rights redis` prints")


def test_rights_that_cannot_be_tested_are_not_called_ok(
    check: Check, config: Path, own_redis: EmbeddedRedis
) -> None:
    with_user(config, own_redis, redis_rules(load_settings(config, {}), "serve"))
    _, lines = check("--role", "serve")
    assert lines[-2] == "redis: ok"
    assert lines[-1].startswith("rights in redis for serve: not tested: ")


def with_user(config: Path, server: EmbeddedRedis, rules: list[str]) -> None:
    """Have the configuration log in as a user with these rights alone."""
    with redis.Redis.from_url(server.url) as admin:
        admin.execute_command("ACL", "SETUSER", "checked", "reset", "on", ">word", "-@all", *rules)
    change(config, "redis", username="checked", password="word")


def test_a_schema_registry_that_is_away_is_reported(config: Path, check: Check) -> None:
    change(config, "kafka", schema_registry={"url": f"http://127.0.0.1:{free_port()}"})
    assert [line for line in check()[1] if line.startswith("schema registry")] == [
        "schema registry: FAILED: schema registry is unavailable: connection refused"
    ]
