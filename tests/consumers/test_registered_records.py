"""Records of a registry that are read as columns, among others: all are read as if each were alone."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from arrow_streams import table_of, written
from avro_values import HOSTILE
from hypothesis import given, settings
from hypothesis import strategies as st
from model_ingest import ingest
from schema_values import AVRO_PREDICTION, SCHEMAS, Registered, avro, framed
from test_arrow import ROWS
from test_avro_columns import said

from consumers.formats.arrow import CONTENT_TYPE, arrow_rows
from consumers.formats.avro import avro_columns
from consumers.formats.messages import TopicMessages
from consumers.formats.open_inference import OpenInference
from consumers.formats.parts import DecodedColumns, decode_parts
from consumers.formats.records import decode_records
from consumers.formats.registered import RegisteredValues
from consumers.prediction_errors import Part, error_of, rejected
from service.domain.errors import Unavailable
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE
from service.kafka.schema_registry import RegisteredSchema

LONGEST = 10_000
GOOD: dict[str, Any] = {"model": "digits", "item_id": "a", "predicted_class": "7", "score": 0.5}


@dataclass(frozen=True)
class Record:
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    key: bytes | None = None
    offset: int = 0


def formats(registry: Registered | None = None) -> list[Any]:
    registered = RegisteredValues(registry or Registered(SCHEMAS), cached=10)
    responses = OpenInference({})
    return [arrow_rows, TopicMessages(PREDICTION_TYPE, registered=registered, formats=[responses]), responses]


def value(**fields: Any) -> bytes:
    return avro(AVRO_PREDICTION, GOOD | fields)


PLAIN = {
    "a class and its score": Record(value()),
    "another model": Record(value(model="other", item_id="ü")),
    "attributes": Record(value(attributes={"region": "north", "camera": "dock"})),
    "a class that the model has not": Record(value(predicted_class="nine")),
    "headers of the event": Record(value(), (("ce_type", PREDICTION_TYPE.encode()), ("trace", b"7"))),
    "its own content type": Record(value(), (("content-type", b"application/avro"),)),
}
OTHERS = {
    "a payload": Record(value(payload="a text")),
    "probabilities": Record(value(probabilities=[0.25, 0.75, 0.0, 0.0])),
    "an item id that is long in bytes": Record(value(item_id="é" * 256)),
    "another schema": Record(framed(3, json.dumps(GOOD).encode())),
    "native JSON": Record(json.dumps(GOOD).encode()),
    "an array of native JSON": Record(json.dumps([GOOD, GOOD | {"score": "x"}]).encode()),
    "Arrow": Record(written(table_of(ROWS))),
    "no model": Record(value(model=None)),
    "a score that is not finite": Record(value(score=float("nan"))),
    "an unknown schema": Record(framed(99, value()[5:])),
    "a value that is cut": Record(value()[:-1]),
    "a value that goes on": Record(value() + b"\0"),
    "a text that is not UTF-8": Record(value(item_id="bc").replace(b"bc", b"\xe2\x82")),
    "the headers of another event": Record(value(), (("ce_type", LABEL_TYPE.encode()),)),
    "the content type of an event": Record(value(), (("content-type", b"application/cloudevents+json"),)),
    "the content type of Arrow": Record(value(), (("Content-Type", CONTENT_TYPE),)),
    "a value that is too long": Record(value(payload_uri="u" * LONGEST)),
}


def outcomes(records: Sequence[Record], parts: Sequence[Part]) -> list[Any]:
    """What becomes of every prediction, in the order of the records: its content, or its dead letter."""
    model = ingest()
    found: list[Any] = []
    refused = []
    for part in parts:
        errors = list(part.errors)
        for name, rows in part.rows_by_model().items():
            predictions = [part.predictions[row] for row in rows.tolist()]
            whole = len(rows) == len(part.predictions)
            checked, _ = model.resolve(part.predictions if whole else predictions)
            for at, row in enumerate(rows.tolist()):
                if at in checked.refused:
                    errors.append(error_of(part, row, checked.refused[at]))
                    continue
                says = said(predictions[at], part.times[row])
                assert (says["model"], says["item_id"]) == (name, part.item_ids[row])
                result = int(checked.classes[at]), float(checked.scores[at])
                found.append((int(part.places[row]), part.elements[row], says, result))
        errors.sort(key=lambda error: (error[0], -1 if error[1] is None else error[1]))
        refused.append((part, errors))
    found += [
        (letter.record.offset, letter.index, letter.error.reason, letter.error.detail, letter.element)
        for letter in rejected(records, refused)
    ]
    return sorted(found, key=lambda each: (each[0], -1 if each[1] is None else each[1]))


def columns_of(records: Sequence[Record], registry: Registered | None = None) -> list[DecodedColumns]:
    """The parts that are columns; all parts have the same outcomes as if each record were read by itself."""
    numbered = [replace(record, offset=offset) for offset, record in enumerate(records)]
    parts = decode_parts(numbered, message_bytes=LONGEST, formats=formats(registry))
    alone = decode_records(numbered, message_bytes=LONGEST, formats=formats(registry))
    assert outcomes(numbered, parts) == outcomes(numbered, [alone.moved(0)])
    for part in parts:
        assert (np.diff(part.places) >= 0).all()
    assert_in_order(parts)
    return [part for part in parts if isinstance(part, DecodedColumns)]


def assert_in_order(parts: Sequence[Part]) -> None:
    """Every model's predictions are in the order of their records."""
    last: dict[str, int] = {}
    for part in parts:
        for model, rows in part.rows_by_model().items():
            places = np.asarray(part.places)[rows]
            assert places[0] >= last.get(model, -1)
            last[model] = int(places[-1])


