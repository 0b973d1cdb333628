"""deploy/compose.yaml without Docker: its commands, environments, files, users, networks; real servers.

Grafana is no process here; tests/deploy/test_compose_file.py looks at what it is given.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_file import ROOT
from containers import Image, Stack
from harness import wait_for
from kafka_distribution import kafka_jars
from monitoring_servers import binary

from service.config.loader import load_settings
from service.domain.errors import EmbeddedServerError

CREDENCE = ["predictions", "labels", "scheduler", "web"]
MONITORING_PORT = 8401
PAGE = ROOT / "docs/compose.md"

CLEAN_ENDS = {"kafka": {0, 143}}
"""Codes of a clean end, where it is not 0 alone: Java tells which signal ended it."""

# As the image's own start script does it, but for the options of Java: a test's broker lives for seconds.
KAFKA = """
java='java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn'
java="$java -cp /opt/kafka/libs/*"
$java kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker \
  --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config
exec $java $KAFKA_HEAP_OPTS kafka.Kafka /opt/kafka/config/server.properties
"""

TOPICS = """
import json
from kafka import KafkaAdminClient
admin = KafkaAdminClient(bootstrap_servers="kafka:9092")
topics = admin.describe_topics([name for name in admin.list_topics() if name.startswith("credence.")])
print(json.dumps({each["name"]: len(each["partitions"]) for each in topics}))
"""


def images() -> dict[str, Image]:
    """The programs of this machine that stand for the images."""
    credence = Image(
        user="65532:65532",
        entrypoint=[sys.executable, "-m", "service.app.cli"],
        workdir="/etc/credence",
        environment={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        healthcheck=[sys.executable, str(ROOT / "deploy/image/healthcheck.py")],
    )
    return {
        "apache/kafka": Image(
            user="1000:1000",
            entrypoint=["sh", "-efc", KAFKA],
            writable=["/opt/kafka/config"],
            needs={"/opt/kafka/libs": kafka_jars()},
        ),
        "redis": Image(user="999:999", workdir="/data"),
        "credence": credence,
        "credence-demo": credence,
        "prom/prometheus": Image(
            user="65534:65534", entrypoint=[binary("prometheus")], workdir="/prometheus"
        ),
        "prom/alertmanager": Image(
            user="65534:65534",
            entrypoint=[binary("alertmanager", "prometheus-alertmanager")],
            workdir="/alertmanager",
        ),
    }


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Everything but Grafana, and the demo's profile."""
    folder = tmp_path_factory.mktemp("compose")
    environment = os.environ | {"CREDENCE_SECRETS": str(folder / "secrets")}
    subprocess.run([ROOT / "deploy/compose/secrets.sh"], env=environment, check=True, capture_output=True)
    try:
        running = Stack(folder, images(), environment)
    except EmbeddedServerError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    with running:
        running.up("alertmanager", "prometheus", *CREDENCE, "demo-producer", "demo-labeller")
        yield running


def is_ready(stack: Stack, name: str) -> bool:
    """Whether a process of Credence says that it does its work."""
    return stack.networks.get(name, MONITORING_PORT, "/readyz")[0] == 200


def queried(stack: Stack, expression: str) -> list[Any]:
    """The instant vector that Prometheus answers."""
    return list(ask_prometheus(stack, "query", query=expression)["result"])


def outcomes(stack: Stack) -> float:
    """How many labels Prometheus knows to be in the beliefs."""
    values = [float(sample["value"][1]) for sample in queried(stack, "max(credence_outcomes)")]
    return values[0] if values else 0.0


def wait_for_outcomes(stack: Stack, more_than: float) -> float:
    """Wait until more labels are in the beliefs; how many are. Prometheus looks every 15 seconds."""

    def more() -> float | None:
        found = outcomes(stack)
        return found if found > more_than else None

    try:
        return float(wait_for(more, seconds=120, what=f"more than {more_than:g} outcomes"))
    except AssertionError as error:
        said = "\n".join(f"{name} said: {each.log_tail()[-1_000:]}" for name, each in stack.running.items())
        raise AssertionError(f"{error}\n{said}") from error


def ask_prometheus(stack: Stack, path: str, **parameters: str) -> Any:
    """The data of what Prometheus answers, once it answers."""
    path = f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}"

    def answer() -> str | None:
        status, body = stack.networks.get("prometheus", 9090, path)
        assert status in (0, 200, 503), f"{status} {body}"
        return body if status == 200 else None

    return json.loads(wait_for(answer, seconds=60, what=f"an answer of Prometheus to {path}"))["data"]


def test_the_topics_are_there_with_the_partitions_of_the_configuration(stack: Stack) -> None:
    partitions = load_settings(ROOT / "deploy/compose/credence.yaml", {}).kafka.partitions
    kinds = ["predictions", "label-requests", "labels", "dead-letters"]
    topics = json.loads(stack.running["web"].run(sys.executable, "-c", TOPICS))
    assert topics == {f"credence.{kind}": partitions for kind in kinds}


def test_every_part_of_credence_does_its_work(stack: Stack) -> None:
    for name in CREDENCE:
        wait_for(partial(is_ready, stack, name), seconds=120, what=name)


def test_labels_of_the_demo_become_outcomes(stack: Stack) -> None:
    before = wait_for_outcomes(stack, more_than=0)
    wait_for_outcomes(stack, more_than=before)


