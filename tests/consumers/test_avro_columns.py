"""Avro values that are read together come out as if each had been read by itself."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from avro_values import contents, damaged, schemas
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schema_values import Registered, framed
from test_registered_values import Record

from consumers.formats.avro import avro_columns
from consumers.formats.avro_columns import AvroColumns
from consumers.formats.messages import TopicMessages
from consumers.formats.native import WirePrediction
from consumers.formats.records import decode_records
from consumers.formats.registered import RegisteredValues
from service.domain.errors import BadMessage
from service.domain.messages import PREDICTION_TYPE
from service.kafka.schema_registry import RegisteredSchema

LONGEST = 1_048_576


def topic(schema: Any) -> TopicMessages:
    registry = Registered({1: RegisteredSchema("AVRO", json.dumps(schema), {})})
    return TopicMessages(PREDICTION_TYPE, registered=RegisteredValues(registry, cached=10))


def columns_of(schema: Any) -> AvroColumns | None:
    try:
        return avro_columns(RegisteredSchema("AVRO", json.dumps(schema), {}))
    except BadMessage:
        return None


def said(prediction: WirePrediction, time: float) -> dict[str, Any]:
    """What a prediction says, with its time in seconds, or NaN."""
    fields = {name: getattr(prediction, name) for name in prediction.__struct_fields__}
    fields["attributes"] = json.loads(bytes(prediction.attributes) or b"{}")
    fields["payload"] = bytes(prediction.payload)
    fields["time"] = None if math.isnan(time) else time
    return fields


def one_by_one(schema: Any, values: Sequence[bytes]) -> list[dict[str, Any] | None]:
    """What every value says when it is read by itself; None if it is refused."""
    messages, found = topic(schema), []
    for value in values:
        decoded = decode_records([Record(framed(1, value))], message_bytes=LONGEST, formats=[messages])
        found.append(said(decoded.predictions[0], decoded.times[0]) if decoded.predictions else None)
    return found


def together(schema: Any, values: Sequence[bytes]) -> Mapping[int, dict[str, Any]]:
    """What those values say that are read as columns, by their place."""
    columns = columns_of(schema)
    found: dict[int, dict[str, Any]] = {}
    if columns is not None:
        plain = columns.read([framed(1, value) for value in values], 5)
        for model, rows in plain.rows.items():
            of_model = plain.columns(model, rows)
            for at, row in enumerate(rows.tolist()):
                found[row] = said(of_model[at], float(of_model.times[at]))
    return found


def check(schema: Any, values: Sequence[bytes]) -> Mapping[int, dict[str, Any]]:
    """What is read together, and that it is the same one by one."""
    found, expected = together(schema, values), one_by_one(schema, values)
    for place, prediction in found.items():
        assert prediction == expected[place]
    return found


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_values_of_any_schema_are_read_together_as_they_are_one_by_one(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    values = data.draw(st.lists(contents(schema), min_size=1, max_size=5))
    values += data.draw(st.lists(st.sampled_from(values).flatmap(damaged), max_size=5))
    check(schema, values * 20)
