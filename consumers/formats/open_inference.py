"""Inference responses of the Open Inference Protocol (v2), as model servers log them: many items each.

A response has tensors with one row per prediction. Tensors become fields of predictions by their names, or
as a model's `tensors` setting maps them; a tensor or a parameter `attributes.<name>` becomes an attribute.
`service.domain.open_inference` has the rules for tensors.

Every row can be written as a prediction of the native format (`Rows.text`), with its elements unchanged,
except for integers that are names. The native decoder decides what is accepted; `Rows.decode_all` is only
faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import msgspec

from consumers.formats.native import ABSENT, Headers, Name, WirePrediction, attempt, decode_prediction
from consumers.formats.tensors import ATTRIBUTE, Column, NotUniform, Tensor, binary_data_error, column
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
"""How many times as long as a response its rows may be when written out, by what they share."""


class _Response(msgspec.Struct, gc=False):
    model_name: Name
    outputs: list[Tensor]
    id: str | None = None
    parameters: dict[str, msgspec.Raw] | None = None
    model: msgspec.Raw = ABSENT


class _Claim(msgspec.Struct, gc=False):
    """An object with these fields is meant as a response, even if it is invalid."""

    model_name: msgspec.Raw
    outputs: msgspec.Raw
    model: msgspec.Raw = ABSENT


_decode_response = msgspec.json.Decoder(_Response).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode
_decode_string = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Rows:
    """The rows of a response, with elements that are not validated yet.

    Attributes:
        model: name of the model.
        identity: id of the response, from which item ids are made if no tensor has them.
        count: number of rows.
        fields: tensors that are fields of predictions, by field.
        attributes: tensors that are attributes, by attribute.
        shared: attributes of all rows.
    """

    model: str
    identity: str
    count: int
    fields: Mapping[str, Column]
    attributes: Mapping[str, Column]
    shared: Mapping[str, str]

    def decode_all(self) -> list[WirePrediction] | None:
        """All rows as predictions; None if some may be invalid.

        Raises:
            BadMessage: the data of a tensor do not fit its shape.
        """
        try:
            values: dict[str, Iterable[Any]] = {name: each.values() for name, each in self.fields.items()}
            item_ids = values["item_id"] if "item_id" in values else self._item_ids()
            columns = (
                repeat(self.model, self.count),
                item_ids,
                values.get("predicted_class", repeat(None)),
                values.get("score", repeat(None)),
                values.get("probabilities", repeat(None)),
                self._attribute_texts(),
                values.get("time", repeat(None)),
                repeat(ABSENT),
                values.get("payload_uri", repeat(None)),
            )
            return list(map(WirePrediction, *columns))
        except (NotUniform, msgspec.MsgspecError):
            return None

    def _item_ids(self) -> list[str]:
        if len(self.identity) + len(str(self.count)) >= _LONGEST_ITEM_ID:
            raise NotUniform
        return [f"{self.identity}/{row}" for row in range(self.count)]

    def _attribute_texts(self) -> Iterable[msgspec.Raw]:
        """JSON text of every row's attributes; equal ones are built once."""
        if not self.attributes:
            return repeat(msgspec.Raw(_encode(self.shared)) if self.shared else ABSENT)
        texts = _AttributeTexts(self.shared, self.attributes)
        columns = [column.values() for column in self.attributes.values()]
        return map(texts.__getitem__, zip(*columns, strict=True))

    def decode_each(self) -> list[WirePrediction | BadMessage]:
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
        """JSON text before each column, with the column's text in every row; and the end of the text."""
        columns = {name: column.texts() for name, column in self.fields.items()}
        if "item_id" not in columns:
            columns["item_id"] = [_encode(f"{self.identity}/{row}") for row in range(self.count)]
        pieces = [(b',"%s":' % name.encode(), texts) for name, texts in columns.items()]
        pieces[0] = (b'{"model":' + _encode(self.model) + pieces[0][0], pieces[0][1])
        if not self.attributes:
            return pieces, (b',"attributes":' + _encode(self.shared) if self.shared else b"") + b"}"
        first, *others = _openings(self.shared, self.attributes)
        texts = [attribute.texts() for attribute in self.attributes.values()]
        pieces += zip([b',"attributes":' + first, *others], texts, strict=True)
        return pieces, b"}}"

    def shared_length(self) -> int:
        """About how many characters all rows share."""
        names = (*self.fields, *self.attributes, *self.shared, *self.shared.values())
        return len(self.model) + len(self.identity) + sum(map(len, names))


