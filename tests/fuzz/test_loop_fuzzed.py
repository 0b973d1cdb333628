"""Whole processes, given bad records by a real broker: no record stops them, and none is forgotten."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

import json_mutators as mutators
import pytest
from bad_records import messages_in, records
from harness import Deploy, Deployment, wait_for
from letter_topic import letters_of, places

from service.app.wiring import model_keys
from service.config.loader import load_settings
from service.store.connection import Connection
from service.store.facts import FactReader

MESSAGE_BYTES = 20_000
MODELS = "  m: {classes: [cat, dog, owl]}\n  n: {classes: [cat, dog]}\n"
LIMITS = f"bounds: {{message_bytes: {MESSAGE_BYTES}}}\ndead_letters: {{pause_ratio: 1}}\n"


def lenient(deploy: Deploy) -> Deployment:
    """A deployment with the mutators' models and without a bad message limit."""
    deployment = deploy()
    deployment.config.write_text(deployment.config.read_text().rstrip() + "\n" + MODELS + LIMITS)
    deployment.settings = load_settings(deployment.config, {})
    return deployment


def send(deployment: Deployment, kind: str, stream: Sequence[Any]) -> dict[int, int]:
    """Send records over all partitions; how many stand in each."""
    sent = [
        deployment.producer.send(
            f"{deployment.name}.{kind}",
            value=one.value,
            key=one.key or b"",
            headers=[(name, content or b"") for name, content in one.headers],
            timestamp_ms=max(one.timestamp, 0),
            partition=number % 4,
        )
        for number, one in enumerate(stream)
    ]
    deployment.producer.flush()
    ends: dict[int, int] = {}
    for future in sent:
        record = future.get(timeout=60)
        ends[record.partition] = max(ends.get(record.partition, 0), record.offset + 1)
    return ends


def reader(deployment: Deployment, model: str) -> FactReader:
    space = deployment.settings.cell_space(model)
    return FactReader(
        Connection(deployment._redis, deployment.settings.redis.prefix),
        model_keys(deployment.settings, model),
        space,
        decay=deployment.settings.models[model].traffic_decay_per_second,
    )


@pytest.mark.parametrize("killed", [False, True])
def test_every_bad_prediction_is_a_dead_letter_and_every_good_one_is_counted(
    deploy: Deploy, killed: bool
) -> None:
    deployment = lenient(deploy)
    stream = records(mutators.Seeded(17), 400)
    ends = send(deployment, "predictions", stream)

    def all_stored() -> bool:
        return all(reader(deployment, model).traffic().offsets == ends for model in ("m", "n", "sorter"))

    def stored() -> int:
        return sum(reader(deployment, model).traffic().traffic.predictions for model in ("m", "n"))

    if killed:
        with deployment.process("consume", "predictions") as process:
            wait_for(
                lambda: process.metric('credence_predictions_consumed_total{model="m"}'),
                seconds=60,
                what="a start",
            )
            process.popen.send_signal(signal.SIGKILL)
            process.popen.wait()
    with deployment.process("consume", "predictions") as process:
        wait_for(all_stored, seconds=60, what="all offsets")
        wait_for(process.ready, seconds=30, what="readiness")
    refused = messages_in(stream, MESSAGE_BYTES) - stored()
    assert stored() > 20
    found = places(letters_of(deployment, refused))
    assert len(set(found)) == refused
    assert killed or len(found) == refused, "without a crash each is there once"


def test_every_bad_label_is_a_dead_letter(deploy: Deploy) -> None:
    deployment = lenient(deploy)
    stream = records(mutators.Seeded(18), 400)
    send(deployment, "labels", stream)
    with deployment.process("consume", "labels") as process:
        # No request was ever made, so none of them answers one.
        found = places(letters_of(deployment, 400, seconds=60))
        wait_for(process.ready, seconds=30, what="readiness")
    assert len(found) == len(set(found)) == 400
