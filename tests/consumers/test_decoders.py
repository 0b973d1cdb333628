"""One suite holds the decoders of the hot path and the contract's models to the same messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model_ingest import CLASSES, ingest
from pydantic import ValidationError

from consumers.formats.event_headers import check_event, event_time
from consumers.formats.native import (
    WireLabel,
    WirePrediction,
    decode_array,
    decode_attributes,
    decode_label,
    decode_predictions,
)
from service.domain.errors import BadMessage
from service.domain.messages import (
    EXAMPLES,
    LABEL_TYPE,
    PREDICTION_TYPE,
    Label,
    Message,
    Prediction,
    cloudevents_headers,
)

PREDICTION = {"model": "digits", "item_id": "a", "predicted_class": "7", "score": 0.5}
SPREAD = {"model": "digits", "item_id": "a", "probabilities": [0.25, 0.75, 0, 0]}
ANSWER = {"request_id": "r", "model": "digits", "item_id": "a", "true_class": "7"}
OWN = {"predicted_class": "1", "score": 0.9, "time": "2026-01-31T12:00:00Z"}


MODEL = ingest()


def by_contract(model: type[Message], text: bytes) -> Any:
    """What the contract makes of a message; None if it refuses it."""
    try:
        return model.model_validate_json(text)
    except ValidationError:
        return None


def by_decoder(model: type[Message], text: bytes) -> WirePrediction | WireLabel | BadMessage:
    """What the hot path makes of a message, or why it refuses it."""
    try:
        if model is Label:
            return decode_label(text)
        ((index, prediction),) = decode_predictions(text)
        assert index is None
        if isinstance(prediction, WirePrediction):
            MODEL.checks.check(prediction)
    except BadMessage as error:
        return error
    return prediction


def text_of(base: dict[str, Any], **fields: Any) -> bytes:
    """A message as JSON, with `...` for what is left out."""
    return json.dumps({k: v for k, v in (base | fields).items() if v is not ...}).encode()


def spliced(extra: bytes, base: dict[str, Any] = PREDICTION) -> bytes:
    """A message as JSON with further text before its closing brace; a key that is there again wins."""
    return json.dumps(base).encode()[:-1] + b"," + extra + b"}"


PREDICTIONS: list[tuple[bytes, bool]] = [
    (text_of(EXAMPLES["Prediction"], probabilities=[0.25, 0.75, 0, 0]), True),
    (text_of(PREDICTION), True),
    (text_of(SPREAD), True),
    (text_of(SPREAD, predicted_class="1"), True),
    (text_of(SPREAD, score=0.3), True),
    (text_of(PREDICTION, predicted_class=...), False),
    (text_of(PREDICTION, score=...), False),
    (text_of(PREDICTION, score=None), False),
    (text_of(PREDICTION, model=...), False),
    (text_of(PREDICTION, model=""), False),
    (text_of(PREDICTION, model=7), False),
    (text_of(PREDICTION, model="m" * 128), True),
    (text_of(PREDICTION, model="m" * 129), False),
    (text_of(PREDICTION, item_id=...), False),
    (text_of(PREDICTION, item_id=None), False),
    (text_of(PREDICTION, item_id="é" * 256), True),
    (text_of(PREDICTION, item_id="\U0001f600" * 256), True),
    (text_of(PREDICTION, item_id="\U0001f600" * 257), False),
    (text_of(PREDICTION, item_id="\x00"), True),
    (text_of(PREDICTION, predicted_class="x" * 256), True),
    (text_of(PREDICTION, predicted_class="x" * 257), False),
    (text_of(PREDICTION, predicted_class=7), False),
    (text_of(PREDICTION, score=0), True),
    (text_of(PREDICTION, score=1), True),
    (text_of(PREDICTION, score=1.0001), True),
    (text_of(PREDICTION, score=-0.0001), True),
    (text_of(PREDICTION, score=1.00010001), False),
    (text_of(PREDICTION, score=-0.00010001), False),
    (text_of(PREDICTION, score=2**64), False),
    (text_of(PREDICTION, score=True), False),
    (text_of(PREDICTION, score="0.5"), False),
    (text_of(PREDICTION, score=[0.5]), False),
    (text_of(PREDICTION, score=float("nan")), False),
    (text_of(PREDICTION, score=float("inf")), False),
    (spliced(b'"score":1e400'), False),
    (spliced(b'"score":1' + b"0" * 400), False),
    (spliced(b'"score":5E-1'), True),
    (spliced(b'"score":0.' + b"3" * 1_000), True),
    (spliced(b'"score":.5'), False),
    (spliced(b'"score":05'), False),
    (spliced(b'"score":-0'), True),
    (text_of(SPREAD, probabilities=[]), False),
    (text_of(SPREAD, probabilities=[1]), False),
    (text_of(SPREAD, probabilities=None), False),
    (text_of(SPREAD, probabilities={}), False),
    (text_of(SPREAD, probabilities=[0.5, 0.5, None, 0]), False),
    (text_of(SPREAD, probabilities=[0.5, 0.5, "0", 0]), False),
    (text_of(SPREAD, probabilities=[1.0001, -0.0001, -0.0001, -0.0001]), True),
    (text_of(SPREAD, probabilities=[1.0002, 0, 0, 0]), False),
    (text_of(SPREAD, probabilities=[1, 0, 0, -0.0002]), False),
    (text_of(SPREAD, probabilities=[0.5, 0.491, 0, 0]), True),
    (text_of(SPREAD, probabilities=[0.5, 0.489, 0, 0]), False),
    (text_of(SPREAD, probabilities=[0.5, 0.509, 0, 0]), True),
    (text_of(SPREAD, probabilities=[0.5, 0.511, 0, 0]), False),
    (spliced(b'"probabilities":[1,1e400,0,0]'), False),
    (text_of(PREDICTION, probabilities=[0.5, 0.2, 0.2, 0]), False),
    (text_of(PREDICTION, attributes={}), True),
    (text_of(PREDICTION, attributes={"camera": "", "ü": "x" * 10_000}), True),
    (text_of(PREDICTION, attributes={"": "dock"}), False),
    (text_of(PREDICTION, attributes={"k" * 128: "dock"}), True),
    (text_of(PREDICTION, attributes={"k" * 129: "dock"}), False),
    (text_of(PREDICTION, attributes={"camera": 3}), False),
    (text_of(PREDICTION, attributes={"camera": None}), False),
    (text_of(PREDICTION, attributes=None), False),
    (text_of(PREDICTION, attributes=[]), False),
    (spliced(b'"attributes":{"a":"1","a":"2"}'), True),
    (text_of(PREDICTION, votes={}), True),
    (text_of(PREDICTION, votes=None), True),
    (text_of(PREDICTION, votes={"first": "7", "second": "ü"}), True),
    (text_of(PREDICTION, votes={"first": ""}), False),
    (text_of(PREDICTION, votes={"": "7"}), False),
    (text_of(PREDICTION, votes={"first": 7}), False),
    (text_of(PREDICTION, payload={"pixels": [[0, 1.5, None, True, "é"]]}), True),
    (text_of(PREDICTION, payload=None, payload_uri="s3://a"), True),
    (text_of(PREDICTION, payload="", payload_uri=None), True),
    (text_of(PREDICTION, payload="", payload_uri="s3://a"), False),
    (text_of(PREDICTION, payload=0, payload_uri="s3://a"), False),
    (text_of(PREDICTION, payload=[], payload_uri="s3://a"), False),
    (spliced(b'"payload": null ,"payload_uri":"s3://a"'), True),
    (text_of(PREDICTION, payload_uri=""), False),
    (text_of(PREDICTION, payload_uri="u" * 2_048), True),
    (text_of(PREDICTION, payload_uri="u" * 2_049), False),
    (text_of(PREDICTION, colour="red", item=[{}, 1e3]), True),
    *[
        (spliced(b'"%s":%s' % (key, value)), False)
        for key in (b"payload", b"colour")
        for value in (
            b'"\xff"',
            b'{"\xff":1}',
            b'"\xc3\x28"',
            b'"\xed\xa0\x80"',
            b'"\\ud800"',
            b'"\\q"',
            b'"\x01"',
            b'"\n"',
            b"nul",
            b"01",
            b"1.",
            b"+1",
            b"[1,]",
            b"{a:1}",
            b"",
        )
    ],
    (spliced(b'"item_id":"\xff"'), False),
    (spliced(b'"item_id":"\\ud800"'), False),
    (spliced(b'"item_id":"\\ud83d\\ude00"'), True),
    (spliced(b'"item_id":7'), False),
    *[
        (text_of(PREDICTION, time=time), accepted)
        for time, accepted in [
            ("2026-01-31T12:00:00Z", True),
            ("2026-01-31T12:00:00z", True),
            ("2026-01-31t12:00:00Z", True),
            ("2026-01-31T13:00:00+01:00", True),
            ("2026-01-31T12:00:00.123456789-00:00", True),
            ("0001-01-01T00:00:00+14:00", True),
            ("9999-12-31T23:59:59-14:00", True),
            (None, True),
            ("2026-01-31T12:00:00", False),
            ("2026-01-31", False),
            ("2026-02-30T12:00:00Z", False),
            ("2026-01-31T24:00:00Z", False),
            ("2026-01-31T12:00:00+24:00", False),
            (" 2026-01-31T12:00:00Z", False),
            ("0000-01-01T00:00:00Z", False),
            ("yesterday", False),
            ("", False),
            (1_769_860_800, False),
            (1.5, False),
            (True, False),
        ]
    ],
    (b" \t\r\n" + text_of(PREDICTION) + b"\n ", True),
    (text_of(PREDICTION) + b"{}", False),
    (text_of(PREDICTION) + b"\x00", False),
    (text_of(PREDICTION)[:-1], False),
    (b"\xef\xbb\xbf" + text_of(PREDICTION), False),
    (text_of(PREDICTION).decode().encode("utf-16"), False),
    (b"", False),
    (b"{}", False),
    (b"null", False),
    (b"5", False),
    (b'"text"', False),
]

LABELS: list[tuple[bytes, bool]] = [
    (text_of(EXAMPLES["Label"]), True),
    (text_of(ANSWER), True),
    (text_of(ANSWER, kind="answer"), True),
    (text_of(ANSWER, kind="correction"), True),
    (text_of(ANSWER, kind="skip"), False),
    (text_of(ANSWER, kind="retraction"), False),
    (text_of(ANSWER, kind="skip", true_class=...), True),
    (text_of(ANSWER, kind="retraction", true_class=None), True),
    (text_of(ANSWER, kind="skip", true_class=""), False),
    (text_of(ANSWER, true_class=...), False),
    (text_of(ANSWER, true_class=None), False),
    (text_of(ANSWER, kind="correction", true_class=...), False),
    (text_of(ANSWER, kind=None), False),
    (text_of(ANSWER, kind="Answer"), False),
    (text_of(ANSWER, kind=1), False),
    (text_of(ANSWER, request_id=...), True),
    (text_of(ANSWER, request_id=None), True),
    (text_of(ANSWER, request_id=..., kind="correction"), True),
    (text_of(ANSWER, request_id=..., kind="skip", true_class=...), False),
    (text_of(ANSWER, request_id=..., probability=0.5), True),
    (text_of(ANSWER, request_id=..., probability=1), True),
    (text_of(ANSWER, request_id=..., probability=0), False),
    (text_of(ANSWER, request_id=..., probability=1.5), False),
    (text_of(ANSWER, probability=0.5), False),
    (text_of(ANSWER, prediction=OWN), False),
    (text_of(ANSWER, request_id=..., prediction=OWN), True),
    (text_of(ANSWER, request_id=..., prediction=OWN | {"score": -0.00009}), True),
    (text_of(ANSWER, request_id=..., prediction=OWN | {"score": 1.001}), False),
    (text_of(ANSWER, request_id=..., prediction=OWN | {"time": "yesterday"}), False),
    (text_of(ANSWER, request_id=..., prediction=OWN | {"attributes": {"camera": "dock"}}), True),
    (text_of(ANSWER, request_id=..., prediction=OWN | {"attributes": {"camera": 3}}), False),
    (text_of(ANSWER, request_id=..., prediction=OWN | {"attributes": None}), False),
    (text_of(ANSWER, request_id=""), False),
    (text_of(ANSWER, request_id="r" * 64), True),
    (text_of(ANSWER, request_id="r" * 65), False),
    (text_of(ANSWER, model=...), False),
    (text_of(ANSWER, item_id="i" * 257), False),
    (text_of(ANSWER, true_class=7), False),
    (text_of(ANSWER, annotator="ana"), True),
    (text_of(ANSWER, annotator=None), True),
    (text_of(ANSWER, annotator=""), False),
    (text_of(ANSWER, annotator="a" * 129), False),
    (text_of(ANSWER, time="2026-01-31T12:00:00Z"), True),
    (text_of(ANSWER, time="2026-01-31T12:00:00"), False),
    (text_of(ANSWER, time=0), False),
    (text_of(ANSWER, confidence=0.9), True),
    (b"[" + text_of(ANSWER) + b"]", False),
    (b"", False),
    (spliced(b'"note":"\xff"', ANSWER), False),
]

CASES = [(Prediction, *case) for case in PREDICTIONS] + [(Label, *case) for case in LABELS]


def shown(value: object) -> str | None:
    """The id of a parameter."""
    return repr(value[:100]) if isinstance(value, bytes) else None


@pytest.mark.parametrize(("model", "text", "accepted"), CASES, ids=shown)
def test_the_contract_takes_what_is_listed_and_nothing_else(
    model: type[Message], text: bytes, accepted: bool
) -> None:
    assert (by_contract(model, text) is not None) == accepted


@pytest.mark.parametrize(("model", "text", "accepted"), CASES, ids=shown)
def test_the_decoders_take_what_is_listed_and_nothing_else(
    model: type[Message], text: bytes, accepted: bool
) -> None:
    assert (not isinstance(by_decoder(model, text), BadMessage)) == accepted


STRICTER: list[bytes] = [
    *[
        text_of(PREDICTION, time=time)
        for time in [
            "2026-01-31T12:00Z",
            "2026-01-31T12:00:00,5Z",
            "2026-01-31_12:00:00Z",
            "2026-01-31T12:00:00\u221201:00",
            "1700000000",
            "-1",
        ]
    ],
    spliced(b'"score":"x","score":0.5'),
    spliced(b'"payload":NaN'),
    spliced(b'"colour":-Infinity'),
    spliced(b'"payload":' + b"[" * 3_000 + b"]" * 3_000),
]


@pytest.mark.parametrize("text", STRICTER, ids=shown)
def test_the_decoders_refuse_times_beyond_rfc_3339_and_what_json_does_not_promise(text: bytes) -> None:
    assert isinstance(by_decoder(Prediction, text), BadMessage)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(["", "digits", "m" * 128, "m" * 129, "ü"]) | st.text(max_size=3)
classes = st.sampled_from(["", *CLASSES])
scores = st.floats(-0.0002, 1.0002) | st.sampled_from([0, 1, 1.0001, -0.0001, 2, -1, 1e308, 2**63])
times = st.sampled_from(["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+05:30", "2026-01-31T12:00:00", ""])


def anything_but_rarely(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly such values; sometimes any JSON, and sometimes nothing."""
    return st.one_of(
        values, values, values, values, st.just(...), json_values.map(_no_text_that_may_be_a_time)
    )


