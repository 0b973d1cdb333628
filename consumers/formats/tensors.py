"""Tensors of the Open Inference Protocol in JSON, one row per prediction.

`Column.texts` gives the JSON text of every row. `Column.values` decodes all rows, which is faster, but fails
(`NotUniform`, or an error of msgspec) if an element is invalid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from consumers.formats.native import ABSENT, AwareTime, ClassName, ItemId, Uri, attempt
from service.domain.errors import BadMessage
from service.domain.open_inference import ATTRIBUTE_RULE, TENSOR_RULES, integers_are_names

ATTRIBUTE = "attributes"
"""Field of a tensor that is an attribute."""

_RULES = {ATTRIBUTE: ATTRIBUTE_RULE} | {str(field): rule for field, rule in TENSOR_RULES.items()}
_INTEGERS = range(-(2**63), 2**64)
_NESTED = re.compile(rb"\s*\[\s*\[")
_NO_VALUE = (b"", b"null")


class _Parameters(msgspec.Struct, gc=False):
    binary_data_size: msgspec.Raw = ABSENT
    content_type: msgspec.Raw = ABSENT


class Tensor(msgspec.Struct, gc=False):
    """A parsed tensor; absent fields are empty, and are refused only if the tensor is used."""

    name: str
    datatype: str = ""
    shape: list[int] = []
    data: msgspec.Raw = ABSENT
    parameters: _Parameters | None = None


_decode_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_integers = msgspec.json.Decoder(list[int]).decode
_decode_numbers = msgspec.json.Decoder(list[float]).decode
_decode_anything = msgspec.json.Decoder().decode

_DECODERS: Mapping[str, Callable[[bytes | msgspec.Raw], list[Any]]] = {
    "item_id": msgspec.json.Decoder(list[ItemId]).decode,
    "predicted_class": msgspec.json.Decoder(list[ClassName]).decode,
    "score": _decode_numbers,
    "probabilities": _decode_numbers,
    "time": msgspec.json.Decoder(list[AwareTime]).decode,
    "payload_uri": msgspec.json.Decoder(list[Uri]).decode,
    ATTRIBUTE: msgspec.json.Decoder(list[str]).decode,
}
"""As strict as the native decoder is with each field."""


class NotUniform(Exception):  # noqa: N818 - nothing is wrong yet
    """The rows must be decoded one by one."""


class Column(msgspec.Struct, frozen=True, gc=False):
    """A tensor that is a field of predictions, or an attribute.

    Attributes:
        field: name of the field, or `ATTRIBUTE`.
        shape: starts with the number of rows.
        data: JSON array, flat or nested as the shape is.
        integers: whether its elements are integers that are names.
    """

    field: str
    shape: Sequence[int]
    data: msgspec.Raw
    integers: bool

    def values(self) -> list[Any]:
        """Decoded value of every row.

        Raises:
            NotUniform: an element is invalid.
            msgspec.MsgspecError: an element is invalid.
            BadMessage: the data do not fit the shape.
        """
        data = b"[" + b",".join(self._elements()) + b"]" if _NESTED.match(self.data) else self.data
        values = _digits(_decode_integers(data)) if self.integers else _DECODERS[self.field](data)
        if len(values) != math.prod(self.shape):
            raise self._misfit_error()
        if self.field != "probabilities":
            return values
        width = self.shape[1]
        return [values[at : at + width] for at in range(0, len(values), width)]

    def texts(self) -> Sequence[bytes | msgspec.Raw]:
        """JSON text of every row.

        Raises:
            BadMessage: the data do not fit the shape.
        """
        elements = self._elements()
        if self.field != "probabilities":
            return [_digits_text(element) for element in elements] if self.integers else elements
        width = self.shape[1]
        return [b"[" + b",".join(elements[at : at + width]) + b"]" for at in range(0, len(elements), width)]

    def _elements(self) -> list[msgspec.Raw]:
        """JSON text of every element, row by row."""
        elements = self._array_of(self.data)
        for size in self.shape[1:]:
            if elements and bytes(elements[0]).startswith(b"["):
                inner = [self._array_of(element) for element in elements]
                if any(len(each) != size for each in inner):
                    raise self._misfit_error()
                elements = [element for each in inner for element in each]
        if len(elements) != math.prod(self.shape):
            raise self._misfit_error()
        return elements

    def _array_of(self, text: msgspec.Raw) -> list[msgspec.Raw]:
        try:
            return _decode_elements(text)
        except msgspec.MsgspecError:
            raise self._misfit_error() from None

    def _misfit_error(self) -> BadMessage:
        return BadMessage("invalid_tensor", f"{self.field}: the data do not fit the shape")


def column(tensor: Tensor, field: str) -> Column:
    """A tensor as a field of predictions.

    Raises:
        BadMessage: the tensor does not fit the field.
    """
    parameters, rule = tensor.parameters, _RULES[field]
    if parameters is not None and parameters.binary_data_size not in _NO_VALUE:
        raise binary_data_error(field)
    if parameters is not None and parameters.content_type == b'"base64"':
        raise BadMessage("invalid_tensor", f"{field}: content of type base64 is not read: send strings")
    if not (tensor.datatype and tensor.shape and tensor.data):
        raise BadMessage("missing_field", f"{field}: the tensor must have datatype, shape and data")
    if tensor.datatype not in rule.datatypes:
        raise BadMessage(
            "invalid_tensor", f"{field}: the datatype must be one of {', '.join(rule.datatypes)}"
        )
    if not (_is_matrix if field == "probabilities" else _is_vector)(tensor.shape):
        raise BadMessage("invalid_tensor", f"{field}: the shape must be {rule.shape}")
    return Column(field, tensor.shape, tensor.data, integers_are_names(tensor.datatype))


def binary_data_error(field: str) -> BadMessage:
    """The error for a response in the protocol's binary representation."""
    return BadMessage(
        "invalid_tensor",
        f"{field}: binary tensor data (binary_data_size) are not read: let the server answer in JSON",
    )


def _is_vector(shape: Sequence[int]) -> bool:
    return shape[0] >= 0 and all(size == 1 for size in shape[1:])


def _is_matrix(shape: Sequence[int]) -> bool:
    return len(shape) == 2 and shape[0] >= 0 and shape[1] > 1  # noqa: PLR2004 - rows and classes


def _digits(integers: list[int]) -> list[str]:
    if integers and not (min(integers) in _INTEGERS and max(integers) in _INTEGERS):
        raise NotUniform
    return list(map(str, integers))


def _digits_text(element: msgspec.Raw) -> bytes | msgspec.Raw:
    """JSON string of an integer's digits; anything else unchanged."""
    value = attempt(_decode_anything, element)
    return b'"%d"' % value if type(value) is int and value in _INTEGERS else element
