"""What is read of the Open Inference Protocol (v2): the responses of model servers, as these log them.

The protocol is not ours, so nothing here is sent. A response holds the predictions of a whole batch as
tensors, and is read beside the native messages of `service.domain.messages`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from service.domain.messages import CLOUDEVENTS_VERSION, Message, Name

RESPONSE_TYPES = ("org.kubeflow.serving.inference.response", "io.seldon.serving.inference.response")
"""`ce_type` of a response that KServe or Seldon logs; both log requests too, under types of their own."""

RESPONSE_CLOUDEVENTS_VERSIONS = (CLOUDEVENTS_VERSION, "0.3")
"""Seldon says 0.3; type and time of an event, which are all that is read, mean the same in both."""

ATTRIBUTE_PREFIX = "attributes."
"""What the name of a tensor or a parameter begins with that is an attribute."""

TensorField = Literal["item_id", "predicted_class", "score", "probabilities", "time", "payload_uri"]

_NUMBERS = ("FP16", "BF16", "FP32", "FP64")
_TEXTS = ("BYTES",)
_INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")


@dataclass(frozen=True)
class TensorRule:
    """What a tensor must be to be read as a field of predictions.

    Attributes:
        datatypes: that it may have.
        shape: in words.
        meaning: of one row.
    """

    datatypes: tuple[str, ...]
    shape: str
    meaning: str


_VECTOR = "[N] or [N, 1]"
TENSOR_RULES: dict[TensorField, TensorRule] = {
    "item_id": TensorRule(
        (*_TEXTS, *_INTEGERS), _VECTOR, "without it, `<id of the response>/<number of the row, from 0>`"
    ),
    "predicted_class": TensorRule(
        (*_TEXTS, *_INTEGERS), _VECTOR, "the *name* of a class: the integer 7 is the class `7`, no position"
    ),
    "score": TensorRule(_NUMBERS, _VECTOR, "the model's probability of the predicted class"),
    "probabilities": TensorRule(_NUMBERS, "[N, K]", "one per configured class, in that order"),
    "time": TensorRule(_TEXTS, _VECTOR, "when it was predicted, RFC 3339"),
    "payload_uri": TensorRule(_TEXTS, _VECTOR, "where the labeller finds the item"),
}
"""By the field that a tensor becomes; N is the number of rows, K that of the model's classes."""

ATTRIBUTE_RULE = TensorRule((*_TEXTS, *_INTEGERS), _VECTOR, "one attribute of every prediction")


def integers_are_names(datatype: str) -> bool:
    """Whether the elements of a tensor are integers that stand for their digits."""
    return datatype in _INTEGERS


class InferenceTensor(Message):
    """One output of a model for all items of a batch."""

    name: str = Field(description="a field of predictions, or what `models.<name>.tensors` calls it")
    datatype: str = Field(description="BYTES are strings here")
    shape: list[Annotated[int, Field(ge=0)]] = Field(description="its first number is that of the rows")
    data: list[JsonValue] = Field(description="row by row, flat or nested; binary tensor data is not read")


class InferenceResponse(Message):
    """A batch of predictions, as a model server answers it by the Open Inference Protocol."""

    model_name: Name = Field(description="name of the model in the configuration")
    id: str | None = Field(default=None, description="names the items that have no `item_id`")
    parameters: dict[str, JsonValue] | None = Field(
        default=None, description="`attributes.<name>`, a string, is an attribute of every row"
    )
    outputs: list[InferenceTensor] = Field(description="tensors; those that are no field are ignored")


RESPONSE_EXAMPLE: dict[str, Any] = {
    "model_name": "digits",
    "model_version": "3",
    "id": "5b1f0c6e",
    "parameters": {"attributes.camera": "dock"},
    "outputs": [
        {"name": "item_id", "datatype": "BYTES", "shape": [2], "data": ["img-000020", "img-000021"]},
        {"name": "predicted_class", "datatype": "INT64", "shape": [2, 1], "data": [3, 7]},
        {"name": "score", "datatype": "FP32", "shape": [2], "data": [0.87, 0.99]},
        {"name": "attributes.shift", "datatype": "BYTES", "shape": [2], "data": ["day", "night"]},
    ],
}
"""A valid response, shown in the documentation and tested."""

RESPONSE_EXAMPLE_ROWS: list[dict[str, Any]] = [
    {
        "model": "digits",
        "item_id": "img-000020",
        "predicted_class": "3",
        "score": 0.87,
        "attributes": {"camera": "dock", "shift": "day"},
    },
    {
        "model": "digits",
        "item_id": "img-000021",
        "predicted_class": "7",
        "score": 0.99,
        "attributes": {"camera": "dock", "shift": "night"},
    },
]
"""The predictions in `RESPONSE_EXAMPLE`, as native messages."""
