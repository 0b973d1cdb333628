"""A topic of KServe's logged payloads, read by a mapping alone: no producer is changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness import Deploy, Deployment, Process, wait_for

RESPONSE, REQUEST = (f"org.kubeflow.serving.inference.{kind}" for kind in ("response", "request"))
PAGE = Path(__file__).parents[2] / "docs" / "connect.md"
_BLOCK = re.compile(r"<!-- configuration: KServe v1 -->\n```yaml\n(.*?)```", re.DOTALL)
ANSWERS = 20


def event(number: int, kind: str) -> dict[str, Any]:
    """Attributes of the event of one payload, as KServe's logger writes them."""
    return {
        "specversion": "1.0",
        "id": f"0cbf2a4c-{number:04d}",
        "source": "http://localhost:9081/",
        "type": kind,
        "time": "2026-01-31T12:00:00.123456789Z",
        "inferenceservicename": "sorter",
        "namespace": "models",
        "component": "predictor",
        "endpoint": "",
    }


def send(deployment: Deployment, number: int, kind: str, content: Any, *, structured: bool) -> None:
    """Send a payload as Knative's KafkaSink does, in one of its content modes."""
    attributes = event(number, kind)
    if structured:
        value, headers = attributes | {"data": content}, [("content-type", b"application/cloudevents+json")]
    else:
        headers = [(f"ce_{name}", text.encode()) for name, text in attributes.items()]
        value, headers = content, [*headers, ("content-type", b"application/json")]
    topic = f"{deployment.name}.predictions"
    deployment.producer.send(topic, value=json.dumps(value).encode(), headers=headers)


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    """A deployment whose topic has answers and the requests that they are for, and two bad answers."""
    made = deploy()
    (configuration,) = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    made.configure("kafka", **yaml.safe_load(configuration)["kafka"])
    for number in range(ANSWERS):
        structured = number % 4 == 3
        send(made, number, REQUEST, {"instances": [[5.1, 3.5, 1.4, 0.2]]}, structured=structured)
        send(made, number, RESPONSE, {"predictions": [[0.02, 0.05, 0.93]]}, structured=structured)
    send(made, 100, RESPONSE, {"predictions": [[0.5, 0.5]]}, structured=False)
    send(made, 101, RESPONSE, {"error": "the model is not loaded"}, structured=True)
    made.producer.flush()
    return made


def refused(process: Process, reason: str) -> float:
    return process.metric(f'credence_dead_letters_total{{reason="{reason}",topic="predictions"}}') or 0.0


def test_the_answers_are_counted_and_the_requests_are_dead_letters(deployment: Deployment) -> None:
    with deployment.process("run") as process:
        wait_for(lambda: deployment.predictions_stored() == ANSWERS, seconds=60, what="all answers")
        wait_for(
            lambda: refused(process, "missing_field") == ANSWERS + 1, seconds=20, what="requests refused"
        )
        assert refused(process, "invalid_probabilities") == 1
    letters = deployment.consumer("dead-letters")
    found: list[Any] = []
    wait_for(
        lambda: found.extend(r for of in letters.poll(200).values() for r in of) or len(found) >= ANSWERS + 2,
        seconds=30,
        what="dead letters",
    )
    kinds = [dict(record.headers).get("ce_type") for record in found]
    assert kinds.count(REQUEST.encode()) == ANSWERS * 3 // 4


def test_a_sample_shows_what_would_be_read_and_what_would_be_refused_and_why(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = deployment.run_command("check", "--sample").stdout
    assert f"sample of the newest {2 * ANSWERS + 2} records" in shown
    assert f"{ANSWERS} predictions, {ANSWERS + 2} refused" in shown
    assert "refused: 21 missing_field, such as record " in shown
    assert "probabilities: there is nothing at $.predictions[0]" in shown
    assert "refused: 1 invalid_probabilities" in shown
    assert "0cbf2a4c-00" in shown
    assert "namespace=models" in shown
    assert deployment.predictions_stored() == 0
