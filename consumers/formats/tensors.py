"""Tensors of the Open Inference Protocol in JSON, one row a prediction: values, or JSON text of every row.

`Column.texts` tells what a tensor says; `Column.values` tells the same faster, and gives way (`OneByOne`, or
an error of msgspec) as soon as an element is not in order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from consumers.formats.native import NOTHING, AwareTime, ClassName, ItemId, Uri, attempt
from service.domain.errors import BadMessage
from service.domain.open_inference import ATTRIBUTE_RULE, TENSOR_RULES, integers_are_names

ATTRIBUTE = "attributes"
"""Stands for the field of a tensor that is an attribute."""

_RULES = {ATTRIBUTE: ATTRIBUTE_RULE} | {str(field): rule for field, rule in TENSOR_RULES.items()}
_INTEGERS = range(-(2**63), 2**64)
_NESTED = re.compile(rb"\s*\[\s*\[")
_ABSENT = (b"", b"null")


class _Parameters(msgspec.Struct, gc=False):
    binary_data_size: msgspec.Raw = NOTHING
    content_type: msgspec.Raw = NOTHING


class Tensor(msgspec.Struct, gc=False):
    """A tensor as it is parsed; what is absent is empty, and shows when the tensor is used."""

    name: str
    datatype: str = ""
    shape: list[int] = []
    data: msgspec.Raw = NOTHING
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
"""As strict with an element as the native decoder is with the field."""


class OneByOne(Exception):  # noqa: N818 - nothing is wrong yet
    """The rows must be looked at one by one."""


class Column(msgspec.Struct, frozen=True, gc=False):
    """A tensor that is used.

    Attributes:
        field: of predictions; `ATTRIBUTE` where it is an attribute.
        shape: its first number is that of the rows.
        data: JSON array, flat or nested as the shape is.
        integers: whether its elements are integers that stand for their digits.
    """

    field: str
    shape: Sequence[int]
    data: msgspec.Raw
    integers: bool

    def values(self) -> list[Any]:
        """What every row says.

        Raises:
            OneByOne: not every element is in order.
            msgspec.MsgspecError: the same.
            BadMessage: the data do not fit the shape.
        """
        data = b"[" + b",".join(self._elements()) + b"]" if _NESTED.match(self.data) else self.data
        values = _digits(_decode_integers(data)) if self.integers else _DECODERS[self.field](data)
        if len(values) != math.prod(self.shape):
            raise self._misfit()
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
        elements = self._inside(self.data)
        for size in self.shape[1:]:
            if elements and bytes(elements[0]).startswith(b"["):
                inner = [self._inside(element) for element in elements]
                if any(len(each) != size for each in inner):
                    raise self._misfit()
                elements = [element for each in inner for element in each]
        if len(elements) != math.prod(self.shape):
            raise self._misfit()
        return elements

    def _inside(self, text: msgspec.Raw) -> list[msgspec.Raw]:
        try:
            return _decode_elements(text)
        except msgspec.MsgspecError:
            raise self._misfit() from None

    def _misfit(self) -> BadMessage:
        return BadMessage("invalid_tensor", f"{self.field}: the data do not fit the shape")


def column(tensor: Tensor, field: str) -> Column:
    """A tensor that is used.

    Args:
        tensor: as it is parsed.
        field: that it becomes.

    Raises:
        BadMessage: it cannot become that.
    """
    parameters, rule = tensor.parameters, _RULES[field]
    if parameters is not None and parameters.binary_data_size not in _ABSENT:
        raise binary_data(field)
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


def binary_data(told: str) -> BadMessage:
    """Why a response in the protocol's binary representation is refused."""
    return BadMessage(
        "invalid_tensor",
        f"{told}: binary tensor data (binary_data_size) are not read: let the server answer in JSON",
    )


def _is_vector(shape: Sequence[int]) -> bool:
    return shape[0] >= 0 and all(size == 1 for size in shape[1:])


def _is_matrix(shape: Sequence[int]) -> bool:
    return len(shape) == 2 and shape[0] >= 0 and shape[1] > 1  # noqa: PLR2004 - rows and classes


def _digits(integers: list[int]) -> list[str]:
    if integers and not (min(integers) in _INTEGERS and max(integers) in _INTEGERS):
        raise OneByOne
    return list(map(str, integers))


def _digits_text(element: msgspec.Raw) -> bytes | msgspec.Raw:
    """JSON text of an integer's digits; anything else stays, and is taken or refused as what it is."""
    value = attempt(_decode_anything, element)
    return b'"%d"' % value if type(value) is int and value in _INTEGERS else element
