"""Pods run as they are rendered: from predictions to outcomes, on a real Kafka and a real Redis."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from harness import prediction, wait_for
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pods import LocalPod
from rendering import ROLES, Chart, Object, Objects, case

from service.demo.ports import free_port
from service.demo.servers import EmbeddedRedis
from service.domain.label_signatures import sign
from service.domain.messages import LabelRequest

MODEL = "sorter"
PARTITIONS = 2
VENDOR = "acme"
TOKEN = "a token of the test"
LABEL_KEY = "0123456789abcdef" * 4


class Release:
    """A release of the chart in a cluster of one machine, where every role has ports of its own."""

    def __init__(self, chart: Chart, folder: Path, broker: str, redis_url: str) -> None:
        self.name = f"chart-{secrets.token_hex(4)}"
        self.broker = broker
        self._chart = chart
        self._folder = folder
        self._secrets = {
            ("redis", "address"): redis_url,
            ("credence", "hash-key"): "00" * 16,
            ("vendors", VENDOR): f"{LABEL_KEY}\n",
        }
        self._values = self._made(case("default"))
        self.objects: dict[str, Objects] = {
            role: chart.objects(self._values | {"ports": _free_ports()}) for role in ROLES
        }
        self.pods: dict[str, LocalPod] = {}

    def _made(self, values: Object) -> Object:
        config = values["config"] | {
            "kafka": {
                "bootstrap_servers": [self.broker],
                "group_prefix": self.name,
                "session_timeout_seconds": 6,
                "partitions": PARTITIONS,
                "topics": {
                    kind: f"{self.name}.{kind}"
                    for kind in ("predictions", "labels", "label_requests", "dead_letters")
                },
            },
            "redis": {"prefix": self.name},
            "schedule": {"tick_seconds": 0.5, "lease_seconds": 1.5},
            "vendors": {VENDOR: {"token_sha256": [hashlib.sha256(TOKEN.encode()).hexdigest()]}},
        }
        return values | {
            "config": config,
            "secrets": {
                "CREDENCE_REDIS__URL_FILE": {"secret": "redis", "key": "address"},
                "CREDENCE_HASH_KEY_FILE": {"secret": "credence", "key": "hash-key"},
                "CREDENCE_VENDORS__ACME__LABEL_KEYS_FILE": {"secret": "vendors", "key": VENDOR},
            },
            "vendorApi": {"enabled": True},
            "predictions": {"kind": "StatefulSet"},
            "web": {"preStopSeconds": 1},
        }

    def pod(self, role: str) -> LocalPod:
        """The pod of a role, or of a hook."""
        objects = self.objects.get(role, self.objects["web"])
        spec = next(spec for labels, spec in objects.pods() if labels["app.kubernetes.io/component"] == role)
        pod = LocalPod(objects, spec, self._folder / role, self._secrets, f"{self.name}-{role}-0")
        self.pods[role] = pod
        return pod

    def topic(self, kind: str) -> str:
        """The name of a topic."""
        return f"{self.name}.{kind}"

    def close(self) -> None:
        """Leave no process behind."""
        for pod in self.pods.values():
            pod.kill()


def _free_ports() -> dict[str, int]:
    return {name: free_port() for name in ("monitoring", "http", "vendorApi")}


@pytest.fixture(scope="module")
def release(
    chart: Chart,
    tmp_path_factory: pytest.TempPathFactory,
    bootstrap_servers: str,
    redis_server: EmbeddedRedis,
) -> Iterator[Release]:
    """A release whose hooks have run, and whose processes are ready."""
    release = Release(chart, tmp_path_factory.mktemp("release"), bootstrap_servers, redis_server.url)
    try:
        topics = release.pod("topics")
        result = topics.run(topics.command())
        assert result.returncode == 0, result.stderr
        for role in ROLES:
            release.pod(role).start()
        for role in ROLES:
            release.pods[role].await_start()
        yield release
    finally:
        release.close()


def test_the_job_makes_topics_and_can_run_again(release: Release) -> None:
    admin = KafkaAdminClient(bootstrap_servers=release.broker)
    assert {release.topic("predictions"), release.topic("label_requests")} <= set(admin.list_topics())
    admin.close()
    job = release.pods["topics"]
    assert job.run(job.command()).stdout.count("exists") == 4


def test_what_a_topic_brings_becomes_an_outcome(release: Release) -> None:
    producer = KafkaProducer(bootstrap_servers=release.broker)
    for number in range(50):
        value = json.dumps(prediction(number) | {"model": MODEL}).encode()
        producer.send(release.topic("predictions"), value=value)
    producer.flush()
    # Not by a group: the bundled broker lets a new member wait for half a session.
    requests = KafkaConsumer(bootstrap_servers=release.broker)
    partitions = [TopicPartition(release.topic("label_requests"), number) for number in range(PARTITIONS)]
    requests.assign(partitions)
    requests.seek_to_beginning(*partitions)
    records = wait_for(lambda: requests.poll(200), seconds=90, what="a label request")
    request = LabelRequest.model_validate_json(next(iter(records.values()))[0].value)
    label = {
        "request_id": request.request_id,
        "model": request.model,
        "item_id": request.item_id,
        "true_class": "cat",
        "time": datetime.now(UTC).isoformat(),
    }
    answer = json.dumps(label).encode()
    signature = sign(LABEL_KEY.encode(), VENDOR, answer)
    producer.send(release.topic("labels"), value=answer, headers=signature)
    producer.close(timeout=5)
    requests.close(autocommit=False, timeout_ms=2_000)

    page = f"127.0.0.1:{release.pods['web'].port('http')}"

    def outcomes() -> int:
        return int(json.loads(_got(f"http://{page}/api/v1/models"))["models"][0]["outcomes"])

    wait_for(lambda: outcomes() == 1, seconds=90, what="the outcome on the page")


def _got(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as reply:
        body: bytes = reply.read()
        return body


def test_a_vendor_reaches_its_api_on_the_port_of_its_service(release: Release) -> None:
    web = release.pods["web"]
    services = release.objects["web"].of("Service")
    (port,) = services["vendor-api"]["spec"]["ports"]
    url = f"http://127.0.0.1:{web.port(port['targetPort'])}/vendor/v1/models"
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(asked, timeout=60) as reply:
        assert json.load(reply)["models"][0]["model"] == MODEL
    with pytest.raises(urllib.error.HTTPError, match="401"):
        _got(url)


def test_helm_test_passes_where_all_is_well_and_fails_where_it_is_not(release: Release) -> None:
    smoke, web = release.pod("smoke-test"), release.pods["web"]
    objects = release.objects["web"]

    def reached(match: re.Match[str]) -> str:
        # A Service sends its port on to the port of its pods that it names.
        (port,) = [
            port
            for service in objects.of("Service").values()
            if service["metadata"]["name"] == match["service"]
            for port in service["spec"]["ports"]
            if port["port"] == int(match["port"])
        ]
        return f"127.0.0.1:{web.port(port['targetPort'])}"

    address = re.compile(r"(?P<service>[a-z-]+)\.credence\.svc:(?P<port>\d+)")
    command = [address.sub(reached, argument) for argument in smoke.command()]
    assert smoke.run(command).returncode == 0
    failed = smoke.run([*command, "--seconds=0", "--model=unknown"])
    assert failed.returncode == 1
    assert failed.stderr == "the API does not list model unknown\n"


def test_processes_end_well_within_their_grace(release: Release) -> None:
    assert {role: release.pods[role].terminate() for role in ROLES} == dict.fromkeys(ROLES, 0)
