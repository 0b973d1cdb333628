"""Snapshots: what facts say of every kind of assessment, and how metrics and the terminal show it."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from rich.console import Console
from snapshots import ACCURACY, ASSESSMENTS, BUDGET, NOW, drifting, snapshot

from service.app.status_command import status_view
from service.monitoring.group_index import AttributeTraffic
from service.monitoring.snapshot import ModelSnapshot
from service.serving.prometheus import SnapshotCollector


@cache
def usual() -> ModelSnapshot:
    return snapshot()


def value(name: str, taken: ModelSnapshot | None = None, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: [taken or usual()], group_limit=200, clock=lambda: NOW))
    return registry.get_sample_value(name, {"model": "m", **labels})


def test_without_traffic_nothing_is_believed() -> None:
    taken = snapshot(traffic=False)
    assert taken.groupings == {}
    assert all(state.extreme is None and state.compared is None for state in taken.assessments.values())


@pytest.mark.parametrize(
    ("assessment", "group"),
    [("worst", "dog"), ("best", "cat"), ("least-calibrated", "dog"), ("dearest", "dog")],
)
def test_the_extreme_group_is_found_by_every_metric(assessment: str, group: str) -> None:
    state = usual().assessments[assessment]
    assert state.extreme is not None
    assert state.groups[int(state.extreme.argmax())] == group
    assert state.extreme.sum() == pytest.approx(1)
    shown = value("credence_assessment_group_extreme_probability", assessment=assessment, group=group)
    assert shown == pytest.approx(state.extreme.max())


@pytest.mark.parametrize("assessment", ["worst", "best", "least-calibrated", "dearest"])
def test_ranks_count_from_one_at_the_end_that_is_looked_for(assessment: str) -> None:
    state = usual().assessments[assessment]
    assert state.ranks is not None
    assert state.extreme is not None
    assert state.ranks.mean.sum() == pytest.approx(1 + 2 + 3)
    assert state.ranks.mean.argmin() == state.extreme.argmax()
    assert ((state.ranks.lower >= 1) & (state.ranks.lower <= state.ranks.upper)).all()
    assert (state.ranks.upper <= 3).all()


def test_a_comparison_tells_three_probabilities() -> None:
    found = usual().assessments["compare"].compared
    assert found is not None
    assert found.below > 0.95
    assert found.below + found.within + found.above == pytest.approx(1)
    for name in ("below", "within", "above"):
        metric = f"credence_assessment_comparison_{name}_probability"
        shown = value(metric, assessment="compare", first="dog", second="cat")
        assert shown == pytest.approx(getattr(found, name))


def test_a_comparison_waits_for_traffic_of_both_groups() -> None:
    settings = {"between": ["dog", "yak"], "task": "comparison", "grouping": "class", "budget": BUDGET}
    taken = snapshot(assessments={"compare": settings})
    assert taken.assessments["compare"].compared is None


def test_overall_accuracy_is_asked_by_score_bin() -> None:
    state = usual().assessments["whole"]
    assert state.grouping == "score_bin"
    assert state.groups == ["[0,0.5)", "[0.5,1]"]
    assert state.in_flight.tolist() == [0, 1]


def test_overall_accuracy_stands_on_all() -> None:
    whole = usual().groupings["all"]
    assert value("credence_group_accuracy_mean_ratio", grouping="all", group="all") == whole.accuracy.mean[0]
    assert whole.accuracy.lower[0] < 0.25 * sum(ACCURACY.values()) / 0.75 < whole.accuracy.upper[0]


def test_the_expected_cost_of_predicted_classes_is_shown_and_of_no_other_groups() -> None:
    confusion = usual().groupings["class"].confusion
    assert confusion is not None
    assert confusion.cost is not None
    costs = confusion.cost.costs
    np.testing.assert_array_equal(costs, [[0, 1, 1], [10, 0, 1], [1, 1, 0]])
    np.testing.assert_allclose(confusion.cost.estimate.mean, (confusion.mean * costs).sum(axis=1), rtol=1e-6)
    shown = [
        value(f"credence_group_cost_{end}", grouping="class", group="dog")
        for end in ("lower", "mean", "upper")
    ]
    assert shown == sorted(shown)
    assert 0.4 * 10 * 0.5 < shown[1] < 0.4 * 10 * 1.5
    assert value("credence_group_cost_mean", grouping="score_bin", group="[0,0.5)") is None


def test_without_costs_none_are_shown() -> None:
    taken = snapshot(costs=None, assessments={})
    assert taken.groupings["class"].confusion is not None
    assert value("credence_group_cost_mean", taken, grouping="class", group="dog") is None


def test_the_shortest_interval_is_no_wider() -> None:
    shortest = snapshot(interval_kind="highest_density").groupings["class"]
    tails = usual().groupings["class"]
    widths = [g.accuracy.upper - g.accuracy.lower for g in (shortest, tails)]
    assert (widths[0] < widths[1]).all()
    np.testing.assert_array_equal(shortest.accuracy.mean, tails.accuracy.mean)


@pytest.mark.parametrize("prior", ["learned", "informed", "informed_jeffreys", "uniform", "vague"])
@pytest.mark.parametrize("count", [0, 3])
def test_every_prior_makes_a_snapshot(prior: str, count: int) -> None:
    taken = snapshot(count, prior=prior)
    for grouping in taken.groupings.values():
        for name in ("accuracy", "ece"):
            lower, mean, upper = vars(getattr(grouping, name)).values()
            assert np.isfinite([lower, mean, upper]).all()
            assert (lower <= upper).all()


def test_a_verdict_that_would_take_over_ten_years_is_shown_as_beyond_the_budget() -> None:
    console = Console(width=80, file=io.StringIO())
    budget = {"labels": 1, "per_days": 365}
    whole = {"metric": "overall_accuracy", "budget": budget}
    taken = snapshot(5, alerts={"min_accuracy": 0.8}, assessments={"whole": whole})
    console.print(status_view([taken], now=NOW, tick_seconds=5.0))
    text = console.file.getvalue()
    assert ", >10 y" in text
    assert ">10 y: not at this budget" in text
    assert "…" not in text


def test_the_terminal_shows_what_assessments_have_found() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(status_view([usual()], now=NOW, tick_seconds=5.0))
    text = console.file.getvalue()
    assert "Least accurate: dog" in text
    assert "Most accurate: cat" in text
    assert "dog is less accurate than cat" in text
    assert "cost" in text


def test_the_terminal_names_groups_that_have_drifted() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(status_view([drifting()], now=NOW, tick_seconds=5.0))
    text = console.file.getvalue()
    assert "dog (drifted)" in text
    assert "cat (drifted)" not in text
    assert "! Drift: class = dog (warning)" in text


def partial() -> ModelSnapshot:
    """A snapshot of which one group may miss much of its traffic, and another a little."""
    taken = snapshot()
    classes = replace(taken.groupings["class"], missed=np.array([0.004, 0.12, 0.0]))
    folded = {
        "customer": AttributeTraffic(values=1_000, limit=1_000, other_share=0.07),
        "region": AttributeTraffic(values=3, limit=1_000, other_share=0.04),
    }
    return replace(taken, groupings={**taken.groupings, "class": classes}, attributes=folded)


def test_the_terminal_marks_groups_that_are_partial_and_attributes_with_folded_values() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(status_view([partial()], now=NOW, tick_seconds=5.0))
    text = console.file.getvalue()
    assert "dog (partial: up to 12% in __other__)" in text
    assert "cat (partial" not in text
    assert "! Attribute values without a group: customer (warning)" in text
    assert "7.0% of traffic has a value without a group of its own; at most 1,000 values" in text
    assert "without a group: region" not in text


def test_the_terminal_is_not_driven_by_names_that_came_with_messages() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(
        status_view(
            [snapshot(classes=["\x1b]0;taken over\x07\x1b[2J", "cat", "dog"])], now=NOW, tick_seconds=5.0
        )
    )
    text = console.file.getvalue()
    assert "taken over" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_terminal_is_not_driven_by_the_name_of_a_group_that_has_drifted() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(
        status_view(
            [drifting(classes=["cat", "\x1b]0;taken over\x07\x1b[2J", "dog"])], now=NOW, tick_seconds=5.0
        )
    )
    text = console.file.getvalue()
    assert "! Drift: class = " in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_accuracy_over_all_traffic_is_known_by_the_grouping_that_asked_most() -> None:
    asked_by_class = {"worst": ASSESSMENTS["worst"]}
    found = snapshot(99, assessments=asked_by_class)
    by_class, everything = (found.groupings[name] for name in ("class", "all"))
    np.testing.assert_allclose(everything.accuracy.mean, by_class.beliefs.overall.mean())
    assert everything.groups == ["all"]


def test_under_a_fixed_prior_all_traffic_is_one_group() -> None:
    found = snapshot(prior="informed")
    by_class, everything = (found.groupings[name] for name in ("class", "all"))
    assert everything.accuracy.mean != pytest.approx(by_class.beliefs.overall.mean(), abs=1e-6)


def test_eighty_columns_of_a_terminal_are_enough() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(
        status_view([snapshot(30, alerts={"min_accuracy": 0.9, "max_ece": 0.1})], now=NOW, tick_seconds=5.0)
    )
    assert "…" not in console.file.getvalue()


def test_the_flow_tells_labels_by_stretches_of_time_and_none_from_before_or_after_them() -> None:
    history = usual().flow.edges[-1] - usual().flow.edges[0]
    given = NOW + history * np.array([-2.0, -1.0, -0.999, -0.5, -0.26, -0.001, 0.0, 0.001])
    flow = snapshot(given=given.tolist()).flow
    # A histogram's last stretch holds its end as well, and what lies outside of all is left out.
    expected, _ = np.histogram(np.resize(given, 300), flow.edges)
    assert (flow.correct + flow.incorrect).tolist() == expected.tolist()
    assert expected.sum() < 300
