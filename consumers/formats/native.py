"""The native JSON format of `service.domain.messages`, decoded for the hot path.

msgspec checks types and bounds while it parses. Classes and probabilities are validated against the model
later (`consumers.validation`). The contract's pydantic models accept and reject the same messages; one test
suite covers both.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from consumers.formats.decode_errors import bad_field, not_json
from service.domain import messages as contract
from service.domain.errors import BadMessage
from service.domain.messages import MOST_ATTRIBUTES, MOST_VOTES, SCORE_TOLERANCE

Name = Annotated[str, Meta(min_length=1, max_length=contract.LONGEST_NAME)]
ItemId = Annotated[str, Meta(min_length=1, max_length=contract.LONGEST_ITEM_ID)]
RequestId = Annotated[str, Meta(min_length=1, max_length=contract.LONGEST_REQUEST_ID)]
ClassName = Annotated[str, Meta(min_length=1, max_length=contract.LONGEST_CLASS)]
Uri = Annotated[str, Meta(min_length=1, max_length=contract.LONGEST_URI)]
AwareTime = Annotated[datetime, Meta(tz=True)]

Values = tuple[str | None, ...]
"""Value of every attribute; None where it is missing."""

ABSENT = msgspec.Raw()
"""JSON text of a field that a message does not have; compared by identity."""


class WirePrediction(msgspec.Struct, frozen=True, gc=False):
    """A parsed `service.domain.messages.Prediction`; payload and attributes stay JSON text.

    A stream repeats few texts of attributes, so they are cached; `decode_attributes` parses one.
    """

    model: Name
    item_id: ItemId
    predicted_class: ClassName | None = None
    score: float | None = None
    probabilities: Annotated[list[float], Meta(min_length=2)] | None = None
    attributes: msgspec.Raw = ABSENT
    time: AwareTime | None = None
    payload: msgspec.Raw = ABSENT
    payload_uri: Uri | None = None
    votes: Annotated[dict[Name, ClassName], Meta(max_length=MOST_VOTES)] | None = None


class WireLabelledPrediction(msgspec.Struct, frozen=True, gc=False):
    """A parsed `service.domain.messages.LabelledPrediction`; attributes stay JSON text."""

    predicted_class: ClassName
    score: Annotated[float, Meta(ge=-SCORE_TOLERANCE, le=1 + SCORE_TOLERANCE)]
    time: AwareTime
    attributes: msgspec.Raw = ABSENT


class WireLabel(msgspec.Struct, frozen=True, gc=False):
    """A parsed `service.domain.messages.Label`."""

    model: Name
    item_id: ItemId
    request_id: RequestId | None = None
    kind: Literal["answer", "skip", "correction", "retraction"] = "answer"
    true_class: ClassName | None = None
    annotator: Name | None = None
    time: AwareTime | None = None
    probability: Annotated[float, Meta(gt=0, le=1)] | None = None
    prediction: WireLabelledPrediction | None = None


_Attributes = Annotated[dict[Name, str], Meta(max_length=MOST_ATTRIBUTES)]

_decode_attributes = msgspec.json.Decoder(_Attributes).decode
decode_checked_attributes = msgspec.json.Decoder(dict[str, str]).decode
"""Decodes attributes that `decode_attributes` has accepted, three times as fast, as it validates nothing."""

decode_prediction = msgspec.json.Decoder(WirePrediction).decode
_decode_predictions = msgspec.json.Decoder(list[WirePrediction]).decode
_decode_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_label = msgspec.json.Decoder(WireLabel).decode

_ARRAY_START = re.compile(rb"\s*\[")

_SHORTEST_PREDICTION_BYTES = 45
_PIECE_BYTES = 262_144
_FEW_ELEMENTS = 1_000
"""Elements that an array may have, however short they are."""


def decode_attributes(text: msgspec.Raw | bytes) -> dict[str, str]:
    """Attributes by name, from their JSON text in a prediction.

    Raises:
        BadMessage: they are invalid.
    """
    attributes: dict[str, str] | BadMessage = attempt(_decode_attributes, text) if text else {}
    if isinstance(attributes, BadMessage):
        raise BadMessage(attributes.reason, f"attributes: {attributes.detail}")
    return attributes


class EventArray(bytes):
    """Native JSON of several messages, which came in events: an array.

    Attributes:
        events: what a dead letter of each message has, from which it can be replayed: its event [n].
        refusals: why the event of an element cannot be used, by element. In the array, such an event is
            within brackets, so that no decoder takes it for a message.
    """

    events: Sequence[bytes | msgspec.Raw]
    refusals: Mapping[int, BadMessage]

    @classmethod
    def of(
        cls, messages: Sequence[tuple[bytes | msgspec.Raw, bytes | msgspec.Raw | BadMessage]]
    ) -> EventArray:
        """Events, each with its message or why it has none.

        Raises:
            BadMessage: most messages are too short to be predictions.
        """
        refusals = {i: found for i, (_, found) in enumerate(messages) if isinstance(found, BadMessage)}
        texts = [b"[%b]" % event if i in refusals else found for i, (event, found) in enumerate(messages)]
        array = cls(b"[" + b",".join(texts) + b"]")  # type: ignore[arg-type]  # none is a `BadMessage`
        _check_length(len(messages), len(array))
        array.events = [event for event, _ in messages]
        array.refusals = refusals
        return array


class AttributeDecoder:
    """Decodes the attributes that a model's groupings use, by their names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        # A struct is decoded several times as fast as a dictionary. It refuses texts with other attributes,
        # which need validation too.
        fields = [(f"a{at}", str, msgspec.field(default=None, name=name)) for at, name in enumerate(names)]
        struct = msgspec.defstruct("Attributes", fields, forbid_unknown_fields=True, gc=False)
        self._decode = msgspec.json.Decoder(struct).decode

    def values(self, texts: Sequence[bytes]) -> Sequence[Values | BadMessage]:
        """Values of every JSON text, or why it is refused; empty texts have no attributes."""
        try:
            str(b" ".join(texts), "utf-8")
            if len(self._names) <= MOST_ATTRIBUTES:  # the struct has no such limit
                return [msgspec.structs.astuple(self._decode(text or b"{}")) for text in texts]
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            pass  # a text does not fit the struct, or is invalid
        return [self._values_or_reason(text) for text in texts]

    def _values_or_reason(self, text: bytes) -> Values | BadMessage:
        try:
            return tuple(map(decode_attributes(text).get, self._names))
        except BadMessage as error:
            return error


