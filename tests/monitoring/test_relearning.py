"""What is kept of every label after groups have changed, and which groups are learned anew."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic_tables import every_cell, traffic_of

from service.domain.cells import CellSpace
from service.domain.groupings import ByAttribute, Everything
from service.monitoring.change_discounting import (
    ChangeDiscounts,
    ChangeMemory,
    LabelledGrouping,
    OrderedOutcomes,
    discount_changes,
)
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_aggregates import SumTallies
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groups
from service.monitoring.weighted_labels import WeightedLabels, weigh_labels
from service.statistics.change_points import change_point_weights
from service.statistics.policies import Situation, ThompsonPolicy
from service.statistics.questions import Question
from service.statistics.tasks import EstimateAccuracy
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

RUN_LENGTH = 1_000
CAMERAS, COLOURS = 3, 2
"""Cell: camera times colours plus colour."""

FIRST, SECOND = np.array([True, False]), np.array([False, True])  # of two who asked
BY_CAMERA = LabelledGrouping(
    "camera", [f"camera-{n}" for n in range(CAMERAS)], np.arange(6) // COLOURS, FIRST
)
BY_COLOUR = LabelledGrouping(
    "colour", [f"colour-{n}" for n in range(COLOURS)], np.arange(6) % COLOURS, SECOND
)


COLUMNS = ("cells", "sources", "correct", "predicted_at")


def placed(*, marks: np.ndarray, **columns: np.ndarray) -> OrderedOutcomes:
    """Outcomes of which each is a sum of its own, as columns [n]."""
    tallies = SumTallies()
    tallies.add(np.arange(len(marks)), marks)
    answered = np.ones(len(marks), np.bool_)
    return OrderedOutcomes(sums=np.arange(len(marks)), tallies=tallies, answered=answered, **columns)


def columns_of(estimated: OrderedOutcomes) -> dict[str, np.ndarray]:
    """What `placed` makes them from."""
    return {"marks": estimated.tallies.marks} | {name: getattr(estimated, name) for name in COLUMNS}


def outcomes(seed: int, *, count: int = 600, source: int = 0, others: float = 0.95) -> OrderedOutcomes:
    """Labels of three cameras, in the order of their predictions; half way one camera breaks."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(6, size=count)
    it, broken = cells // COLOURS == 1, np.arange(count) >= count // 2
    accuracy = np.where(it, np.where(broken, 0.2, 0.95), others)
    return placed(
        cells=cells,
        sources=np.full(count, source),
        correct=rng.random(count) < accuracy,
        predicted_at=np.arange(count, dtype=np.float64),
        marks=rng.integers(2**64, size=count, dtype=np.uint64),
    )


def look(
    estimated: OrderedOutcomes, *groupings: LabelledGrouping, memory: ChangeMemory | None = None
) -> tuple[np.ndarray, ChangeDiscounts]:
    """Factors of all rows, and the rest."""
    found = discount_changes(
        estimated, groupings, run_length=RUN_LENGTH, memory=ChangeMemory() if memory is None else memory
    )
    return np.ones(len(estimated.sums)) if found.factors is None else found.factors, found


def shuffled(estimated: OrderedOutcomes, order: np.ndarray) -> OrderedOutcomes:
    """The same outcomes, which arrived in another order."""
    return placed(**{name: column[order] for name, column in columns_of(estimated).items()})


def joined(one: OrderedOutcomes, other: OrderedOutcomes) -> OrderedOutcomes:
    """The outcomes of one, then those of the other."""
    more = columns_of(other)
    return placed(**{name: np.append(column, more[name]) for name, column in columns_of(one).items()})


def test_labels_of_a_camera_that_broke_count_as_its_own_order_says_and_all_others_more() -> None:
    estimated = outcomes(0)
    factors, _ = look(estimated, BY_CAMERA)
    of_it = estimated.cells // COLOURS == 1
    alone = change_point_weights(
        correct=estimated.correct[of_it], sizes=np.array([np.count_nonzero(of_it)]), run_length=RUN_LENGTH
    )
    np.testing.assert_allclose(factors[of_it], alone.factors)
    assert factors[~of_it].mean() > 0.5
    assert factors[of_it].min() < 0.01


