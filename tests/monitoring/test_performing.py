"""What is believed of a binary classifier's performance, from facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from traffic_tables import JointCell, traffic_of

from service.config.assessments import PerformanceSettings
from service.config.settings import Settings
from service.domain.cells import CellSpace
from service.domain.traffic import Traffic
from service.monitoring.binary_performance import RECALLS, PerformanceSnapshot, assess_performance
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.performance_facts import PerformanceFacts, performance_facts
from service.statistics.binary.score_bins import NEGATIVE, POSITIVE, UNLABELLED
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact, PoolRecord

NOW = 1_800_000_000.0
CURVE = {
    "task": "performance",
    "positive_class": "spam",
    "budget": {"labels": 500},
    "targets": {"precision": 0.7, "recall": 0.7},
}


@dataclass
class Mail:
    """A stream of scores of spam, all of which stand in the traffic."""

    scores: np.ndarray
    spam: np.ndarray
    space: CellSpace
    settings: PerformanceSettings

    @classmethod
    def stream(cls, count: int = 4_000, *, seed: int = 0, **changes: Any) -> Mail:
        rng = np.random.default_rng(seed)
        spam = rng.random(count) < 0.3
        scores = np.where(spam, rng.beta(5, 2, count), rng.beta(2, 6, count))
        model = {"classes": ["ham", "spam"], "assessments": {"curve": CURVE | changes}}
        settings = Settings.model_validate({"models": {"m": model}})
        curve = settings.models["m"].assessments_of(PerformanceSettings)["curve"]
        return cls(scores, spam, settings.cell_space("m"), curve)

    @property
    def called(self) -> np.ndarray:
        return self.scores >= 0.5

    @property
    def own_scores(self) -> np.ndarray:
        """Of the predicted class."""
        return np.where(self.called, self.scores, 1 - self.scores)

    def cells(self) -> np.ndarray:
        """Predicted class and score bin of every prediction, as one number."""
        return self.called * self.space.bin_count + self.space.bins(self.own_scores)

    def traffic(self) -> Traffic:
        cells = self.cells()
        counts = np.bincount(cells)
        sums = np.bincount(cells, weights=self.own_scores)
        return traffic_of(
            self.space,
            [
                JointCell((), *divmod(cell, self.space.bin_count), count, float(count), total)
                for cell, (count, total) in enumerate(zip(counts.tolist(), sums.tolist(), strict=True))
            ],
            landmark=NOW,
        )

    def pooled(self, which: np.ndarray) -> list[PoolRecord]:
        return [
            PoolRecord(f"i{i}", self._word(self.called[i]), float(self.own_scores[i]), NOW, {}) for i in which
        ]

    def ledger(self, which: np.ndarray, grouping: str = "all") -> OutcomeLedger:
        ledger = OutcomeLedger(self.space)
        ledger.fold(
            [
                OutcomeEntry(
                    (1, n),
                    (1, n),
                    "curve",
                    Fact(
                        f"r{n}",
                        f"i{i}",
                        grouping,
                        "all",
                        self._word(self.called[i]),
                        float(self.own_scores[i]),
                        {},
                        NOW,
                        NOW,
                    ),
                    LabelFact(self._word(self.spam[i]), NOW, ""),
                )
                for n, i in enumerate(which)
            ]
        )
        ledger.place()
        return ledger

    def facts(self, pooled: np.ndarray, labelled: np.ndarray, grouping: str = "all") -> PerformanceFacts:
        ledger = self.ledger(labelled, grouping)
        found = performance_facts(
            GroupIndex(self.space, self.traffic(), ledger.cells),
            ledger,
            self.pooled(pooled),
            positive="spam",
            decay=0.0,
            now=NOW,
        )
        assert found is not None
        return found

    def assessed(self, facts: PerformanceFacts) -> PerformanceSnapshot:
        return assess_performance(facts, self.settings, np.random.default_rng(0), interval=0.95, now=NOW)

    @staticmethod
    def _word(spam: bool) -> str:
        return "spam" if spam else "ham"


def few_per_cell(mail: Mail, slots: int = 40) -> np.ndarray:
    """As the pool has it: so many of every cell, however much traffic."""
    cells = mail.cells()
    return np.concatenate([np.flatnonzero(cells == cell)[:slots] for cell in np.unique(cells)])


@pytest.fixture(scope="module")
def mail() -> Mail:
    return Mail.stream()


@pytest.fixture(scope="module")
def snapshot(mail: Mail) -> PerformanceSnapshot:
    return mail.assessed(mail.facts(few_per_cell(mail), np.arange(200)))


def test_a_pool_of_few_items_per_cell_stands_for_the_traffic(mail: Mail) -> None:
    facts = mail.facts(few_per_cell(mail), np.arange(0))
    for edge in (0.1, 0.3, 0.5, 0.9):
        share = facts.weights[facts.scores >= edge].sum() / facts.weights.sum()
        assert share == pytest.approx((mail.scores >= edge).mean(), abs=0.01)


def test_a_cell_without_a_pooled_item_shows_its_mean_score(mail: Mail) -> None:
    facts = mail.facts(np.arange(0), np.arange(0))
    assert len(facts.scores) == (np.bincount(mail.cells()) > 0).sum()
    assert np.average(facts.scores, weights=facts.weights) == pytest.approx(mail.scores.mean())


def test_labels_tell_the_class_of_their_score(mail: Mail) -> None:
    chosen = np.arange(100)
    facts = mail.facts(few_per_cell(mail), chosen)
    labelled = facts.labels != UNLABELLED
    assert_allclose(facts.scores[labelled], mail.scores[chosen])
    assert np.array_equal(facts.labels[labelled] == POSITIVE, mail.spam[chosen])
    assert (facts.labels[labelled] == NEGATIVE).sum() == (~mail.spam[chosen]).sum()


def test_labels_that_were_asked_for_at_random_count_one_each(mail: Mail) -> None:
    facts = mail.facts(few_per_cell(mail), np.arange(100))
    assert facts.label_weights[facts.labels != UNLABELLED] == pytest.approx(1.0)


def test_labels_that_were_asked_for_by_score_count_one_each(mail: Mail) -> None:
    """However few items of the traffic a high score has."""
    facts = mail.facts(few_per_cell(mail), few_per_cell(mail, 10), "positive_score")
    assert facts.label_weights[facts.labels != UNLABELLED] == pytest.approx(1.0)


def test_without_traffic_there_is_nothing_to_learn_from(mail: Mail) -> None:
    ledger = OutcomeLedger(mail.space)
    index = GroupIndex(mail.space, traffic_of(mail.space, []), ledger.cells)
    assert performance_facts(index, ledger, [], positive="spam", decay=0.0, now=NOW) is None


def test_precision_and_recall_are_within_their_intervals(mail: Mail, snapshot: PerformanceSnapshot) -> None:
    truth = {
        "precision": mail.spam[mail.called].mean(),
        "recall": mail.called[mail.spam].mean(),
        "false_positive_rate": mail.called[~mail.spam].mean(),
        "prevalence": mail.spam.mean(),
    }
    for name, value in truth.items():
        estimated = snapshot.measures[name]
        assert estimated.lower <= value <= estimated.upper, name
        assert estimated.upper - estimated.lower < 0.25, name


def test_the_true_curve_is_within_the_band(mail: Mail, snapshot: PerformanceSnapshot) -> None:
    order = np.argsort(-mail.scores)
    found = np.cumsum(mail.spam[order])
    at = np.searchsorted(found, RECALLS * found[-1])
    truth = found[at] / (at + 1)
    # The stream happens to be without an error at the top; where it comes from need not be.
    inside = (snapshot.curve.lower <= truth + 0.005) & (truth - 0.005 <= snapshot.curve.upper)
    assert inside.mean() > 0.9


def test_the_probability_that_a_target_is_missed_is_reported(snapshot: PerformanceSnapshot) -> None:
    assert set(snapshot.missed) == {"precision", "recall"}
    assert snapshot.missed["precision"] < 0.05
    assert snapshot.thresholds.probability[snapshot.thresholds.best] > 0.9


def test_where_labels_came_from_does_not_matter(mail: Mail, snapshot: PerformanceSnapshot) -> None:
    by_score = mail.assessed(mail.facts(few_per_cell(mail), few_per_cell(mail, 15), "positive_score"))
    for name, estimated in by_score.measures.items():
        other = snapshot.measures[name]
        assert estimated.lower < other.upper, name
        assert other.lower < estimated.upper, name


@pytest.mark.parametrize("seed", range(4))
def test_a_small_pool_of_a_mixture_is_no_misfit(seed: int) -> None:
    mail = Mail.stream(20_000, seed=seed)
    facts = mail.facts(few_per_cell(mail, 16), np.arange(100))
    assert not mail.assessed(facts).misfit


def test_labels_of_cells_without_traffic_tell_nothing(mail: Mail) -> None:
    ledger = mail.ledger(np.arange(20))
    index = GroupIndex(mail.space, traffic_of(mail.space, []), ledger.cells)
    assert performance_facts(index, ledger, [], positive="spam", decay=0.0, now=NOW) is None


def test_a_threshold_is_reported_with_all_that_happens_there(snapshot: PerformanceSnapshot) -> None:
    count = len(snapshot.thresholds.thresholds)
    for estimated in snapshot.at_thresholds.values():
        assert estimated.median.shape == (count,)
    assert set(snapshot.maps) == {"platt", "beta", "isotonic"}
    assert not snapshot.misfit


def test_where_nothing_is_called_positive_there_is_no_precision_to_be_missed() -> None:
    strict = Mail.stream(threshold=1.0)
    estimated = strict.assessed(strict.facts(few_per_cell(strict), np.arange(40)))
    assert np.isnan(estimated.measures["precision"].median)
    assert estimated.measures["recall"].median == 0
    assert set(estimated.missed) == {"recall"}
