"""The snippets of docs/connect.md run as they stand, but for addresses and names of topics."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from contextlib import closing
from typing import Any

import pytest
import yaml
from connect_page import at, blocks, counted, marked, run, running, section, tensors_of
from harness import Deploy, Deployment, wait_for
from kafka import KafkaConsumer, TopicPartition
from missing_programs import Missing, program
from test_client_labeller import ask
from test_served import shell

from service.demo.ports import free_port
from service.domain.messages import Label

TOKEN = "a-token-that-is-used-by-tests-alone"
PRODUCERS = {
    "scikit-learn": "sklearn",
    "ONNX Runtime": "skl2onnx",
    "kafka-python": "kafka",
    "confluent-kafka": "confluent_kafka",
    "Arrow batches": "pyarrow",
}
"""The module that a snippet needs, by the section that it is in."""
SERVERS = ("KServe", "Triton", "MLServer", "Seldon Core")


def need(module: str) -> None:
    """Skip the test where a module is missing; it fails with CI=true."""
    if importlib.util.find_spec(module) is None:
        reason = Missing(module, "pip install --editable '.[dev]'").reason
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture
def complete_broker(request: pytest.FixtureRequest) -> None:
    """Skip the test on the bundled broker, which some clients do not understand."""
    if request.config.getoption("--broker") != "apache":
        pytest.skip("the bundled broker does not speak to this client; make test-stack runs it")


def answers(deployment: Deployment, count: int) -> list[Label]:
    """The labels that were sent, once there are so many."""
    consumer, found = deployment.consumer("labels"), []

    def enough() -> bool:
        polled = consumer.poll(200).values()
        found.extend(Label.model_validate_json(record.value) for records in polled for record in records)
        return len(found) >= count

    wait_for(enough, seconds=60, what=f"{count} labels")
    return found


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy(assessments="{}", partitions=2)


@pytest.mark.parametrize("title", PRODUCERS)
def test_every_prediction_that_a_snippet_logs_counts(deployment: Deployment, title: str) -> None:
    need(PRODUCERS[title])
    run(deployment, title)
    assert counted(deployment, "region", 20) == {"north": 20}


@pytest.mark.usefixtures("complete_broker")
def test_every_prediction_that_the_snippet_for_aiokafka_sends_counts(deployment: Deployment) -> None:
    need("aiokafka")
    run(deployment, "aiokafka")
    assert counted(deployment, "region", 20) == {"north": 20}


def test_every_prediction_that_the_snippet_for_pytorch_logs_counts(deployment: Deployment) -> None:
    pytest.importorskip("torch", reason="PyTorch is too large for CI, as the page says")
    run(deployment, "PyTorch")
    assert counted(deployment, "region", 20) == {"north": 20}


@pytest.mark.parametrize("server", SERVERS)
def test_every_row_of_a_response_that_a_model_server_logs_counts(deploy: Deploy, server: str) -> None:
    deployment = deploy(assessments="{}", partitions=1, model=tensors_of(server))
    record: dict[str, Any] = json.loads(marked(f"record: {server}", "json"))
    headers = [(name, text.encode()) for name, text in record["headers"].items()]
    value = json.dumps(record["value"]).encode()
    deployment.producer.send(f"{deployment.name}.predictions", value=value, headers=headers)
    deployment.producer.flush()
    assert counted(deployment, "class", 2) == {"owl": 1, "cat": 1}


@pytest.mark.parametrize("server", ["KServe", "Seldon Core"])
def test_the_manifests_of_a_model_server_log_responses_to_the_topic_of_predictions(server: str) -> None:
    manifests = "".join(text for text in blocks(section(server), "yaml") if "apiVersion" in text)
    assert all(document["kind"] for document in yaml.safe_load_all(manifests))
    assert "credence.predictions" in manifests
    assert re.search(r"mode: response\b", manifests)


def test_mlserver_writes_its_answers_to_the_topic_of_predictions() -> None:
    (settings,) = [text for text in blocks(section("MLServer"), "json") if "kafka_enabled" in text]
    assert json.loads(settings)["kafka_topic_output"] == "credence.predictions"


@pytest.mark.parametrize("title", ["Label with Credence's client", "Label with kafka-python"])
def test_a_labeller_answers_the_requests_of_the_items_that_it_knows(
    deployment: Deployment, title: str
) -> None:
    ask(deployment, 1, model="other", request_id="of-another-model")
    for number in (3, 1, 2):
        ask(deployment, number)
    with running(deployment, title):
        found = answers(deployment, 2)
    assert {(label.request_id, label.true_class, label.annotator) for label in found} == {
        ("r1", "owl", "desk-7"),
        ("r2", "cat", "desk-7"),
    }


def test_the_labeller_with_kafka_python_continues_where_it_stopped(deployment: Deployment) -> None:
    with running(deployment, "Label with kafka-python"):
        ask(deployment, 1)
        answers(deployment, 1)
        ask(deployment, 3)  # of no item that it knows, but its offset is committed after that of the first
        wait_for(lambda: committed(deployment) == 2, seconds=60, what="both offsets")
    with running(deployment, "Label with kafka-python"):
        ask(deployment, 2)
        assert [label.request_id for label in sorted(answers(deployment, 2), key=str)] == ["r1", "r2"]


def committed(deployment: Deployment) -> int:
    """How many label requests the labeller has committed."""
    with closing(KafkaConsumer(bootstrap_servers=deployment.broker, group_id="desk-7")) as consumer:
        partitions = [TopicPartition(f"{deployment.name}.label-requests", number) for number in range(2)]
        return sum(consumer.committed(partition) or 0 for partition in partitions)


@pytest.mark.usefixtures("complete_broker")
def test_a_label_sent_with_kcat_answers_the_request_for_a_prediction_sent_with_kcat(deploy: Deploy) -> None:
    program("kcat", package="kcat")
    deployment = deploy(partitions=1)
    with deployment.process("run") as process:
        shell(at(deployment, marked("shell: predict", "sh")))
        requests = at(deployment, marked("shell: requests", "sh"))
        (request,) = wait_for(lambda: shell(requests).splitlines(), seconds=60, what="a label request")
        label = at(deployment, marked("shell: label", "sh"))
        shell(label, REQUEST=json.loads(request)["request_id"])
        outcome = 'credence_outcomes{model="sorter"}'
        wait_for(lambda: process.metric(outcome) == 1, seconds=60, what="the outcome")


def test_the_calls_with_curl_send_a_prediction_and_read_the_estimates(deployment: Deployment) -> None:
    program("curl", package="curl")
    port = free_port()
    token = hashlib.sha256(TOKEN.encode()).hexdigest()
    deployment.configure("senders", shop={"models": ["sorter"], "token_sha256": [token]})
    deployment.configure("vendor_api", port=port)
    call = marked("shell: call", "sh")
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=60, what="readiness")
        answer = shell(call, TOKEN=TOKEN, CREDENCE=f"http://127.0.0.1:{port}")
        assert json.loads(answer) == {"accepted": 1}
        estimates = marked("shell: estimates", "sh").replace(
            "127.0.0.1:8400", f"127.0.0.1:{process.page_port}"
        )

        def predictions() -> int:
            return int(json.loads(shell(estimates))["predictions"])

        wait_for(lambda: predictions() == 1, seconds=60, what="the prediction")
