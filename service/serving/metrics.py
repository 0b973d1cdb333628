"""Metrics and measures: a table's entries, each with the function that reads it from the snapshot.

A table holds the metrics of one kind of thing, such as an assessment or the groups of a grouping. A measure
is a field of a document that also says how Prometheus and the terminal show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from types import NoneType
from typing import Any, Generic, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, Field

from service.domain.arrays import Flags, Floats, Ints
from service.monitoring.prominence import OTHER
from service.serving.documents.base import Interval
from service.serving.metric_selection import OtherGroups, ShownGroups
from service.statistics.estimate import Estimate
from service.telemetry.catalogue import Kind, MetricSpec, Unit

GROUP_LABELS = ("model", "grouping", "group")

Of = TypeVar("Of")
Numbers = Floats | Ints | Flags
Samples = tuple[str, list[tuple[tuple[str, ...], float]]]
"""Name of a metric, and its samples: values of its labels, and its value."""
Values = Numbers | Estimate | None
"""A number, or an interval, of every group [G]; None where the measure does not apply."""


def _unchanged(values: Any) -> Any:
    return values


@dataclass(frozen=True)
class Metric(Generic[Of]):
    """One metric of a table.

    Attributes:
        name: as scraped.
        unit: empty where it says nothing.
        meaning: the help text.
        read: its value, or one of every group [G]; no sample where that is None or not finite. In a measure,
            it gets the measure's values.
        other: value of group `other` from what is known of those groups, and their values; None shows none.
        off_dashboards: why no dashboard shows it; empty where one does.
    """

    name: str
    unit: Unit
    meaning: str
    read: Callable[[Of], float | Numbers | None] = _unchanged
    other: Callable[[OtherGroups, Numbers], float | None] | None = None
    off_dashboards: str = ""


def highest(_: OtherGroups, values: Numbers) -> float | None:
    """Group `other` shows the highest value of its groups."""
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else None


def shared(_: OtherGroups, values: Numbers) -> float | None:
    """Group `other` shows the value that all its groups have, if they have the same one."""
    return float(values[0]) if bool((values == values[0]).all()) else None


def total(_: OtherGroups, values: Numbers) -> float:
    """Group `other` shows the sum over its groups."""
    return float(values.sum())


@dataclass(frozen=True)
class MetricTable(Generic[Of]):
    """The metrics of one kind of thing, and their labels."""

    labels: tuple[str, ...]
    metrics: Sequence[Metric[Of]]

    def specs(self) -> Iterator[MetricSpec]:
        """Entries of the catalogue."""
        for metric in self.metrics:
            kind: Kind = "counter" if metric.name.endswith("_total") else "gauge"
            yield MetricSpec(
                metric.name, kind, metric.unit, self.labels, metric.meaning, metric.off_dashboards
            )

    def samples(self, thing: Of, *labels: str) -> Iterator[Samples]:
        """One sample per metric."""
        for metric in self.metrics:
            value = metric.read(thing)
            if value is not None and math.isfinite(value):
                yield metric.name, [(labels, float(value))]

    def columns(self, thing: Of) -> Iterator[tuple[Metric[Of], Floats]]:
        """Values of all groups, or members, by metric."""
        for metric in self.metrics:
            values = metric.read(thing)
            if values is not None:
                yield metric, np.asarray(values, dtype=np.float64)

    def samples_of_groups(
        self, thing: Of, shown: ShownGroups, *labels: str, last: tuple[str, ...] = ()
    ) -> Iterator[Samples]:
        """One sample per metric and group; `labels` are before the group's label, and `last` behind it."""
        for metric, values in self.columns(thing):
            yield metric.name, samples_of_each(labels, shown.names, values[shown.members], last)
            if shown.other is not None and metric.other is not None:
                value = metric.other(shown.other, values[shown.other.members])
                if value is not None:
                    yield metric.name, [((*labels, OTHER, *last), value)]


def samples_of_each(
    labels: tuple[str, ...], each: Sequence[str], values: Numbers, last: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], float]]:
    """One sample per name; what is not finite, such as a time that never comes, has none."""
    return [
        ((*labels, one, *last), value)
        for one, value in zip(each, values.tolist(), strict=True)
        if math.isfinite(value)
    ]


@dataclass(frozen=True)
class Column:
    """How `credence status` shows a measure; a column without values is left out.

    Attributes:
        heading: may name `{target}`, the groups' threshold of accuracy.
        text: of the cell of a group that has the measure.
        has_failed: whether the cell is highlighted.
        is_of_unlike: whether the column is left out, too, if all groups have the same value.
    """

    heading: str
    text: Callable[[Any], str]
    has_failed: Callable[[Any], bool] = lambda _: False
    is_of_unlike: bool = False


@dataclass(frozen=True)
class Measure(Generic[Of]):
    """How a measure is read from the snapshot, and where it appears beside the JSON API."""

    values: Callable[[Of], Values]
    metrics: tuple[Metric[Of], ...]
    column: Column | None


class Measures(Generic[Of]):
    """Makes the fields of a document that are measures, read from an object of one type."""

    def __call__(
        self,
        values: Callable[[Of], Values],
        *metrics: Metric[Any],
        description: str | None = None,
        column: Column | None = None,
    ) -> Any:
        """A field with this description in the API, and how Prometheus and `credence status` show it."""
        read = tuple(replace(metric, read=_composed(values, metric.read)) for metric in metrics)
        field = Field(description=description)
        field.metadata.append(Measure(values, read, column))
        return field


def _composed(values: Callable[[Of], Values], shown: Callable[[Any], Any]) -> Callable[[Of], Any]:
    def read(of: Of) -> Any:
        found = values(of)
        return None if found is None else shown(found)

    return read


def interval(
    name: str, unit: Unit, *meanings: str, other: Callable[[OtherGroups], Estimate] | None = None
) -> Iterator[Metric[Any]]:
    """Three metrics of an interval: `{}` in the name stands for `lower`, `mean` and `upper`.

    Each is a metric of its own, as a label would invite averaging them.
    """

    def metric(end: str, meaning: str) -> Metric[Any]:
        read = attrgetter(end)
        read_other = None if other is None else lambda others, _: read(other(others)).item()
        return Metric(name.format(end), unit, meaning, read, read_other)

    return map(metric, ("lower", "mean", "upper"), meanings)


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
        name: _of_group(
            measure.values(thing),
            group,
            nullable=NoneType in get_args(document.model_fields[name].annotation),
        )
        for name, measure in measures_of(document)
    }


def _of_group(values: Values, group: int, *, nullable: bool) -> float | Interval | None:
    if values is None:
        return None
    if isinstance(values, Estimate):
        return Interval.at_index(values, group)
    value: float = values[group].item()
    return value if math.isfinite(value) or not nullable else None
