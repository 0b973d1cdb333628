"""What a process logs of an outage: its beginning, a line by the minute, and its end."""

from __future__ import annotations

import json
from typing import Any

from apache_kafka import ApacheKafka
from harness import Deploy, Process, wait_for

from service.demo.servers import EmbeddedBroker

KAFKA = "kafka is unavailable"


def entries(process: Process) -> list[dict[str, Any]]:
    """The whole lines of a process's log."""
    return [
        json.loads(line) for line in process.log.read_text().splitlines(keepends=True) if line.endswith("\n")
    ]


def messages(process: Process) -> list[str]:
    return [entry["message"] for entry in entries(process)]


def test_an_outage_of_kafka_is_logged_in_few_lines(
    own_broker: tuple[str, ApacheKafka | EmbeddedBroker], deploy: Deploy
) -> None:
    bootstrap_servers, broker = own_broker
    deployment = deploy(broker=bootstrap_servers)
    with deployment.process("run", CREDENCE_LOG_LEVEL="info") as process:
        wait_for(process.ready, seconds=40, what="ready")
        broker.pause()
        try:
            wait_for(lambda: KAFKA in messages(process), seconds=60, what="the outage in the log")
        finally:
            broker.resume()
        wait_for(lambda: f"over: {KAFKA}" in messages(process), seconds=60, what="its end in the log")
        logged = entries(process)
    assert [entry for entry in logged if entry["logger"].startswith("kafka")] == []
    begun, *later = [entry["down_seconds"] for entry in logged if entry["message"] == KAFKA]
    assert begun == 0
    assert all(seconds >= 60 for seconds in later)
    [over] = [entry for entry in logged if entry["message"] == f"over: {KAFKA}"]
    assert over["down_seconds"] >= 0
