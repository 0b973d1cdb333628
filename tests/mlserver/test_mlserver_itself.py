"""The real MLServer answers over Kafka, as docs/connect.md configures it, and Credence counts its answers.

`.ci/mlserver.sh` installs it apart from everything else and runs this; MLSERVER names its command.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from connect_page import at, blocks, counted, marked, run, section, tensors_of
from harness import Deploy, Deployment, wait_for
from kafka.admin import NewTopic

from service.demo.ports import free_port
from service.demo.servers import Child
from service.kafka.clients import build_admin

SECTION = "MLServer"
_SECONDS = 120.0

# Its rows are those of the page's request: one is a cat, the other one an owl.
TRAIN = """
import joblib
from sklearn.linear_model import LogisticRegression

rows = [[5.1, 3.5, 1.4, 0.2], [5.9, 2.8, 4.3, 1.3], [6.3, 3.3, 6.0, 2.5]] * 20
joblib.dump(LogisticRegression(max_iter=1000).fit(rows, ["cat", "dog", "owl"] * 20), "model.joblib")
"""


@pytest.fixture
def command() -> Path:
    name = os.environ.get("MLSERVER")
    if name is None:
        if os.environ.get("CI") == "true":
            raise AssertionError("MLSERVER is to name its command")
        pytest.skip("MLSERVER names no command; .ci/mlserver.sh installs it")
    return Path(name)


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy(assessments="{}", partitions=1, model=tensors_of(SECTION))


def input_topic(deployment: Deployment) -> str:
    return f"{deployment.name}.sorter-input"


@contextmanager
def serving(command: Path, deployment: Deployment, *, predict_fn: str | None = None) -> Iterator[None]:
    """MLServer with the settings of the page, once it reads its input topic."""
    settings, model = (json.loads(at(deployment, text)) for text in blocks(section(SECTION), "json")[:2])
    settings |= {name: free_port() for name in ("http_port", "grpc_port", "metrics_port")}
    settings |= {"host": "127.0.0.1", "parallel_workers": 0}
    if predict_fn is not None:
        model["parameters"]["extra"]["predict_fn"] = predict_fn
    folder = deployment.folder
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "model-settings.json").write_text(json.dumps(model))
    subprocess.run([command.with_name("python"), "-c", TRAIN], cwd=folder, check=True)
    with closing(build_admin(deployment.settings.kafka)) as admin:
        admin.create_topics([NewTopic(input_topic(deployment), num_partitions=1, replication_factor=1)])
    log = folder / "mlserver.log"
    with log.open("wb") as sink:
        child = Child("MLServer", [str(command), "start", str(folder)], output=sink)
    try:
        wait_for(lambda: reads(deployment, log), seconds=_SECONDS, what="MLServer to read its topic")
        yield
    finally:
        child.stop()


def reads(deployment: Deployment, log: Path) -> bool:
    """Whether it has read a request of a model that it does not have: it reads none that came before it."""
    headers = [("mlserver-model", b"absent")]
    deployment.producer.send(input_topic(deployment), b'{"inputs": []}', headers=headers)
    deployment.producer.flush()
    return "Model absent not found" in log.read_text()


def shape(record: dict[str, Any]) -> dict[str, Any]:
    """A record without the probabilities in it."""
    (tensor,) = record["value"]["outputs"]
    return record | {"value": record["value"] | {"outputs": [tensor | {"data": len(tensor["data"])}]}}


def test_every_row_that_mlserver_answers_counts(command: Path, deployment: Deployment) -> None:
    with serving(command, deployment):
        run(deployment, SECTION)
        assert counted(deployment, "class", 2) == {"cat": 1, "owl": 1}


def test_the_record_on_the_page_is_one_of_mlserver(command: Path, deployment: Deployment) -> None:
    consumer = deployment.consumer("predictions")
    with serving(command, deployment):
        run(deployment, SECTION)
        (records,) = wait_for(lambda: consumer.poll(200).values(), seconds=_SECONDS, what="the answer")
    (found,) = records
    headers = {name: content.decode() for name, content in found.headers}
    page = json.loads(marked("record: MLServer", "json"))
    assert shape({"headers": headers, "value": json.loads(found.value)}) == shape(page)


def test_an_answer_without_probabilities_is_refused(command: Path, deployment: Deployment) -> None:
    letters = deployment.consumer("dead-letters")
    with serving(command, deployment, predict_fn="predict"), deployment.process("consume", "predictions"):
        run(deployment, SECTION)
        (records,) = wait_for(lambda: letters.poll(200).values(), seconds=_SECONDS, what="the dead letter")
    assert [dict(record.headers)["credence-reason"] for record in records] == [b"missing_field"]
