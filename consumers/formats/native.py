"""The native JSON format of `service.domain.messages`, decoded for the hot path.

msgspec checks types and bounds while it parses; what a prediction means for its model
(known class, probabilities of the label set) is checked by the step that knows the model.
The contract's pydantic models accept and reject the same messages; one test suite holds both to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from service.domain.errors import BadMessage
from service.domain.messages import CLOUDEVENTS_VERSION, MOST_ATTRIBUTES, MOST_VOTES

Name = Annotated[str, Meta(min_length=1, max_length=128)]
ItemId = Annotated[str, Meta(min_length=1, max_length=256)]
RequestId = Annotated[str, Meta(min_length=1, max_length=64)]
ClassName = Annotated[str, Meta(min_length=1, max_length=256)]
Uri = Annotated[str, Meta(min_length=1, max_length=2048)]
AwareTime = Annotated[datetime, Meta(tz=True)]
Headers = Sequence[tuple[str, bytes | None]]


NOTHING = msgspec.Raw()
"""What stands for JSON text that a message does not carry; compared by identity."""


class WirePrediction(msgspec.Struct, frozen=True, gc=False):
    """`service.domain.messages.Prediction` as it is parsed; payload and attributes stay JSON text.

    Few texts of attributes make up nearly all of a stream, so they are looked up and not parsed again;
    `decode_attributes` tells what is in one, or what is wrong with it.
    """

    model: Name
    item_id: ItemId
    predicted_class: ClassName | None = None
    score: float | None = None
    probabilities: Annotated[list[float], Meta(min_length=2)] | None = None
    attributes: msgspec.Raw = NOTHING
    time: AwareTime | None = None
    payload: msgspec.Raw = NOTHING
    payload_uri: Uri | None = None
    votes: Annotated[dict[Name, ClassName], Meta(max_length=MOST_VOTES)] | None = None


class WireLabel(msgspec.Struct, frozen=True, gc=False):
    """`service.domain.messages.Label` as it is parsed."""

    request_id: RequestId
    model: Name
    item_id: ItemId
    kind: Literal["answer", "skip", "correction", "retraction"] = "answer"
    true_class: ClassName | None = None
    annotator: Name | None = None
    time: AwareTime | None = None


_Attributes = Annotated[dict[Name, str], Meta(max_length=MOST_ATTRIBUTES)]

_decode_attributes = msgspec.json.Decoder(_Attributes).decode
decode_checked_attributes = msgspec.json.Decoder(dict[str, str]).decode
"""Attributes that `decode_attributes` accepts, in a third of its time: names are not checked again."""

decode_prediction = msgspec.json.Decoder(WirePrediction).decode
_decode_predictions = msgspec.json.Decoder(list[WirePrediction]).decode
_decode_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_label = msgspec.json.Decoder(WireLabel).decode

_ARRAY_START = re.compile(rb"\s*\[")
_QUOTED = re.compile(r"""'.*'|".*\"""", re.DOTALL)

_SHORTEST_PREDICTION_BYTES = 50
_FEW_ELEMENTS = 1_000
"""So many elements an array may have, however short; beyond, only as many as could be predictions."""


def decode_attributes(text: msgspec.Raw | bytes) -> dict[str, str]:
    """Attributes by name, from their JSON text in a prediction.

    Raises:
        BadMessage: they are no attributes.
    """
    attributes: dict[str, str] | BadMessage = attempt(_decode_attributes, text) if text else {}
    if isinstance(attributes, BadMessage):
        raise BadMessage(attributes.reason, f"attributes: {attributes.detail}")
    return attributes


def decode_array(value: bytes) -> list[WirePrediction] | None:
    """All predictions of a record's value that is an array of them; None if it is not, or one is refused."""
    if not value.startswith(b"["):
        return None
    try:
        if not value.isascii():
            str(value, "utf-8")
        predictions: list[WirePrediction] = _decode_predictions(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return predictions


def decode_predictions(value: bytes) -> list[tuple[int | None, WirePrediction | BadMessage]]:
    """Predictions of one record's value: a single one, or an array of them.

    Returns:
        Per prediction its position in the array (None for a single one), and the prediction or why it
        is refused. One bad element does not take the others with it.
    """
    if not _ARRAY_START.match(value):
        return [(None, attempt(decode_prediction, value))]
    predictions = attempt(_decode_predictions, value)
    if not isinstance(predictions, BadMessage):
        return list(enumerate(predictions))
    elements = attempt(_decode_elements, value, whole=False)
    if isinstance(elements, BadMessage):
        return [(None, elements)]
    if len(elements) > max(_FEW_ELEMENTS, len(value) // _SHORTEST_PREDICTION_BYTES):
        # Not one by one: what a record costs must be in proportion to its length.
        return [
            (None, BadMessage("invalid_field", "most elements of the array are too short to be predictions"))
        ]
    return [(i, attempt(decode_prediction, raw)) for i, raw in enumerate(elements)]


def element_texts(value: bytes) -> list[msgspec.Raw]:
    """The texts of all predictions in a record's value that is an array."""
    elements: list[msgspec.Raw] = _decode_elements(value)
    return elements


def decode_label(value: bytes) -> WireLabel:
    """The label in one record's value.

    Raises:
        BadMessage: it is not a label.
    """
    label: WireLabel | BadMessage = attempt(_decode_label, value)
    if isinstance(label, BadMessage):
        raise label
    if (label.true_class is None) == (label.kind in ("answer", "correction")):
        raise BadMessage(
            "invalid_field", "true_class is required for answer and correction, and absent otherwise"
        )
    return label


def check_event(headers: Headers, expected_type: str) -> None:
    """Check CloudEvents headers, where a record has them.

    Raises:
        BadMessage: the record says that it is another kind of event, or another version of CloudEvents.
    """
    for name, content in headers:
        if name == "ce_specversion" and content != CLOUDEVENTS_VERSION.encode():
            raise BadMessage("unsupported_event", f"ce_specversion must be {CLOUDEVENTS_VERSION}")
        if name == "ce_type" and content != expected_type.encode():
            raise BadMessage("unsupported_event", f"ce_type must be {expected_type} on this topic")


def event_time(headers: Headers) -> float | None:
    """The time that CloudEvents headers tell, in seconds since the epoch; None without one that is usable."""
    for name, content in headers:
        if name == "ce_time" and content is not None:
            try:
                claimed = datetime.fromisoformat(content.decode("ascii"))
                return None if claimed.tzinfo is None else claimed.timestamp()
            except (ValueError, OverflowError):
                return None
    return None


def attempt(decode: Callable[[Any], Any], value: bytes | msgspec.Raw, *, whole: bool = True) -> Any:
    """What a decoder of msgspec makes of JSON text, or the `BadMessage` that says why it cannot be used.

    Args:
        decode: of msgspec.
        value: JSON text.
        whole: whether what the decoder skips must be UTF-8 as well.
    """
    try:
        if whole:
            # The parser does not look at the encoding of what it skips: a payload, which a labeller must
            # be able to read, and keys that it does not know.
            str(value, "utf-8")
        return decode(value)
    except msgspec.ValidationError as error:
        reason = "missing_field" if "missing required field" in str(error) else "invalid_field"
        return BadMessage(reason, _QUOTED.sub("(value)", str(error)))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return BadMessage("malformed_json", f"not JSON: {type(error).__name__}")
