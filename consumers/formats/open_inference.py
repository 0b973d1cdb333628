"""Inference responses of the Open Inference Protocol (v2), as model servers log them: many items each.

A response has tensors with one row per prediction. Tensors become fields of predictions by their names, or
as a model's `tensors` setting maps them; a tensor or a parameter `attributes.<name>` becomes an attribute.
`service.domain.open_inference` has the rules for tensors. Elements are copied unchanged, except for integers
that are names; the native decoder decides whether they are valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import msgspec

from consumers.formats.native import ABSENT, Headers, Name, attempt, check_event
from consumers.formats.tensors import ATTRIBUTE, Column, Tensor, binary_data_error, column
from service.domain.errors import BadMessage
from service.domain.messages import MOST_ATTRIBUTES, PREDICTION_TYPE
from service.domain.open_inference import (
    ATTRIBUTE_PREFIX,
    RESPONSE_CLOUDEVENTS_VERSIONS,
    RESPONSE_TYPES,
    TENSOR_RULES,
)

_EVENT_TYPES = frozenset(name.encode() for name in RESPONSE_TYPES)
_EVENT_VERSIONS = frozenset(version.encode() for version in RESPONSE_CLOUDEVENTS_VERSIONS)

_LONGEST_NAME = 128
MOST_WRITTEN = 64
"""How many times as long as a response its rows may be when written out, by what they share."""


class Response(msgspec.Struct, gc=False):
    """A parsed response; its tensors are not checked yet."""

    model_name: Name
    outputs: list[Tensor]
    id: str | None = None
    parameters: dict[str, msgspec.Raw] | None = None
    model: msgspec.Raw = ABSENT


_decode_response = msgspec.json.Decoder(Response).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_string = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode


class OpenInference:
    """The format of inference responses.

    Args:
        tensors: names of tensors by model and field, where they differ from the field's name.
        others: the same by field for all other models; None if these are refused.
    """

    def __init__(
        self, tensors: Mapping[str, Mapping[Any, str]], *, others: Mapping[Any, str] | None = None
    ) -> None:
        self._others = None if others is None else _fields(others)
        self._fields = {model: _fields(names) for model, names in tensors.items()}

    def __call__(self, headers: Headers, value: bytes) -> bytes | None:
        """The rows of a record's response as a native array; None if it is not meant as a response.

        Raises:
            BadMessage: it is meant as a response, but none of its rows is usable.
        """
        response = parse_response(headers, value)
        return None if response is None else _rows(response, self._columns(response), value_bytes=len(value))

    def _columns(self, response: Response) -> dict[str, Column]:
        """Tensors that are fields of predictions, by field."""
        names = self._fields.get(response.model_name, self._others)
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
        return fields


def _fields(names: Mapping[Any, str]) -> dict[str, str]:
    """Fields by the name of their tensor."""
    return {names.get(field, field): field for field in TENSOR_RULES}


def parse_response(headers: Headers, value: bytes) -> Response | None:
    """The response in a record; None if it is not meant as one.

    Raises:
        BadMessage: it is meant as a response, and cannot be read.
    """
    declared = _is_declared(headers)
    if declared is None and b'"model_name"' in value and b'"outputs"' in value:
        check_event(headers, PREDICTION_TYPE)
    elif not declared:
        return None
    response: Response | BadMessage = attempt(_decode_response, value)
    if isinstance(response, BadMessage):
        if response.reason == "malformed_json" and b'"binary_data_size"' in value:
            raise binary_data_error("outputs")
        if declared or _claims_to_be_response(value):
            raise response
        return None
    if not declared and response.model is not ABSENT:
        return None
    return response


def _rows(response: Response, fields: Mapping[str, Column], *, value_bytes: int) -> bytes:
    shared = _shared_attributes(response.parameters or {})
    attributes = _attributes(response.outputs, shared)
    count, *others = {each.shape[0] for each in (*fields.values(), *attributes.values())}
    if others:
        raise BadMessage("invalid_tensor", "the tensors differ in their number of rows")
    if count > value_bytes:
        raise BadMessage("invalid_tensor", "the data do not fit the shape")
    identity = response.id or ""
    in_every_row = (response.model_name, identity, *fields, *attributes, *shared, *shared.values())
    if count * sum(map(len, in_every_row)) > MOST_WRITTEN * value_bytes:
        # One long parameter of many short rows would fill the memory.
        raise BadMessage("message_too_large", "what all rows share is too long for so many rows")
    parts: list[Iterable[bytes | msgspec.Raw]] = [repeat(b'{"model":' + _encode(response.model_name))]
    if "item_id" not in fields:
        parts += [repeat(b',"item_id":'), [_encode(f"{identity}/{row}") for row in range(count)]]
    for field, tensor_column in fields.items():
        parts += [repeat(b',"%b":' % field.encode()), tensor_column.texts()]
    rows = zip(*parts, *_attribute_parts(shared, attributes), strict=False)
    return b"[" + b",".join(map(b"".join, rows)) + b"]"


def _attribute_parts(
    shared: Mapping[str, str], attributes: Mapping[str, Column]
) -> list[Iterable[bytes | msgspec.Raw]]:
    """The end of every row: JSON text before each attribute, its value in every row, closing brackets."""
    if not shared and not attributes:
        return [repeat(b"}")]
    parts: list[Iterable[bytes | msgspec.Raw]] = []
    before = b',"attributes":' + _encode(shared).removesuffix(b"}")
    for position, (name, values) in enumerate(attributes.items()):
        comma = b"," if position or shared else b""
        parts += [repeat(before + comma + _encode(name) + b":"), values.texts()]
        before = b""
    return [*parts, repeat(before + b"}}")]


def _is_declared(headers: Headers) -> bool | None:
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
    """Whether an object is meant as a response, even if it is invalid."""
    fields = attempt(_decode_object, value)
    return (
        not isinstance(fields, BadMessage)
        and "model" not in fields
        and {"model_name", "outputs"} <= fields.keys()
    )


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