def test_it_is_reported_which_group_changed_and_since_when() -> None:
    estimated = outcomes(1)
    _, found = look(estimated, BY_CAMERA)
    assert list(found.change_points) == ["camera"]
    ((name, change),) = found.change_points["camera"].items()
    of_it = estimated.predicted_at[estimated.cells // COLOURS == 1]
    assert name == "camera-1"
    assert change.since == pytest.approx(300, abs=25)
    assert change.since == of_it[change.before]
    assert change.weight < 0.1


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_in_which_labels_arrive_means_nothing(seed: int) -> None:
    estimated = outcomes(2)
    order = np.random.default_rng(seed).permutation(len(estimated.sums))
    np.testing.assert_allclose(
        look(shuffled(estimated, order), BY_CAMERA)[0], look(estimated, BY_CAMERA)[0][order]
    )


def test_predictions_of_one_time_count_in_the_order_of_their_labels() -> None:
    estimated = outcomes(3)
    at_once = replace(estimated, predicted_at=np.zeros(len(estimated.sums)))
    np.testing.assert_array_equal(look(at_once, BY_CAMERA)[0], look(estimated, BY_CAMERA)[0])


def test_what_changed_by_one_grouping_is_stale_for_all_others_whoever_asked() -> None:
    mine, theirs = outcomes(4), outcomes(5, source=1)
    factors, _ = look(joined(mine, theirs), BY_CAMERA)
    by_hand, _ = look(mine, BY_CAMERA)
    np.testing.assert_array_equal(factors[:600], by_hand)
    stale = (theirs.cells // COLOURS == 1) & (theirs.predicted_at < 250)
    assert factors[600:][stale].max() < 0.05
    assert factors[600:][theirs.cells // COLOURS != 1].mean() > 5 * factors[600:][stale].max()
    # As many as the one of mine before it.
    camera = np.flatnonzero(mine.cells // COLOURS == 1)
    item = np.flatnonzero(theirs.cells // COLOURS == 1)[50]
    earlier = camera[mine.predicted_at[camera] <= theirs.predicted_at[item]][-1]
    assert factors[600 + item] == by_hand[earlier]


def test_of_two_groups_of_a_label_that_changed_the_one_that_leaves_less_decides() -> None:
    estimated = outcomes(6)
    asked_by_both = replace(estimated, sources=np.tile([0, 1], 300))
    by_camera, by_colour = (look(asked_by_both, grouping)[0] for grouping in (BY_CAMERA, BY_COLOUR))
    together, found = look(asked_by_both, BY_CAMERA, BY_COLOUR)
    np.testing.assert_array_equal(together, np.minimum(by_camera, by_colour))
    assert (by_camera < by_colour).any()
    assert (by_colour < by_camera).any()
    assert set(found.change_points) == {"camera", "colour"}


def test_a_change_leaves_all_of_labels_whose_cells_tell_nothing_of_its_groups() -> None:
    estimated, silent = outcomes(1), outcomes(2, source=1)
    factors, found = look(joined(estimated, silent), replace(BY_CAMERA, silent=SECOND))
    np.testing.assert_array_equal(factors[:600], look(estimated, BY_CAMERA)[0])
    np.testing.assert_array_equal(factors[600:], 1.0)
    assert found.regions is not None
    assert found.regions_of_any_vote is None


def test_labels_whose_cells_tell_nothing_of_a_grouping_that_asked_for_them_detect_nothing() -> None:
    assert look(outcomes(8), replace(BY_CAMERA, silent=FIRST))[1].factors is None


def test_labels_that_others_asked_for_detect_nothing() -> None:
    assert look(outcomes(7, source=1), BY_CAMERA)[1].factors is None


def test_a_memory_changes_nothing_as_labels_come_and_are_corrected() -> None:
    estimated, memory = outcomes(8), ChangeMemory()
    for count in range(50, 600, 50):
        some = placed(**{name: column[:count] for name, column in columns_of(estimated).items()})
        np.testing.assert_array_equal(look(some, BY_CAMERA, memory=memory)[0], look(some, BY_CAMERA)[0])
    right = estimated.correct.copy()
    right[300:] = True
    marks = estimated.tallies.marks ^ (right != estimated.correct).astype(np.uint64)
    corrected = placed(**columns_of(estimated) | {"correct": right, "marks": marks})
    factors, found = look(corrected, BY_CAMERA, memory=memory)
    np.testing.assert_array_equal(factors, look(corrected, BY_CAMERA)[0])
    assert not found.change_points


def test_a_memory_holds_what_looks_of_late_have_asked_for() -> None:
    estimated, memory = outcomes(11), ChangeMemory()
    look(estimated, BY_CAMERA, memory=memory)
    once = len(memory)
    assert once == CAMERAS
    # In turn of now, and of other times.
    for number in range(40):
        look(outcomes(12 + number, count=300), BY_CAMERA, memory=memory)
        look(estimated, BY_CAMERA, memory=memory)
        assert len(memory) <= 10 * once


def test_no_outcomes_forget_nothing() -> None:
    assert look(outcomes(9, count=0), BY_CAMERA)[1] == ChangeDiscounts(None, {})


SPACE = CellSpace(
    ("cat", "dog"),
    (0.5,),
    {"camera": ByAttribute("camera", "camera"), "all": Everything("all")},
)
TRAFFIC = traffic_of(SPACE, every_cell(SPACE, [(f"camera-{n}",) for n in range(CAMERAS)]))


def entries(count: int) -> list[OutcomeEntry]:
    """Labels that were asked for cameras; half way the second one breaks."""
    estimated, made = outcomes(10, others=0.7), []
    for number in range(count):
        camera = f"camera-{estimated.cells[number] // COLOURS}"
        fact = Fact(
            request_id=f"request-{number}",
            item_id=f"item-{number}",
            grouping="camera",
            group=camera,
            predicted_class="cat",
            score=0.7,
            attributes={"camera": camera},
            predicted_at=float(number),
            requested_at=float(number),
        )
        said = LabelFact("cat" if estimated.correct[number] else "dog", float(number), "")
        made.append(OutcomeEntry((number, 0), (number, 0), "a", fact, said))
    return made


def known(*, run_length: float | None, at: float = 1e9, count: int = 600) -> WeightedLabels:
    return known_of(entries(count), run_length=run_length, at=at)[0]


def known_of(
    estimated: list[OutcomeEntry], *, run_length: float | None, at: float = 1e9
) -> tuple[WeightedLabels, GroupIndex]:
    ledger = OutcomeLedger(SPACE)
    ledger.fold(estimated)
    ledger.place()
    index = GroupIndex(SPACE, TRAFFIC, ledger.cells)
    return weigh_labels(index, ledger, decay=0.0, run_length=run_length, now=at), index


def test_labels_that_are_known_are_forgotten_and_still_counted() -> None:
    plain, estimated = known(run_length=None), known(run_length=RUN_LENGTH)
    assert estimated.count == plain.count == 600
    assert estimated.labels.freshness.sum() < plain.labels.freshness.sum() - 80
    assert "camera-1" in estimated.change_points["camera"]
    assert not plain.change_points


def test_what_was_estimated_earlier_knows_no_later_change() -> None:
    alone = known(run_length=RUN_LENGTH, count=291)
    assert known(run_length=RUN_LENGTH, at=290.0).labels.freshness.sum() == alone.labels.freshness.sum() > 200


def share_asked(run_length: float | None) -> float:
    """Of labels that Thompson sampling would ask for now, how many are of the camera that broke."""
    found, index = known_of(entries(380), run_length=run_length)
    beliefs = assess_groups(index["camera"], index.cells.bins, found.labels, prior="uniform")
    weights = np.ones((1, CAMERAS))
    situation = Situation(beliefs.accuracy_beliefs(), weights, weights > 0)
    task, rng = EstimateAccuracy(Question(beliefs.cells)), np.random.default_rng(0)
    asked = [int(ThompsonPolicy().choose(task, situation, rng)[0, 0]) for _ in range(300)]
    return asked.count(index["camera"].names.index("camera-1")) / len(asked)


def test_thompson_sampling_asks_again_about_a_group_that_changed() -> None:
    assert share_asked(RUN_LENGTH) > 0.9 > 1.5 * share_asked(None)


def test_a_camera_that_broke_keeps_its_share_of_what_others_asked_for() -> None:
    asked = [
        msgspec.structs.replace(
            entry, fact=msgspec.structs.replace(entry.fact, grouping="camera" if n % 4 == 0 else "former")
        )
        for n, entry in enumerate(entries(600))
    ]
    estimated, index = known_of(asked, run_length=RUN_LENGTH)
    assert "camera-1" in estimated.change_points["camera"]
    names, cells = index["camera"].names, index["camera"].cells
    mass = np.bincount(
        cells[estimated.labels.cells], weights=estimated.labels.weights * estimated.labels.freshness
    )
    assert mass[names.index("camera-1")] / mass.sum() == pytest.approx(1 / 3, abs=0.03)
