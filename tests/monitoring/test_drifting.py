"""How far recent traffic is from its reference, from facts, and where that aims labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from scipy.spatial.distance import jensenshannon
from snapshots import DROPPED, MIXED, NOW, drifting, snapshot
from traffic_tables import JointCell, traffic_of

from service.config.model import DriftSettings
from service.config.settings import Settings
from service.domain.cells import CellSpace
from service.domain.traffic_counts import TrafficCounts
from service.monitoring.drift import GroupingDrift, model_drift
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_encoding import LabelCells
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.monitoring.snapshot import ModelSnapshot
from service.monitoring.suspected_groups import Aim
from service.monitoring.traffic_windows import ComparedTraffic, Stretch
from service.serving.metric_selection import shown_groups
from service.serving.prometheus import SnapshotCollector

DOGS = 1


def by_class(taken: ModelSnapshot) -> GroupingDrift:
    assert taken.drift is not None
    return taken.drift.groupings["class"]


def value(taken: ModelSnapshot, name: str, *, group_limit: int = 200, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: [taken], group_limit=group_limit, clock=lambda: NOW))
    return registry.get_sample_value(f"credence_{name}", {"model": "m", **labels})


def test_without_a_reference_there_is_no_drift_to_tell() -> None:
    assert snapshot().drift is None
    assert value(snapshot(), "grouping_groups_drifted", grouping="class") is None


def test_the_reference_and_recent_traffic_are_told_by_size_and_time() -> None:
    drift = drifting().drift
    assert drift is not None
    assert drift.reference_predictions == sum(MIXED)
    assert drift.reference_since == NOW - 7_200
    assert drift.reference_until == drift.recent_since == NOW - 3_600
    assert drift.recent_predictions == sum(DROPPED)


def test_a_group_whose_scores_fall_has_drifted_and_no_other_of_its_grouping() -> None:
    found = by_class(drifting())
    assert found.drifted.tolist() == [False, True, False]
    assert found.mixes["score"].distance[DOGS] == pytest.approx(jensenshannon([100, 900], [600, 400], base=2))
    assert found.mix_of(DOGS) == "score"


def test_traffic_that_stays_as_it_was_has_not_drifted() -> None:
    drift = drifting(MIXED).drift
    assert drift is not None
    assert not any(found.drifted.any() for found in drift.groupings.values())


def test_a_threshold_that_is_higher_takes_more_to_be_crossed() -> None:
    taken = drifting()
    surely = by_class(taken).score[DOGS]
    higher = snapshot(drift={"max_distance": 0.9}).settings.drift.max_distance
    assert taken.settings.drift.max_distance < surely < higher


def test_a_mix_of_which_all_of_a_group_is_one_kind_is_not_compared() -> None:
    drift = drifting().drift
    assert drift is not None
    assert set(drift.groupings["class"].mixes) == {"score"}
    assert set(drift.groupings["score_bin"].mixes) == {"predicted_class"}
    assert set(drift.groupings["all"].mixes) == {"score", "predicted_class"}


def test_predicted_classes_that_come_more_often_are_seen_in_all_traffic() -> None:
    drift = drifting([100, 900, 100, 900, 500, 4_500]).drift
    assert drift is not None
    everything = drift.groupings["all"]
    assert everything.drifted.tolist() == [True]
    assert everything.mix_of(0) == "predicted_class"
    assert drift.groupings["class"].volume_ratio == pytest.approx([1, 1, 5])


def test_a_grouping_that_was_added_after_the_reference_has_not_drifted_for_being_young() -> None:
    settings = Settings.model_validate(
        {
            "models": {
                "m": {
                    "classes": ["cat", "dog"],
                    "score_bins": 2,
                    "groupings": {"region": {"by": "attribute", "attribute": "where"}},
                }
            }
        }
    )
    space, old = settings.cell_space("m"), replace_groupings(settings.cell_space("m"))
    then, now = (
        [JointCell(values, predicted, 1, count, 1.0, 0.9) for predicted in (0, 1)]
        for values, count in (((), 5_000), (("north",), 9_000))
    )
    before, counts = TrafficCounts.of(traffic_of(old, then)), TrafficCounts.of(traffic_of(space, now))
    recent = counts.since(before)
    compared = ComparedTraffic(
        Stretch(before, NOW - 7_200, NOW - 3_600, NOW - 7_200, before),
        Stretch(recent, NOW - 3_600, NOW, NOW - 3_600, recent.shared_with(before)),
    )
    index = GroupIndex(space, traffic_of(space, now), LabelCells(space))
    groupings = assess_groupings(
        settings=settings.models["m"],
        index=index,
        probability_sums={},
        ledger=OutcomeLedger(space),
        at=NOW,
    )
    drift = model_drift(
        index=index, settings=DriftSettings(), compared=compared, groupings=groupings, now=NOW
    )
    assert drift is not None
    assert set(groupings) == {"all", "score_bin", "region"}
    assert set(drift.groupings) == {"all", "score_bin"}
    assert set(drift.groupings["all"].mixes) == {"score", "predicted_class"}
    assert not any(found.drifted.any() for found in drift.groupings.values())


def replace_groupings(space: CellSpace) -> CellSpace:
    """The same model before a grouping by an attribute was added."""
    plain = {name: one for name, one in space.groupings.items() if one.kind != "attribute"}
    return replace(space, groupings=plain)


def test_scores_promise_the_accuracy_of_their_bins() -> None:
    taken = drifting()
    bins = taken.groupings["score_bin"].accuracy.mean
    expected = by_class(taken).expected_accuracy
    assert expected[DOGS] == pytest.approx(0.6 * bins[0] + 0.4 * bins[1])


def test_a_group_that_is_wrong_where_it_is_sure_is_below_what_its_scores_promise() -> None:
    # Of dogs, three of five predictions are right, whatever the score.
    below = by_class(drifting(MIXED)).below_expected
    assert below[DOGS] > 0.99
    assert below[0] < 0.01


def test_the_series_of_a_group_tell_its_drift() -> None:
    taken, found = drifting(), by_class(drifting())
    at = {"grouping": "class", "group": "dog"}
    assert value(taken, "group_drifted", **at) == 1
    assert value(taken, "group_drift_score", **at) == pytest.approx(found.score[DOGS])
    distance = value(taken, "group_drift_distance", **at, mix="score")
    assert distance == pytest.approx(found.mixes["score"].distance[DOGS])
    assert value(taken, "grouping_groups_drifted", grouping="class") == 1


def test_groups_that_are_told_together_have_drifted_where_one_of_them_has() -> None:
    drifted = drifting()
    assert drifted.drift is not None
    all_drifted = replace(drifted.drift.groupings["class"], drifted=np.ones(3, np.bool_))
    taken = replace(drifted, drift=replace(drifted.drift, groupings={"class": all_drifted}))
    assert value(taken, "group_drifted", group_limit=1, grouping="class", group="other") == 1
    assert value(taken, "grouping_groups_drifted", group_limit=1, grouping="class") == 3


def test_a_group_that_has_drifted_has_metrics_of_its_own() -> None:
    # So the alert names it, and not `other`.
    assert shown_groups(drifting(), limit=1, before={})["class"].members.tolist() == [DOGS]


def test_the_probability_of_being_asked_next_knows_of_suspicion() -> None:
    state = drifting().assessments["best"]
    aim, chance = state.aim, state.next
    assert aim is not None
    assert aim.shares.tolist() == [0, 1, 0]
    assert chance is not None
    assert chance.sum() == pytest.approx(1)
    assert chance[DOGS] >= aim.label_share


def test_without_drift_all_is_left_to_the_policy() -> None:
    assert drifting(MIXED).assessments["best"].aim is None


def test_suspicion_asks_for_its_share_of_labels_and_by_how_far_groups_have_drifted() -> None:
    aim, rng = Aim(np.array([0.0, 0.25, 0.75]), 0.2), np.random.default_rng(0)
    named = Counter(aim.groups(np.ones(3, np.bool_), 10_000, rng))
    # Five standard deviations of a binomial.
    assert named.total() == pytest.approx(2_000, abs=200)
    assert named[2] / named.total() == pytest.approx(0.75, abs=0.05)
    assert set(named) == {1, 2}


def test_suspicion_asks_for_no_group_that_cannot_be_asked() -> None:
    aim, rng = Aim(np.array([0.0, 0.25, 0.75]), 1.0), np.random.default_rng(0)
    assert set(aim.groups(np.array([True, True, False]), 100, rng)) == {1}
    assert aim.groups(np.array([True, False, False]), 100, rng) == []
