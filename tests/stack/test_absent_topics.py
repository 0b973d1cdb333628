"""Topics that a producer writes to and that do not exist: they are named, once, with what to do."""

from __future__ import annotations

import json
import secrets
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import ApacheKafka
from harness import Deploy, Process, wait_for
from kafka.admin import NewTopic
from kafka.errors import KafkaTimeoutError, UnknownTopicOrPartitionError

from service.app.cli import main
from service.client import Producer
from service.config.settings import KafkaSettings
from service.kafka.clients import build_producer


def test_a_producer_tells_an_absent_topic_from_a_broker_that_does_not_answer() -> None:
    with ApacheKafka() as kafka:
        settings = KafkaSettings(bootstrap_servers=[kafka.bootstrap_servers])
        with closing(build_producer(settings, name="test", block_seconds=2)) as producer:
            with pytest.raises(UnknownTopicOrPartitionError):
                producer.send("absent", value=b"")
            kafka.pause()
            with pytest.raises(KafkaTimeoutError):
                producer.send("absent", value=b"")
            kafka.resume()


def lines(process: Process) -> list[dict[str, Any]]:
    return [json.loads(line) for line in process.log.read_text().splitlines() if line.startswith("{")]


def problems(process: Process) -> dict[str, dict[str, Any]]:
    """Problems of the pipeline, by key."""
    status, body = process.get("/api/v1/pipeline")
    return {one["key"]: one for one in json.loads(body)["problems"]} if status == 200 else {}


@pytest.mark.parametrize(
    ("topic", "key"), [("label_requests", "rounds_refused"), ("dead_letters", "consumer_refused:predictions")]
)
def test_an_absent_topic_is_logged_once_and_a_problem_until_it_is_created(
    apache_kafka: ApacheKafka, deploy: Deploy, topic: str, key: str
) -> None:
    deployment = deploy(broker=apache_kafka.bootstrap_servers)
    absent = f"{deployment.name}.absent"
    topics = deployment.settings.kafka.topics.model_dump() | {topic: absent}
    deployment.configure("kafka", topics=topics)
    says = f"topic {absent} does not exist; create it with `credence topics create`"
    with deployment.process("run", CREDENCE_LOG_LEVEL="info") as process:
        wait_for(process.ready, seconds=60, what="ready")
        deployment.send_predictions(range(100))
        deployment.send("predictions", b"no prediction", "bad")
        deployment.producer.flush()
        found = wait_for(lambda: problems(process).get(key), seconds=90, what="the problem")
        assert (found["severity"], found["alert"]) == ("warning", "CredenceDependencyDown")
        assert says in found["sentence"]
        assert says in " ".join(deployment.run_command("status").stdout.split())
        logged = [line for line in lines(process) if absent in json.dumps(line)]
        assert [line["down_seconds"] for line in logged if line["down_seconds"] < 60] == [0]
        deployment.run_command("topics", "create")
        wait_for(lambda: key not in problems(process), seconds=60, what="the end of the problem")
        wait_for(process.ready, seconds=60, what="ready")


def test_a_file_for_an_absent_topic_is_refused_with_the_command_that_creates_it(
    apache_kafka: ApacheKafka, deploy: Deploy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = deploy(broker=apache_kafka.bootstrap_servers)
    absent = f"{deployment.name}.absent"
    topics = deployment.settings.kafka.topics.model_dump() | {"predictions": absent}
    deployment.configure("kafka", topics=topics)
    path = tmp_path / "rows.jsonl"
    path.write_text('{"item_id": "a", "predicted_class": "cat", "score": 1}\n')
    assert main(["predictions", "send", str(path), "--config", str(deployment.config)]) == 1
    assert f"topic {absent} does not exist; create it" in capsys.readouterr().err


def test_predictions_of_a_model_wait_until_their_topic_is_created(
    apache_kafka: ApacheKafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"t{secrets.token_hex(6)}"
    kafka = {"bootstrap_servers": [apache_kafka.bootstrap_servers], "topics": {"predictions": topic}}
    producer = Producer("sorter", kafka=kafka)
    assert producer.log("a", predicted="cat", score=0.9)
    wait_for(lambda: f"topic {topic} does not exist" in caplog.text, seconds=60, what="the warning")
    with apache_kafka.admin() as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    producer.close(timeout=120)
    assert producer.counters.delivered == 1
