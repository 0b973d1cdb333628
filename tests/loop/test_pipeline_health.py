"""What every process can know of the pipeline: refused messages, paused and silent consumers, lost data."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import ApacheKafka
from harness import Deploy, Deployment, Labeller, Process, prediction, wait_for
from kafka import KafkaConsumer, TopicPartition

from service.demo.servers import EmbeddedBroker, EmbeddedRedis

SECRET = "item-that-nobody-may-see"


def health(process: Process) -> dict[str, Any]:
    """What a process says of the pipeline; nothing before its first round."""
    status, body = process.get("/api/v1/pipeline")
    return json.loads(body) if status == 200 else {}


def problems(process: Process) -> dict[str, dict[str, Any]]:
    """Problems of the pipeline, by key."""
    return {one["key"]: one for one in health(process).get("problems", ())}


def consumers(process: Process, role: str) -> list[dict[str, Any]]:
    return [one for one in health(process).get("consumers", ()) if one["role"] == role]


def lines(process: Process, message: str) -> list[dict[str, Any]]:
    """Log lines with this message."""
    found = []
    for line in process.log.read_text().splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            if entry["message"] == message:
                found.append(entry)
    return found


def stop(process: Process) -> None:
    process.popen.send_signal(signal.SIGTERM)
    assert process.popen.wait(60) == 0


def with_a_number_for_a_class(number: int) -> bytes:
    """A prediction as a producer sends it that does not know the names of classes."""
    message = prediction(number) | {"predicted_class": number % 3, "item_id": f"{SECRET}-{number}"}
    return json.dumps(message).encode()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A Redis of the test's own, which it may empty."""
    (tmp_path / "redis").mkdir()
    with EmbeddedRedis(folder=tmp_path / "redis") as redis:
        yield redis


def test_a_consumer_that_is_paused_by_bad_messages_says_so_and_why(deploy: Deploy) -> None:
    deployment = deploy()
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        for number in range(1_700):
            deployment.send("predictions", with_a_number_for_a_class(number), str(number))
        deployment.producer.flush()
        paused = wait_for(
            lambda: problems(process).get("consumer_paused:predictions"), seconds=40, what="the problem"
        )
        assert paused["severity"] == "critical"
        assert paused["alert"] == "CredenceConsumerPaused"
        assert "invalid_field" in paused["sentence"]
        assert "predicted_class: expected a string, got an integer" in paused["sentence"]
        (consumer,) = consumers(process, "predictions")
        assert consumer["state"] == "paused"
        assert wait_for(
            lambda: consumers(process, "predictions")[0]["lag_records"], seconds=40, what="records behind"
        )
        (role,) = (one for one in health(process)["roles"] if one["role"] == "predictions")
        (refused,) = role["refused"]
        assert (refused["reason"], refused["field"]) == ("invalid_field", "predicted_class")
        assert refused["topic"] == f"{deployment.name}.predictions"
        assert SECRET not in process.get("/api/v1/pipeline")[1]
        logged = lines(process, "messages are refused")
        assert [(one["reason"], one["field"]) for one in logged[:1]] == [("invalid_field", "predicted_class")]
        assert len(logged) <= 2, "one line at once, and one a minute"
        assert SECRET not in process.log.read_text()
        printed = deployment.run_command("status").stdout
        assert "1 paused" in printed
        assert SECRET not in printed


def test_a_refused_message_is_reported_although_the_consumer_runs_on(deploy: Deploy) -> None:
    deployment = deploy()
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        deployment.send_predictions(range(30))
        deployment.send("predictions", with_a_number_for_a_class(1), "one")
        deployment.producer.flush()
        refused = wait_for(
            lambda: problems(process).get("messages_refused:predictions"), seconds=40, what="the problem"
        )
        assert refused["severity"] == "info"
        assert refused["sentence"].startswith("1 of 31 messages of predictions were refused in the last hour")
        assert len(lines(process, "messages are refused")) == 1


