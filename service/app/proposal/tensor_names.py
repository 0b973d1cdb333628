"""Which tensors of a model server's responses are which fields of predictions, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import msgspec

from consumers.formats.inference_response import Response
from consumers.formats.tensors import Tensor
from service.app.files.columns import listed, plain_name
from service.app.proposal.column_tally import are_probabilities
from service.app.proposal.usual_names import OPTIONS, RECORD_NAMES, normalised
from service.domain.errors import ConfigurationError
from service.domain.open_inference import (
    ATTRIBUTE_PREFIX,
    TENSOR_RULES,
    TensorField,
    integers_are_names,
)

_FIELDS: Final[Sequence[TensorField]] = (
    "item_id",
    "probabilities",  # before the class, which follows from them
    "predicted_class",
    "score",
    "time",
    "payload_uri",
)

_MOST_CHECKED: Final = 100
"""Responses whose numbers are looked at."""


@dataclass(frozen=True)
class TensorNames:
    """Tensors that are fields of predictions.

    Attributes:
        names: of tensors by field, where they differ from the field's name.
        why: these, and no others, in sentences.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    why: Sequence[str] = ()


def find_tensors(responses: Sequence[Response], given: Mapping[str, str], source: str) -> TensorNames:
    """The tensors of responses that are fields.

    Args:
        responses: of one model, at least one.
        given: tensors that the user names, by field; empty for none.
        source: of the responses, for errors.

    Raises:
        ConfigurationError: a tensor that the user names is not there, or no tensors are a prediction.
    """
    found = _Tensors(responses)
    names: dict[TensorField, str] = {}
    why = []
    for name in _FIELDS:
        tensor, reason = found.of(name, given.get(name), source, has_probabilities="probabilities" in names)
        if tensor:
            names[name] = tensor
        if reason:
            why.append(f"  {name}: {reason}")
    if "probabilities" not in names and not names.keys() >= {"predicted_class", "score"}:
        problem = (
            "no tensor has the probabilities of all classes, nor one the predicted class and one its score; "
            f"the tensors are {found.described()}. Have the server return probabilities, or name their "
            f"tensor: {OPTIONS['probabilities']} TENSOR"
        )
        raise ConfigurationError([(OPTIONS["probabilities"], problem)], source)
    if ignored := found.ignored(names.values()):
        why.append(
            f"  not read: {listed(ignored)}; a tensor named {ATTRIBUTE_PREFIX}NAME would be an attribute"
        )
    for name in _FIELDS:
        # Without a name of its own, a field is read from the tensor of its name, whatever that holds.
        if name not in names and found.has(name):
            names[name] = found.unused(name)
            why.append(f"  {name}: {names[name]}, which no tensor is, so that tensor {name} is not read")
    return TensorNames({name: tensor for name, tensor in names.items() if tensor != name}, why)


class _Tensors:
    """Tensors of several responses, by name."""

    def __init__(self, responses: Sequence[Response]) -> None:
        self._by_name: dict[str, list[Tensor]] = {}
        for response in responses[:_MOST_CHECKED]:
            for tensor in response.outputs:
                self._by_name.setdefault(tensor.name, []).append(tensor)

    def of(
        self, name: TensorField, given: str | None, source: str, *, has_probabilities: bool
    ) -> tuple[str, str]:
        """The tensor that is a field, and why; empty if there is none."""
        if given is not None:
            if given and given not in self._by_name:
                problem = f"there is no tensor {plain_name(given)}; the tensors are {self.described()}"
                raise ConfigurationError([(OPTIONS.get(name, name), problem)], source)
            return given, f"{given or 'no tensor'}, by {OPTIONS.get(name, name)}"
        usable = [tensor for tensor in self._by_name if self._fits(name, tensor)]
        is_place = name == "predicted_class" and has_probabilities and self._are_integers(name)
        if name in usable and not is_place:
            return name, f"{name}, its name is that of the contract"
        usual = [each for names in RECORD_NAMES.get(name, ()) for each in usable if normalised(each) == names]
        if name == "predicted_class" and has_probabilities and usual and self._are_integers(usual[0]):
            return "", (
                f"tensor {plain_name(usual[0])} is not read: its integers are places of classes rather than "
                "names. What is predicted follows from the probabilities"
            )
        if name == "probabilities" and not usual:
            usual = usable
            what = "its rows are numbers that sum to 1"
        else:
            what = "its name is usual for it"
        if not usual:
            return "", ""
        also = f"; also possible: {OPTIONS.get(name, name)} {listed(usual[1:])}" if usual[1:] else ""
        return usual[0], f"{plain_name(usual[0])}, {what}{also}"

    def has(self, tensor: str) -> bool:
        """Whether any response has a tensor of this name."""
        return tensor in self._by_name

    def unused(self, name: str) -> str:
        """A name for a field that no tensor has."""
        return next(each for number in count() if not self.has(each := f"no_{name}{number or ''}"))

    def described(self) -> str:
        """All tensors with datatype and shape, for people."""
        return "; ".join(
            f"{plain_name(name)} ({tensors[0].datatype} {plain_name(str(tensors[0].shape))})"
            for name, tensors in list(self._by_name.items())[:_MOST_CHECKED]
        )

    def ignored(self, used: Any) -> list[str]:
        """Tensors that are neither fields nor attributes."""
        taken = set(used)
        return [name for name in self._by_name if name not in taken and not name.startswith(ATTRIBUTE_PREFIX)]

    def _are_integers(self, name: str) -> bool:
        return any(integers_are_names(tensor.datatype) for tensor in self._by_name.get(name, ()))

    def _fits(self, name: TensorField, tensor: str) -> bool:
        """Whether the contract takes a tensor for a field; probabilities must sum to 1, too."""
        rule = TENSOR_RULES[name]
        tensors = self._by_name[tensor]
        if any(each.datatype not in rule.datatypes or not each.shape for each in tensors):
            return False
        if name != "probabilities":
            return all(size == 1 for each in tensors for size in each.shape[1:])
        return all(are_probabilities(row) for each in tensors for row in _rows(each))


def _rows(tensor: Tensor) -> Iterator[list[float]]:
    """The rows of numbers of a tensor; one that is empty, and so is no probability, if it has none."""
    try:
        data = _numbers(msgspec.json.decode(tensor.data)) if tensor.data else []
    except (OverflowError, RecursionError):  # no probabilities
        data = []
    width = tensor.shape[1] if len(tensor.shape) == 2 else 0  # noqa: PLR2004 - rows and classes
    if width < 2 or len(data) != math.prod(tensor.shape):  # noqa: PLR2004 - a classifier chooses
        yield []
        return
    for at in range(0, len(data), width):
        yield data[at : at + width]


def _numbers(data: Any) -> list[float]:
    """All numbers of nested lists; those that are none are NaN."""
    if isinstance(data, list):
        return [number for each in data for number in _numbers(each)]
    return [float(data)] if isinstance(data, int | float) else [math.nan]