def decode_array(value: bytes) -> list[WirePrediction] | None:
    """Predictions of a record's value if it is an array, and all of them are valid; else None."""
    if not _ARRAY_START.match(value):
        return None
    try:
        if not value.isascii():
            _check_utf_8(value)
        predictions: list[WirePrediction] = _decode_predictions(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return predictions


def _check_utf_8(value: bytes) -> None:
    """Raise `UnicodeDecodeError` if a text is not UTF-8.

    It is decoded in pieces: a text with a single emoji takes four times its length when it is decoded, and
    what a format writes may be long.
    """
    decode = codecs.getincrementaldecoder("utf-8")().decode
    for begin in range(0, len(value), _PIECE_BYTES):
        end = begin + _PIECE_BYTES
        decode(value[begin:end], end >= len(value))


def decode_predictions(value: bytes) -> list[tuple[int | None, WirePrediction | BadMessage]]:
    """Predictions of one record's value, which is a single one or an array.

    Returns:
        For each its position in the array (None for a single one), and the prediction or why it is refused.
        A bad element does not affect the others.
    """
    if not _ARRAY_START.match(value):
        return [(None, attempt(decode_prediction, value))]
    elements = attempt(_decode_elements, value, whole=False)
    if isinstance(elements, BadMessage):
        return [(None, elements)]
    try:
        _check_length(len(elements), len(value))
    except BadMessage as error:
        return [(None, error)]
    refusals = value.refusals if isinstance(value, EventArray) else {}
    return [(i, refusals.get(i) or attempt(decode_prediction, raw)) for i, raw in enumerate(elements)]


def _check_length(elements: int, text_bytes: int) -> None:
    """Bound the cost of an array in proportion to the length of its text."""
    if elements > max(_FEW_ELEMENTS, text_bytes // _SHORTEST_PREDICTION_BYTES):
        raise BadMessage("invalid_field", "most elements of the array are too short to be predictions")


def element_texts(value: bytes) -> Sequence[bytes | msgspec.Raw]:
    """JSON texts of the elements of an array; of an array of events, the events."""
    if isinstance(value, EventArray):
        return value.events
    elements: list[msgspec.Raw] = _decode_elements(value)
    return elements


def decode_label(value: bytes) -> WireLabel:
    """The label in a record's value.

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
    if label.request_id is None and label.kind == "skip":
        raise BadMessage("missing_field", "a skip needs a request_id")
    if label.request_id is not None and (label.probability is not None or label.prediction is not None):
        raise BadMessage("invalid_field", "probability and prediction are of labels without a request_id")
    if label.prediction is not None:
        decode_attributes(label.prediction.attributes)
    return label


def attempt(decode: Callable[[Any], Any], value: bytes | msgspec.Raw, *, whole: bool = True) -> Any:
    """JSON text decoded by msgspec, or a `BadMessage` that says why it is refused.

    With `whole`, parts that the decoder skips must be UTF-8 as well.
    """
    try:
        if whole:
            # The parser does not check the encoding of what it skips: unknown keys, and the payload, which
            # a labeller must be able to read.
            str(value, "utf-8")
        return decode(value)
    except msgspec.ValidationError as error:
        return bad_field(error)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return not_json(error)
