"""Inference responses of the Open Inference Protocol (v2), as model servers log them: one for many items.

A response has tensors, one row a prediction. Those that are named like the fields of a prediction, or as a
model's `tensors` say, become these fields; a tensor or a parameter `attributes.<name>` becomes an attribute.
What a tensor must be for that stands in `service.domain.open_inference`.

Every row can be written as a prediction of the native format (`Rows.text`): its elements are put into that as
they are, but for integers that are names. What is accepted is what the native decoder accepts of this text;
`Rows.at_once` is only faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import msgspec

from consumers.formats.native import NOTHING, Headers, Name, WirePrediction, attempt, decode_prediction
from consumers.formats.tensors import ATTRIBUTE, Column, OneByOne, Tensor, binary_data, column
from service.domain.errors import BadMessage
from service.domain.messages import MOST_ATTRIBUTES
from service.domain.open_inference import (
    ATTRIBUTE_PREFIX,
    RESPONSE_CLOUDEVENTS_VERSIONS,
    RESPONSE_TYPES,
    TENSOR_RULES,
)

_EVENT_TYPES = frozenset(name.encode() for name in RESPONSE_TYPES)
_EVENT_VERSIONS = frozenset(version.encode() for version in RESPONSE_CLOUDEVENTS_VERSIONS)

_LONGEST_ITEM_ID = 256
_LONGEST_NAME = 128
_MOST_WRITTEN = 64
"""How many times as long as a response may be what its rows share, written out in every row."""


class _Response(msgspec.Struct, gc=False):
    model_name: Name
    outputs: list[Tensor]
    id: str | None = None
    parameters: dict[str, msgspec.Raw] | None = None
    model: msgspec.Raw = NOTHING


class _Claim(msgspec.Struct, gc=False):
    """What shows that an object is meant as a response, whatever is wrong with it."""

    model_name: msgspec.Raw
    outputs: msgspec.Raw
    model: msgspec.Raw = NOTHING


_decode_response = msgspec.json.Decoder(_Response).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode
_decode_string = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Rows:
    """The rows of a response; they may still say anything.

    Attributes:
        model: name of the model.
        identity: id of the response; of it those of the items are made, where no tensor has them.
        count: of the rows.
        fields: tensors that are fields of predictions.
        attributes: tensors that are attributes, by the attributes' names.
        shared: attributes that all rows have.
    """

    model: str
    identity: str
    count: int
    fields: Mapping[str, Column]
    attributes: Mapping[str, Column]
    shared: Mapping[str, str]

    def at_once(self) -> list[WirePrediction] | None:
        """All rows as predictions; None if some may not be in order.

        Raises:
            BadMessage: the data of a tensor do not fit its shape.
        """
        try:
            return self._at_once()
        except (OneByOne, msgspec.MsgspecError):
            return None

    def _at_once(self) -> list[WirePrediction]:
        told: dict[str, Iterable[Any]] = {name: column.values() for name, column in self.fields.items()}
        return list(
            map(
                WirePrediction,
                repeat(self.model, self.count),
                told["item_id"] if "item_id" in told else self._item_ids(),
                told.get("predicted_class", repeat(None)),
                told.get("score", repeat(None)),
                told.get("probabilities", repeat(None)),
                self._attribute_texts(),
                told.get("time", repeat(None)),
                repeat(NOTHING),
                told.get("payload_uri", repeat(None)),
            )
        )

    def _item_ids(self) -> list[str]:
        if len(self.identity) + len(str(self.count)) >= _LONGEST_ITEM_ID:
            raise OneByOne
        return [f"{self.identity}/{row}" for row in range(self.count)]

    def _attribute_texts(self) -> Iterable[msgspec.Raw]:
        """JSON text of every row's attributes; rows that have the same ones share it."""
        if not self.attributes:
            return repeat(msgspec.Raw(_encode(self.shared)) if self.shared else NOTHING)
        texts = _AttributeTexts(self.shared, self.attributes)
        columns = [column.values() for column in self.attributes.values()]
        return map(texts.__getitem__, zip(*columns, strict=True))

    def one_by_one(self) -> list[WirePrediction | BadMessage]:
        """Every row as a prediction, or why it is refused.

        Raises:
            BadMessage: the data of a tensor do not fit its shape.
        """
        return [attempt(decode_prediction, self.text(row)) for row in range(self.count)]

    def text(self, row: int) -> bytes:
        """A row as a prediction of the native format.

        Raises:
            BadMessage: the data of a tensor do not fit its shape.
        """
        pieces, end = self._pieces
        return b"".join(part for before, texts in pieces for part in (before, texts[row])) + end

    @cached_property
    def _pieces(self) -> tuple[list[tuple[bytes, Sequence[bytes | msgspec.Raw]]], bytes]:
        """What stands before an element, with this element of all rows; and what stands behind the last."""
        told = {name: column.texts() for name, column in self.fields.items()}
        if "item_id" not in told:
            told["item_id"] = [_encode(f"{self.identity}/{row}") for row in range(self.count)]
        pieces = [(b',"%s":' % name.encode(), texts) for name, texts in told.items()]
        pieces[0] = (b'{"model":' + _encode(self.model) + pieces[0][0], pieces[0][1])
        if not self.attributes:
            return pieces, (b',"attributes":' + _encode(self.shared) if self.shared else b"") + b"}"
        first, *others = _openings(self.shared, self.attributes)
        texts = [attribute.texts() for attribute in self.attributes.values()]
        pieces += zip([b',"attributes":' + first, *others], texts, strict=True)
        return pieces, b"}}"

    def shared_length(self) -> int:
        """About how long a row is beside what it alone says, in characters."""
        names = (*self.fields, *self.attributes, *self.shared, *self.shared.values())
        return len(self.model) + len(self.identity) + sum(map(len, names))


