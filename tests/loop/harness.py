"""Runs Credence as users do: real processes, a real broker, a real Redis."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from service.app.cli import main
from service.app.wiring import model_keys
from service.config.loader import load_settings
from service.demo.ports import free_port
from service.domain.messages import LabelRequest
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.facts import FactReader

CLI = [sys.executable, "-m", "service.app.cli"]

CONFIGURATION = """
kafka:
  bootstrap_servers: {brokers}
  session_timeout_seconds: 6
  partitions: {partitions}
  group_prefix: {name}
  topics:
    predictions: {name}.predictions
    label_requests: {name}.label-requests
    labels: {name}.labels
    dead_letters: {name}.dead-letters
redis: {{url: "{redis}", cluster: {cluster}, prefix: {name}}}
schedule: {{tick_seconds: {tick}, lease_seconds: {lease}}}
log_level: debug
seed: 7
vendors: {vendors}
senders: {senders}
models:
  sorter:
    classes: [cat, dog, owl]
    groupings:
      region: {{by: attribute, attribute: region}}
      class: {{by: predicted_class}}
    assessments: {assessments}
    alerts: {{min_accuracy: 0.8}}
{model}
"""

_MONITORED = ("/healthz", "/readyz", "/metrics")
_ANSWER_SECONDS = 30.0
"""A process that answers later counts as one that does not."""

ASSESSMENTS = (
    "{weakest: {task: identification, grouping: region, budget: {labels: 60}, lease_seconds: 600}, "
    "classes: {task: estimation, grouping: class, budget: {labels: 60}, lease_seconds: 600}}"
)
"""No request expires while a test restarts processes: another one would be asked in its place."""


PATIENCE_SECONDS = 120.0
"""The least that is waited: what comes at once on an idle machine may come late on a busy one."""


def wait_for(condition: Callable[[], Any], *, seconds: float, what: str) -> Any:
    """The condition's value once it is true; asked again until then.

    Args:
        condition: asked for its value.
        seconds: how long it may take; `PATIENCE_SECONDS` if that is longer. A guard, not a claim: a test that
            promises a time measures it.
        what: is waited for.

    Raises:
        AssertionError: it is not true in time.
    """
    patience = max(seconds, PATIENCE_SECONDS)
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {patience:g} s")
        time.sleep(0.05)
    return value


def prediction(number: int) -> dict[str, Any]:
    """The prediction of one item, the same whenever it is asked for."""
    rng = random.Random(number)
    region = rng.choices(["north", "south"], [3, 1])[0]
    return {
        "model": "sorter",
        "item_id": f"item-{number:06d}",
        "predicted_class": rng.choice(["cat", "dog", "owl"]),
        "score": round(rng.uniform(0.5, 1.0), 4),
        "attributes": {"region": region},
        "payload": {"picture": number},
    }


def truth(number: int) -> str:
    """The true class of one item: the model is often wrong in the south."""
    item = prediction(number)
    rng = random.Random(-number - 1)
    right = rng.random() < (0.95 if item["attributes"]["region"] == "north" else 0.6)
    others = [name for name in ("cat", "dog", "owl") if name != item["predicted_class"]]
    return item["predicted_class"] if right else rng.choice(others)


class Deployment:
    """One configuration with its topics, and the processes that play it.

    Args:
        folder: for the configuration and the logs of processes.
        broker: as host:port; several, joined by commas.
        redis_url: of Redis.
        redis_cluster: whether that is a Redis Cluster.
        partitions: of every topic.
        tick: seconds between two rounds.
        assessments: what is asked, as YAML.
        model: more keys of the model, as YAML.
        vendors: who is asked, as YAML; `NAME` stands for the deployment's name.
        senders: who sends predictions over HTTP, as YAML.
    """

    def __init__(
        self,
        folder: Path,
        *,
        broker: str,
        redis_url: str,
        redis_cluster: bool = False,
        partitions: int = 4,
        tick: float = 0.5,
        assessments: str = ASSESSMENTS,
        model: str = "",
        vendors: str = "{}",
        senders: str = "{}",
    ) -> None:
        self.name = f"t{os.getpid()}x{time.monotonic_ns()}"
        self.folder = folder
        self.broker = broker
        self.config = folder / "credence.yaml"
        self.config.write_text(
            CONFIGURATION.format(
                brokers=json.dumps(broker.split(",")),
                redis=redis_url,
                cluster=json.dumps(redis_cluster),
                partitions=partitions,
                name=self.name,
                tick=tick,
                lease=max(2 * tick, 1.5),
                assessments=assessments,
                model=indent(model, "    "),
                vendors=vendors.replace("NAME", self.name),
                senders=senders,
            )
        )
        self.settings = load_settings(self.config, {})
        # In this process: deployments are many, and the command as a process has a test of its own.
        assert main(["topics", "create", "--config", str(self.config)]) == 0
        self.producer = KafkaProducer(bootstrap_servers=broker)
        self._redis = build_redis(self.settings.redis)
        self._consumers: list[KafkaConsumer] = []

    def close(self) -> None:
        """Close all clients."""
        self.producer.close(timeout=5)
        for consumer in self._consumers:
            consumer.close(autocommit=False, timeout_ms=2_000)
        self._redis.close()

    def configure(self, section: str, **keys: Any) -> None:
        """Have processes that start from now on find these keys in a section of the configuration."""
        document = yaml.safe_load(self.config.read_text())
        document[section] = document.get(section, {}) | keys
        self.config.write_text(yaml.safe_dump(document, sort_keys=False))

    def run_command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            [*CLI, *arguments, "--config", str(self.config)], capture_output=True, text=True, check=True
        )

    @contextmanager
    def process(self, *command: str, port: int | None = None, **variables: str) -> Iterator[Process]:
        """A running command, killed in the end if it still runs.

        Args:
            command: and its arguments.
            port: of its health and metrics; a free one if absent.
            variables: more of its environment.
        """
        process = Process(self, command, port=port, variables=variables)
        try:
            yield process
        finally:
            process.kill()

    def send(self, kind: str, value: bytes, key: str | None = None) -> None:
        """Send one record to one of the topics."""
        self.producer.send(f"{self.name}.{kind}", value=value, key=None if key is None else key.encode())

    def send_predictions(self, numbers: range) -> None:
        """Send the predictions of some items, one a record, and wait for the broker to have them."""
        for number in numbers:
            item = prediction(number)
            self.send("predictions", json.dumps(item).encode(), item["item_id"])
        self.producer.flush()

    def consumer(self, kind: str) -> KafkaConsumer:
        """A consumer of one of the topics, from its beginning."""
        # In no group: a broker may let a new member wait for long.
        topic = f"{self.name}.{kind}"
        consumer = KafkaConsumer(
            bootstrap_servers=self.broker, auto_offset_reset="earliest", enable_auto_commit=False
        )
        self._consumers.append(consumer)
        partitions = wait_for(
            lambda: consumer.partitions_for_topic(topic), seconds=30, what=f"partitions of {topic}"
        )
        consumer.assign([TopicPartition(topic, partition) for partition in sorted(partitions)])
        return consumer

    @property
    def connection(self) -> Connection:
        """To the Redis of the deployment."""
        return Connection(self._redis, self.settings.redis.prefix)

    def facts(self) -> FactReader:
        """Reads what Redis holds of the model."""
        space = self.settings.cell_space("sorter")
        return FactReader(
            self.connection,
            model_keys(self.settings, "sorter"),
            space,
            decay=self.settings.models["sorter"].traffic_decay_per_second,
        )

    def predictions_stored(self) -> int:
        """How many predictions the stored traffic counts."""
        return self.facts().traffic().traffic.predictions


Deploy = Callable[..., Deployment]


class Process:
    """One running command of a deployment.

    Attributes:
        port: where it tells its health and metrics.
        page_port: where it serves the status page and its API, if it takes snapshots.
    """

    def __init__(
        self,
        deployment: Deployment,
        command: tuple[str, ...],
        *,
        port: int | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.port, self.page_port = port or free_port(), free_port()
        self.log = deployment.folder / f"{'-'.join(command)}-{self.port}.log"
        with self.log.open("ab") as sink:
            self.popen = subprocess.Popen(
                [*CLI, *command, "--config", str(deployment.config)],
                env=os.environ
                | {"CREDENCE_MONITORING__PORT": str(self.port), "CREDENCE_HTTP__PORT": str(self.page_port)}
                | dict(variables or {}),
                stdout=sink,
                stderr=sink,
            )

    def kill(self) -> None:
        """SIGKILL: no chance to flush."""
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of an HTTP request; 0 when nobody answers."""
        port = self.port if path in _MONITORED else self.page_port
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=_ANSWER_SECONDS) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def ready(self) -> bool:
        """Whether it says that it does its work."""
        assert self.popen.poll() is None, f"exited: {self.log.read_text()[-2000:]}"
        return self.get("/readyz")[0] == 200

    def metric(self, sample: str) -> float | None:
        """Value of one sample, named as in the text format, such as `name{label="value"}`."""
        for line in self.get("/metrics")[1].splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
        return None


