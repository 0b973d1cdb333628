"""What a measure of a group is: a field of a document that also says how Prometheus and the terminal show it.

`group_measures` is the catalogue of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from types import NoneType
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, Field

from service.serving.documents.base import Interval
from service.serving.metric_selection import OtherGroups
from service.serving.metrics import Metric, Numbers
from service.statistics.estimate import Estimate
from service.telemetry.catalogue import Unit

Of = TypeVar("Of")
Values = Numbers | Estimate | None
"""A number, or an interval, of every group [G]; None where the measure does not apply."""


@dataclass(frozen=True)
class Column:
    """How `credence status` shows a measure; a column without values is left out.

    Attributes:
        heading: may name `{min_accuracy}`, the threshold in percent.
        text: of a group's cell.
        has_failed: whether the cell is highlighted.
    """

    heading: str
    text: Callable[[Any], str]
    has_failed: Callable[[Any], bool] = lambda _: False


@dataclass(frozen=True)
class Measure(Generic[Of]):
    """How a measure is read from the snapshot, and where it appears beside the JSON API."""

    values: Callable[[Of], Values]
    metrics: tuple[Metric[Of], ...]
    column: Column | None


class Measures(Generic[Of]):
    """Makes the fields that are measures, of what holds their values."""

    def __call__(
        self,
        values: Callable[[Of], Values],
        *metrics: Metric[Any],
        description: str | None = None,
        column: Column | None = None,
    ) -> Any:
        """A field of a document.

        Args:
            values: reads the measure of every group.
            metrics: how Prometheus shows it, by `gauge` or `interval`.
            description: in the API.
            column: how `credence status` shows it.
        """
        read = tuple(replace(each, read=_composed(values, each.read)) for each in metrics)
        field = Field(description=description)
        field.metadata.append(Measure(values, read, column))
        return field


def _composed(values: Callable[[Of], Values], shown: Callable[[Any], Any]) -> Callable[[Of], Any]:
    def read(of: Of) -> Any:
        found = values(of)
        return None if found is None else shown(found)

    return read


def gauge(
    name: str,
    unit: Unit,
    meaning: str,
    *,
    shown: Callable[[Any], Any] = lambda values: values,
    other: Callable[[OtherGroups, Numbers], float | None] | None = None,
    off_dashboards: str = "",
) -> Metric[Any]:
    """A metric of a measure; `shown` makes its samples from the measure's values."""
    return Metric(name, unit, meaning, shown, other, off_dashboards)


def interval(
    name: str,
    unit: Unit,
    *meanings: str,
    other: Callable[[OtherGroups], tuple[float, float, float]] | None = None,
) -> Iterator[Metric[Any]]:
    """Three metrics of an interval: `{}` in the name stands for `lower`, `mean` and `upper`.

    Each is a metric of its own, as a label would invite averaging them.
    """
    for position, (end, meaning) in enumerate(zip(("lower", "mean", "upper"), meanings, strict=True)):
        yield gauge(name.format(end), unit, meaning, shown=attrgetter(end), other=_other_end(other, position))


def _other_end(
    other: Callable[[OtherGroups], tuple[float, float, float]] | None, position: int
) -> Callable[[OtherGroups, Numbers], float] | None:
    return None if other is None else lambda others, _: other(others)[position]


def measures_of(document: type[BaseModel]) -> Iterator[tuple[str, Measure[Any]]]:
    """The fields of a document that are measures, by name."""
    for name, field in document.model_fields.items():
        yield from ((name, each) for each in field.metadata if isinstance(each, Measure))


def metrics_of(document: type[BaseModel]) -> list[Metric[Any]]:
    """The metrics of a document's measures."""
    return [metric for _, each in measures_of(document) for metric in each.metrics]


def read_measures(document: type[BaseModel], thing: object, group: int) -> dict[str, Any]:
    """Measures of one group, to construct the document with."""
    return {
        name: _of_group(each.values(thing), group, nullable=_is_nullable(document, name))
        for name, each in measures_of(document)
    }


def _of_group(values: Values, group: int, *, nullable: bool) -> float | Interval | None:
    if values is None:
        return None
    if isinstance(values, Estimate):
        return Interval.at_index(values, group)
    value: float = values[group].item()
    return value if math.isfinite(value) or not nullable else None


def _is_nullable(document: type[BaseModel], name: str) -> bool:
    return NoneType in get_args(document.model_fields[name].annotation)