class _AttributeTexts(dict[tuple[str, ...], msgspec.Raw]):
    """Cache of JSON texts of attributes, by the values of their tensors."""

    def __init__(self, shared: Mapping[str, str], names: Iterable[str]) -> None:
        super().__init__()
        self._openings = _openings(shared, names)

    def __missing__(self, row: tuple[str, ...]) -> msgspec.Raw:
        parts = [part for pair in zip(self._openings, map(_encode, row), strict=True) for part in pair]
        text = self[row] = msgspec.Raw(b"".join(parts) + b"}")
        return text


def _openings(shared: Mapping[str, str], names: Iterable[str]) -> list[bytes]:
    """JSON text before the value of each attribute of a tensor; the first one opens the object."""
    first, *others = [b",%s:" % _encode(name) for name in names]
    return [_encode(shared).removesuffix(b"}") + (first if shared else first.removeprefix(b",")), *others]


class OpenInference:
    """Decodes inference responses.

    Args:
        tensors: names of tensors by model and field, where they differ from the field's name.
    """

    def __init__(self, tensors: Mapping[str, Mapping[Any, str]]) -> None:
        self._fields: dict[str, dict[str, str]] = {
            model: {names.get(field, field): field for field in TENSOR_RULES}
            for model, names in tensors.items()
        }

    def rows(self, value: bytes, *, declared: bool | None) -> Rows | None:
        """The rows of a record's response; None if the record is not meant as a response.

        Args:
            value: of the record.
            declared: whether its headers say so, from `is_response`.

        Raises:
            BadMessage: it is meant as a response, but none of its rows is usable.
        """
        if declared is False or (
            declared is None and (b'"model_name"' not in value or b'"outputs"' not in value)
        ):
            return None
        response: _Response | BadMessage = attempt(_decode_response, value)
        if isinstance(response, BadMessage):
            if response.reason == "malformed_json" and b'"binary_data_size"' in value:
                raise binary_data_error("outputs")
            if declared or _claims_to_be_response(value):
                raise response
            return None
        if declared is None and response.model is not ABSENT:
            return None
        rows = self._rows(response)
        if rows.count > len(value):
            raise BadMessage("invalid_tensor", "the data do not fit the shape")
        if rows.count * rows.shared_length() > _MOST_WRITTEN * len(value):
            # Refused rows are written out: one long parameter of many short rows would fill the memory.
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
                "if they have other names, map these in `models.<name>.tensors`",
            )
        if "item_id" not in fields and not response.id:
            raise BadMessage("missing_field", "there is no tensor of item_id, and the response has no id")
        shared = _shared_attributes(response.parameters or {})
        attributes = _attributes(response.outputs, shared)
        counts = {each.shape[0] for each in (*fields.values(), *attributes.values())}
        if len(counts) > 1:
            raise BadMessage("invalid_tensor", "the tensors differ in their number of rows")
        return Rows(response.model_name, response.id or "", counts.pop(), fields, attributes, shared)


def is_response(headers: Headers) -> bool | None:
    """Whether a record's CloudEvents type is that of a response; None if it has no type.

    Raises:
        BadMessage: it is, in an unsupported version of CloudEvents.
    """
    values = dict(headers)
    if values.get("ce_type") not in _EVENT_TYPES:
        return False if "ce_type" in values else None
    if "ce_specversion" in values and values["ce_specversion"] not in _EVENT_VERSIONS:
        known = " or ".join(RESPONSE_CLOUDEVENTS_VERSIONS)
        raise BadMessage("unsupported_event", f"ce_specversion of a response must be {known}")
    return True


def _claims_to_be_response(value: bytes) -> bool:
    claim: _Claim | BadMessage = attempt(_decode_claim, value)
    return not isinstance(claim, BadMessage) and claim.model is ABSENT


def _shared_attributes(parameters: Mapping[str, msgspec.Raw]) -> dict[str, str]:
    shared = {}
    for name, text in parameters.items():
        if name.startswith(ATTRIBUTE_PREFIX):
            value: str | BadMessage = attempt(_decode_string, text)
            if isinstance(value, BadMessage):
                raise BadMessage(value.reason, f"attributes: a parameter: {value.detail}")
            shared[_attribute_name(name)] = value
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


def _attribute_name(tensor: str) -> str:
    name = tensor.removeprefix(ATTRIBUTE_PREFIX)
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise BadMessage("invalid_field", f"attributes: a name must have 1 to {_LONGEST_NAME} characters")
    return name
