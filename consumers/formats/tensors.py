"""Tensors of the Open Inference Protocol in JSON, one row per prediction."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from consumers.formats.native import ABSENT, attempt
from service.domain.errors import BadMessage
from service.domain.open_inference import ATTRIBUTE_RULE, TENSOR_RULES, integers_are_names

ATTRIBUTE = "attributes"
"""Field of a tensor that is an attribute."""

_RULES = {ATTRIBUTE: ATTRIBUTE_RULE} | {str(field): rule for field, rule in TENSOR_RULES.items()}
INTEGERS = range(-(2**63), 2**64)
"""Those of 64 bits, with a sign or without."""

_MARKS = (b"[", b"{", b'"')
"""What an array of numbers does not contain; otherwise a comma may be part of an element."""

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
_decode_anything = msgspec.json.Decoder().decode


class Column(msgspec.Struct, frozen=True, gc=False):
    """A tensor that is a field of predictions, or an attribute.

    Attributes:
        field: its name, or `ATTRIBUTE`.
        shape: starts with the number of rows.
        data: JSON array, flat or nested as the shape is.
        integers: whether its elements are integers that are names.
    """

    field: str
    shape: Sequence[int]
    data: msgspec.Raw
    integers: bool

    def texts(self) -> Sequence[bytes | msgspec.Raw]:
        """JSON text of every row.

        Raises:
            BadMessage: the data do not fit the shape.
        """
        if self.field != "probabilities":
            elements = self._elements()
            return _quote_integers(elements) if self.integers else elements
        rows, width = self.shape
        numbers = bytes(self.data).strip().removeprefix(b"[").removesuffix(b"]")
        if rows and not any(mark in numbers for mark in _MARKS):
            return self._split_numbers(numbers, width)
        elements = self._elements()
        return [b"[" + b",".join(elements[at : at + width]) + b"]" for at in range(0, len(elements), width)]

    def _split_numbers(self, numbers: bytes, width: int) -> list[bytes]:
        """Rows of a flat array, cut at every `width`-th comma: faster than to decode each of many numbers."""
        commas = np.flatnonzero(np.frombuffer(numbers, np.uint8) == ord(","))
        if len(commas) + 1 != math.prod(self.shape):
            raise self._misfit_error()
        ends = [*commas[width - 1 :: width].tolist(), len(numbers)]
        return [b"[" + numbers[begin + 1 : end] + b"]" for begin, end in zip([-1, *ends], ends, strict=False)]

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
    # JSON texts are not equal to bytes.
    if parameters is not None and bytes(parameters.binary_data_size) not in _NO_VALUE:
        raise binary_data_error(field)
    if parameters is not None and bytes(parameters.content_type) == b'"base64"':
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


def _quote_integers(elements: Sequence[msgspec.Raw]) -> list[bytes | msgspec.Raw]:
    """JSON strings of the digits of integers; anything else unchanged."""
    values = attempt(_decode_integers, b"[" + b",".join(elements) + b"]")
    if isinstance(values, BadMessage):
        values = [attempt(_decode_anything, element) for element in elements]
    return [
        b'"%d"' % value if type(value) is int and value in INTEGERS else element
        for value, element in zip(values, elements, strict=True)
    ]
