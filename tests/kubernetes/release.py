"""A release of the chart on the control plane, with a stream of predictions and readers of its page."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from control_plane import ControlPlane, Object
from harness import prediction
from kafka import KafkaProducer
from rendering import CHART, ROLES, case, changed

PARTITIONS = 3
MIN_READY_SECONDS = 10
"""Of every role, half of what the chart waits: it has to disturb nobody even so."""

_PAUSE_SECONDS = 0.05
_REQUEST_SECONDS = 10


class Release:
    """One release in a namespace of its own, where pods have to be restricted.

    Args:
        plane: a whole control plane, with nodes.
        helm: its path.
        name: of the release.
        broker: as host:port.
        redis_url: of the Redis.
        changes: of the values, beside what all releases here have.
    """

    def __init__(
        self, plane: ControlPlane, helm: Path, name: str, broker: str, redis_url: str, **changes: Any
    ) -> None:
        self.plane = plane
        self.name = name
        self.namespace = f"test-{secrets.token_hex(4)}"
        self.broker = broker
        # As the chart makes it of a name without "credence".
        self.full_name = f"{name.replace('.', '-')}-credence"
        self._helm = helm
        self.values = _values(self.namespace, broker) | changes
        self.sent = 0
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        metadata = {"name": self.namespace, "labels": labels}
        plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, namespace="")
        self.kubectl("create", "secret", "generic", "redis", f"--from-literal=address={redis_url}")

    def kubectl(self, *arguments: str) -> str:
        """What kubectl prints, warnings too."""
        result = self.plane.run("kubectl", "--namespace", self.namespace, *arguments)
        return result.stdout + result.stderr

    def helm(self, command: str, *arguments: str, check: bool = True) -> tuple[int, str]:
        """The exit code of Helm and what it prints."""
        result = self.plane.run(
            self._helm, command, self.name, *arguments, "--namespace", self.namespace, check=check
        )
        return result.returncode, result.stdout + result.stderr

    def apply(
        self, command: str, folder: Path, values: Mapping[str, Any] | None = None, *, check: bool = True
    ) -> tuple[int, str]:
        """Install or upgrade with values, and wait until all pods are available."""
        file = folder / f"{secrets.token_hex(4)}.json"
        file.write_text(json.dumps(values or self.values))
        wait = ("--values", str(file), "--wait", "--timeout", "5m")
        return self.helm(command, str(CHART), *wait, check=check)

    def items(self, path: str, version: str = "api/v1") -> list[Object]:
        """Objects of the namespace."""
        return self.plane.api.items(f"/{version}/namespaces/{self.namespace}/{path}")

    def pods(self, role: str) -> list[Object]:
        """Pods of a role that are not being deleted."""
        return [pod for pod in self.items("pods") if _is_of(pod, role)]

    def ready(self, role: str) -> list[Object]:
        """Its pods that are ready."""
        return [pod for pod in self.pods(role) if _is_ready(pod)]

    def ready_counts(self) -> dict[str, int]:
        """How many pods of every role are ready."""
        pods = [pod for pod in self.items("pods") if _is_ready(pod)]
        return {role: sum(_is_of(pod, role) for pod in pods) for role in ROLES}

    def uids(self) -> set[str]:
        """Which pods of all roles there are."""
        return {pod["metadata"]["uid"] for role in ROLES for pod in self.pods(role)}

    def deployment(self, role: str) -> Object:
        """The Deployment of a role."""
        return self.plane.api.get(
            f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.full_name}-{role}"
        )

    def page(self, path: str) -> Any:
        """A document of the API, asked through the Service of the page."""
        (service,) = (
            one for one in self.items("services") if one["metadata"]["name"] == f"{self.full_name}-page"
        )
        port = service["spec"]["ports"][0]["port"]
        url = f"http://{service['spec']['clusterIP']}:{port}{path}"
        with urllib.request.urlopen(url, timeout=_REQUEST_SECONDS) as reply:
            return json.loads(reply.read())

    def predictions(self) -> int:
        """How many predictions have been counted, as Prometheus would read it of a pod."""
        address = self.ready("scheduler")[0]["status"]["podIP"]
        port = next(
            port["containerPort"]
            for port in self.pods("scheduler")[0]["spec"]["containers"][0]["ports"]
            if port["name"] == "monitoring"
        )
        with urllib.request.urlopen(f"http://{address}:{port}/metrics", timeout=_REQUEST_SECONDS) as reply:
            found = re.search(
                rb'^credence_traffic_predictions_total\{model="sorter"\} (\S+)$', reply.read(), re.MULTILINE
            )
        return int(float(found[1])) if found else 0


def _is_of(pod: Object, role: str) -> bool:
    labels = pod["metadata"]["labels"]
    return labels.get("app.kubernetes.io/component") == role and "deletionTimestamp" not in pod["metadata"]


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return ("Ready", "True") in {(each["type"], each["status"]) for each in conditions}


def _values(name: str, broker: str) -> dict[str, Any]:
    values = case("default")
    kinds = ("predictions", "labels", "label_requests", "dead_letters")
    config = values["config"] | {
        "kafka": {
            "bootstrap_servers": [broker],
            "group_prefix": name,
            "session_timeout_seconds": 6,
            "partitions": PARTITIONS,
            "topics": {kind: f"{name}.{kind}" for kind in kinds},
        },
        "redis": {"prefix": name},
        "schedule": {"tick_seconds": 0.5, "lease_seconds": 3},
    }
    for role in ROLES:
        values = changed(values, f"{role}.rollout.minReadySeconds", MIN_READY_SECONDS)
    return values | {
        "config": config,
        "secrets": {"CREDENCE_REDIS__URL_FILE": {"secret": "redis", "key": "address"}},
    }


class Watch:
    """Sends predictions, reads the page and counts pods while this is a context, each in a thread of its own.

    Attributes:
        requests: how many readers of the page sent.
        failed: why some of them were not answered.
        fewest: ready pods of each role, the fewest at any moment.
        seconds_without: how long each role had none, at the longest.
        replicas: numbers of replicas that the Deployment of predictions was to have.
    """

    def __init__(self, release: Release) -> None:
        self._release = release
        self._producer = KafkaProducer(bootstrap_servers=[release.broker])
        self._stopping = threading.Event()
        self._last_ready: dict[str, float] = {}
        self._threads = [
            threading.Thread(target=self._repeat, args=(work,), daemon=True)
            for work in (self._produce, self._read, self._count)
        ]
        self.requests = 0
        self.failed: list[str] = []
        self.fewest: dict[str, int] = {}
        self.seconds_without: dict[str, float] = {}
        self.replicas: set[int] = set()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._producer.close()

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._stopping.wait(_PAUSE_SECONDS):
            work()

    def _produce(self) -> None:
        item = prediction(self._release.sent)
        topic = f"{self._release.namespace}.predictions"
        self._producer.send(topic, json.dumps(item).encode(), key=str(item["item_id"]).encode())
        self._release.sent += 1

    def _read(self) -> None:
        self.requests += 1
        try:
            self._release.page("/api/v1/models")
        except (OSError, ValueError) as error:
            self.failed.append(repr(error))

    def _count(self) -> None:
        counts, now = self._release.ready_counts(), time.monotonic()
        for role, ready in counts.items():
            self.fewest[role] = min(self.fewest.get(role, ready), ready)
            without = now - self._last_ready.setdefault(role, now)
            self.seconds_without[role] = max(self.seconds_without.get(role, 0.0), without)
            if ready:
                self._last_ready[role] = now
        for one in self._release.items("deployments", "apis/apps/v1"):
            if one["metadata"]["name"].endswith("-predictions"):
                self.replicas.add(one["spec"]["replicas"])


def seconds_of(work: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.monotonic()
    work()
    return time.monotonic() - start
