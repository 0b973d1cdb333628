"""The snippets of the documentation run as they stand, but for the address of the broker."""

from __future__ import annotations

import hashlib
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from harness import Deploy, Deployment, wait_for
from missing_programs import program
from test_client_labeller import ask, labels
from test_served import shell

from service.demo.ports import free_port

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "log-predictions.md"
TOKEN = "a-token-that-is-used-by-tests-alone"


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy(assessments="{}", partitions=1)


def block(page: Path, language: str, word: str) -> str:
    """The block of a page with a word in it."""
    blocks = re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)
    (found,) = [text for text in blocks if word in text]
    return found


def run(deployment: Deployment, code: str) -> dict[str, Any]:
    """Execute Python with the Kafka of a deployment; its names."""
    address = '"127.0.0.1:9092"'
    assert address in code
    kafka = deployment.settings.kafka.model_dump(include={"bootstrap_servers", "topics"})
    names: dict[str, Any] = {}
    exec(code.replace(address, repr(kafka)), names)
    return names


@pytest.mark.parametrize(("page", "count"), [(PAGE, 2), (ROOT / "README.md", 1)], ids=["page", "readme"])
def test_the_producer_of_the_documentation_logs_predictions_that_count(
    deployment: Deployment, page: Path, count: int
) -> None:
    run(deployment, block(page, "python", "Producer("))
    with deployment.process("consume", "predictions"):
        wait_for(lambda: deployment.predictions_stored() == count, seconds=60, what="the predictions")


def test_the_labeller_of_the_documentation_answers_requests(deployment: Deployment) -> None:
    code, _, _ = block(PAGE, "python", "Labeller(").partition("labeller.run()")
    labeller = run(deployment, code)["labeller"]
    for number in (1, 2, 3):
        ask(deployment, number)
    thread = threading.Thread(target=labeller.run)
    thread.start()
    found = labels(deployment, 3)
    labeller.stop()
    thread.join(60)
    assert {(label.item_id, label.true_class) for label in found} == {
        ("item-1", "owl"),
        ("item-2", "cat"),
        ("item-3", None),
    }


def test_the_call_of_the_documentation_sends_predictions_that_count(deployment: Deployment) -> None:
    program("curl", package="curl")
    port = free_port()
    token = hashlib.sha256(TOKEN.encode()).hexdigest()
    deployment.configure("senders", shop={"models": ["sorter"], "token_sha256": [token]})
    deployment.configure("vendor_api", port=port)
    call = block(PAGE, "sh", "/v1/predictions")
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=60, what="readiness")
        at = {"TOKEN": TOKEN, "CREDENCE": f"http://127.0.0.1:{port}"}
        # Twice: the key makes them one call.
        answers = [shell(call, **at) for _ in range(2)]
        assert [answer.strip() for answer in answers] == ['{"accepted":2}'] * 2
        wait_for(lambda: deployment.predictions_stored() == 2, seconds=60, what="the predictions")
        sample = 'credence_vendor_api_calls_total{route="/v1/predictions",status="2xx",vendor="shop"}'
        assert process.metric(sample) == 1
