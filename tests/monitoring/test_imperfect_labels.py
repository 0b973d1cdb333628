"""Performance, ensembles and challengers where labels are wrong, missing, or come without a request."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks.imperfect_sites import Case, Site, predictions, settings_of
from benchmarks.several_labels import NOW
from service.config.assessments import ChallengeSettings
from service.monitoring.challenger import ChallengeSnapshot, challenge_snapshot
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_aggregates import SKIPPED_CLASS
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.weighted_labels import weigh_model_labels
from service.store.outcome_entries import OutcomeEntry

TASKS = ("performance", "challenge", "ensemble")
PEOPLE = {"labels_per_item": {"most": 3}}
AT_RANDOM = {"unanswered": {"skipped": "at_random", "expired": "at_random"}}
UNKNOWN = {"unrequested_labels": {"items": "unknown"}}


@cache
def site(task: str, classes: int = 2) -> Site:
    """A site with few requests; learning performance takes seconds if labels may be wrong."""
    case = Case(task, classes, requests=60)
    rng = np.random.default_rng(4)
    return Site(case, predictions(case, rng), rng)


def true_labels(there: Site, count: int | None = None) -> dict[int, list[tuple[int, int]]]:
    """A label of each of the first requested items, all by one person."""
    return {item: [(0, int(there.items.truth[item]))] for item in there.chosen.tolist()[:count]}


def compared(there: Site, entries: list[OutcomeEntry], **more: Any) -> ChallengeSnapshot:
    """What is known of a challenger, with more arguments."""
    model = settings_of(there.case).models["m"]
    ledger = OutcomeLedger(there.space)
    ledger.fold(entries)
    ledger.place(votes_missing=False)
    index = GroupIndex(there.space, there.traffic, ledger.cells)
    labels = weigh_model_labels(model, index, ledger, now=NOW).compared
    (asked,) = model.assessments_of(ChallengeSettings).values()
    found = challenge_snapshot(asked, index, labels, ledger, now=NOW, interval=0.95, **more)
    assert found is not None
    return found


def is_inside(there: Site, ends: np.ndarray) -> np.ndarray:
    truth = there.truths()
    return (ends[0] <= truth) & (truth <= ends[1])


@pytest.mark.parametrize("task", TASKS)
def test_self_selected_labels_change_nothing(task: str) -> None:
    there = site(task)
    requested = there.entries(true_labels(there))
    # Among others of items that were requested, too.
    items = [*there.chosen.tolist()[:20], *range(300)]
    others = {item: int(there.items.truth[item]) if item % 2 else None for item in dict.fromkeys(items)}
    both = requested + there.unrequested(others, begin=len(requested))
    # Sums come in another order.
    np.testing.assert_allclose(there.estimates(both, **UNKNOWN), there.estimates(requested), atol=1e-9)


@pytest.mark.parametrize("task", TASKS)
def test_a_self_selected_label_of_a_skipped_item_counts_only_in_place_of_the_worst_case(task: str) -> None:
    there = site(task)
    labels = true_labels(there)
    skipped = there.chosen.tolist()[:15]
    requested = there.entries(labels | {item: [] for item in skipped})
    own = {item: int(there.items.truth[item]) for item in skipped}
    both = requested + there.unrequested(own, begin=len(requested))
    at_random = there.estimates(requested, **AT_RANDOM)
    np.testing.assert_allclose(there.estimates(both, **UNKNOWN, **AT_RANDOM), at_random, atol=1e-9)
    worst, replaced = there.estimates(requested), there.estimates(both, **UNKNOWN)
    assert (replaced[1] - replaced[0]).sum() < (worst[1] - worst[0]).sum()


@pytest.mark.parametrize("task", TASKS)
def test_labels_of_a_census_count(task: str) -> None:
    there = site(task)
    requested = there.entries(true_labels(there))
    census = {item: int(there.items.truth[item]) for item in range(600)}
    both = requested + there.unrequested(census, begin=len(requested))
    alone, found = there.estimates(requested), there.estimates(both, unrequested_labels={"items": "census"})
    assert (found[1] - found[0]).sum() < 0.8 * (alone[1] - alone[0]).sum()
    assert is_inside(there, found).mean() > 0.5


@pytest.mark.parametrize("task", TASKS)
def test_skipped_items_make_intervals_wider_at_both_ends(task: str) -> None:
    there = site(task)
    some = there.entries(true_labels(there) | {item: [] for item in there.chosen.tolist()[:20]})
    at_random, worst = there.estimates(some, **AT_RANDOM), there.estimates(some)
    assert (worst[0] < at_random[0]).all()
    assert (worst[1] > at_random[1]).all()


@pytest.mark.parametrize("task", TASKS)
def test_if_all_items_are_skipped_nothing_is_known(task: str) -> None:
    there = site(task)
    ends = there.estimates(there.entries({item: [] for item in there.chosen.tolist()}))
    wide = 0.5 if task == "challenge" else 0.9
    if task == "challenge":  # the difference is at most the share of disagreements, either way
        ends = ends / (there.items.predicted != there.items.others[:, 0]).mean()
    assert (ends[1] - ends[0]).min() > wide
    assert is_inside(there, ends).all() or task == "challenge"


@pytest.mark.parametrize("task", ["challenge", "ensemble"])
def test_true_labels_of_people_who_may_err_give_wider_intervals(task: str) -> None:
    there = site(task, 3)
    labels = there.entries(true_labels(there))
    sure, unsure = there.estimates(labels), there.estimates(labels, labels_per_item={"reliability": 0.9})
    assert (unsure[1] - unsure[0]).mean() > (sure[1] - sure[0]).mean()


@pytest.mark.parametrize(
    ("task", "count"),
    [("challenge", 0), ("challenge", 1), ("ensemble", 0), ("ensemble", 1)],
)
def test_few_labels_of_people_who_err_are_enough_for_wide_intervals(task: str, count: int) -> None:
    there = site(task)
    ends = there.estimates(there.entries(true_labels(there, count)), **PEOPLE)
    assert np.isfinite(ends).all()
    assert is_inside(there, ends).all()


def test_performance_is_estimated_from_labels_without_a_positive_one() -> None:
    there = site("performance")
    negative = {item: [(0, 1), (1, 1)] for item in there.chosen.tolist() if there.items.truth[item] == 1}
    ends = there.estimates(there.entries(negative), **PEOPLE)
    assert np.isfinite(ends).all()
    assert (ends[1] >= ends[0]).all()


def test_scores_of_one_are_no_problem() -> None:
    there = site("performance")
    sure = np.where(there.items.scores > 0.9, 1.0, there.items.scores)
    certain = Site(there.case, there.items._replace(scores=sure), np.random.default_rng(1))
    labels = true_labels(certain) | {item: [] for item in certain.chosen.tolist()[:5]}
    assert np.isfinite(certain.estimates(certain.entries(labels), **PEOPLE)).all()


@pytest.mark.parametrize("task", ["challenge", "ensemble"])
def test_one_who_lies_about_every_item_is_outvoted(task: str) -> None:
    there = site(task)
    truth = there.items.truth
    given = {
        i: [(0, 1 - int(truth[i])), *((n, int(truth[i])) for n in (1, 2))] for i in there.chosen.tolist()
    }
    first = there.entries({item: labels[:1] for item, labels in given.items()})
    found, believed = there.estimates(there.entries(given), **PEOPLE), there.estimates(first)
    assert is_inside(there, found).mean() > 0.7
    assert is_inside(there, believed).mean() < 0.3


def test_groups_are_crossed_by_what_the_tasks_compare() -> None:
    there = site("ensemble")
    ledger = OutcomeLedger(there.space)
    ledger.fold(there.entries(true_labels(there)))
    ledger.place(votes_missing=False)
    index = GroupIndex(there.space, there.traffic, ledger.cells)
    one, both = index.crossed(["__votes__"]), index.crossed(["score_bin", "__votes__"])
    assert list(one.names) == index["__votes__"].names
    assert len(set(both.names)) == len(both.names)
    pairs = {*zip(index["score_bin"].numbers.tolist(), one.numbers.tolist(), strict=True)}
    assert len(both.names) == len(pairs) == len(set(both.numbers.tolist()))


def test_evidence_counts_a_skipped_disagreement_against_itself() -> None:
    there = site("challenge")
    labels = true_labels(there)
    some = there.entries(labels | {item: [] for item in there.chosen.tolist()[:25]})
    ignored, counted = (compared(there, some, any_class=each) for each in ((), (SKIPPED_CLASS,)))
    assert counted.evidence_better < ignored.evidence_better
    assert counted.evidence_worse < ignored.evidence_worse
    assert ignored.labels == counted.labels


@pytest.mark.parametrize("wrong_labels", [0.05, 0.2])
def test_evidence_that_allows_for_wrong_labels_is_less(wrong_labels: float) -> None:
    there = site("challenge")
    labels = there.entries(true_labels(there))
    sure, unsure = (compared(there, labels, wrong_labels=each) for each in (0.0, wrong_labels))
    assert unsure.evidence_better < sure.evidence_better
    assert unsure.difference.mean == sure.difference.mean


def test_without_a_bound_of_wrong_labels_there_is_no_evidence() -> None:
    there = site("challenge")
    found = compared(there, there.entries(true_labels(there)), wrong_labels=None)
    assert found.evidence_better == found.evidence_worse == 1
