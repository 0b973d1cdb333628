"""Metrics with the functions that read them: what an entry of the catalogue is made of.

A table holds the metrics of one kind of thing, such as an assessment or the groups of a grouping. Each entry
is a metric's name, unit and help, and the function that reads its value from the snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from service.domain.arrays import Flags, Floats, Ints
from service.monitoring.prominence import OTHER
from service.serving.metric_selection import OtherGroups, ShownGroups
from service.telemetry.catalogue import Kind, MetricSpec, Unit

GROUP_LABELS = ("model", "grouping", "group")

Of = TypeVar("Of")
Numbers = Floats | Ints | Flags
Samples = tuple[str, list[tuple[tuple[str, ...], float]]]
"""Name of a metric, and its samples: values of its labels, and its value."""


@dataclass(frozen=True)
class Metric(Generic[Of]):
    """One metric of a table.

    Attributes:
        name: as scraped.
        unit: empty where it says nothing.
        meaning: the help text.
        read: its value, or one of every group [G]; no sample where that is None or not finite.
        other: value of group `other` from what is known of those groups, and their values; None shows none.
        off_dashboards: why no dashboard shows it; empty where one does.
    """

    name: str
    unit: Unit
    meaning: str
    read: Callable[[Of], float | Numbers | None]
    other: Callable[[OtherGroups, Numbers], float | None] | None = None
    off_dashboards: str = ""


def highest(_: OtherGroups, values: Numbers) -> float | None:
    """Group `other` shows the highest value of its groups."""
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else None


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
        """One sample per metric and group.

        Args:
            thing: what the values are read from.
            shown: the groups with samples of their own, and the others.
            labels: values of the labels before the group's.
            last: values of those behind it.
        """
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