class _AttributeTexts(dict[tuple[str, ...], msgspec.Raw]):
    """JSON texts of the attributes of rows, by the values that tensors give them."""

    def __init__(self, shared: Mapping[str, str], names: Iterable[str]) -> None:
        super().__init__()
        self._openings = _openings(shared, names)

    def __missing__(self, row: tuple[str, ...]) -> msgspec.Raw:
        parts = [part for pair in zip(self._openings, map(_encode, row), strict=True) for part in pair]
        text = self[row] = msgspec.Raw(b"".join(parts) + b"}")
        return text


def _openings(shared: Mapping[str, str], names: Iterable[str]) -> list[bytes]:
    """JSON text in front of the value of each of a row's own attributes; the first opens the object."""
    first, *others = [b",%s:" % _encode(name) for name in names]
    return [_encode(shared).removesuffix(b"}") + (first if shared else first.removeprefix(b",")), *others]


class OpenInference:
    """Decodes responses of some models.

    Args:
        tensors: by the name of every model: what tensors are called that are not named like their field.
    """

    def __init__(self, tensors: Mapping[str, Mapping[Any, str]]) -> None:
        self._fields: dict[str, dict[str, str]] = {
            model: {names.get(field, field): field for field in TENSOR_RULES}
            for model, names in tensors.items()
        }

    def rows(self, value: bytes, *, told: bool | None) -> Rows | None:
        """The rows of a record's response; None if the record is meant as something else.

        Args:
            value: of the record.
            told: whether its headers say that it is a response, see `tells_a_response`.

        Raises:
            BadMessage: it is meant as a response, and none of its rows can be used.
        """
        if told is False or (told is None and (b'"model_name"' not in value or b'"outputs"' not in value)):
            return None
        response: _Response | BadMessage = attempt(_decode_response, value)
        if isinstance(response, BadMessage):
            if response.reason == "malformed_json" and b'"binary_data_size"' in value:
                raise binary_data("outputs")
            if told or _claims_a_response(value):
                raise response
            return None
        if told is None and response.model is not NOTHING:
            return None
        rows = self._rows(response)
        if rows.count > len(value):
            raise BadMessage("invalid_tensor", "the data do not fit the shape")
        if rows.count * rows.shared_length() > _MOST_WRITTEN * len(value):
            # Refused rows are written out: one long parameter of very many short rows would fill the memory.
            raise BadMessage("message_too_large", "what all rows share is too long for so many rows")
        return rows

    def _rows(self, response: _Response) -> Rows:
        names = self._fields.get(response.model_name)
        if names is None:
            raise BadMessage("unknown_model", "the configuration has no model of this name")
        fields: dict[str, Column] = {}
        for tensor in response.outputs:
            if (field := names.get(tensor.name)) is not None:
                if field in fields:
                    raise BadMessage("invalid_tensor", f"{field}: two tensors have this name")
                fields[field] = column(tensor, field)
        if "probabilities" not in fields and not fields.keys() >= {"predicted_class", "score"}:
            raise BadMessage(
                "missing_field",
                "there are no tensors of predicted_class and score, nor of probabilities; "
                "if they have other names, tell these in `models.<name>.tensors`",
            )
        if "item_id" not in fields and not response.id:
            raise BadMessage("missing_field", "there is no tensor of item_id, and the response has no id")
        shared = _shared_attributes(response.parameters or {})
        attributes = _attributes(response.outputs, shared)
        counts = {each.shape[0] for each in (*fields.values(), *attributes.values())}
        if len(counts) > 1:
            raise BadMessage("invalid_tensor", "the tensors differ in their number of rows")
        return Rows(response.model_name, response.id or "", counts.pop(), fields, attributes, shared)


