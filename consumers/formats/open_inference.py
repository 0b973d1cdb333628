"""Inference responses of the Open Inference Protocol (v2), as model servers log them: many predictions in a record.

A response has tensors, one row a prediction. Those that are named like the fields of a prediction, or as a
model's `tensors` say, become these fields; a tensor or a parameter `attributes.<name>` becomes an attribute.
Data may be flat or nested. A row without an `item_id` is called `<id of the response>/<number of the row>`.

Every row could be written as a prediction of the native format (`row_texts`). What is accepted is what the native
decoder accepts of that; the way through columns here is only faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from consumers.formats.native import (
    NOTHING,
    AwareTime,
    ClassName,
    ItemId,
    Name,
    Uri,
    WirePrediction,
    decode_prediction,
)
from service.errors import BadMessage

RESPONSE_TYPES = frozenset(
    {b"org.kubeflow.serving.inference.response", b"io.seldon.serving.inference.response"}
)
"""Types that model servers give to the event of a response (`ce_type`)."""

FIELDS = ("item_id", "predicted_class", "score", "probabilities", "time", "payload_uri")
ATTRIBUTE_PREFIX = "attributes."

_COLUMNS: Mapping[str, Callable[[bytes], Any]] = {
    "item_id": msgspec.json.Decoder(list[ItemId]).decode,
    "predicted_class": msgspec.json.Decoder(list[ClassName]).decode,
    "score": msgspec.json.Decoder(list[float]).decode,
    "time": msgspec.json.Decoder(list[AwareTime]).decode,
    "payload_uri": msgspec.json.Decoder(list[Uri]).decode,
}
_decode_attributes = msgspec.json.Decoder(list[str]).decode
_decode_numbers = msgspec.json.Decoder(list[float]).decode
_decode_rows = msgspec.json.Decoder(list[list[float]]).decode
_decode_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Tensor(msgspec.Struct, gc=False):
    name: str
    shape: list[int]
    datatype: str
    data: msgspec.Raw


class _Response(msgspec.Struct, gc=False):
    model_name: Name
    outputs: list[_Tensor]
    id: str = ""
    parameters: dict[str, msgspec.Raw] = {}


_decode_response = msgspec.json.Decoder(_Response).decode