def test_refused_messages_are_reported_for_an_hour_although_the_consumer_restarts(deploy: Deploy) -> None:
    deployment = deploy()
    for number in range(12):
        deployment.send("predictions", with_a_number_for_a_class(number), str(number))
    deployment.producer.flush()
    with deployment.process("run") as process:
        wait_for(lambda: "messages_refused:predictions" in problems(process), seconds=40, what="the problem")
        stop(process)
    with deployment.process("run") as process:
        found = wait_for(
            lambda: problems(process).get("messages_refused:predictions"), seconds=40, what="the problem"
        )
    assert (found["severity"], found["alert"]) == ("warning", "CredenceDeadLetters")
    assert found["sentence"].startswith("12 of 12 messages of predictions were refused")


def in_state(process: Process, state: str) -> list[dict[str, Any]]:
    """Consumers of predictions in this state."""
    return [one for one in consumers(process, "predictions") if one["state"] == state]


def test_a_consumer_that_waits_for_kafka_says_so(
    own_broker: tuple[str, ApacheKafka | EmbeddedBroker], deploy: Deploy
) -> None:
    bootstrap_servers, broker = own_broker
    deployment = deploy(broker=bootstrap_servers)
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        wait_for(lambda: in_state(process, "running"), seconds=40, what="a consumer that runs")
        broker.pause()
        try:
            (waiting,) = wait_for(
                lambda: in_state(process, "waiting"), seconds=60, what="a consumer that waits"
            )
        finally:
            broker.resume()
        assert waiting["cause"].startswith("kafka is unavailable")
        wait_for(lambda: in_state(process, "running"), seconds=60, what="a consumer that runs")


def test_two_consumers_of_one_topic_are_both_shown_and_one_that_is_killed_falls_silent(
    deploy: Deploy,
) -> None:
    deployment = deploy()
    with (
        deployment.process("consume", "predictions") as first,
        deployment.process("consume", "predictions") as second,
        deployment.process("serve") as shown,
    ):

        def both_read() -> list[dict[str, Any]] | None:
            found = consumers(shown, "predictions")
            shared = sorted(partition for one in found for partition in one["partitions"])
            return found if len(found) == 2 and shared == [0, 1, 2, 3] else None

        found = wait_for(both_read, seconds=60, what="both consumers")
        assert {one["member"].rpartition(":")[2] for one in found} == {str(first.port), str(second.port)}
        assert "consumer_missing:labels" in problems(shown)
        assert "no_leader" in problems(shown)
        stop(first)
        wait_for(lambda: len(consumers(shown, "predictions")) == 1, seconds=20, what="one consumer")
        second.kill()
        (silent,) = wait_for(
            lambda: [one for one in consumers(shown, "predictions") if one["silent"]],
            seconds=120,
            what="the silence",
        )
        assert silent["member"].endswith(f":{second.port}")
        assert "The last report is" in problems(shown)["consumer_missing:predictions"]["sentence"]


def answered(deployment: Deployment, count: int) -> None:
    """Have labels requested, answered, counted, and the offset of all of them committed to Kafka."""
    labeller = Labeller(deployment)
    deployment.send_predictions(range(400))
    labeller.answer_until(count)
    wait_for(lambda: committed(deployment, "labels") == len(labeller.seen), seconds=40, what="the labels")
    wait_for(lambda: committed(deployment, "predictions") == 400, seconds=40, what="the predictions")


def committed(deployment: Deployment, kind: str) -> int:
    """Records of a topic before the offsets that Kafka has of the consumer group."""
    group = f"{deployment.settings.kafka.group_prefix}.{kind}"
    consumer = KafkaConsumer(bootstrap_servers=deployment.broker, group_id=group, enable_auto_commit=False)
    with closing(consumer):
        topic = f"{deployment.name}.{kind}"
        return sum(consumer.committed(TopicPartition(topic, partition)) or 0 for partition in range(4))


def lost(process: Process) -> dict[str, Any] | None:
    return health(process).get("reset")


def all_lost(deployment: Deployment, process: Process) -> dict[str, Any] | None:
    """The loss, once the consumers of both topics have recorded it."""
    topics = {f"{deployment.name}.{kind}": count for kind, count in (("predictions", 400), ("labels", 120))}
    found = lost(process)
    return found if found and found["records"] == topics else None


