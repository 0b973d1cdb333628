"""Rows of inference responses as columns, without an object per row.

Only responses that are plainly valid are read so. Any other is rewritten as native JSON, which gives reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from consumers.formats.columns import Coded, ModelColumns, Texts, are_exact, seconds_of
from consumers.formats.native import AwareTime, ClassName, ItemId, Uri
from consumers.formats.tensors import INTEGERS, Column


@dataclass(frozen=True, eq=False)
class ResponseRows:
    """The rows of a response, each of which is valid as far as the native format can say.

    Attributes:
        model: its name.
        count: of the rows.
        width: probabilities of a row; 0 without any.
        fields: values by field [n] each; probabilities are one row after the other.
        attributes: values by name [n] each.
    """

    model: str
    count: int
    width: int
    fields: Mapping[str, Sequence[Any]]
    attributes: Mapping[str, Sequence[str]]

    @property
    def layout(self) -> tuple[str, int, frozenset[str], frozenset[str]]:
        """Rows with the same one can be joined: each of their columns has a value in every row."""
        return self.model, self.width, frozenset(self.fields), frozenset(self.attributes)


_ELEMENTS: Final[Mapping[str, msgspec.json.Decoder[list[Any]]]] = {
    "item_id": msgspec.json.Decoder(list[ItemId]),
    "predicted_class": msgspec.json.Decoder(list[ClassName]),
    "score": msgspec.json.Decoder(list[float]),
    "probabilities": msgspec.json.Decoder(list[float]),
    "time": msgspec.json.Decoder(list[AwareTime]),
    "payload_uri": msgspec.json.Decoder(list[Uri]),
    "attributes": msgspec.json.Decoder(list[str]),
}
_decode_integers = msgspec.json.Decoder(list[int]).decode


def values_of(column: Column) -> list[Any]:
    """The values of a tensor whose data are flat, one after the other.

    Raises:
        ValueError, msgspec.MsgspecError: they are nested or too few, or one may be invalid.
    """
    if column.integers:
        numbers = _decode_integers(column.data)
        if numbers and not (min(numbers) in INTEGERS and max(numbers) in INTEGERS):
            raise ValueError("an integer of more than 64 bits")
        found: list[Any] = list(map(str, numbers))
    else:
        found = _ELEMENTS[column.field].decode(column.data)
    if len(found) != math.prod(column.shape):
        raise ValueError("the data do not fit the shape")
    return found


def join(responses: Sequence[ResponseRows]) -> ModelColumns | None:
    """The rows of all responses, in order; all have the same `layout`. None if a time is not exact."""
    model, width, fields, names = responses[0].layout
    count = sum(each.count for each in responses)
    columns = {name: [value for each in responses for value in each.fields[name]] for name in fields}
    attributes = {name: [value for each in responses for value in each.attributes[name]] for name in names}
    missing, unknown = Coded.missing(count), np.full(count, np.nan)
    spread = columns.get("probabilities")
    times = seconds_of(columns["time"]) if "time" in fields else unknown
    if not are_exact(times):
        return None
    return ModelColumns(
        model=model,
        item_ids=Texts.of(columns["item_id"]),
        classes=Coded.of(columns["predicted_class"]) if "predicted_class" in fields else missing,
        scores=np.array(columns["score"], np.float64) if "score" in fields else unknown,
        probabilities=None if spread is None else np.array(spread, np.float64).reshape(count, width),
        times=times,
        payload_uris=Coded.of(columns["payload_uri"]) if "payload_uri" in fields else missing,
        attributes={name: Coded.of(values) for name, values in attributes.items()},
    )