def tells_a_response(headers: Headers) -> bool | None:
    """Whether a record's CloudEvents headers say that it is a response; None if they do not say what it is.

    Raises:
        BadMessage: they say so, in a version of CloudEvents that is not known.
    """
    told = dict(headers)
    if told.get("ce_type") not in _EVENT_TYPES:
        return False if "ce_type" in told else None
    if "ce_specversion" in told and told["ce_specversion"] not in _EVENT_VERSIONS:
        known = " or ".join(RESPONSE_CLOUDEVENTS_VERSIONS)
        raise BadMessage("unsupported_event", f"ce_specversion of a response must be {known}")
    return True


def _claims_a_response(value: bytes) -> bool:
    claim: _Claim | BadMessage = attempt(_decode_claim, value)
    return not isinstance(claim, BadMessage) and claim.model is NOTHING


def _shared_attributes(parameters: Mapping[str, msgspec.Raw]) -> dict[str, str]:
    shared = {}
    for told, text in parameters.items():
        if told.startswith(ATTRIBUTE_PREFIX):
            value: str | BadMessage = attempt(_decode_string, text)
            if isinstance(value, BadMessage):
                raise BadMessage(value.reason, f"attributes: a parameter: {value.detail}")
            shared[_attribute_name(told)] = value
    return shared


def _attributes(tensors: Sequence[Tensor], shared: Mapping[str, str]) -> dict[str, Column]:
    attributes: dict[str, Column] = {}
    for tensor in tensors:
        if tensor.name.startswith(ATTRIBUTE_PREFIX):
            name = _attribute_name(tensor.name)
            if name in attributes or name in shared:
                raise BadMessage("invalid_tensor", "attributes: one is given twice")
            attributes[name] = column(tensor, ATTRIBUTE)
    if len(attributes) + len(shared) > MOST_ATTRIBUTES:
        raise BadMessage("invalid_field", f"attributes: there are more than {MOST_ATTRIBUTES}")
    return attributes


def _attribute_name(told: str) -> str:
    name = told.removeprefix(ATTRIBUTE_PREFIX)
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise BadMessage("invalid_field", f"attributes: a name must have 1 to {_LONGEST_NAME} characters")
    return name