def test_prometheus_scrapes_every_process_of_credence_as_one_job(stack: Stack) -> None:
    def scraped() -> set[tuple[str, str]]:
        samples = queried(stack, "up == 1")
        return {(each["metric"]["job"], each["metric"]["instance"].partition("/")[0]) for each in samples}

    expected = {("credence", name) for name in CREDENCE}
    wait_for(lambda: scraped() == expected, seconds=120, what="all targets up")
    targets = ask_prometheus(stack, "targets")["activeTargets"]
    assert {urllib.parse.urlsplit(each["scrapeUrl"]).port for each in targets} == {MONITORING_PORT}


def test_prometheus_has_all_our_rules_and_tells_alertmanager(stack: Stack) -> None:
    files = sorted((ROOT / "deploy/prometheus").glob("*.rules.yaml"))
    committed = {group["name"] for path in files for group in yaml.safe_load(path.read_text())["groups"]}

    def evaluated() -> bool:
        groups = ask_prometheus(stack, "rules")["groups"]
        assert {group["name"] for group in groups} == committed
        health = {rule["health"] for group in groups for rule in group["rules"]}
        assert "err" not in health
        return health == {"ok"}

    wait_for(evaluated, seconds=120, what="every rule evaluated")
    logged = ask_prometheus(stack, "alertmanagers")["activeAlertmanagers"]
    assert [urllib.parse.urlsplit(each["url"]).netloc for each in logged] == ["alertmanager:9093"]


def test_alertmanager_has_the_route(stack: Stack) -> None:
    config = json.loads(stack.networks.get("alertmanager", 9093, "/api/v2/status")[1])["config"]["original"]
    committed = yaml.safe_load((ROOT / "deploy/alertmanager/credence.alertmanager.yaml").read_text())
    (route,) = yaml.safe_load(config)["route"]["routes"]
    (expected,) = committed["route"]["routes"]
    assert route["matchers"] == expected["matchers"]
    assert [each["receiver"] for each in route["routes"]] == [each["receiver"] for each in expected["routes"]]


def test_the_status_page_is_served_where_its_port_is_published(stack: Stack) -> None:
    published = dict(port.rsplit(":", 1) for port in stack.services["web"]["ports"])
    status, page = stack.networks.get("web", int(published["127.0.0.1:8400"]), "/")
    assert status == 200
    assert "<title>" in page


def test_redis_wants_the_password_writes_every_second_and_evicts_nothing(stack: Stack) -> None:
    redis = stack.running["redis"]
    assert "NOAUTH" in redis.run("redis-cli", "ping")
    login = 'REDISCLI_AUTH=$(cat /run/secrets/redis_password) redis-cli --raw "$@"'
    logged = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"}
    for key, value in logged.items():
        said = redis.run("sh", "-c", login, "-", "config", "get", key)
        assert said.split() == [key, value]
    password = Path(stack.file["secrets"]["redis_password"]["file"]).read_text()
    assert password not in redis.run("ps", "-e", "-o", "args")


@pytest.mark.parametrize("name", [*CREDENCE, "demo-producer", "prometheus"])
def test_services_have_no_rights_and_cannot_write_to_their_root(stack: Stack, name: str) -> None:
    service = stack.running[name]
    status = dict(line.split(":", 1) for line in service.run("cat", "/proc/self/status").splitlines())
    assert {status[key].strip() for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"].strip() == "1"
    assert "0" not in status["Uid"].split()
    assert "Read-only file system" in service.run("sh", "-c", "touch /tmp/written 2>&1 || true")


def test_what_only_watches_cannot_reach_what_holds_the_data(stack: Stack) -> None:
    for service, port in (("redis", 6379), ("kafka", 9092)):
        address = stack.running["web"].run("getent", "hosts", service).split()[0]
        for name in (service, address):
            reach = f"import socket; socket.create_connection(('{name}', {port}), 2)"
            with pytest.raises(AssertionError, match=r"OSError|gaierror|unreachable|timed out"):
                stack.running["prometheus"].run(sys.executable, "-c", reach)
        stack.running["web"].run(sys.executable, "-c", reach)


@pytest.mark.parametrize("line", re.findall(r"exec (\w+) credence (.+)", PAGE.read_text()))
def test_the_pages_commands_run_in_their_container(stack: Stack, line: tuple[str, str]) -> None:
    name, command = line
    said = stack.running[name].run(sys.executable, "-m", "service.app.cli", *command.split())
    assert "digits" in said or command.startswith("dead-letters")


def test_every_healthcheck_says_that_all_is_well(stack: Stack) -> None:
    checked = [each for each in stack.running.values() if each.has_healthcheck]
    names = {each.name for each in checked}
    assert names == {"kafka", "redis", "prometheus", "alertmanager", *CREDENCE}
    for container in checked:
        wait_for(container.healthy, seconds=30, what=f"the healthcheck of {container.name}")


def test_every_service_stops_by_itself_when_it_is_asked_to(stack: Stack) -> None:
    # The last test. One that has only begun to start cannot be asked; all that answers has started.
    wait_for_outcomes(stack, more_than=0)
    # In the order in which Compose stops them: who depends on others first.
    for name in reversed([each for each in stack.running if each != "topics"]):
        container = stack.running[name]
        grace = stack.services[name].get("stop_grace_period", "10s")
        code = container.stop(seconds=float(grace.removesuffix("s")))
        assert code in CLEAN_ENDS.get(name, {0}), f"{name}: {code}: {container.log_tail()}"
