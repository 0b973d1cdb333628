"""Avro values that are read together come out as if each had been read by itself."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from avro_values import HOSTILE, contents, damaged, schemas, varint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schema_values import Registered, framed
from test_registered_values import Record

from consumers.formats.avro import avro_columns
from consumers.formats.avro_columns import AvroColumns
from consumers.formats.byte_texts import LONGEST_READ, ByteTexts
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


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_values_of_any_schema_are_read_together_as_they_are_one_by_one(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    values = data.draw(st.lists(contents(schema), min_size=1, max_size=5))
    values += data.draw(st.lists(st.sampled_from(values).flatmap(damaged), max_size=5))
    check(schema, values * 20)


def schema_with(*others: Any, **types: Any) -> dict[str, Any]:
    """A schema of predictions with other types of some fields, and other fields after them."""
    usual = {"model": "string", "item_id": "string", "predicted_class": "string", "score": "double"} | types
    fields = [{"name": name, "type": kind} for name, kind in usual.items() if kind is not None]
    fields += [{"name": f"other{number}", "type": kind} for number, kind in enumerate(others)]
    return {"type": "record", "name": "Prediction", "fields": fields}


def records_of(*kinds: Any) -> dict[str, Any]:
    fields = [{"name": f"field{number}", "type": kind} for number, kind in enumerate(kinds)]
    return {"type": "record", "name": "Fields", "fields": fields}


FIXED = {"type": "fixed", "name": "Four", "size": 4}
ENUM = {"type": "enum", "name": "Class", "symbols": ["cat", "dog"]}
MOMENT = {"type": "long", "logicalType": "timestamp-millis"}
START = b"\2m\2i\6cat" + struct.pack("<d", 0.5)

READ_TOGETHER: dict[str, tuple[dict[str, Any], bytes]] = {
    "a class and its score": (schema_with(), START),
    "an enum": (schema_with(predicted_class=ENUM), b"\2m\2i\2" + START[-8:]),
    "a union with null": (schema_with(model=["null", "string"]), b"\2" + START),
    "a union with null at its end": (schema_with(model=["string", "null"]), b"\0" + START),
    "a score of 32 bits": (schema_with(score="float"), START[:-8] + struct.pack("<f", 0.5)),
    "probabilities": (
        schema_with(probabilities={"type": "array", "items": "float"}),
        START + b"\4" + struct.pack("<2f", 0.25, 0.75) + b"\0",
    ),
    "no probabilities": (
        schema_with(probabilities=["null", {"type": "array", "items": "float"}]),
        START + b"\0",
    ),
    "attributes": (
        schema_with(attributes={"type": "map", "values": "string"}),
        START + b"\4\2a\2x\2b" + b"\x80\1" + b"y" * 64 + b"\0",
    ),
    "symbols as attributes": (
        schema_with(attributes={"type": "map", "values": ENUM}),
        START + b"\2\2a\2\0",
    ),
    "no attributes": (schema_with(attributes={"type": "map", "values": "string"}), START + b"\0"),
    "a record of attributes": (
        schema_with(attributes=records_of("string", ["null", "string"], ENUM)),
        START + b"\2x\0\2",
    ),
    "a time": (schema_with(time=MOMENT), START + varint(1_800_000_000_123)),
    "a time before the epoch": (schema_with(time=MOMENT), START + varint(-123)),
    "no payload": (schema_with(payload=["null", "string", "bytes"]), START + b"\0"),
    "a payload elsewhere": (schema_with(payload_uri="string"), START + b"\2u"),
    "primitives": (
        schema_with("null", "boolean", "int", "long", "bytes", FIXED),
        START + b"\1" + varint(-5) + varint(-(2**63)) + b"\4\xff\xff" + b"\xff" * 4,
    ),
    "a record": (schema_with(records_of("string", records_of("long") | {"name": "Inner"})), START + b"\2x\7"),
    "arrays": (
        schema_with(*({"type": "array", "items": kind} for kind in ("double", "string", "long"))),
        START + b"\2" + START[-8:] + b"\0" + b"\4\2x\2y\0" + b"\0",
    ),
    "a map": (schema_with({"type": "map", "values": "long"}), START + b"\4\2x\7\2y\7\0"),
    "types with the names of others": (
        schema_with(records_of("long") | {"name": "record"}, FIXED | {"name": "long"}, "long"),
        START + b"\7" + bytes(4) + b"\7",
    ),
    "a type that is used twice": (schema_with(FIXED, "Four"), START + bytes(8)),
}


@pytest.mark.parametrize(("schema", "value"), READ_TOGETHER.values(), ids=READ_TOGETHER)
def test_values_of_usual_schemas_are_all_read_together(schema: dict[str, Any], value: bytes) -> None:
    assert len(check(schema, [value] * 40)) == 40


MAP = schema_with(attributes={"type": "map", "values": ["null", "string"]})
SYMBOLS = ENUM | {"name": "Long", "symbols": ["x" * 2_000]}
ONE_BY_ONE: dict[str, tuple[dict[str, Any], bytes]] = {
    "few bytes that are long as text": (
        schema_with(attributes={"type": "map", "values": SYMBOLS}),
        START + varint(60) + b"".join(b"\2%c\0" % (33 + number) for number in range(60)) + b"\0",
    ),
    "a name that is there twice": (MAP, START + b"\4\2a\2\2x\2a\0\0"),
    "two blocks": (MAP, START + b"\2\2a\2\2x\2\2b\2\2x\0"),
    "a block with its size": (MAP, START + b"\1\x0a\2a\2\2x\0"),
    "bytes after the end": (schema_with(), START + b"\0"),
    "half a character": (schema_with(), b"\2m\4\xe2\x82\6cat" + START[-8:]),
    "half a character in a class": (schema_with(), b"\2m\2i\4\xe2\x82" + START[-8:]),
    "half a character in another field": (schema_with("string"), START + b"\4\xe2\x82"),
    "an empty class": (schema_with(), b"\2m\2i\0" + START[-8:]),
    "an infinite score": (schema_with(), START[:-8] + struct.pack("<d", math.inf)),
    "an infinite probability": (
        schema_with(probabilities={"type": "array", "items": "double"}),
        START + b"\4" + struct.pack("<2d", math.inf, 0.5) + b"\0",
    ),
    "one probability": (
        schema_with(probabilities={"type": "array", "items": "double"}),
        START + b"\2" + struct.pack("<d", 1.0) + b"\0",
    ),
    "a symbol that is not there": (schema_with(predicted_class=ENUM), b"\2m\2i\4" + START[-8:]),
    "a time in the far future": (schema_with(time=MOMENT), START + varint(2**53)),
    "a date that is none": (schema_with({"type": "int", "logicalType": "date"}), START + varint(3_000_000)),
    "votes": (schema_with(votes=["null", {"type": "map", "values": "string"}]), START + b"\2\0"),
    "a field under two names": (
        {
            "type": "record",
            "name": "P",
            "fields": [
                {"name": "model", "type": "string", "aliases": ["predicted_class"]},
                {"name": "item_id", "type": "string"},
                {"name": "score", "type": "double"},
            ],
        },
        b"\6cat\2i" + START[-8:],
    ),
}


@pytest.mark.parametrize(("schema", "value"), ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_values_with_more_to_say_are_read_one_by_one(schema: dict[str, Any], value: bytes) -> None:
    assert not check(schema, [value] * 40)


def test_a_bad_value_changes_nothing_of_those_beside_it() -> None:
    for schema, good in READ_TOGETHER.values():
        cut = [good[:length] for length in range(len(good))]
        values = [each for bad in cut for each in (good, bad)] * 2
        found = check(schema, values)
        assert set(range(0, len(values), 2)) <= found.keys()


def changed(value: bytes, rng: random.Random) -> bytes:
    """A value of which some bytes were changed, removed or inserted."""
    at, other = rng.randrange(len(value) + 1), rng.randrange(256)
    match rng.randrange(4):
        case 0:
            return value[:at]
        case 1:
            return value[:at] + rng.choice(HOSTILE) + value[at:]
        case 2:
            return value[:at] + bytes([other]) + value[at + rng.randrange(3) :]
    return value[:at] + bytes([value[at] ^ 1 << other % 8]) + value[at + 1 :] if at < len(value) else value


@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_damaged_values_are_read_together_as_they_are_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    for schema, good in READ_TOGETHER.values():
        values = [changed(good, rng) if rng.random() < 0.6 else good for _ in range(150)]
        assert len(check(schema, values)) > 20


def test_a_character_must_not_begin_in_one_text_and_end_in_the_next() -> None:
    halves = [b"\2m" + varint(len(half)) + half + START[4:] for half in ("€".encode()[:2], "€".encode()[2:])]
    assert not check(schema_with(), halves * 40)


def test_values_with_another_number_of_probabilities_are_read_one_by_one() -> None:
    schema = schema_with(probabilities={"type": "array", "items": "float"})
    two, three = (START + varint(n) + struct.pack(f"<{n}f", *[1 / n] * n) + b"\0" for n in (2, 3))
    assert check(schema, [three, two, two] * 20).keys() == {n for n in range(60) if n % 3}


texts = st.lists(
    st.binary(max_size=3)
    | st.text(max_size=3).map(str.encode)
    | st.sampled_from([b"x" * 64, b"x" * 65, b"x\0"]),
    max_size=20,
)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_texts_are_numbered_and_joined_as_python_has_them(found: list[bytes]) -> None:
    lengths = np.array([len(each) for each in found], np.int64)
    begins = np.cumsum(lengths) - lengths
    data = ByteTexts(b"".join(found) + bytes(LONGEST_READ))
    names, codes = data.coded(begins, lengths)
    joined, is_utf_8 = data.joined(begins, lengths)
    for at, each in enumerate(found):
        expected = each.decode(errors="replace") if each.decode(errors="ignore").encode() == each else None
        assert names[codes[at]] == expected
        assert joined.data[joined.bounds[at] : joined.bounds[at + 1]].tobytes() == each
        assert expected is not None or (is_utf_8 is not None and not is_utf_8[at])
        assert is_utf_8 is None or is_utf_8[at] or not each.isascii()
    assert len(names) == len(set(found))
