"""Runs of a study of an ensemble: what they compare, with what, and that chance is theirs alone."""

from __future__ import annotations

import numpy as np
import pytest

from service.replay.ensemble import (
    METHODS,
    SEPARATE,
    SHARED,
    EnsembleStudy,
    Run,
    VotedItems,
    label_as_planned,
    run_once,
)
from service.replay.workers import Workers, workers
from service.statistics.vote_patterns import allocate


def voted(size: int = 400, seed: int = 0) -> VotedItems:
    """Three members that err each by itself."""
    rng = np.random.default_rng(seed)
    positive = rng.random(size) < 0.4
    said = {f"m{m}": positive ^ (rng.random(size) < error) for m, error in enumerate((0.05, 0.1, 0.2))}
    return VotedItems.of(1, said, positive)


def ensemble_study(runs: int = 1) -> EnsembleStudy:
    return EnsembleStudy(voted(), (40,), runs)


def same(one: Run, other: Run) -> bool:
    return all(
        one[method].cost == other[method].cost
        and np.array_equal(one[method].mean, other[method].mean)
        and np.array_equal(one[method].upper, other[method].upper)
        for method in METHODS
    )


@pytest.fixture(scope="module")
def first() -> Run:
    return run_once(ensemble_study(), 40, 0)


@pytest.fixture(scope="module")
def second() -> Run:
    return run_once(ensemble_study(), 40, 1)


def test_the_ensemble_calls_positive_what_more_than_half_of_its_members_do() -> None:
    said = {"a": [1, 1, 1, 0], "b": [1, 1, 0, 0], "c": [1, 0, 0, 0]}
    items = VotedItems.of(
        1, {name: np.array(votes, np.bool_) for name, votes in said.items()}, np.ones(4, np.bool_)
    )
    np.testing.assert_array_equal(items.votes[:, 0], [True, True, False, False])
    assert items.members == ("ensemble", "a", "b", "c")


def test_a_tie_is_not_positive() -> None:
    said = {"a": np.array([True, True]), "b": np.array([False, True])}
    items = VotedItems.of(1, said, np.array([True, True]))
    np.testing.assert_array_equal(items.votes[:, 0], [False, True])


def test_the_truth_is_the_pools() -> None:
    items = voted()
    for member, precision in enumerate(items.truth):
        assert precision == pytest.approx(items.positive[items.votes[:, member]].mean())


def test_a_member_equal_to_the_ensemble_costs_nothing() -> None:
    votes = voted().votes[:, 1]
    items = VotedItems.of(1, {"only": votes}, voted().positive)
    found = run_once(EnsembleStudy(items, (40,), 1), 40, 0)
    assert found[SEPARATE].cost == 80
    assert found[SHARED].cost == 40
    assert all(found[method].cost == 40 for method in METHODS if method not in (SEPARATE, "resample"))


def test_members_that_share_nothing_cost_what_they_cost_alone() -> None:
    votes = np.eye(3, dtype=np.bool_).repeat(50, axis=0)
    items = VotedItems.of(1, {"a": votes[:, 0], "b": votes[:, 1]}, np.arange(150) % 2 == 0, votes[:, 2])
    found = run_once(EnsembleStudy(items, (20,), 1), 20, 0)
    assert found[SHARED].cost == found[SEPARATE].cost == 60


def test_labels_are_as_many_as_planned_and_none_twice() -> None:
    items = voted()
    for labels in (1, 3, 40, int(items.called.min())):
        allocation = allocate(items.patterns, labels)
        known, positive = label_as_planned(items, allocation, np.random.default_rng(labels))
        needed = np.ceil(allocation.sums(allocation.needed) - 1e-9)
        np.testing.assert_array_equal(allocation.sums(known), needed)
        assert (known <= items.patterns.traffic).all()
        assert (positive <= known).all()


def test_where_all_items_are_labelled_all_of_them_are_counted() -> None:
    items = VotedItems.of(1, {"a": np.ones(60, np.bool_)}, np.arange(60) < 45)
    known, positive = label_as_planned(items, allocate(items.patterns, 60), np.random.default_rng(0))
    assert (known.tolist(), positive.tolist()) == ([60.0], [45.0])


def test_estimates_are_right_on_average() -> None:
    items, runs = voted(), 150
    study = EnsembleStudy(items, (60,), runs)
    found = study.run(60, Workers())
    for method in METHODS:
        off = np.mean([run[method].mean for run in found], axis=0) - items.truth
        # Four standard errors of 60 random labels, twice their variance where they are resampled; and half
        # a pseudo-label of each kind draws an estimate by at most 1 / 122 to a half.
        assert (np.abs(off) <= 4 * np.sqrt(2 * items.truth * (1 - items.truth) / 60 / runs) + 1 / 122).all()


def test_shared_labels_are_fewer_and_come_closer() -> None:
    found = EnsembleStudy(voted(), (60,), 60).run(60, Workers())
    errors = {
        method: np.mean([(run[method].mean - voted().truth) ** 2 for run in found]) for method in METHODS
    }
    assert np.mean([run[SHARED].cost for run in found]) < 0.6 * found[0][SEPARATE].cost
    assert errors[SHARED] < errors[SEPARATE]


def test_more_labels_than_a_member_has_items_are_refused() -> None:
    with pytest.raises(ValueError, match="more labels than items"):
        EnsembleStudy(voted(), (10, 300), 1)


def test_a_run_is_decided_by_the_seed_its_labels_and_its_number(first: Run) -> None:
    (again,) = ensemble_study().run(40, Workers())
    assert same(again, first)


def test_runs_draw_other_items(first: Run, second: Run) -> None:
    assert not same(first, second)


def test_two_processes_find_what_one_finds(first: Run, second: Run) -> None:
    with workers(2) as crew:
        shared = ensemble_study(runs=2).run(40, crew)
    assert same(shared[0], first)
    assert same(shared[1], second)
