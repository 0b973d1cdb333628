"""Predictions that are looked at many at a time come out as if each had been looked at by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_decoders import CASES, ingest, predictions, text_of

from consumers.formats.native import WirePrediction, decode_predictions
from consumers.formats.open_inference import OpenInference
from consumers.formats.records import decode_records
from service.domain.errors import BadMessage
from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE, Prediction

LONGEST = 10_000
TEXTS = [text for model, text, _ in CASES if model is Prediction]
DAMAGED = [
    b"",
    b"[]",
    b" [ ] ",
    b"\xff",
    b"{" * 5_000,
    b"[" * 5_000,
    b" " * (LONGEST + 1),
    b"null",
    b"[1,",
    b"[5]",
]

alone = st.sampled_from(TEXTS) | predictions.map(text_of)
arrays = st.lists(alone | st.just(b"7"), max_size=4).map(lambda texts: b"[" + b",".join(texts) + b"]")
values = alone | arrays | st.sampled_from(DAMAGED) | st.binary(max_size=20)


class Record(NamedTuple):
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def fields_or_refusal(prediction: WirePrediction | BadMessage) -> Any:
    """What a prediction says, or why it is refused."""
    if isinstance(prediction, BadMessage):
        return prediction.reason, prediction.detail
    parts = (getattr(prediction, name) for name in prediction.__struct_fields__)
    return [bytes(part) if isinstance(part, msgspec.Raw) else part for part in parts]


@settings(max_examples=300)
@given(st.lists(values | alone | alone, min_size=1, max_size=6))
def test_records_are_decoded_together_as_they_are_one_by_one(texts: list[bytes]) -> None:
    decoded = decode_records(
        [Record(text) for text in texts], message_bytes=LONGEST, formats=[OpenInference({})]
    )
    together = [(place, element, fields_or_refusal(error)) for place, element, error in decoded.errors]
    together += [
        (place, element, fields_or_refusal(prediction))
        for place, element, prediction in zip(
            decoded.places, decoded.elements, decoded.predictions, strict=True
        )
    ]
    too_large = BadMessage("message_too_large", f"the value is over {LONGEST} bytes")
    one_by_one = [
        (place, element, fields_or_refusal(prediction))
        for place, text in enumerate(texts)
        for element, prediction in ([(None, too_large)] if len(text) > LONGEST else decode_predictions(text))
    ]
    assert sorted(together, key=repr) == sorted(one_by_one, key=repr)


@settings(max_examples=100)
@given(st.lists(alone, min_size=1, max_size=8))
@example(TEXTS)
def test_predictions_are_checked_together_as_they_are_one_by_one(texts: list[bytes]) -> None:
    model = ingest()
    decoded = [one for text in texts for _, one in decode_predictions(text)]
    parsed = [one for one in decoded if isinstance(one, WirePrediction)]
    together, _ = model.resolve(parsed)
    for row, prediction in enumerate(parsed):
        try:
            expected: Any = model.checks.check(prediction)
        except BadMessage as error:
            expected = error.reason
        refused = together.refused.get(row)
        found = (together.classes[row], together.scores[row]) if refused is None else refused.reason
        assert found == expected
    spread = dict(zip(together.with_probabilities.tolist(), together.probabilities.tolist(), strict=True))
    for row, prediction in enumerate(parsed):
        if row not in together.refused:
            given_ones = prediction.probabilities
            clipped = None if given_ones is None else [min(max(p, 0.0), 1.0) for p in given_ones]
            assert spread.get(row) == clipped


def test_a_record_of_another_event_is_refused_and_the_others_are_not() -> None:
    text = text_of({"model": "digits", "item_id": "a", "predicted_class": "7", "score": 0.5})
    wrong, right = [("ce_type", event.encode()) for event in (LABEL_TYPE, PREDICTION_TYPE)]
    records = [Record(text, [right]), Record(text, [wrong]), Record(None), Record(text)]
    decoded = decode_records(records, message_bytes=LONGEST, formats=[OpenInference({})])
    assert list(decoded.places) == [0, 3]
    assert [(place, error.reason) for place, _, error in decoded.errors] == [
        (1, "unsupported_event"),
        (2, "malformed_json"),
    ]
