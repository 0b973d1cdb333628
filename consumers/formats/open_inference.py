"""Inference responses of the Open Inference Protocol (v2), as model servers log them: many items each.

A response has tensors with one row per prediction. Tensors become fields of predictions by their names, or
as a model's `tensors` setting maps them; a tensor or a parameter `attributes.<name>` becomes an attribute.
`service.domain.open_inference` has the rules for tensors. Elements are copied unchanged, except for integers
that are names; the native decoder decides whether they are valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import msgspec

from consumers.formats.event_headers import Headers, is_event
from consumers.formats.inference_response import Response, parse_response
from consumers.formats.native import ItemId, attempt
from consumers.formats.response_columns import ResponseRows, values_of
from consumers.formats.tensors import ATTRIBUTE, Column, Tensor, column
from service.domain.errors import BadMessage
from service.domain.messages import LONGEST_NAME, MOST_ATTRIBUTES
from service.domain.open_inference import (
    ATTRIBUTE_PREFIX,
    TENSOR_RULES,
)

MOST_WRITTEN = 64
"""How many times as long as a response its rows may be when written out, by what they share."""


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
        return None if response is None else self._table(response, len(value)).as_json()

    def rows(self, headers: Headers, value: bytes) -> ResponseRows | None:
        """The same without an object per row; None if a row may be invalid, or it is no response.

        Raises:
            BadMessage: as above.
        """
        if is_event(headers) or (response := parse_response(headers, value)) is None:
            return None
        try:
            rows = self._table(response, len(value)).as_rows(len(value))
        except (msgspec.MsgspecError, ValueError):
            return None
        return rows if rows.count else None

    def _table(self, response: Response, value_bytes: int) -> _Table:
        shared = _shared_attributes(response.parameters or {})
        table = _Table(response, self._columns(response), shared, _attributes(response.outputs, shared))
        table.check(value_bytes)
        return table

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


@dataclass(frozen=True)
class _Table:
    """What is used of a response.

    Attributes:
        fields: tensors that are fields of predictions, by field.
        shared: attributes of all rows, by name.
        attributes: tensors that are attributes, by name.
    """

    response: Response
    fields: Mapping[str, Column]
    shared: Mapping[str, str]
    attributes: Mapping[str, Column]

    def check(self, value_bytes: int) -> None:
        """Refuse tensors that do not fit together, or much more text than the response has.

        Raises:
            BadMessage: they are such.
        """
        count, *others = {each.shape[0] for each in (*self.fields.values(), *self.attributes.values())}
        if others:
            raise BadMessage("invalid_tensor", "the tensors differ in their number of rows")
        if count > value_bytes:
            raise BadMessage("invalid_tensor", "the data do not fit the shape")
        in_every_row = (
            *(self.response.model_name, self._identity, *self.fields),
            *(*self.attributes, *self.shared, *self.shared.values()),
        )
        # As JSON writes them: control characters and some others take six bytes there.
        if count * sum(len(_encode(text)) for text in in_every_row) > MOST_WRITTEN * value_bytes:
            # One long parameter of many short rows would fill the memory.
            raise BadMessage("message_too_large", "what all rows share is too long for so many rows")

    @property
    def _count(self) -> int:
        return next(iter(self.fields.values())).shape[0]

    @property
    def _identity(self) -> str:
        return self.response.id or ""

    @property
    def _item_ids(self) -> list[str]:
        """Of rows without a tensor of them."""
        return [f"{self._identity}/{row}" for row in range(self._count)]

    def as_json(self) -> bytes:
        """A native array of the rows."""
        model = self.response.model_name
        parts: list[Iterable[bytes | msgspec.Raw]] = [repeat(b'{"model":' + _encode(model))]
        if "item_id" not in self.fields:
            parts += [repeat(b',"item_id":'), map(_encode, self._item_ids)]
        for field, tensor_column in self.fields.items():
            parts += [repeat(b',"%b":' % field.encode()), tensor_column.texts()]
        # Without attributes the ends of rows are as many as are asked for.
        rows = zip(*parts, *_attribute_parts(self.shared, self.attributes), strict=False)
        return b"[" + b",".join(map(b"".join, rows)) + b"]"

    def as_rows(self, value_bytes: int) -> ResponseRows:
        """The rows without an object for each.

        Raises:
            ValueError, msgspec.MsgspecError: a row may be invalid, or the rows share very many attributes.
        """
        if len(self.shared) * self._count > value_bytes:
            raise ValueError("columns of what all rows share would take much more memory than the response")
        fields: dict[str, Sequence[Any]] = {name: values_of(each) for name, each in self.fields.items()}
        if "item_id" not in fields:
            fields["item_id"] = msgspec.convert(self._item_ids, list[ItemId])
        shared = {name: [value] * self._count for name, value in self.shared.items()}
        return ResponseRows(
            model=self.response.model_name,
            count=self._count,
            width=self.fields["probabilities"].shape[1] if "probabilities" in fields else 0,
            fields=fields,
            attributes=shared | {name: values_of(each) for name, each in self.attributes.items()},
        )


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
    if not 1 <= len(name) <= LONGEST_NAME:
        raise BadMessage("invalid_field", f"attributes: a name must have 1 to {LONGEST_NAME} characters")
    return name
