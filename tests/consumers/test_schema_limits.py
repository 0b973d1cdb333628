"""What schemas cannot do: make much of few bytes, or stop a consumer."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from schema_values import SCHEMAS, Registered, framed

from consumers.formats.messages import TopicMessages
from consumers.formats.registered import RegisteredValues
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE
from service.kafka.schema_registry import RegisteredSchema


def reason(kind: str, schema: Any, content: bytes, **references: str) -> str:
    """Why a value of a schema is refused."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    registry = Registered(SCHEMAS)
    registry.schemas[20] = RegisteredSchema(kind, text, references)
    messages = TopicMessages(PREDICTION_TYPE, registered=RegisteredValues(registry, cached=10))
    with pytest.raises(BadMessage) as caught:
        messages((), framed(20, content))
    return caught.value.reason


def record(*fields: dict[str, Any], name: str = "P") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def array_of(items: Any) -> dict[str, Any]:
    return record({"name": "many", "type": {"type": "array", "items": items}})


BYTE = {"name": "b", "type": "boolean"}
UNUSABLE: dict[str, Any] = {
    "an alias that is a list": record({"name": "a", "type": "int", "aliases": [["b"]]}),
    "an alias that is null": record({"name": "a", "type": "int", "aliases": [None]}),
    "an alias that is an object": record({"name": "a", "type": "int", "aliases": [{}]}),
    "a name that is a number": {"type": "record", "name": 5, "fields": []},
    "a name of a field that is a list": record({"name": ["a"], "type": "int"}),
    "a namespace that is a number": record() | {"namespace": 5},
    "a size that is infinite": {"type": "fixed", "name": "F", "size": float("inf")},
    "a size that is negative": {"type": "fixed", "name": "F", "size": -1},
    "a symbol that is a list": {"type": "enum", "name": "E", "symbols": [["a"]]},
    "nine nulls in a byte": array_of(
        record(BYTE, *({"name": f"n{i}", "type": "null"} for i in range(9)), name="I")
    ),
}


@pytest.mark.parametrize("schema", UNUSABLE.values(), ids=UNUSABLE)
def test_an_avro_schema_with_a_wrong_part_is_unsupported(schema: Any) -> None:
    assert reason("AVRO", schema, b"\0" * 10) == "unsupported_schema"


@pytest.mark.parametrize(
    "items",
    [
        {"type": "enum", "name": "E", "symbols": ["A" * 50_000]},
        record({"name": "f" * 50_000, "type": "boolean"}, name="I"),
    ],
    ids=["a symbol", "a name"],
)
def test_a_long_name_is_not_repeated_for_every_byte_of_avro(items: Any) -> None:
    count = 100_000
    began = time.process_time()
    found = reason("AVRO", array_of(items), b"\xc0\x9a\x0c" + b"\0" * (count + 1))
    assert found == "message_too_large"
    # To write it would be 5 GB.
    assert time.process_time() - began < 5
