"""The start-up phase: which groups get labels for their references, how evenly, and at what cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from snapshots import NOW, drifting, snapshot

from service.monitoring.reference_filling import ReferenceFilling
from service.monitoring.snapshot import ModelSnapshot
from service.monitoring.suspected_groups import find_suspects
from service.serving.documents.references import reference_summary
from service.store.references import ReferenceWindow

EVERY = np.ones(4, np.bool_)


def filling(*collected: int, share: float = 1.0, suspected: tuple[int, ...] = ()) -> ReferenceFilling:
    """References of 10 labels each, of four groups."""
    return ReferenceFilling(
        names=list("abcd"),
        collected=np.array(collected),
        wanted=np.full(4, 10),
        coming=np.zeros(4, np.int64),
        suspected=np.isin(np.arange(4), suspected),
        label_share=share,
    )


def named(one: ReferenceFilling, wanted: int, available: np.ndarray = EVERY) -> list[int]:
    counts: list[int] = np.bincount(
        one.groups(available, wanted, np.random.default_rng(1)), minlength=4
    ).tolist()
    return counts


def test_requests_go_first_to_the_groups_with_the_fewest_labels() -> None:
    assert named(filling(0, 3, 5, 9), 10) == [6, 3, 1, 0]


def test_no_more_labels_are_requested_than_are_missing() -> None:
    assert named(filling(7, 10, 9, 10), 100) == [3, 0, 1, 0]
    assert named(filling(10, 10, 10, 10), 100) == [0, 0, 0, 0]


def test_labels_on_their_way_count_as_collected() -> None:
    assert named(replace(filling(5, 5, 5, 5), coming=np.array([5, 4, 0, 7])), 100) == [0, 1, 5, 0]


def test_groups_under_suspicion_and_groups_without_an_item_get_none() -> None:
    assert named(filling(0, 0, 9, 9, suspected=(0,)), 100) == [0, 10, 1, 1]
    assert named(filling(0, 0, 9, 9), 100, np.array([False, False, True, True])) == [0, 0, 1, 1]


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
def test_the_start_up_phase_takes_its_share_of_the_requests(share: float) -> None:
    one = replace(filling(0, 0, 0, 0, share=share), wanted=np.full(4, 10_000))
    # Four standard deviations of a binomial count.
    assert sum(named(one, 2_000)) == pytest.approx(2_000 * share, abs=4 * np.sqrt(500))


def test_the_next_request_of_the_start_up_phase_goes_to_the_group_with_the_fewest_labels() -> None:
    shares = filling(3, 1, 1, 10).among(EVERY)
    assert shares is not None
    assert shares.tolist() == [0, 0.5, 0.5, 0]
    assert filling(10, 10, 10, 10).among(EVERY) is None


def of(taken: ModelSnapshot) -> ReferenceFilling:
    found = taken.assessments["worst"].filling
    assert found is not None
    return found


def test_a_group_that_has_drifted_or_is_below_the_threshold_is_under_suspicion() -> None:
    assert of(snapshot()).suspected_names == frozenset()
    assert of(drifting()).suspected_names == {"dog"}
    assert "dog" in of(snapshot(alerts={"min_accuracy": 0.85})).suspected_names


def test_references_wait_while_a_suspected_group_needs_labels() -> None:
    assert named(replace(filling(0, 0, 0, 0), waits=True), 100) == [0, 0, 0, 0]
    assert of(drifting()).waits
    assert not of(snapshot()).waits


def test_what_evidence_has_confirmed_stays_suspected_and_needs_no_more_labels() -> None:
    grouping = snapshot(300, alerts={"min_accuracy": 0.85}).groupings["class"]
    dog, proven = grouping.groups.index("dog"), grouping.evidence
    assert proven is not None
    assert grouping.low[dog]
    for is_confirmed in (False, True):
        flags = np.full(len(grouping.groups), is_confirmed)
        confirmed = dict.fromkeys(proven.confirmed, ~grouping.low & flags) | {"below_threshold": flags}
        found = find_suspects(
            replace(grouping, evidence=replace(proven, confirmed=confirmed)), None, since=NOW
        )
        assert found.groups[dog]
        assert bool(found.weights[dog] > 0) != is_confirmed


def test_progress_is_reported_until_the_references_are_complete() -> None:
    estimated = reference_summary(snapshot(20))
    assert estimated.sentence == f"Collecting the reference for declines: {estimated.labels} of 300 labels."
    assert 0 < estimated.labels < 300
    assert estimated.incomplete_groups == 3
    complete = reference_summary(snapshot(300))
    assert (complete.labels, complete.incomplete_groups) == (300, 0)
    assert complete.sentence == "The reference for declines is complete: 300 labels."


def test_groups_under_suspicion_are_reported() -> None:
    estimated = reference_summary(drifting(count=20))
    assert estimated.suspected_groups == 1
    assert estimated.sentence.endswith("Paused: 1 group is suspected.")


def test_the_probability_of_the_next_label_includes_the_start_up_phase() -> None:
    taken = snapshot(40, reference={"labels": 100, "label_share": 1})
    have = of(taken).collected
    chance = taken.assessments["worst"].next
    assert chance is not None
    assert chance[have == have.min()].sum() == pytest.approx(1)


def test_a_window_that_was_set_needs_no_start_up_phase() -> None:
    window = ReferenceWindow(-np.inf, NOW - 10, NOW)
    taken = snapshot(20)
    proven = taken.groupings["class"].evidence
    assert proven is not None
    estimated = reference_summary(replace(taken, reference=window))
    assert estimated.sentence.startswith("The reference for declines is the window until ")
