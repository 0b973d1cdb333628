"""A measure is declared once, and appears where its entry says."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from snapshots import NOW, snapshot

from service.app.status_command import status_view
from service.domain.arrays import Floats
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Document
from service.serving.documents.group_measures import GroupState
from service.serving.documents.groups import group_table
from service.serving.metrics import Measures, Metric, interval, measures_of, metrics_of, read_measures
from service.statistics.estimate import Estimate

measure = Measures[dict[str, Any]]()


@cache
def taken() -> ModelSnapshot:
    of_groups = {"class": {"groups": {"dog": {"min_accuracy": 0.6}}}}
    return snapshot(20, alerts={"min_accuracy": 0.8, "max_ece": 0.3, "groupings": of_groups})


class Example(Document):
    speed: float | None = measure(lambda of: of["speed"], Metric("speed", "", "Speed."), description="of it")
    size: float = measure(lambda of: of["size"], *interval("size_{}", "", "Low.", "Mean.", "High."))


ENDS: Floats = np.array([1.0, 2.0])


def test_a_field_is_read_from_the_snapshot() -> None:
    read = read_measures(Example, {"speed": np.array([7.0, np.nan]), "size": ENDS}, 1)
    assert read == {"speed": None, "size": 2.0}


def test_a_measure_that_does_not_apply_has_neither_value_nor_samples() -> None:
    assert read_measures(Example, {"speed": None, "size": ENDS}, 0)["speed"] is None
    assert metrics_of(Example)[0].read({"speed": None}) is None


def test_an_interval_has_three_metrics() -> None:
    estimate = Estimate(ENDS, ENDS + 1, ENDS + 2)
    metrics = metrics_of(Example)[1:]
    assert [metric.name for metric in metrics] == ["size_lower", "size_mean", "size_upper"]
    assert [metric.read({"size": estimate})[0] for metric in metrics] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("name", [name for name, each in measures_of(GroupState) if each.column])
def test_a_measure_with_a_column_is_in_the_terminal_as_in_the_api(name: str) -> None:
    column = dict(measures_of(GroupState))[name].column
    text = io.StringIO()
    Console(file=text, width=200).print(status_view([taken()], now=NOW, tick_seconds=5.0))
    assert column.heading.format(target="target") in text.getvalue()
    for group in group_table(taken(), "class").groups:
        assert column.text(group) in text.getvalue()


def test_where_groups_share_a_threshold_the_heading_names_it() -> None:
    text = io.StringIO()
    alike = snapshot(20, alerts={"min_accuracy": 0.8})
    Console(file=text, width=200).print(status_view([alike], now=NOW, tick_seconds=5.0))
    assert "below 80%" in text.getvalue()
    assert "target %" not in text.getvalue()


def test_a_group_without_a_threshold_has_empty_cells() -> None:
    without = {"class": {"groups": {"dog": {"min_accuracy": None}}}}
    taken = snapshot(20, alerts={"min_accuracy": 0.8, "groupings": without})
    dog = next(one for one in group_table(taken, "class").groups if one.group == "dog")
    found = (dog.min_accuracy, dog.accuracy_below, dog.verdict, dog.verdict_labels)
    assert found == (None, None, "none", None)
    text = io.StringIO()
    Console(file=text, width=200).print(status_view([taken], now=NOW, tick_seconds=5.0))
    assert "nan" not in text.getvalue()
