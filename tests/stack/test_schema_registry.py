"""Topics of Avro, Protobuf and JSON Schema, with a real schema registry that goes away and comes back."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from apicurio import Apicurio
from harness import Deploy, Deployment, Process, wait_for
from schema_values import AVRO_PREDICTION, PROTO_PREDICTION, avro, framed, proto

from service.config.schema_registry import SchemaRegistrySettings
from service.domain.errors import BadMessage, EmbeddedServerError
from service.kafka.schema_registry import SchemaRegistry

JSON_SCHEMA = {"type": "object", "properties": {"item_id": {"type": "string"}}}


@pytest.fixture(scope="module")
def registry() -> Iterator[Apicurio]:
    try:
        apicurio = Apicurio()
    except EmbeddedServerError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    with apicurio:
        yield apicurio


def message(number: int) -> dict[str, Any]:
    return {
        "model": "sorter",
        "item_id": f"item-{number}",
        "predicted_class": "cat",
        "score": 0.75,
        "attributes": {"region": "north"},
    }


def send(deployment: Deployment, values: list[bytes]) -> None:
    for value in values:
        deployment.send("predictions", value)
    deployment.producer.flush()


def wait_for_predictions(deployment: Deployment, process: Process, number: int) -> None:
    wait_for(
        lambda: process.popen.poll() is None and deployment.predictions_stored() == number,
        seconds=60,
        what=f"{number} predictions",
    )


def refused(process: Process, reason: str) -> float:
    return process.metric(f'credence_dead_letters_total{{reason="{reason}",topic="predictions"}}') or 0.0


def test_a_topic_of_all_formats_is_consumed(deploy: Deploy, registry: Apicurio) -> None:
    deployment = deploy()
    deployment.configure("kafka", schema_registry={"url": registry.url})
    evolved = AVRO_PREDICTION | {"fields": [*AVRO_PREDICTION["fields"], {"name": "build", "type": "int"}]}
    ids = {
        "avro": registry.register("all-value", AVRO_PREDICTION),
        "evolved": registry.register("all-evolved-value", evolved),
        "proto": registry.register("all-proto-value", PROTO_PREDICTION, kind="PROTOBUF"),
        "json": registry.register("all-json-value", JSON_SCHEMA, kind="JSON"),
    }
    values = [
        avro(AVRO_PREDICTION, message(1), number=ids["avro"]),
        avro(evolved, message(2) | {"build": 7}, number=ids["evolved"]),
        proto(message(3), number=ids["proto"]),
        framed(ids["json"], json.dumps(message(4)).encode()),
        json.dumps(message(5)).encode(),
        framed(900_000, b"nobody knows this one"),
        avro(AVRO_PREDICTION, message(6), number=ids["avro"])[:-1],
    ]
    with deployment.process("consume", "predictions") as process:
        send(deployment, values)
        wait_for_predictions(deployment, process, 5)
        wait_for(lambda: refused(process, "unknown_schema") == 1, seconds=20, what="an unknown schema")
        wait_for(lambda: refused(process, "malformed_record") == 1, seconds=20, what="a value that was cut")


NESTED = {
    "type": "record",
    "name": "Scored",
    "fields": [
        {
            "name": "case",
            "type": {
                "type": "record",
                "name": "Case",
                "fields": [{"name": "id", "type": "long"}, {"name": "region", "type": "string"}],
            },
        },
        {"name": "spread", "type": {"type": "map", "values": "double"}},
    ],
}


def test_an_existing_topic_of_nested_avro_is_sampled_and_consumed_by_a_mapping_alone(
    deploy: Deploy, registry: Apicurio, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy()
    mapping = {
        "model": {"value": "sorter"},
        "item_id": "$.case.id",
        "probabilities": {"path": "$.spread", "names": {"CAT": "cat"}},
        "attributes": {"region": "$.case.region"},
    }
    deployment.configure("kafka", schema_registry={"url": registry.url}, mapping=mapping)
    number = registry.register("nested-value", NESTED)
    spread = {"CAT": 0.5, "dog": 0.25, "owl": 0.25}
    values = [
        avro(NESTED, {"case": {"id": at, "region": "north"}, "spread": spread}, number=number)
        for at in range(20)
    ]
    bear = {"case": {"id": 20, "region": "north"}, "spread": spread | {"bear": 0.0}}
    send(deployment, [*values, avro(NESTED, bear, number=number), values[0][:-1], framed(900_000, b"")])
    monkeypatch.setenv("COLUMNS", "160")
    shown = deployment.run_command("check", "--sample").stdout
    assert "sample of the newest 23 records" in shown
    assert "20 predictions, 3 refused" in shown
    for why in (
        "1 invalid_probabilities, such as record {}: probabilities: the names must be those of the model's",
        "1 malformed_record, such as record {}: the value does not fit its Avro schema",
        "1 unknown_schema, such as record {}: the registry has no schema 900000",
    ):
        before, after = why.split("{}")
        assert re.search(f"{before}\\S+{re.escape(after)}", shown), why
    with deployment.process("run") as process:
        wait_for_predictions(deployment, process, 20)
        wait_for(
            lambda: all(
                refused(process, reason) == 1 for reason in ("invalid_probabilities", "unknown_schema")
            ),
            seconds=20,
            what="dead letters",
        )


def test_nothing_is_lost_while_the_registry_does_not_answer(deploy: Deploy, registry: Apicurio) -> None:
    deployment = deploy()
    deployment.configure("kafka", schema_registry={"url": registry.url, "timeout_seconds": 1})
    number = registry.register("away-value", AVRO_PREDICTION)
    registry.pause()
    try:
        with deployment.process("consume", "predictions") as process:
            send(deployment, [avro(AVRO_PREDICTION, message(at), number=number) for at in range(20)])
            backoffs = 'credence_consumer_backoffs_total{part="schema_registry",topic="predictions"}'
            wait_for(lambda: (process.metric(backoffs) or 0) >= 2, seconds=60, what="backoffs")
            registry.resume()
            wait_for_predictions(deployment, process, 20)
            assert refused(process, "unknown_schema") == 0
    finally:
        registry.resume()


def test_schemas_that_refer_to_others_are_returned_with_them(registry: Apicurio) -> None:
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "int"}]}
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "of", "type": "Inner"}]}
    registry.register("inner", inner)
    reference = {"name": "Inner", "subject": "inner", "version": 1}
    number = registry.register("outer", outer, references=[reference])
    found = SchemaRegistry(SchemaRegistrySettings(url=registry.url)).schema(number)
    assert (found.kind, json.loads(found.text), list(found.references)) == ("AVRO", outer, ["Inner"])
    assert json.loads(found.references["Inner"]) == inner


def test_an_id_that_was_never_given_is_unknown(registry: Apicurio) -> None:
    with pytest.raises(BadMessage, match="unknown_schema"):
        SchemaRegistry(SchemaRegistrySettings(url=registry.url)).schema(900_000)
