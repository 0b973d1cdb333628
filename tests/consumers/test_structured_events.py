"""CloudEvents in structured mode, and batches of them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from schema_values import ENCODERS, SCHEMAS, Registered

from consumers.formats.mapped_topic import MappedTopic
from consumers.formats.mapping import RecordMapper
from consumers.formats.messages import TopicMessages
from consumers.formats.native import decode_label, element_texts
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import DecodedRecords, decode_records, native_text
from consumers.formats.registered import RegisteredValues
from service.config.mapping import PredictionMapping
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE
from service.domain.open_inference import RESPONSE_EXAMPLE, RESPONSE_TYPES

BASE: dict[str, Any] = {"model": "sorter", "item_id": "a", "predicted_class": "cat", "score": 0.5}
EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "1",
    "source": "tests",
    "type": PREDICTION_TYPE,
    "time": "2026-01-31T12:00:00Z",
    "data": BASE,
}
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SINGLE = ("content-type", b"application/cloudevents+json; charset=UTF-8")
BATCH = ("content-type", b"application/cloudevents-batch+json")


@dataclass
class Record:
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = (SINGLE,)
    key: bytes | None = None


RESPONSES = OpenInference({}, others={})
MESSAGES = TopicMessages(
    PREDICTION_TYPE,
    registered=RegisteredValues(Registered(SCHEMAS), cached=10),
    formats=[RESPONSES],
)


def read(value: Any, header: tuple[str, bytes] = SINGLE) -> DecodedRecords:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return decode_records([Record(text, (header,))], message_bytes=1_000_000, formats=[MESSAGES, RESPONSES])


def reasons(value: Any, header: tuple[str, bytes] = SINGLE) -> list[str]:
    return [error.reason for _, _, error in read(value, header).errors]


def test_the_data_of_an_event_is_a_message() -> None:
    (found,) = read(EVENT).predictions
    assert (found.item_id, found.score, found.time) == ("a", 0.5, NOON)


def test_a_message_s_own_time_counts_before_that_of_its_event() -> None:
    (found,) = read(EVENT | {"data": BASE | {"time": "2025-01-01T00:00:00Z"}}).predictions
    assert found.time == datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("time", [None, "yesterday", "2026-01-31T12:00:00", 5])
def test_an_event_without_a_valid_time_gives_none(time: Any) -> None:
    found = read({key: value for key, value in (EVENT | {"time": time}).items() if value is not None})
    assert [p.time for p in found.predictions] in ([None], [])


@pytest.mark.parametrize("encode", ENCODERS.values(), ids=ENCODERS)
def test_data_may_be_base64_of_any_format(encode: Any) -> None:
    event = {name: value for name, value in EVENT.items() if name != "data"}
    event["data_base64"] = base64.b64encode(encode(BASE)).decode()
    (found,) = read(event).predictions
    assert (found.item_id, found.time) == ("a", NOON)


def test_data_may_be_an_array_of_messages() -> None:
    found = read(EVENT | {"data": [BASE, BASE | {"item_id": "b"}]})
    assert [(p.item_id, p.time) for p in found.predictions] == [("a", NOON), ("b", NOON)]


def test_data_may_be_an_inference_response() -> None:
    found = read(EVENT | {"type": RESPONSE_TYPES[0], "data": RESPONSE_EXAMPLE})
    assert [p.item_id for p in found.predictions] == ["img-000020", "img-000021"]
    assert {p.time for p in found.predictions} == {NOON}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"type": "com.example.other"}, "unsupported_event"),
        ({"specversion": "0.3"}, "unsupported_event"),
        ({"data": None}, "invalid_field"),
        ({"data": ...}, "missing_field"),
        ({"data": ..., "data_base64": "not base64!"}, "invalid_field"),
        ({"data": ..., "data_base64": base64.b64encode(b"\xff").decode()}, "malformed_json"),
        ({"type": ...}, "missing_field"),
        ({"type": 5}, "invalid_field"),
    ],
)
def test_an_event_that_cannot_be_used_is_refused(changes: dict[str, Any], reason: str) -> None:
    event = {name: value for name, value in (EVENT | changes).items() if value is not ...}
    assert reasons(event) == [reason]


@pytest.mark.parametrize("value", [b"", b"{", b"\xff", b"5", b"[" * 100_000])
def test_a_record_that_is_no_event_is_refused(value: bytes) -> None:
    assert reasons(value)[0] in ("malformed_json", "invalid_field")


def test_events_in_another_encoding_are_refused() -> None:
    assert reasons(b"x", ("content-type", b"application/cloudevents+avro")) == ["unsupported_event"]


def test_a_bad_event_of_a_batch_does_not_affect_the_others() -> None:
    bad = [EVENT | {"type": "com.example.other"}, EVENT | {"data": BASE | {"score": "high"}}, {}, 5]
    found = read([EVENT, *bad, EVENT | {"data": BASE | {"item_id": "b"}}], BATCH)
    assert [p.item_id for p in found.predictions] == ["a", "b"]
    assert [element for _, element, _ in found.errors] == [1, 2, 3, 4]


def test_an_event_of_a_batch_can_be_replayed_by_itself() -> None:
    assert [p.item_id for p in read(EVENT, BATCH).predictions] == ["a"]


def test_a_bad_event_of_a_batch_has_the_reason_that_it_has_alone() -> None:
    bad = [
        EVENT | {"type": "com.example.other"},
        EVENT | {"specversion": "0.3"},
        EVENT | {"data": "text"},
        {name: value for name, value in EVENT.items() if name != "data"},
        BASE,
        5,
    ]
    alone = [read(event).errors[0][2] for event in bad]
    together = [error for _, _, error in read([EVENT, *bad], BATCH).errors]
    assert [(e.reason, e.detail) for e in together] == [(e.reason, e.detail) for e in alone]


@pytest.mark.parametrize("changes", [{"type": "com.example.other"}, {"specversion": "0.3"}])
def test_an_event_is_not_taken_for_a_message_by_its_attributes(changes: dict[str, str]) -> None:
    event = EVENT | BASE | changes
    assert reasons(event) == reasons([event], BATCH) == ["unsupported_event"]


def letters(value: Any, header: tuple[str, bytes]) -> list[bytes]:
    """What dead letters of the elements of a record have."""
    record = Record(value if isinstance(value, bytes) else json.dumps(value).encode(), (header,))
    return [bytes(text) for text in element_texts(native_text(record, [MESSAGES]))]


def test_the_dead_letter_of_an_event_of_a_batch_is_the_event_byte_for_byte() -> None:
    events = [json.dumps(event, indent=2).encode() for event in (EVENT, {}, EVENT | {"type": "other"})]
    assert letters(b"[ %b ]" % b" , ".join(events), BATCH) == events


@pytest.mark.parametrize("header", [SINGLE, BATCH])
def test_the_dead_letter_of_one_of_an_event_s_messages_is_an_event_that_can_be_replayed(
    header: tuple[str, bytes],
) -> None:
    event = EVENT | {"data": [BASE, BASE | {"item_id": "b"}]}
    _, letter = letters([event] if header == BATCH else event, header)
    (found,) = read(letter, header).predictions
    assert (found.item_id, found.time) == ("b", NOON)


def test_an_event_that_a_format_fails_at_does_not_affect_the_others() -> None:
    def failing(_: Any, data: bytes) -> None:
        if data == b"5":
            raise KeyError

    value = json.dumps([EVENT | {"data": 5}, EVENT]).encode()
    topic = TopicMessages(PREDICTION_TYPE, formats=[failing])
    found = decode_records([Record(value, (BATCH,))], message_bytes=10_000, formats=[topic])
    assert [p.item_id for p in found.predictions] == ["a"]
    assert [(element, error.reason) for _, element, error in found.errors] == [(0, "malformed_record")]


@pytest.mark.parametrize("added", [b", 0.75, 0", b"," + json.dumps(BASE).encode(), b"]", b"x"])
def test_data_that_go_on_after_a_message_are_refused_and_no_other_event_with_them(added: bytes) -> None:
    data = base64.b64encode(json.dumps(BASE).encode() + added).decode()
    bad = {name: value for name, value in EVENT.items() if name != "data"} | {"data_base64": data}
    found = read([bad, EVENT, bad], BATCH)
    assert [p.item_id for p in found.predictions] == ["a"]
    refused = [(element, error.reason) for _, element, error in found.errors]
    assert refused == [(0, "malformed_json"), (2, "malformed_json")]
    letters = [json.loads(text) for text in found.texts(0, [0, 2])]
    assert letters == [bad, bad]


@pytest.mark.parametrize(("value", "header"), [([5] * 2_000, BATCH), (EVENT | {"data": [5] * 2_000}, SINGLE)])
def test_an_array_of_very_short_elements_is_refused_as_a_whole(value: Any, header: tuple[str, bytes]) -> None:
    ((_, element, error),) = read(value, header).errors
    assert (element, error.detail) == (None, "most elements of the array are too short to be predictions")


def test_an_empty_batch_has_no_messages() -> None:
    assert read([], BATCH) == DecodedRecords([], [], [], [])


def test_labels_are_read_from_events() -> None:
    label = {"request_id": "r", "model": "sorter", "item_id": "a", "true_class": "cat"}
    event = EVENT | {"type": LABEL_TYPE, "data": label}
    text = TopicMessages(LABEL_TYPE).rewrite(Record(json.dumps(event).encode()))
    assert (decode_label(text).true_class, decode_label(text).time) == ("cat", NOON)


THEIRS = EVENT | {"type": "com.example.scored", "data": {"id": 5, "label": "cat", "p": 0.5}}


def mapped(**attributes: str) -> MappedTopic:
    mapping = PredictionMapping.model_validate(
        {
            "model": {"value": "sorter"},
            "item_id": "$.id",
            "predicted_class": "$.label",
            "score": "$.p",
            "attributes": attributes,
        }
    )
    return MappedTopic(TopicMessages(PREDICTION_TYPE, mapper=RecordMapper(mapping.mapping(), {})).rewrite)


def test_the_data_of_an_event_of_another_type_is_mapped() -> None:
    records = [Record(json.dumps(event).encode()) for event in (THEIRS, EVENT)]
    found = decode_records(records, message_bytes=10_000, formats=mapped(source="$headers.ce_source"))
    assert [(p.item_id, p.time) for p in found.predictions] == [("5", NOON), ("a", NOON)]
    assert json.loads(bytes(found.predictions[0].attributes)) == {"source": "tests"}


def test_attributes_of_events_that_are_no_text_are_as_in_headers() -> None:
    event = THEIRS | {"num": 42, "flag": True, "none": None}
    paths = {name: f"$headers.ce_{name}" for name in ("num", "flag", "none")}
    record = Record(json.dumps(event).encode())
    (found,) = decode_records([record], message_bytes=10_000, formats=mapped(**paths)).predictions
    assert json.loads(bytes(found.attributes)) == {"num": "42", "flag": "true"}


def test_a_mapped_event_of_a_batch_is_mapped_again_when_it_is_replayed() -> None:
    record = Record(json.dumps([THEIRS]).encode(), (BATCH,))
    (letter,) = element_texts(native_text(record, mapped()))
    assert json.loads(bytes(letter)) == THEIRS


def test_what_is_no_event_is_not_taken_for_a_native_message_on_a_mapped_topic() -> None:
    record = Record(json.dumps(BASE).encode())
    ((_, _, error),) = decode_records([record], message_bytes=10_000, formats=mapped()).errors
    assert (error.reason, error.detail) == ("missing_field", "specversion is missing in the event")
