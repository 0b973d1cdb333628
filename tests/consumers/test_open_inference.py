"""Inference responses: every row is taken, or refused, as the native message that says the same."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decoders import json_values, text_of
from test_prediction_columns import fields_or_refusal

from consumers.formats.native import WirePrediction, decode_attributes, decode_predictions, element_texts
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import DecodedRecords, decode_records, native_text
from service.domain.errors import BadMessage
from service.domain.messages import CLOUDEVENTS_VERSION, LABEL_TYPE, PREDICTION_TYPE
from service.domain.open_inference import (
    RESPONSE_EXAMPLE,
    RESPONSE_EXAMPLE_ROWS,
    RESPONSE_TYPES,
    TENSOR_RULES,
    TensorField,
)

LONGEST = 100_000
MODEL = "digits"
DECODER = OpenInference(
    {MODEL: {}, "renamed": {"probabilities": "predict_proba", "predicted_class": "predict"}}
)
RESPONSE_EVENT = [("ce_type", RESPONSE_TYPES[0].encode())]


class Record(NamedTuple):
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def tensor(name: str, data: Any, datatype: str = "BYTES", shape: Any = None, **more: Any) -> dict[str, Any]:
    """A tensor of as many rows as there are data; `...` leaves a key out."""
    fields_or_refusal = {
        "name": name,
        "datatype": datatype,
        "shape": [len(data)] if shape is None else shape,
        "data": data,
    }
    return {key: value for key, value in (fields_or_refusal | more).items() if value is not ...}


IDS = tensor("item_id", ["a", "b"])
CLASSES = tensor("predicted_class", ["7", "1"])
SCORES = tensor("score", [0.5, 0.25], "FP32")
SPREAD = tensor("probabilities", [0.25, 0.75, 0.5, 0.5], "FP64", [2, 2])


def response(*outputs: Any, **fields: Any) -> bytes:
    """A response as JSON, of two plain rows by default."""
    plain = {"model_name": MODEL, "id": "r", "outputs": list(outputs or (IDS, CLASSES, SCORES))}
    return text_of(plain, **fields)


def decode(value: bytes, headers: Sequence[tuple[str, bytes | None]] = ()) -> DecodedRecords:
    return decode_records([Record(value, headers)], message_bytes=LONGEST, formats=[DECODER])


def taken(value: bytes) -> list[WirePrediction]:
    decoded = decode(value)
    assert decoded.errors == []
    assert list(decoded.elements) == list(range(len(decoded.predictions)))
    return decoded.predictions


def refused(value: bytes, headers: Sequence[tuple[str, bytes | None]] = ()) -> BadMessage:
    """Why a record is refused as a whole."""
    decoded = decode(value, headers)
    assert decoded.predictions == []
    ((place, element, error),) = decoded.errors
    assert (place, element) == (0, None)
    return error


def test_the_rows_of_the_example_are_those_that_the_contract_shows() -> None:
    value = json.dumps(RESPONSE_EXAMPLE).encode()
    assert json.loads(native_text(Record(value), [OpenInference({"digits": {}})])) == RESPONSE_EXAMPLE_ROWS


def test_the_fields_of_a_response_become_those_of_its_predictions() -> None:
    first, second = taken(
        response(
            IDS,
            CLASSES,
            SCORES,
            SPREAD,
            tensor("time", ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00"]),
            tensor("payload_uri", ["s3://a", "s3://b"]),
            tensor("attributes.camera", ["dock", "gate"]),
            parameters={"attributes.region": "eu", "sequence_id": 3},
        )
    )
    assert (first.model, first.item_id, first.predicted_class, first.score) == (MODEL, "a", "7", 0.5)
    assert (second.item_id, second.predicted_class, second.score) == ("b", "1", 0.25)
    assert (first.probabilities, second.probabilities) == ([0.25, 0.75], [0.5, 0.5])
    assert first.time == second.time
    assert (first.payload_uri, second.payload_uri) == ("s3://a", "s3://b")
    assert decode_attributes(first.attributes) == {"camera": "dock", "region": "eu"}
    assert decode_attributes(second.attributes) == {"camera": "gate", "region": "eu"}


@pytest.mark.parametrize("headers", [[], RESPONSE_EVENT])
def test_the_keys_of_a_response_may_stand_in_any_order(headers: Any) -> None:
    reversed_keys = json.dumps(dict(reversed(json.loads(response()).items())), indent=2).encode()
    assert len(decode(reversed_keys, headers).predictions) == 2


def test_parameters_alone_give_every_row_the_same_attributes() -> None:
    rows = taken(response(parameters={"attributes.region": "eu", "attributes.line": "4"}))
    assert [decode_attributes(row.attributes) for row in rows] == [{"region": "eu", "line": "4"}] * 2


def test_tensors_are_called_as_the_model_s_settings_say() -> None:
    outputs = [SPREAD | {"name": "predict_proba"}, tensor("predict", [7, 1], "INT64", [2, 1])]
    rows = taken(response(*outputs, model_name="renamed"))
    assert [(row.predicted_class, row.probabilities) for row in rows] == [
        ("7", [0.25, 0.75]),
        ("1", [0.5, 0.5]),
    ]


def test_a_tensor_that_has_another_name_is_no_longer_looked_for_under_that_of_its_field() -> None:
    assert refused(response(SPREAD, model_name="renamed")).reason == "missing_field"


def test_an_integer_is_the_name_of_a_class_and_never_its_position() -> None:
    classes = tensor("predicted_class", [7, -0, 2**64 - 1], "UINT64")
    rows = taken(response(classes, tensor("score", [0.5] * 3, "FP16")))
    assert [row.predicted_class for row in rows] == ["7", "0", "18446744073709551615"]


def test_items_and_attributes_may_be_integers_too() -> None:
    ids, stores = tensor("item_id", [17, 18], "INT32"), tensor("attributes.store", [1, 2], "UINT8")
    rows = taken(response(ids, CLASSES, SCORES, stores))
    assert [(row.item_id, decode_attributes(row.attributes)) for row in rows] == [
        ("17", {"store": "1"}),
        ("18", {"store": "2"}),
    ]


def test_an_item_without_an_id_is_called_by_its_response_and_its_row() -> None:
    assert [row.item_id for row in taken(response(CLASSES, SCORES, id="5b1f"))] == ["5b1f/0", "5b1f/1"]


@pytest.mark.parametrize(
    ("outputs", "shape"),
    [
        ([0.25, 0.75, 0.5, 0.5], [2, 2]),
        ([[0.25, 0.75], [0.5, 0.5]], [2, 2]),
    ],
)
def test_data_may_be_flat_or_nested(outputs: Any, shape: Any) -> None:
    rows = taken(response(tensor("probabilities", outputs, "FP32", shape)))
    assert [row.probabilities for row in rows] == [[0.25, 0.75], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("data", "shape"), [(["7", "1"], [2, 1]), ([["7"], ["1"]], [2, 1]), ([[["7"]], [["1"]]], [2, 1, 1])]
)
def test_a_column_may_have_dimensions_of_one(data: Any, shape: Any) -> None:
    rows = taken(response(tensor("predicted_class", data, shape=shape), SCORES))
    assert [row.predicted_class for row in rows] == ["7", "1"]


def test_other_tensors_are_ignored_whatever_they_are() -> None:
    embedding = tensor("embedding", ..., "FP32", [5, 768], parameters={"binary_data_size": 15_360})
    assert len(taken(response(IDS, CLASSES, SCORES, embedding, tensor("logits", [None], "BOOL")))) == 2


def test_a_response_without_rows_is_nothing_at_all() -> None:
    assert taken(response(tensor("predicted_class", []), tensor("score", [], "FP32"))) == []


WITHOUT_DATA = SCORES | {"data": ..., "parameters": {"binary_data_size": 8}}
REFUSED: dict[str, tuple[str, bytes]] = {
    "a model that is not configured": ("unknown_model", response(model_name="z")),
    "no predicted class": ("missing_field", response(IDS, SCORES)),
    "no score": ("missing_field", response(IDS, CLASSES)),
    "no tensors": ("missing_field", response(outputs=[])),
    "neither an id nor item ids": ("missing_field", response(CLASSES, SCORES, id=...)),
    "an empty id and no item ids": ("missing_field", response(CLASSES, SCORES, id="")),
    "an empty name of a model": ("invalid_field", response(model_name="")),
    "a name of a model that is no text": ("invalid_field", response(model_name=7)),
    "outputs that are no list": ("invalid_field", response(outputs={})),
    "binary data": ("invalid_tensor", response(CLASSES, tensor(**WITHOUT_DATA))),
    "no data": ("missing_field", response(CLASSES, tensor("score", ..., "FP32", [2]))),
    "null for data": ("invalid_tensor", response(CLASSES, SCORES | {"data": None})),
    "no shape": ("missing_field", response(CLASSES, tensor("score", [0.5, 0.5], "FP32", ...))),
    "no datatype": ("missing_field", response(CLASSES, tensor("score", [0.5, 0.5], ...))),
    "content of base64": (
        "invalid_tensor",
        response(CLASSES | {"parameters": {"content_type": "base64"}}, SCORES),
    ),
    "a score of integers": ("invalid_tensor", response(CLASSES, tensor("score", [1, 0], "INT64"))),
    "a score of strings": ("invalid_tensor", response(CLASSES, tensor("score", ["1", "0"]))),
    "classes of floating point": (
        "invalid_tensor",
        response(tensor("predicted_class", [7.0, 1.0], "FP32"), SCORES),
    ),
    "classes of truth values": (
        "invalid_tensor",
        response(tensor("predicted_class", [True, False], "BOOL"), SCORES),
    ),
    "times that are numbers": ("invalid_tensor", response(CLASSES, SCORES, tensor("time", [1, 2], "INT64"))),
    "as many scores as there should be classes": (
        "invalid_tensor",
        response(CLASSES, tensor("score", [0.1, 0.2, 0.3, 0.4], "FP32", [2, 2])),
    ),
    "probabilities of one item without its dimension": (
        "invalid_tensor",
        response(tensor("probabilities", [0.5, 0.5], "FP32", [2])),
    ),
    "one probability for an item": (
        "invalid_tensor",
        response(tensor("probabilities", [1, 1], "FP32", [2, 1])),
    ),
    "probabilities without classes and without end": (
        "invalid_tensor",
        response(tensor("probabilities", [], "FP32", [10**12, 0])),
    ),
    "tensors of different lengths": (
        "invalid_tensor",
        response(IDS, CLASSES, tensor("score", [0.5], "FP32")),
    ),
    "fewer data than the shape says": (
        "invalid_tensor",
        response(CLASSES | {"shape": [3]}, tensor("score", [0.5] * 3, "FP32")),
    ),
    "more rows than the response is long": (
        "invalid_tensor",
        response(CLASSES | {"shape": [10**12]}, SCORES | {"shape": [10**12]}),
    ),
    "rows of different lengths": (
        "invalid_tensor",
        response(tensor("probabilities", [[0.5, 0.5], [1.0]], "FP32", [2, 2])),
    ),
    "a row that is none": (
        "invalid_tensor",
        response(tensor("probabilities", [[0.5, 0.5], 1.0], "FP32", [2, 2])),
    ),
    "a length below zero": ("invalid_tensor", response(CLASSES | {"shape": [-1]}, SCORES | {"shape": [-1]})),
    "the same field twice": ("invalid_tensor", response(CLASSES, CLASSES, SCORES)),
    "the same attribute twice": (
        "invalid_tensor",
        response(CLASSES, SCORES, tensor("attributes.a", ["x", "y"]), parameters={"attributes.a": "z"}),
    ),
    "an attribute without a name": (
        "invalid_field",
        response(CLASSES, SCORES, tensor("attributes.", ["x", "y"])),
    ),
    "an attribute with an over-long name": (
        "invalid_field",
        response(parameters={"attributes." + "x" * 129: "z"}),
    ),
    "a parameter that is no text": ("invalid_field", response(parameters={"attributes.a": 1})),
    "too many attributes": (
        "invalid_field",
        response(parameters={f"attributes.{i}": "x" for i in range(65)}),
    ),
    "a long parameter of many rows": (
        "message_too_large",
        response(
            tensor("predicted_class", ["7"] * 500),
            tensor("score", [1] * 500, "FP32"),
            parameters={"attributes.a": "x" * 3_000},
        ),
    ),
    "a tensor that is none": ("invalid_field", response(CLASSES, SCORES, 5)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_response_that_cannot_be_used_is_refused_as_a_whole(what: str) -> None:
    reason, value = REFUSED[what]
    assert refused(value).reason == reason


@pytest.mark.parametrize(
    "parameters", [{}, {"content_type": "str"}, {"binary_data_size": None}, {"something": [1, 2]}]
)
def test_parameters_of_a_tensor_that_are_of_another_server_change_nothing(parameters: object) -> None:
    given = response(IDS, CLASSES | {"parameters": parameters}, SCORES | {"parameters": parameters})
    assert taken(given) == taken(response())


def test_content_of_base64_is_refused_as_such() -> None:
    assert "base64" in refused(REFUSED["content of base64"][1]).detail


def test_binary_data_behind_the_json_are_refused_as_such() -> None:
    value = response(CLASSES, tensor(**WITHOUT_DATA)) + b"\x00\x00\x00\x3f\x00\x00\x80\xbf"
    assert refused(value, RESPONSE_EVENT).reason == "invalid_tensor"
    assert "binary_data_size" in refused(value).detail


ROWS_REFUSED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "a class that is a number in a tensor of strings": (
        "invalid_field",
        [tensor("predicted_class", ["7", 1]), SCORES],
    ),
    "a class that is no whole number": (
        "invalid_field",
        [tensor("predicted_class", [7, 1.0], "INT64"), SCORES],
    ),
    "a class beyond all integers": (
        "invalid_field",
        [tensor("predicted_class", [7, 2**64], "INT64"), SCORES],
    ),
    "a class that is a truth value": (
        "invalid_field",
        [tensor("predicted_class", [7, True], "INT64"), SCORES],
    ),
    "a score that is text": ("invalid_field", [CLASSES, tensor("score", [0.5, "0.5"], "FP32")]),
    "a nested score": ("invalid_field", [CLASSES, tensor("score", [0.5, [0.5]], "FP32")]),
    "a probability that is null": (
        "invalid_field",
        [tensor("probabilities", [0.5, 0.5, 0.5, None], "FP32", [2, 2])],
    ),
    "a time without an offset": (
        "invalid_field",
        [CLASSES, SCORES, tensor("time", ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00"])],
    ),
    "an over-long item id": ("invalid_field", [CLASSES, SCORES, tensor("item_id", ["a", "x" * 257])]),
    "an empty item id": ("invalid_field", [CLASSES, SCORES, tensor("item_id", ["a", ""])]),
}


@pytest.mark.parametrize("what", ROWS_REFUSED)
def test_a_bad_row_does_not_take_the_others_with_it(what: str) -> None:
    reason, outputs = ROWS_REFUSED[what]
    decoded = decode(response(*outputs))
    assert list(decoded.elements) == [0]
    ((place, element, error),) = decoded.errors
    assert (place, element, error.reason) == (0, 1, reason)


def test_an_over_long_id_of_a_response_makes_no_item_ids() -> None:
    decoded = decode(response(CLASSES, SCORES, id="x" * 255))
    assert [error.reason for _, _, error in decoded.errors] == ["invalid_field"] * 2
    assert len(taken(response(CLASSES, SCORES, id="x" * 254))) == 2


def test_a_refused_row_is_told_as_a_native_message() -> None:
    value = response(
        CLASSES, tensor("score", [0.5, "high"], "FP32"), parameters={"attributes.ü": 'a "quoted" word'}
    )
    assert json.loads(native_text(Record(value), [DECODER]))[1] == {
        "model": MODEL,
        "item_id": "r/1",
        "predicted_class": "1",
        "score": "high",
        "attributes": {"ü": 'a "quoted" word'},
    }


@pytest.mark.parametrize("event_type", RESPONSE_TYPES)
@pytest.mark.parametrize("version", [CLOUDEVENTS_VERSION, "0.3"])
def test_events_of_model_servers_are_taken(event_type: str, version: str) -> None:
    headers = [("ce_type", event_type.encode()), ("ce_specversion", version.encode())]
    assert len(decode(response(), headers).predictions) == 2


def test_an_event_of_a_request_is_refused() -> None:
    headers = [("ce_type", b"org.kubeflow.serving.inference.request")]
    assert refused(response(), headers).reason == "unsupported_event"


def test_an_event_of_another_version_of_cloudevents_is_refused() -> None:
    assert refused(response(), [*RESPONSE_EVENT, ("ce_specversion", b"2.0")]).reason == "unsupported_event"
    assert refused(response(), [("ce_specversion", b"0.3")]).reason == "unsupported_event"


def test_what_is_said_to_be_a_response_and_is_none_is_refused() -> None:
    native = text_of({"model": MODEL, "item_id": "a", "predicted_class": "7", "score": 0.5})
    error = refused(native, RESPONSE_EVENT)
    assert error.reason == "missing_field"
    assert "model_name" in error.detail


NATIVE = {"model": MODEL, "item_id": "a", "predicted_class": "7", "score": 0.5}


@pytest.mark.parametrize(
    "more",
    [
        {"payload": json.loads(response())},
        {"model_name": MODEL, "outputs": []},
        json.loads(response()),
    ],
)
@pytest.mark.parametrize("headers", [[], [("ce_type", PREDICTION_TYPE.encode())]])
def test_a_native_message_is_never_mistaken_for_a_response(more: Any, headers: Any) -> None:
    decoded = decode(text_of(NATIVE | more), headers)
    assert [one.item_id for one in decoded.predictions] == ["a"]
    assert decoded.elements == [None]


@pytest.mark.parametrize("more", [{"payload": json.loads(response())}, json.loads(response())])
def test_a_bad_native_message_is_refused_as_one(more: Any) -> None:
    assert "predicted_class" in refused(text_of(NATIVE | more, predicted_class=7)).detail


def test_a_response_that_is_said_to_be_another_event_is_none() -> None:
    assert refused(response(), [("ce_type", PREDICTION_TYPE.encode())]).reason == "missing_field"
    assert refused(response(), [("ce_type", LABEL_TYPE.encode())]).reason == "unsupported_event"


def test_native_messages_and_responses_come_in_one_topic() -> None:
    array = b"[" + text_of(NATIVE) + b",5]"
    values = [text_of(NATIVE), response(), array, response(IDS, SCORES), text_of(NATIVE)]
    decoded = decode_records(list(map(Record, values)), message_bytes=LONGEST, formats=[DECODER])
    assert list(zip(decoded.places, decoded.elements, strict=True)) == [
        (0, None),
        (1, 0),
        (1, 1),
        (2, 0),
        (4, None),
    ]
    assert [(place, element, error.reason) for place, element, error in decoded.errors] == [
        (2, 1, "invalid_field"),
        (3, None, "missing_field"),
    ]


@pytest.mark.parametrize("field", TENSOR_RULES)
def test_a_refusal_quotes_nothing(field: TensorField) -> None:
    secret = "hunter2"
    outputs = [
        CLASSES,
        SCORES,
        tensor(f"attributes.{secret}", ["x", "y"]),
        tensor(field, [{secret: secret}] * 2),
    ]
    for value in (response(*outputs), response(*outputs, parameters={f"attributes.{secret}": 1})):
        assert all(secret not in error.detail for _, _, error in decode(value).errors)


# What JSON does not have would spoil the whole response, and not one row of it.
anything = json_values.filter(lambda value: "Infinity" not in json.dumps(value))
names = st.sampled_from(["", "a", "ü\n", "x" * 128, "x" * 257]) | st.text(max_size=3)
WHOLE = st.integers(-3, 9) | st.integers(-(2**65), 2**65)
ELEMENTS: dict[str, st.SearchStrategy[Any]] = {
    "item_id": names,
    "predicted_class": names,
    "score": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    "time": st.sampled_from(
        ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+05:30", "2026-01-31T12:00:00", ""]
    ),
    "payload_uri": st.sampled_from(["s3://a", "u" * 2_049]),
    "attributes.camera": names,
    "attributes.ö": names,
}


@st.composite
def columns(draw: st.DrawFn, count: int) -> dict[str, tuple[str, list[Any]]]:
    """Datatype and data of some tensors; most are in order, and some elements are anything."""
    some = draw(st.sets(st.sampled_from(sorted(ELEMENTS)))) | {"predicted_class", "score"}
    found = {}
    for name in sorted(some):
        of_names = name not in ("score", "time", "payload_uri")
        whole = of_names and draw(st.booleans())
        usual = WHOLE if whole else ELEMENTS[name]
        element = usual if draw(st.booleans()) else usual | anything
        datatype = "INT64" if whole else "FP32" if name == "score" else "BYTES"
        found[name] = (datatype, draw(st.lists(element, min_size=count, max_size=count)))
    return found


def as_native(value: Any, *, whole: bool) -> Any:
    """An element as the native message of its row has it."""
    is_name = whole and type(value) is int and -(2**63) <= value < 2**64
    return str(value) if is_name else value


def native_rows(
    found: Mapping[str, tuple[str, list[Any]]], spread: list[Any], count: int
) -> list[dict[str, Any]]:
    """The same predictions as native messages, written in the plainest way."""
    rows = []
    for row in range(count):
        message: dict[str, Any] = {"model": MODEL, "item_id": f"r/{row}", "attributes": {"line": "4"}}
        if spread:
            message["probabilities"] = spread[row]
        for name, (datatype, data) in found.items():
            value = as_native(data[row], whole=datatype == "INT64")
            attribute = name.removeprefix("attributes.")
            where = message if attribute == name else message["attributes"]
            where[attribute] = value
        rows.append(message)
    return rows


def content(prediction: WirePrediction | BadMessage) -> Any:
    """What a prediction says; attributes by what they mean and not by how they are written."""
    if isinstance(prediction, BadMessage):
        # Of several faults, that of the first field is reported; the order of fields is nobody's promise.
        return prediction.reason
    try:
        attributes: Any = decode_attributes(prediction.attributes)
    except BadMessage as error:
        attributes = error.reason
    name = prediction.__struct_fields__.index("attributes")
    return [*fields_or_refusal(prediction)[:name], attributes, *fields_or_refusal(prediction)[name + 1 :]]


@settings(max_examples=300)
@given(st.data())
def test_a_row_is_taken_as_the_native_message_that_says_the_same(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 4))
    found = data.draw(columns(count))
    number = (
        st.floats(0, 1)
        if data.draw(st.booleans())
        else anything.filter(lambda value: not isinstance(value, list))
    )
    pair = st.lists(number, min_size=2, max_size=2)
    spread = data.draw(st.just([]) | st.lists(pair, min_size=count, max_size=count))
    outputs = [tensor(name, values, datatype) for name, (datatype, values) in found.items()]
    if spread:
        nested = data.draw(st.booleans())
        flat = [value for row in spread for value in row]
        outputs.append(tensor("probabilities", spread if nested else flat, "FP64", [count, 2]))
    value = response(*data.draw(st.permutations(outputs)), parameters={"attributes.line": "4"})

    decoded = decode(value)
    together: dict[int | None, Any] = {element: content(error) for _, element, error in decoded.errors}
    together |= {
        element: content(one) for element, one in zip(decoded.elements, decoded.predictions, strict=True)
    }
    rows = native_rows(found, spread, count)
    one_by_one = [one for row in rows for _, one in decode_predictions(text_of(row))]
    assert together == {row: content(one) for row, one in enumerate(one_by_one)}

    assert json.loads(native_text(Record(value), [DECODER])) == rows


def test_rows_that_share_an_emoji_take_little_more_memory_than_they_are_long() -> None:
    count = 5_000
    classes, scores = tensor("predicted_class", ["7"] * count), tensor("score", [0.5] * count, "FP32")
    value = response(classes, scores, parameters={"attributes.a": "x" * 450 + "\N{GRINNING FACE}"})
    written = len(native_text(Record(value), [DECODER]))
    assert written > 30 * len(value)
    tracemalloc.start()
    assert len(taken(value)) == count
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Twice while it is written; decoded as a whole, an emoji would make every character take four bytes.
    assert most < 3.5 * written


@settings(max_examples=200)
@given(
    st.sampled_from([response(), response(CLASSES, SPREAD, tensor("attributes.a", ["x", "y"]))]),
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from("rid"), st.binary(min_size=1, max_size=1)), max_size=3
    ),
)
def test_a_damaged_response_is_refused_or_taken_and_no_row_twice(
    text: bytes, edits: list[tuple[int, str, bytes]]
) -> None:
    for at, how, byte in edits:
        here = at % len(text)
        text = text[:here] + (b"" if how == "d" else byte) + text[here + (how != "i") :]
    decoded = decode(text)
    elements = [*decoded.elements, *(element for _, element, _ in decoded.errors)]
    assert len(set(elements)) == len(elements)
    if any(element is not None for element in elements):
        texts = element_texts(native_text(Record(text), [DECODER]))
        for row, one in zip(decoded.elements, decoded.predictions, strict=True):
            assert row is not None
            ((_, again),) = decode_predictions(bytes(texts[row]))
            assert content(again) == content(one)
