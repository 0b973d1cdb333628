"""`credence check --sample` shows what the newest records of a real topic say, and what would be refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaProducer
from kafka.admin import NewTopic

from service.app.cli import main
from service.config.settings import KafkaSettings
from service.kafka.clients import build_admin

Check = Callable[..., tuple[int, str]]
GOOD = {"model": "animals", "item_id": "a-1", "predicted_class": "cat", "score": 0.75}


@pytest.fixture
def config(tmp_path: Path, bootstrap_servers: str) -> Path:
    topic = f"{tmp_path.name}.predictions"
    path = tmp_path / "credence.yaml"
    document = {
        "kafka": {"bootstrap_servers": [bootstrap_servers], "topics": {"predictions": topic}},
        "models": {"animals": {"classes": ["cat", "dog"]}},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with closing(build_admin(KafkaSettings(bootstrap_servers=[bootstrap_servers]))) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    return path


@pytest.fixture
def send(config: Path) -> Iterator[Callable[[Sequence[Any]], None]]:
    kafka = yaml.safe_load(config.read_text())["kafka"]
    producer = KafkaProducer(bootstrap_servers=kafka["bootstrap_servers"])

    def send(values: Sequence[Any]) -> None:
        for number, value in enumerate(values):
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            producer.send(kafka["topics"]["predictions"], content, partition=number % 2)
        producer.flush()

    yield send
    producer.close(timeout=20)


@pytest.fixture
def check(config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Check:
    """Runs the command; its exit code, and what it prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*options: str, **kafka: Any) -> tuple[int, str]:
        document = yaml.safe_load(config.read_text())
        document["kafka"] |= kafka
        config.write_text(yaml.safe_dump(document))
        code = main(["check", "--sample", *options, "--config", str(config)])
        return code, capsys.readouterr().out

    return run


def test_a_few_predictions_are_shown_and_refusals_are_counted_by_reason(check: Check, send: Any) -> None:
    send(
        [
            GOOD | {"attributes": {"region": "north"}, "time": "2026-01-31T12:00:00Z"},
            [GOOD, GOOD | {"predicted_class": "cow"}],
            GOOD | {"predicted_class": "owl"},
            GOOD | {"model": "z"},
            b"{",
        ]
    )
    code, out = check()
    assert code == 0
    assert "sample of the newest 5 records" in out
    assert "2 predictions, 4 refused" in out
    assert "refused: 2 unknown_class, such as record " in out
    assert "refused: 1 unknown_model" in out
    assert "refused: 1 malformed_json" in out
    assert "a-1" in out
    assert "region=north" in out


def test_only_as_many_records_are_read_as_asked_for(check: Check, send: Any) -> None:
    send([GOOD] * 10)
    assert "sample of the newest 4 records" in check("4")[1]


def test_a_mapping_can_be_tried_before_anything_runs(check: Check, send: Any) -> None:
    send([{"id": 5, "label": 1, "p": 0.5}])
    code, out = check()
    assert (code, "refused: 1 missing_field" in out) == (1, True)
    mapping = {
        "model": {"value": "animals"},
        "item_id": "$.id",
        "predicted_class": {"path": "$.label", "names": {0: "cat", 1: "dog"}},
        "score": "$.p",
    }
    code, out = check(mapping=mapping)
    assert (code, "1 prediction, 0 refused" in out, "dog" in out) == (0, True, True)
    code, out = check(mapping=mapping | {"item_id": "$.item"})
    assert code == 1
    assert "item_id: there is nothing at $.item" in out


def test_an_empty_topic_is_said_to_be_empty(check: Check) -> None:
    code, out = check()
    assert (code, "the topic has no records" in out) == (1, True)