class Labeller:
    """Answers label requests, and remembers all that it saw.

    Attributes:
        truth: gives the true class of an item by its number; may be replaced, as when a model is mended.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.truth = truth
        self._deployment = deployment
        self._consumer = deployment.consumer("label-requests")
        self.seen: list[LabelRequest] = []

    def answer(self, **changes: object) -> int:
        """Answer what has come in; how many requests that were."""
        came = [
            LabelRequest.model_validate_json(record.value)
            for records in self._consumer.poll(200).values()
            for record in records
        ]
        self.seen += came
        for request in self.in_order(came):
            label = self.label(request) | changes
            self._deployment.send("labels", json.dumps(label).encode(), request.item_id)
        self._deployment.producer.flush()
        return len(came)

    def label(self, request: LabelRequest) -> dict[str, object]:
        """What is said to a request; each person has a name."""
        return {
            "request_id": request.request_id,
            "model": request.model,
            "item_id": request.item_id,
            "true_class": self.truth(int(request.item_id.removeprefix("item-"))),
            "annotator": f"person-{request.opinion}",
        }

    def in_order(self, came: list[LabelRequest]) -> list[LabelRequest]:
        """The requests whose labels are sent, one after the other."""
        return came

    def answer_until(self, count: int) -> None:
        """Answer until so many requests were seen."""

        def enough() -> bool:
            self.answer()
            return len(self.seen) >= count

        wait_for(enough, seconds=60, what=f"{count} label requests")


class RepeatingLabeller(Labeller):
    """Sends every label twice, and those of a batch in reverse order first."""

    def in_order(self, came: list[LabelRequest]) -> list[LabelRequest]:
        """Every request, and every request again."""
        return [*reversed(came), *came]

    def label(self, request: LabelRequest) -> dict[str, object]:
        """The same label whenever it is sent."""
        return super().label(request) | {"time": request.requested_at.isoformat()}
