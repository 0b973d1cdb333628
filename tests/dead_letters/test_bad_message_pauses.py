"""The bad message limit on a real broker: a paused consumer discards nothing, and loses nothing."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from typing import Any

import pytest
from harness import Deploy, Deployment, Process, prediction, wait_for
from kafka import KafkaConsumer, TopicPartition
from letter_topic import letters_of, places

WINDOW = 200


def limits(ratio: float = 0.5) -> str:
    return f"dead_letters: {{pause_window: {WINDOW}, pause_ratio: {ratio}}}\n"


def newcomer(number: int) -> dict[str, Any]:
    """A prediction of a model that is not configured."""
    return prediction(number) | {"model": "newcomer"}


def send(deployment: Deployment, *messages: Any, partition: int = 0, kind: str = "predictions") -> None:
    topic = f"{deployment.name}.{kind}"
    for message in messages:
        deployment.producer.send(topic, value=json.dumps(message).encode(), partition=partition)
    deployment.producer.flush()


def paused(process: Process, kind: str = "predictions") -> bool:
    return process.metric(f'credence_consumer_paused{{topic="{kind}"}}') == 1


def stop(process: Process) -> None:
    """As an operator does: it flushes what it may."""
    process.popen.send_signal(signal.SIGTERM)
    assert process.popen.wait(30) == 0


def committed(deployment: Deployment, partition: int = 0, kind: str = "predictions") -> int:
    """The offset that Kafka has of the consumer group."""
    group = f"{deployment.settings.kafka.group_prefix}.{kind}"
    consumer = KafkaConsumer(bootstrap_servers=deployment.broker, group_id=group, enable_auto_commit=False)
    with closing(consumer):
        return consumer.committed(TopicPartition(f"{deployment.name}.{kind}", partition)) or 0


def taken(process: Process, model: str) -> float:
    return process.metric(f'credence_predictions_consumed_total{{model="{model}"}}') or 0


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    """A deployment with a small window."""
    made = deploy()
    made.config.write_text(made.config.read_text().replace("models:", f"{limits()}models:"))
    return made


def fix_the_cause(deployment: Deployment) -> None:
    deployment.config.write_text(deployment.config.read_text() + "  newcomer: {classes: [cat, dog, owl]}\n")


def allow_everything(deployment: Deployment) -> None:
    deployment.config.write_text(deployment.config.read_text().replace(limits(), limits(1.0)))


def test_bad_messages_that_begin_in_the_middle_of_a_batch_larger_than_the_window_pause_the_consumer(
    deployment: Deployment,
) -> None:
    send(deployment, *map(prediction, range(300)))
    send(deployment, *map(newcomer, range(300, 800)))
    send(deployment, *map(prediction, range(800, 900)))
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: paused(process), seconds=60, what="too many bad messages")
        status, body = process.get("/readyz")
        assert status == 503
        assert "paused" in body
        assert process.get("/healthz")[0] == 200
        stop(process)
    # Whatever batches the records came in: what is stored and committed ends before the consumer paused, and
    # what was discarded before that is less than a window of it.
    stored = deployment.facts().traffic().offsets.get(0, 0)
    assert committed(deployment) <= stored <= 300 + WINDOW
    fix_the_cause(deployment)
    with deployment.process("consume", "predictions") as process:
        wait_for(
            lambda: taken(process, "newcomer") == 800 - max(stored, 300),
            seconds=60,
            what="the messages of the new model",
        )
        wait_for(lambda: deployment.predictions_stored() == 400, seconds=60, what="all of the other model")


def test_bad_messages_right_at_the_start_are_not_discarded_until_the_window_is_full(
    deployment: Deployment,
) -> None:
    send(deployment, *map(newcomer, range(WINDOW - 10)))
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: paused(process), seconds=60, what="too many bad messages")
        stop(process)
    stored = deployment.facts().traffic().offsets.get(0, 0)
    assert committed(deployment) <= stored <= WINDOW // 2
    fix_the_cause(deployment)
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: taken(process, "newcomer") == WINDOW - 10 - stored, seconds=60, what="the rest")


def test_bad_messages_in_one_partition_pause_the_others_which_lose_nothing(deployment: Deployment) -> None:
    with deployment.process("consume", "predictions") as process:
        wait_for(process.ready, seconds=60, what="ready")
        send(deployment, *map(prediction, range(50)), partition=0)
        wait_for(lambda: deployment.predictions_stored() == 50, seconds=60, what="50 stored")
        send(deployment, *map(newcomer, range(100, 600)), partition=1)
        wait_for(lambda: paused(process), seconds=60, what="too many bad messages")
        send(deployment, *map(prediction, range(600, 700)), partition=2)
        stop(process)
    discarded = deployment.facts().traffic().offsets.get(1, 0)
    assert discarded <= WINDOW
    fix_the_cause(deployment)
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: deployment.predictions_stored() == 150, seconds=60, what="150 stored")
        wait_for(lambda: taken(process, "newcomer") == 500 - discarded, seconds=60, what="the rest")


def test_one_record_with_thousands_of_bad_elements_pauses_the_consumer_unless_the_limit_allows_it(
    deployment: Deployment,
) -> None:
    send(deployment, prediction(0), ["no prediction" * 5] * 3_000, prediction(1))
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: paused(process), seconds=60, what="too many bad messages")
        assert (
            process.metric('credence_dead_letters_total{reason="invalid_field",topic="predictions"}') is None
        )
        stop(process)
    assert deployment.predictions_stored() <= 1
    allow_everything(deployment)
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: deployment.predictions_stored() == 2, seconds=60, what="the good ones")
        stop(process)
    assert places(letters_of(deployment, 3_000)) == sorted(
        (("0", "1", str(index)) for index in range(3_000)), key=str
    )


def test_bad_labels_pause_their_consumer_and_are_read_again_after_the_restart(
    deployment: Deployment,
) -> None:
    label = {"request_id": "r", "item_id": "a", "true_class": "cat"}
    send(deployment, *[label | {"model": "newcomer"}] * 300, kind="labels")
    with deployment.process("consume", "labels") as process:
        wait_for(lambda: paused(process, "labels"), seconds=60, what="too many bad messages")
        stop(process)
    assert committed(deployment, kind="labels") <= WINDOW // 2
    fix_the_cause(deployment)
    allow_everything(deployment)
    with deployment.process("consume", "labels"):
        # The model is known now, and the requests are not: each label gets its new reason, and none is lost.
        letters = letters_of(deployment, 300, seconds=60)
    assert len({place[1] for place in places(letters)}) == 300