def count(parts: Sequence[DecodedColumns]) -> int:
    return sum(len(part.predictions) for part in parts)


@pytest.mark.parametrize("record", PLAIN.values(), ids=PLAIN)
def test_plain_records_of_one_schema_are_columns(record: Record) -> None:
    assert count(columns_of([record] * 100)) == 100


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_records_with_more_to_say_are_read_like_any_other(other: Record) -> None:
    many = [PLAIN["attributes"]] * 300
    assert count(columns_of([*many, other, *many])) >= 600


plain_runs = st.tuples(st.sampled_from(list(PLAIN.values())), st.sampled_from([1, 3, 210]))
other_runs = st.tuples(st.sampled_from(list(OTHERS.values())), st.sampled_from([1, 3]))
payload_runs = st.just((OTHERS["a payload"], 210))
runs = st.lists(plain_runs | plain_runs | other_runs | payload_runs, min_size=1, max_size=6)


@settings(max_examples=15, deadline=None)
@given(runs)
def test_runs_of_any_records_are_read_as_if_each_were_alone(lengths: list[tuple[Record, int]]) -> None:
    columns_of([record for record, length in lengths for _ in range(length)])


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from([*PLAIN.values(), *OTHERS.values()]), min_size=1, max_size=20))
def test_mixed_records_are_read_as_if_each_were_alone(records: list[Record]) -> None:
    columns_of([PLAIN["attributes"]] * 100 + records * 3 + [PLAIN["attributes"]] * 100)


def test_models_that_take_turns_have_columns_each() -> None:
    parts = columns_of([PLAIN["another model"], PLAIN["attributes"]] * 100)
    assert sorted((part.predictions.model, len(part.predictions)) for part in parts) == [
        ("digits", 100),
        ("other", 100),
    ]


def test_refused_records_do_not_interrupt_columns() -> None:
    bad = OTHERS["a value that is cut"], OTHERS["no model"]
    [part] = columns_of(
        [record for place in range(20) for record in (*[PLAIN["attributes"]] * 20, bad[place % 2])]
    )
    assert (len(part.predictions), len(part.errors)) == (400, 20)


def test_a_few_records_are_read_one_by_one() -> None:
    assert columns_of([PLAIN["attributes"]] * 10) == []


def test_records_of_very_many_models_are_read_one_by_one() -> None:
    assert columns_of([Record(value(model=f"m{number}")) for number in range(200)]) == []


def test_a_registry_that_cannot_be_asked_stops_the_batch() -> None:
    class Away(Registered):
        def schema(self, _: int) -> RegisteredSchema:
            raise Unavailable("schema_registry", TimeoutError())

    with pytest.raises(Unavailable):
        columns_of([PLAIN["attributes"]] * 100, Away({}))


def test_a_schema_is_asked_for_once_whichever_way_it_is_read() -> None:
    registry = Registered(SCHEMAS)
    decode = formats(registry)
    for length in (10, 100, 100):
        decode_parts([PLAIN["attributes"]] * length, message_bytes=LONGEST, formats=decode)
    assert registry.asked == [1]


WIDE = {
    "type": "record",
    "name": "Wide",
    "fields": [
        *AVRO_PREDICTION["fields"],
        {"name": "lists", "type": {"type": "array", "items": "double"}},
        {"name": "texts", "type": {"type": "map", "values": "string"}},
        {"name": "fixed", "type": {"type": "fixed", "name": "Fixed", "size": 2**30}},
    ],
}
EMPTY = b"\0" * 9


def test_hostile_values_take_memory_by_their_length() -> None:
    registry = Registered({1: RegisteredSchema("AVRO", json.dumps(WIDE), {})})
    start = value()[5:-6] + EMPTY
    bad = [framed(1, start[:at] + inserted + start[at:]) for inserted in HOSTILE for at in range(len(start))]
    records = [Record(each) for each in bad]
    decode = formats(registry)
    assert avro_columns(registry.schemas[1]) is not None
    decode_parts(records[:1], message_bytes=LONGEST, formats=decode)
    began = time.process_time()
    tracemalloc.start()
    try:
        parts = decode_parts(records, message_bytes=LONGEST, formats=decode)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count([part for part in parts if isinstance(part, DecodedColumns)]) == 0
    assert peak < 150 * sum(map(len, bad)) + 5_000_000
    # It takes milliseconds; the bound leaves room for a slow machine that traces memory.
    assert time.process_time() - began < 5
