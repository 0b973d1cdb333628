"""A labeller answers the requests of its model, at least once, and the service counts each answer once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from harness import Deploy, Deployment, truth, wait_for

from service.client import SKIP, Labeller
from service.domain.messages import Label, LabelRequest

ASSESSMENTS = "{regions: {grouping: region, budget: {labels: 12}, max_in_flight: 12, lease_seconds: 600}}"

DIES_BEFORE_ITS_COMMIT = """
import os, sys
from service.client import Labeller, labeller
from service.config.loader import load_settings
from pathlib import Path

build = labeller.build_consumer

def built(*arguments, **options):
    consumer = build(*arguments, **options)
    consumer.commit = lambda: os.kill(os.getpid(), 9)
    return consumer

labeller.build_consumer = built
kafka = load_settings(Path(sys.argv[1]), {}).kafka
Labeller("sorter", lambda request: "cat", kafka=kafka).run()
"""


@contextmanager
def answering(
    deployment: Deployment, answer: Callable[[LabelRequest], Any], **options: Any
) -> Iterator[None]:
    """A labeller that runs in a thread, and has stopped in the end."""
    labeller = Labeller("sorter", answer, kafka=deployment.settings.kafka, **options)
    thread = threading.Thread(target=labeller.run)
    thread.start()
    try:
        yield
    finally:
        labeller.stop()
        thread.join(60)
        assert not thread.is_alive()


def labels(deployment: Deployment, count: int) -> list[Label]:
    """The labels that were sent, once there are so many."""
    consumer, found = deployment.consumer("labels"), []

    def enough() -> bool:
        for records in consumer.poll(200).values():
            for record in records:
                label = Label.model_validate_json(record.value)
                assert record.key == label.item_id.encode()
                assert dict(record.headers)["ce_type"] == b"dev.credence.label.v1"
                found.append(label)
        return len(found) >= count

    wait_for(enough, seconds=60, what=f"{count} labels")
    return found


def ask(deployment: Deployment, number: int, **changes: Any) -> None:
    """Publish a label request as Credence does."""
    now = datetime.now(UTC)
    request = {
        "request_id": f"r{number}",
        "model": "sorter",
        "item_id": f"item-{number}",
        "classes": ["cat", "dog", "owl"],
        "requested_at": now.isoformat(),
        "deadline": (now + timedelta(hours=1)).isoformat(),
        "attempt": 1,
    }
    deployment.send("label-requests", json.dumps(request | changes).encode(), f"item-{number}")


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy(assessments=ASSESSMENTS, partitions=2)


def test_the_service_counts_every_answer(deployment: Deployment) -> None:
    def answer(request: LabelRequest) -> str:
        return truth(int(request.item_id.removeprefix("item-")))

    deployment.send_predictions(range(100))
    with deployment.process("run") as process, answering(deployment, answer, annotator="desk-7"):
        wait_for(
            lambda: process.metric('credence_outcomes{model="sorter"}') == 12,
            seconds=60,
            what="12 outcomes",
        )
    assert deployment.facts().requests().open == {}
    assert {label.annotator for label in labels(deployment, 12)} == {"desk-7"}


def test_an_answer_that_was_sent_before_a_kill_and_again_after_it_counts_once(deployment: Deployment) -> None:
    deployment.send_predictions(range(100))
    script = [sys.executable, "-c", DIES_BEFORE_ITS_COMMIT, str(deployment.config)]
    with deployment.process("run") as process:
        killed = subprocess.run(script, check=False, timeout=120)
        assert killed.returncode == -9
        with answering(deployment, lambda _: "cat"):
            wait_for(
                lambda: process.metric('credence_outcomes{model="sorter"}') == 12,
                seconds=60,
                what="12 outcomes",
            )
            sent = Counter(label.request_id for label in labels(deployment, 13))
        assert sorted(sent.values()) == [1] * 11 + [2]
        assert process.metric('credence_outcomes{model="sorter"}') == 12
        assert deployment.facts().requests().open == {}


def test_skips_are_sent_and_requests_without_an_answer_stay_open(deployment: Deployment) -> None:
    answers = {"item-1": SKIP, "item-2": None, "item-3": "owl"}
    for number in (1, 2, 3):
        ask(deployment, number)
    with answering(deployment, lambda request: answers[request.item_id]):
        sent = labels(deployment, 2)
    assert {(label.item_id, label.kind, label.true_class) for label in sent} == {
        ("item-1", "skip", None),
        ("item-3", "answer", "owl"),
    }
    assert all(label.time is not None and label.request_id for label in sent)


def test_requests_that_are_late_of_another_model_or_for_a_vendor_are_not_answered(
    deployment: Deployment,
) -> None:
    asked: list[str] = []

    def answer(request: LabelRequest) -> str:
        asked.append(request.item_id)
        return "cat"

    ask(deployment, 1, deadline="2026-01-31T12:00:00Z")
    ask(deployment, 2, model="other")
    ask(deployment, 3, vendor="acme")
    deployment.send("label-requests", b"no request", "item-4")
    ask(deployment, 5)
    # The last one of each partition.
    for number in range(6, 12):
        ask(deployment, number)
    with answering(deployment, answer):
        sent = labels(deployment, 7)
    assert {label.item_id for label in sent} == {f"item-{number}" for number in range(5, 12)}
    assert sorted(asked) == sorted(label.item_id for label in sent)


def test_a_labeller_that_starts_again_goes_on_where_it_stopped(deployment: Deployment) -> None:
    for first in (0, 10):
        for number in range(first, first + 10):
            ask(deployment, number)
        with answering(deployment, lambda _: "cat"):
            sent = Counter(label.item_id for label in labels(deployment, first + 10))
    assert set(sent.values()) == {1}


def test_an_answer_that_is_no_class_of_the_request_ends_the_labeller_and_the_request_comes_again(
    deployment: Deployment,
) -> None:
    ask(deployment, 1)
    with pytest.raises(ValueError, match="not one of its classes: cat, dog, owl"):
        Labeller("sorter", lambda _: "horse", kafka=deployment.settings.kafka).run()
    with answering(deployment, lambda _: "cat"):
        assert [label.true_class for label in labels(deployment, 1)] == ["cat"]


def test_a_labeller_waits_for_a_broker_that_is_not_there_yet(caplog: pytest.LogCaptureFixture) -> None:
    labeller = Labeller("sorter", lambda _: "cat", kafka="127.0.0.1:9")
    thread = threading.Thread(target=labeller.run)
    thread.start()
    wait_for(lambda: "until Kafka is available" in caplog.text, seconds=60, what="the warning")
    labeller.stop()
    thread.join(60)
    assert not thread.is_alive()


def test_an_annotator_that_no_label_can_have_is_refused_before_requests_are_answered() -> None:
    with pytest.raises(ValueError, match="annotator: must have at most 128 characters, but has 129"):
        Labeller("sorter", lambda _: "cat", annotator="x" * 129)