def _no_text_that_may_be_a_time(value: Any) -> Any:
    return f"no time: {value}" if isinstance(value, str) else value


predictions = st.fixed_dictionaries(
    {
        "model": anything_but_rarely(st.just("digits") | names),
        "item_id": anything_but_rarely(names),
        "predicted_class": anything_but_rarely(classes),
        "score": anything_but_rarely(scores),
    },
    optional={
        "probabilities": anything_but_rarely(
            st.sampled_from([[0.25, 0.75, 0, 0], [1, 0, 0, 0], [0.5, 0.5, -0.0001, -0.0001], [0.5] * 4])
            | st.lists(scores, min_size=4, max_size=4)
        ),
        "attributes": anything_but_rarely(st.dictionaries(names, st.text(max_size=3), max_size=3)),
        "time": anything_but_rarely(times),
        "payload": json_values,
        "payload_uri": anything_but_rarely(st.sampled_from(["s3://a", "u" * 2_049])),
        "votes": anything_but_rarely(st.dictionaries(names, st.sampled_from(CLASSES), max_size=2)),
        "colour": json_values,
    },
)
labels = st.fixed_dictionaries(
    {
        "request_id": anything_but_rarely(names),
        "model": st.just("digits"),
        "item_id": anything_but_rarely(names),
    },
    optional={
        "kind": anything_but_rarely(st.sampled_from(["answer", "skip", "correction", "retraction"])),
        "true_class": anything_but_rarely(st.none() | classes),
        "annotator": anything_but_rarely(names),
        "time": anything_but_rarely(times),
        "colour": json_values,
    },
)