def test_a_redis_that_is_emptied_while_credence_runs_is_reported_until_it_is_acknowledged(
    deploy: Deploy, own_redis: EmbeddedRedis
) -> None:
    deployment = deploy(redis_url=own_redis.url)
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        answered(deployment, 120)
        deployment.connection.client.flushall()

        found = wait_for(lambda: all_lost(deployment, process), seconds=60, what="the loss")
        assert found["kind"] == "emptied"
        assert found["labels_before"] == 120
        assert found["labels_now"] == 0
        assert problems(process)["redis_reset"]["alert"] == "CredenceRedisReset"
        assert process.metric("credence_redis_reset") == 1
        assert {one["level"] for one in lines(process, "Redis has lost data that Credence had stored")} == {
            "error"
        }
        assert "Redis was emptied or replaced" in deployment.run_command("reset", "show").stdout
        assert deployment.run_command("reset", "acknowledge").stdout.startswith("acknowledged: Redis was")
        wait_for(lambda: health(process)["reset"] is None, seconds=20, what="the end")
        assert deployment.run_command("reset", "show").stdout == "Redis has not lost data\n"
        stop(process)
    # What Kafka has of partitions without a record since then is still of the lost data.
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        wait_for(lambda: consumers(process, "labels"), seconds=40, what="a report")
        assert lost(process) is None


def test_a_redis_that_comes_back_empty_after_a_restart_of_everything_is_reported(
    deploy: Deploy,
) -> None:
    with EmbeddedRedis() as redis:
        deployment = deploy(redis_url=redis.url)
        with deployment.process("run") as process:
            wait_for(process.ready, seconds=40, what="ready")
            answered(deployment, 120)
            stop(process)
        port = redis.port
    with EmbeddedRedis(port=port), deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        found = wait_for(lambda: all_lost(deployment, process), seconds=60, what="the loss")
        assert found["labels_now"] == 0
        assert "Redis was emptied or replaced" in deployment.run_command("status").stdout
        errors = lines(process, "Redis has lost data that Credence had stored")
        assert [one["level"] for one in errors] == ["error"]


def test_a_topic_that_was_created_again_is_a_problem_in_every_process(deploy: Deploy) -> None:
    deployment = deploy()
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        deployment.send_predictions(range(30))
        wait_for(lambda: deployment.predictions_stored() == 30, seconds=40, what="the predictions")
        stop(process)
    for shard in deployment.connection.client.scan_iter(f"{deployment.connection.prefix}:*:shard:*"):
        deployment.connection.client.hset(shard, "topic_id", "of another topic")
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        broken = wait_for(
            lambda: problems(process).get("log_recreated:predictions"), seconds=40, what="the problem"
        )
        assert (broken["severity"], broken["alert"]) == ("warning", "CredenceLogBroken")
        assert "partitions 0, 1, 2, 3" in broken["sentence"]
        models = json.loads(process.get("/api/v1/models")[1])["models"]
        assert models[0]["headline"]["status"] == "warning"
        assert json.loads(process.get("/readyz")[1])["models"] == {models[0]["model"]: "warning"}
        assert "was deleted and created again" in deployment.run_command("status").stdout


def test_consumers_that_are_gone_are_reported_by_a_process_that_takes_rounds(deploy: Deploy) -> None:
    deployment = deploy()
    with deployment.process("serve") as shown:
        unread = {role: f'credence_topic_unread{{topic="{role}"}}' for role in ("predictions", "labels")}
        with deployment.process("consume", "predictions") as consuming:
            wait_for(lambda: shown.metric(unread["predictions"]) == 0.0, seconds=60, what="a reader")
            assert shown.metric(unread["labels"]) == 1.0
            stop(consuming)
        wait_for(lambda: shown.metric(unread["predictions"]) == 1.0, seconds=60, what="no reader")
        wait_for(lambda: "consumer_missing:predictions" in problems(shown), seconds=60, what="the problem")
