"""Labels of streams whose inputs change: who is asked, what is believed, what is confirmed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from replay_examples import plain_pool

from benchmarks.studies.inputs_items import LABELS_ALONE, NO_CHANGE, Items
from benchmarks.studies.inputs_labelled import WAYS, Labelled, LabelStream, Way
from benchmarks.studies.inputs_study import InputsStudy, Seen
from benchmarks.studies.inputs_watched import CHANGED, CHANGING, DRIFT, HEALTHY, ROUND, WINDOW
from service.replay.workers import Workers, workers
from service.statistics.e_processes import log_e_below

GROUPS, RUNS = 5, 3
ITEMS = Items.of(
    plain_pool([90, 90], [10, 10], score=0.95).recording,
    [plain_pool([20, 30], [30, 20], score=0.55).recording],
    bin_count=10,
    binning="equal_width",
)
WORSE = ITEMS.of_recording("worse", 1, 1.0)
STUDY = InputsStudy(ITEMS, groups=GROUPS, predictions=200, alpha=0.05, runs=RUNS, seed=0)
LABELS = LabelStream(ITEMS, WORSE, GROUPS, predictions=200, alpha=0.05)
EVENLY, EVENLY_AIMED = WAYS[:2]
SINCE = slice(HEALTHY, None)


SILENT = ITEMS.labels_alone(0.5)


@cache
def change_run(name: str) -> Seen:
    changes = {change.name: change for change in (ITEMS.healthy, WORSE, SILENT) if change is not None}
    return STUDY.run(changes[name], Workers())


def labelled_run(name: str, way: Way) -> Labelled:
    return change_run(name).labelled[way]


def share(labelled: Labelled) -> float:
    """Of the labels since the change, those of the group that changes."""
    since = (labelled.labels[-1] - labelled.labels[HEALTHY - 1]).sum(axis=0)
    return float(since[CHANGING] / since.sum())


def test_ways_differ_in_policy_and_task_each_with_aim_and_without() -> None:
    assert len({(way.policy, way.task, way.label_share) for way in WAYS}) == len(WAYS)
    for alone, aimed in zip(WAYS[::2], WAYS[1::2], strict=True):
        assert (alone.policy, alone.task, alone.label_share) == (aimed.policy, aimed.task, 0.0)
        assert aimed.label_share == DRIFT.label_share


@pytest.mark.parametrize("predictions", [100, 200, 4_000])
def test_a_label_comes_for_every_so_many_predictions(predictions: int) -> None:
    rounds = HEALTHY + CHANGED
    assert replace(LABELS, predictions=predictions).count(rounds) == rounds * ROUND // predictions
    labels = labelled_run("worse", EVENLY).labels.sum(axis=2)
    assert (labels[-1] == LABELS.count(rounds)).all()


def test_labels_that_are_spread_evenly_are() -> None:
    count = RUNS * (LABELS.count(HEALTHY + CHANGED) - LABELS.count(HEALTHY))
    # Four standard deviations of a binomial.
    assert share(labelled_run("worse", EVENLY)) == pytest.approx(1 / GROUPS, abs=4 * np.sqrt(0.16 / count))


def test_once_a_group_has_drifted_the_aim_gives_it_its_share() -> None:
    since = labelled_run("worse", EVENLY_AIMED).labels[HEALTHY + DRIFT.reference_predictions // ROUND :]
    given = (since[-1] - since[0]).sum(axis=0)
    expected = DRIFT.label_share + (1 - DRIFT.label_share) / GROUPS
    assert given[CHANGING] / given.sum() == pytest.approx(expected, abs=4 * np.sqrt(0.25 / given.sum()))


def test_without_drift_the_aim_changes_nothing() -> None:
    for alone, aimed in zip(WAYS[::2], WAYS[1::2], strict=True):
        np.testing.assert_array_equal(
            labelled_run(NO_CHANGE, alone).labels, labelled_run(NO_CHANGE, aimed).labels
        )


def test_before_the_change_aimed_labels_are_those_of_the_policy() -> None:
    for alone, aimed in zip(WAYS[::2], WAYS[1::2], strict=True):
        both = (labelled_run("worse", way).labels[:HEALTHY] for way in (alone, aimed))
        np.testing.assert_array_equal(*both)


def test_a_group_that_got_worse_is_confirmed_and_sooner_where_drift_aims() -> None:
    first = {
        way: labelled_run("worse", way).confirmed[SINCE, :, CHANGING].argmax(axis=0)
        for way in (EVENLY, EVENLY_AIMED)
    }
    assert labelled_run("worse", EVENLY).confirmed[-1, :, CHANGING].all()
    assert first[EVENLY_AIMED].sum() < first[EVENLY].sum()


def test_what_is_confirmed_has_an_e_value_beyond_what_chance_makes() -> None:
    # Of a single group e-BH asks for 1 / alpha; after one look there is one label of each of these counts.
    one = replace(LABELS, groups=1)
    correct = np.array([[[3.0]], [[3.0]], [[3.0]]])
    wrong = np.array([[[0.0]], [[4.0]], [[12.0]]])
    evidence = log_e_below(correct, wrong, np.full(correct.shape, ITEMS.accuracy(ITEMS.healthy)))
    np.testing.assert_array_equal(one.confirmed(correct, wrong), evidence >= -np.log(0.05))
    assert set(one.confirmed(correct, wrong).ravel().tolist()) == {True, False}


def test_labels_that_turn_make_a_group_less_accurate_than_its_scores_promise() -> None:
    below = labelled_run(LABELS_ALONE, EVENLY).below_expected
    assert (below[-1, :, CHANGING] > 0.99).all()
    assert (labelled_run(NO_CHANGE, EVENLY).below_expected[-1] < 0.99).all()


def test_before_the_change_traffic_of_all_groups_is_alike() -> None:
    cells = LABELS.cells(HEALTHY - 1)
    np.testing.assert_allclose(cells.shares, np.tile(ITEMS.by_bin(ITEMS.healthy), (GROUPS, 1)))
    assert cells.group_scores == pytest.approx(0.95)
    assert cells.group_shares.sum() == pytest.approx(1)


def test_traffic_of_old_fades_by_half_in_as_many_windows_as_a_half_life_has_days() -> None:
    rounds = np.arange(HEALTHY + CHANGED)
    weights = 2 ** (-(rounds[::-1] * ROUND) / (7 * WINDOW))
    changed = weights[HEALTHY:].sum() / weights.sum()
    cells = LABELS.cells(HEALTHY + CHANGED - 1)
    expected = changed * 0.55 + (1 - changed) * 0.95
    assert cells.group_scores[CHANGING] == pytest.approx(expected)
    assert cells.group_scores[CHANGING + 1 :] == pytest.approx(0.95)


def test_figures_depend_on_the_seed_alone_and_on_no_number_of_processes() -> None:
    study = replace(STUDY, runs=21, predictions=40_000)
    with workers(2) as crew:
        apart = study.run(WORSE, crew)
    together = study.run(WORSE, Workers())
    for way in WAYS:
        np.testing.assert_array_equal(together.labelled[way].labels, apart.labelled[way].labels)
    for one, other in zip(together.watched, apart.watched, strict=True):
        np.testing.assert_array_equal(one.drift_scores, other.drift_scores)
    other = replace(study, seed=1, runs=1).run(WORSE, Workers())
    assert (other.watched[0].drift_scores != together.watched[0].drift_scores).any()


def test_a_change_of_a_short_name_has_streams_of_its_own() -> None:
    few = replace(STUDY, predictions=40_000)
    short = [few.run(replace(WORSE, name=name), Workers()).watched for name in ("a", "b")]
    for one, other in zip(*short, strict=True):
        assert (one.drift_scores != other.drift_scores).any()