generated = settings(derandomize=True, max_examples=200)
OF_ONE_MODEL_ALONE = {"unknown_class", "payload_too_large"}


def agree(model: type[Message], text: bytes) -> None:
    """Hold both to the same answer, and to the same content."""
    contract, decoded = by_contract(model, text), by_decoder(model, text)
    if isinstance(decoded, BadMessage):
        another_label_set = "probabilities for" in decoded.detail
        assert contract is None or decoded.reason in OF_ONE_MODEL_ALONE or another_label_set, decoded
        return
    assert contract is not None
    for name in decoded.__struct_fields__:
        value, expected = getattr(decoded, name), getattr(contract, name)
        if name == "payload":
            value = json.loads(bytes(value) or b"null")
        if name == "attributes":
            value = decode_attributes(value)
        assert value == expected


@generated
@given(message=predictions)
@example(message=SPREAD | {"probabilities": [0.5] * 4, "predicted_class": "7", "score": 0.5})
def test_contract_and_decoders_agree_on_any_prediction(message: dict[str, Any]) -> None:
    agree(Prediction, text_of(message))


@generated
@given(message=labels)
def test_contract_and_decoders_agree_on_any_label(message: dict[str, Any]) -> None:
    agree(Label, text_of(message))


@generated
@given(
    base=st.sampled_from(
        [
            (
                Prediction,
                text_of(PREDICTION, payload={"é": [1, "x"]}, attributes={"a": "b"}, colour={"x": [None]}),
            ),
            (Prediction, text_of(SPREAD, votes={"first": "7"})),
            (Label, text_of(ANSWER, kind="correction", annotator="ana", note=[1.5])),
        ]
    ),
    edits=st.lists(
        st.tuples(st.integers(0, 300), st.sampled_from("rid"), st.binary(min_size=1, max_size=1)), max_size=3
    ),
)
def test_contract_and_decoders_agree_on_any_damaged_text(
    base: tuple[type[Message], bytes], edits: list[tuple[int, str, bytes]]
) -> None:
    model, text = base
    for at, how, byte in edits:
        here = at % len(text)
        text = text[:here] + (b"" if how == "d" else byte) + text[here + (how != "i") :]
    agree(model, text)


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("end", [b"", b"\xf0\x9f", b"\xff"], ids=["whole", "cut off", "no utf-8"])
def test_a_long_array_is_decoded_at_once_only_if_all_of_it_is_utf_8(shift: int, end: bytes) -> None:
    padding = b"x" * shift + "\N{GRINNING FACE}".encode() * 200_000 + end
    text = b"[" + text_of(PREDICTION)[:-1] + b', "unknown": "' + padding + b'"}]'
    assert (decode_array(text) is not None) == (not end)
    ((index, decoded),) = decode_predictions(text)
    assert index == 0
    assert isinstance(decoded, BadMessage) == bool(end)


