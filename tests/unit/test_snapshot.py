"""Snapshots: what facts say of every kind of assessment, and how metrics and the terminal show it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from rich.console import Console

from service.cells import CombinationDirectory
from service.exposition import SnapshotCollector
from service.ledger import OutcomeLedger
from service.settings import Settings
from service.shard import Traffic
from service.snapshot import ModelSnapshot, take_snapshot
from service.status import status_view
from service.store.facts import OutcomeEntry, RequestFacts, TrafficFacts
from service.store.records import Fact
from service.store.requests import OpenRequest

NOW = 1_800_000_000.0
CLASSES = ["cat", "dog", "owl"]
ACCURACY = {"cat": 0.95, "dog": 0.6, "owl": 0.9}
BUDGET = {"labels": 100}
ASSESSMENTS: dict[str, Any] = {
    "worst": {"task": "identification", "grouping": "class", "budget": BUDGET},
    "best": {"task": "identification", "grouping": "class", "extreme": "highest", "budget": BUDGET},
    "least-calibrated": {
        "task": "identification",
        "metric": "calibration",
        "grouping": "class",
        "budget": BUDGET,
    },
    "dearest": {"task": "identification", "metric": "cost", "grouping": "class", "budget": BUDGET},
    "compare": {"task": "comparison", "grouping": "class", "between": ["dog", "cat"], "budget": BUDGET},
    "whole": {"metric": "overall_accuracy", "budget": BUDGET},
}


def snapshot(count: int = 100, *, traffic: bool = True, **model: Any) -> ModelSnapshot:
    """Of a model with so many labels of every predicted class, half of them asked by either of two."""
    settings = Settings.model_validate(
        {
            "models": {
                "m": {
                    "classes": CLASSES,
                    "score_bins": 2,
                    "groupings": {"class": {"by": "predicted_class"}},
                    "costs": {"mistakes": [{"true": "cat", "predicted": "dog", "cost": 10}]},
                    "assessments": ASSESSMENTS,
                    **model,
                }
            }
        }
    )
    space = settings.cell_space("m")
    rng = np.random.default_rng(3)
    entries = []
    for i, predicted in enumerate(np.repeat(CLASSES, count).tolist()):
        score = 0.3 + 0.6 * (i % 2)
        true = predicted if rng.random() < ACCURACY[predicted] else "cat" if predicted == "dog" else "dog"
        fact = Fact(f"i{i}", predicted, score, {}, NOW - 9, NOW - 9)
        asked = ("worst", "class", predicted) if i % 4 < 2 else ("whole", "score_bin", "[0,0.5)")
        entries.append(OutcomeEntry(f"r{i}", "answered", *asked, fact, true, NOW))
    ledger = OutcomeLedger(space)
    ledger.fold(entries)
    ledger.place(CombinationDirectory(space, [()]))
    weights = np.tile([1.0, 3.0], len(CLASSES)) * traffic
    scores = np.tile([0.3, 0.9], len(CLASSES))
    facts = TrafficFacts(
        [()],
        [0],
        Traffic(NOW, (10 * weights).astype(np.int64), weights, weights * scores),
        {0: 5},
        {0: np.array([NOW - 60, NOW - 20, NOW - 10])},
        {0: 40},
        {0: np.array([3.0, 0.5, 0.5])},
    )
    opened = OpenRequest("whole", "[0.5,1]", {}, "cat", 0.9, 1, NOW)
    return take_snapshot(
        model="m",
        settings=settings.models["m"],
        space=space,
        traffic=facts,
        requests=RequestFacts({"x": opened}, 0, {"worst|0": 40}, {("issued", "worst"): 40}),
        ledger=ledger,
        metric_groups=200,
        history_seconds=3_600,
        now=NOW,
        rng=np.random.default_rng(1),
    )


TAKEN = snapshot()


def value(name: str, taken: ModelSnapshot = TAKEN, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: [taken]))
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
    state = TAKEN.assessments[assessment]
    assert state.extreme is not None
    assert state.groups[int(state.extreme.argmax())] == group
    assert state.extreme.sum() == pytest.approx(1)
    shown = value("credence_assessment_group_extreme_probability_ratio", assessment=assessment, group=group)
    assert shown == pytest.approx(state.extreme.max())


@pytest.mark.parametrize("assessment", ["worst", "best", "least-calibrated", "dearest"])
def test_ranks_count_from_one_at_the_end_that_is_looked_for(assessment: str) -> None:
    state = TAKEN.assessments[assessment]
    assert state.ranks is not None
    assert state.extreme is not None
    assert state.ranks.mean.sum() == pytest.approx(1 + 2 + 3)
    assert state.ranks.mean.argmin() == state.extreme.argmax()
    assert ((state.ranks.lower >= 1) & (state.ranks.lower <= state.ranks.upper)).all()
    assert (state.ranks.upper <= 3).all()


def test_a_comparison_tells_three_probabilities() -> None:
    found = TAKEN.assessments["compare"].compared
    assert found is not None
    assert found.below > 0.95
    assert found.below + found.within + found.above == pytest.approx(1)
    for name in ("below", "within", "above"):
        metric = f"credence_assessment_comparison_{name}_probability_ratio"
        shown = value(metric, assessment="compare", first="dog", second="cat")
        assert shown == pytest.approx(getattr(found, name))


def test_a_comparison_waits_for_traffic_of_both_groups() -> None:
    settings = {"between": ["dog", "yak"], "task": "comparison", "grouping": "class", "budget": BUDGET}
    taken = snapshot(assessments={"compare": settings})
    assert taken.assessments["compare"].compared is None


def test_overall_accuracy_is_asked_by_score_bin() -> None:
    state = TAKEN.assessments["whole"]
    assert state.grouping == "score_bin"
    assert state.groups == ["[0,0.5)", "[0.5,1]"]
    assert state.in_flight.tolist() == [0, 1]


def test_overall_accuracy_stands_on_all() -> None:
    whole = TAKEN.groupings["all"]
    assert value("credence_group_accuracy_mean_ratio", grouping="all", group="all") == whole.accuracy_mean[0]
    assert whole.accuracy_lower[0] < 0.25 * sum(ACCURACY.values()) / 0.75 < whole.accuracy_upper[0]


def test_the_expected_cost_of_predicted_classes_is_shown_and_of_no_other_groups() -> None:
    confusion = TAKEN.groupings["class"].confusion
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
    tails = TAKEN.groupings["class"]
    widths = [g.accuracy_upper - g.accuracy_lower for g in (shortest, tails)]
    assert (widths[0] < widths[1]).all()
    np.testing.assert_array_equal(shortest.accuracy_mean, tails.accuracy_mean)


@pytest.mark.parametrize("prior", ["learned", "informed", "informed_jeffreys", "uniform", "vague"])
@pytest.mark.parametrize("count", [0, 3])
def test_every_prior_makes_a_snapshot(prior: str, count: int) -> None:
    taken = snapshot(count, prior=prior)
    for grouping in taken.groupings.values():
        for name in ("accuracy", "ece"):
            lower, mean, upper = (getattr(grouping, f"{name}_{end}") for end in ("lower", "mean", "upper"))
            assert np.isfinite([lower, mean, upper]).all()
            assert (lower <= upper).all()


def test_the_terminal_shows_what_assessments_have_found() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(status_view([TAKEN]))
    text = console.file.getvalue()
    assert "lowest: dog" in text
    assert "highest: cat" in text
    assert "dog below cat" in text
    assert "cost" in text


def test_the_accuracy_over_all_traffic_is_known_by_the_grouping_that_asked_most() -> None:
    asked_by_class = {"worst": ASSESSMENTS["worst"]}
    found = snapshot(99, assessments=asked_by_class)
    by_class, everything = (found.groupings[name] for name in ("class", "all"))
    np.testing.assert_allclose(everything.accuracy_mean, by_class.beliefs.overall.mean())
    assert everything.groups == ["all"]


def test_under_a_fixed_prior_all_traffic_is_one_group() -> None:
    found = snapshot(prior="informed")
    by_class, everything = (found.groupings[name] for name in ("class", "all"))
    assert everything.accuracy_mean != pytest.approx(by_class.beliefs.overall.mean(), abs=1e-6)
