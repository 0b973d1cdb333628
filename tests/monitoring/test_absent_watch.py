"""What is known of items without a self-selected label is kept current beside the rounds."""

from __future__ import annotations

import logging
from functools import cache

import numpy as np
import pytest
from deferred_jobs import Later

from benchmarks.missing_answers import WORLD, predictions
from benchmarks.several_labels import NOW, settings_of, traffic_of
from benchmarks.unrequested_labels import outcome_entries
from service.config.unrequested import ChosenBy
from service.monitoring import absent_watch
from service.monitoring.absent_learning import LearnedAccuracies, learn_accuracies
from service.monitoring.absent_watch import AbsentWatch
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.weighted_labels import WeightedLabels, model_requested_items, weigh_model_labels
from service.statistics.absent_answers import Strata

MODEL = settings_of(WORLD, unrequested_labels={"items": "unknown"}).models["m"]
SPACE = settings_of(WORLD).cell_space("m")
ITEMS, HARDNESS = predictions(np.random.default_rng(1))
ABSENT = np.median(HARDNESS) < HARDNESS
TRAFFIC = traffic_of(ITEMS, SPACE, WORLD)
REST = 30.0
REQUESTS = 60


class Watched:
    """A watch of a model whose harder items have no label, of which some are requested."""

    def __init__(self, requests: int = REQUESTS, items: ChosenBy = "unknown") -> None:
        self.later = Later()
        self.ledger = OutcomeLedger(SPACE, unrequested=items)
        waited = np.arange(1_000)
        self.ledger.fold(outcome_entries(ITEMS, waited, SPACE, begin=1_000, absent=ABSENT, requested=False))
        self.position = 0
        self.watch = AbsentWatch("m", MODEL, self.later, rest_seconds=REST)
        self.request(np.arange(requests))

    def request(self, items: np.ndarray) -> None:
        entries = outcome_entries(ITEMS, items, SPACE, begin=5_000 + self.position)
        self.position += len(entries)
        self.ledger.fold(entries)
        self.ledger.place()

    @property
    def index(self) -> GroupIndex:
        return GroupIndex(SPACE, TRAFFIC, self.ledger.cells)

    def refresh(self, after: float) -> None:
        self.watch.refresh(self.index, self.ledger, (1, self.position), now=NOW + after)

    @property
    def labels(self) -> int:
        """Answered requests that what is known comes from; 0 if nothing is known."""
        return 0 if self.watch.learned is None else self.watch.learned.labels

    def weighted(self) -> WeightedLabels:
        return weigh_model_labels(MODEL, self.index, self.ledger, now=NOW, absent=self.watch.learned)


@cache
def answered(requests: int) -> int:
    """Those of the first requests that say something of items without a label."""
    watched = Watched(requests)
    found = model_requested_items(MODEL, watched.index, watched.ledger, now=NOW)
    assert found is not None
    return found.labels


def test_the_first_learning_is_within_the_round() -> None:
    watched = Watched()
    watched.refresh(0)
    assert watched.later.waiting == []
    assert 0 < watched.labels == answered(REQUESTS) < REQUESTS


def test_the_first_learning_uses_few_strata_and_all_of_them_follow_in_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(absent_watch, "_FIRST_LEARNED_FROM", 5)
    watched = Watched()
    watched.refresh(0)
    assert 5 <= watched.labels < answered(REQUESTS)
    watched.refresh(1)
    watched.later.run()
    watched.refresh(2)
    assert watched.labels == answered(REQUESTS)


def test_a_new_answer_is_learned_from_in_the_background_after_the_rest() -> None:
    watched = Watched()
    watched.refresh(0)
    watched.request(np.arange(REQUESTS, 2 * REQUESTS))
    watched.refresh(1)
    assert watched.labels == answered(REQUESTS)
    watched.later.run()
    watched.refresh(2)
    assert watched.labels == answered(2 * REQUESTS)
    watched.request(np.arange(2 * REQUESTS, 3 * REQUESTS))
    watched.refresh(1 + REST)
    assert watched.later.waiting == []
    watched.refresh(2 + REST)
    assert len(watched.later.waiting) == 1


def test_while_no_outcome_comes_nothing_is_learned_again_within_the_hour() -> None:
    watched = Watched()
    for after in (0.0, REST + 1, 2 * REST + 2):
        watched.refresh(after)
    assert watched.later.waiting == []
    watched.refresh(3_600)
    assert len(watched.later.waiting) == 1


def test_what_is_learned_in_the_background_gives_the_figures_of_learning_within_the_round() -> None:
    slow, quick = Watched(), Watched(2 * REQUESTS)
    slow.refresh(0)
    slow.request(np.arange(REQUESTS, 2 * REQUESTS))
    slow.refresh(1)
    slow.later.run()
    slow.refresh(2)
    quick.refresh(100)
    for one, other in zip(slow.weighted().imputed, quick.weighted().imputed, strict=True):
        np.testing.assert_allclose(np.sort(one.freshness), np.sort(other.freshness), atol=1e-9)


def test_without_an_answered_request_nothing_is_known_and_items_may_be_anything() -> None:
    watched = Watched(0)
    watched.refresh(0)
    assert watched.watch.learned is None
    shares = [labels.freshness @ labels.correct for labels in watched.weighted().imputed]
    assert max(shares) - min(shares) == pytest.approx(ABSENT[:1_000].sum())


def test_nothing_is_learned_where_labels_are_not_self_selected() -> None:
    watched = Watched(items="census")
    watched.refresh(0)
    assert watched.watch.learned is None


def test_a_learning_that_fails_leaves_what_was_learned_before(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched()
    watched.refresh(0)

    def fails(*_: object) -> LearnedAccuracies:
        raise RuntimeError

    monkeypatch.setattr(absent_watch, "learn_accuracies", fails)
    watched.request(np.arange(REQUESTS, 2 * REQUESTS))
    watched.refresh(1)
    watched.later.run()
    with caplog.at_level(logging.ERROR):
        watched.refresh(2)
    assert "could not be learned" in caplog.text
    assert watched.labels == answered(REQUESTS)


def test_groups_are_known_by_name_whatever_their_numbers() -> None:
    watched = Watched(600)
    items = model_requested_items(MODEL, watched.index, watched.ledger, now=NOW)
    assert items is not None
    learned = learn_accuracies(items)
    names = list(items.groups[0])

    def drawn(groups: list[str]) -> np.ndarray:
        levels = np.array([[9] * 2, [0] * 2, [groups.index(names[0]), groups.index(names[1])]])
        return learned.accuracies(Strata(np.zeros(2), levels, items.strata.differ), [groups])

    np.testing.assert_array_equal(drawn(names), drawn([*reversed(names), "new"]))


def test_a_group_that_is_new_is_less_certain_than_the_others() -> None:
    watched = Watched(600)
    items = model_requested_items(MODEL, watched.index, watched.ledger, now=NOW)
    assert items is not None
    names = list(items.groups[0])
    levels = np.array([[9] * 6, [0] * 6, range(6)])
    drawn = learn_accuracies(items).accuracies(
        Strata(np.zeros(6), levels, items.strata.differ), [["new", *names]]
    )
    spread = drawn.std(axis=0)
    assert spread[0] > 1.2 * spread[1:].max()