def test_an_array_is_decoded_element_by_element() -> None:
    good = text_of(PREDICTION)
    decoded = decode_predictions(b" [" + good + b",5," + text_of(PREDICTION, item_id="b") + b"]")
    assert [index for index, _ in decoded] == [0, 1, 2]
    kinds = [one.reason if isinstance(one, BadMessage) else one.item_id for _, one in decoded]
    assert kinds == ["a", "invalid_field", "b"]


@pytest.mark.parametrize("text", [b"[", b"[{}", b"[1,]", b"[]x", b"[\xff]"])
def test_an_array_that_is_no_json_is_refused_as_a_whole(text: bytes) -> None:
    ((index, error),) = decode_predictions(text)
    assert index is None
    assert isinstance(error, BadMessage)
    assert error.reason == "malformed_json"


@pytest.mark.parametrize(
    ("model", "text"), [(model, text) for model, text, good in CASES if not good], ids=shown
)
def test_a_refusal_names_a_reason_and_quotes_nothing(model: type[Message], text: bytes) -> None:
    secret = b"hunter2"
    error = by_decoder(model, text.replace(b"yesterday", secret).replace(b"Answer", secret))
    assert isinstance(error, BadMessage)
    assert error.reason in {
        "malformed_json",
        "missing_field",
        "invalid_field",
        "invalid_score",
        "invalid_probabilities",
        "unknown_class",
    }
    assert secret.decode() not in error.detail


def test_records_with_and_without_headers_of_the_right_event_are_taken() -> None:
    headers = cloudevents_headers(
        event_type=PREDICTION_TYPE,
        event_id="1",
        source="/test",
        time=Prediction.model_validate_json(text_of(PREDICTION, time="2026-01-31T12:00:00Z")).time,
    )
    check_event(headers, PREDICTION_TYPE)
    check_event([], PREDICTION_TYPE)
    check_event([("traceparent", b"00-00-00")], PREDICTION_TYPE)
    with pytest.raises(BadMessage, match="unsupported_event"):
        check_event(headers, LABEL_TYPE)
    assert event_time(headers) == 1_769_860_800.0


@pytest.mark.parametrize("content", [None, b"", b"noon", b"\xff", b"2026-01-31T12:00:00", b"1769860800"])
def test_a_header_that_tells_no_time_is_passed_over(content: bytes | None) -> None:
    assert event_time([("ce_time", content)]) is None
