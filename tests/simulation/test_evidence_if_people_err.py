"""What is confirmed if one label in twenty is wrong: nothing false with a bound, and much without one."""

from __future__ import annotations

import numpy as np
import pytest

from service.config.settings import Settings
from service.domain.traffic import Traffic
from service.domain.traffic_tables import tables
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import model_evidence
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.e_processes import discoveries, log_e_below
from service.statistics.label_errors import NEVER_WRONG, GoldCounts, learned
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

REGION = "region"
GROUPS, RUNS, LABELS, EVERY = 20, 30, 300, 20
TARGET, WRONG, ALPHA = 0.88, 0.05, 0.05


def settings_of(**labels_per_item: object) -> Settings:
    model = {
        "classes": ["cat", "dog"],
        "score_bins": 1,
        "groupings": {REGION: {"by": "attribute", "attribute": REGION}},
        "assessments": {"ask": {"grouping": REGION, "budget": {"labels": 1}}},
        "alerts": {"min_accuracy": TARGET},
        "labels_per_item": labels_per_item,
    }
    return Settings.model_validate({"models": {"m": model}})


def outcome(number: int, group: int, agrees: bool) -> OutcomeEntry:
    place = (1, number)
    fact = Fact(
        *(f"r{number}", f"i{number}", REGION, str(group), "cat", 0.9),
        *({REGION: str(group)}, float(number), float(number)),
    )
    label = LabelFact("cat" if agrees else "dog", float(number), "ana")
    return OutcomeEntry(place, place, "ask", fact, label)


def confirmed(accuracies: np.ndarray, settings: Settings, rng: np.random.Generator) -> dict[str, set[str]]:
    """Groups of which anything is ever confirmed, by kind; looked at after every 20 labels of each."""
    model, space = settings.models["m"], settings.cell_space("m")
    traffic = Traffic(tables(space))
    traffic.tables[REGION].restore([str(n) for n in range(GROUPS)], np.zeros(GROUPS))
    for table in traffic.tables.values():
        for block in table.blocks.values():
            for column in (block.counts, block.weights, block.score_sums):
                column[: GROUPS if table is traffic.tables[REGION] else 1] = 1
    ledger = OutcomeLedger(space, may_err=model.labels_per_item.may_err)
    found: dict[str, set[str]] = {}
    before, number = {}, 0
    for _ in range(LABELS // EVERY):
        entries = []
        for group in np.repeat(np.arange(GROUPS), EVERY).tolist():
            # The wrong labels are those that make the model look worse.
            agrees = rng.random() < accuracies[group] * (1 - WRONG)
            entries.append(outcome(number, group, agrees))
            number += 1
        ledger.fold(entries)
        ledger.place()
        before = model_evidence(
            settings=model,
            index=GroupIndex(space, traffic, ledger.cells),
            ledger=ledger,
            open_requests={},
            reference=None,
            checkpoint=None,
            before=before,
        )
        evidence = before[REGION]
        for kind, which in evidence.confirmed.items():
            found.setdefault(kind, set()).update(np.array(evidence.groups)[which].tolist())
    return found


def test_nothing_false_is_confirmed_at_the_threshold_if_the_bound_holds() -> None:
    settings = settings_of(most=3, max_error=WRONG)
    runs = [confirmed(np.full(GROUPS, TARGET), settings, np.random.default_rng(run)) for run in range(RUNS)]
    # At most 5% of the runs; four of 30 would be improbable (2%).
    assert sum(any(found.values()) for found in runs) <= 3
    assert all(found["miscalibrated"] == set() for found in runs)


def test_labels_that_are_taken_for_the_truth_confirm_what_is_not_so() -> None:
    found = confirmed(np.full(GROUPS, TARGET), settings_of(), np.random.default_rng(1))
    assert found["below_threshold"]


def test_a_group_that_is_far_below_is_confirmed_all_the_same() -> None:
    accuracies = np.full(GROUPS, 0.95)
    accuracies[3] = 0.7
    settings = settings_of(most=3, max_error=WRONG)
    assert confirmed(accuracies, settings, np.random.default_rng(1))["below_threshold"] == {"3"}


def log_e(agrees: np.ndarray, threshold: float) -> np.ndarray:
    """Log e-values against "so many labels agree, or more" after every label of many groups [G, labels]."""
    correct = np.cumsum(agrees, axis=1).astype(np.float64)
    return log_e_below(correct, np.arange(1, agrees.shape[1] + 1) - correct, np.full(agrees.shape, threshold))


def first_at(agrees: np.ndarray, threshold: float) -> np.ndarray:
    """After how many labels each group is confirmed with an error probability of 5% [G]."""
    confirmed = log_e(agrees, threshold) >= np.log(20)
    return np.where(confirmed.any(axis=1), confirmed.argmax(axis=1) + 1, np.inf)


def test_of_a_thousand_groups_few_are_ever_confirmed_falsely_and_few_of_those_that_are() -> None:
    rng = np.random.default_rng(0)
    at_threshold, count, labels = 900, 1_000, 400
    accuracies = np.where(np.arange(count) < at_threshold, TARGET, 0.7)
    agrees = rng.random((count, labels)) < (accuracies * (1 - WRONG))[:, None]
    evidence = log_e(agrees, TARGET * (1 - WRONG))
    assert (evidence[:at_threshold].max(axis=1) >= np.log(20)).mean() <= 0.05
    shares = []
    for after in range(labels):
        taken = discoveries(evidence[:, after], 0.05)
        shares.append(taken[:at_threshold].sum() / max(taken.sum(), 1))
    assert max(shares) <= 0.05


@pytest.mark.parametrize(("classes", "times"), [(2, 2.4), (5, 1.8), (20, 1.7)])
def test_a_fall_is_detected_with_few_more_labels_than_if_all_were_right(classes: int, times: float) -> None:
    rng = np.random.default_rng(0)
    shape = (400, 1_500)
    correct = rng.random(shape) < 0.82
    is_wrong = rng.random(shape) < WRONG
    # A wrong label of an incorrect prediction is its class in one of so many cases. The standard error of the
    # ratio is 0.07; of 2,000 groups it is 2.1, 1.6 and 1.5.
    agrees = np.where(is_wrong, ~correct & (rng.random(shape) < 1 / (classes - 1)), correct)
    clean = np.median(first_at(correct, TARGET))
    assert np.median(first_at(agrees, TARGET * (1 - WRONG))) <= times * clean


def test_there_is_no_evidence_without_a_bound() -> None:
    policy = settings_of(most=3).models["m"].labels_per_item
    assert not policy.has_evidence
    assert settings_of(most=3, max_error=WRONG).models["m"].labels_per_item.has_evidence


def learned_log_e(agrees: np.ndarray, gold: np.ndarray, share: float) -> np.ndarray:
    """The same with the bound that gold labels give by then, `share` times as many as labels of each group.

    All groups have one sequence of gold labels, as they have in the service: whether each is wrong.
    """
    correct = np.cumsum(agrees, axis=1).astype(np.float64)
    counts = np.arange(1, agrees.shape[1] + 1)
    found = np.full(agrees.shape, -np.inf)
    for after in counts:
        labels = min(len(gold), int(share * after))
        bounds = learned(GoldCounts(labels, int(gold[:labels].sum())), ALPHA).of_correct
        if bounds:
            thresholds = np.array([[TARGET * (1 - bound)] for bound in bounds])
            s = correct[:, after - 1]
            found[:, after - 1] = log_e_below(s, after - s, thresholds).min(axis=0)
    return found


def test_of_a_thousand_groups_few_are_ever_confirmed_falsely_with_a_learned_bound() -> None:
    rng = np.random.default_rng(0)
    at_threshold, count, labels, runs = 900, 1_000, 200, 3
    accuracies = np.where(np.arange(count) < at_threshold, TARGET, 0.6)
    left = NEVER_WRONG._replace(is_learned=True).left_of(ALPHA)
    for _ in range(runs):
        agrees = rng.random((count, labels)) < (accuracies * (1 - WRONG))[:, None]
        # Looked at after every label of each group, while gold labels come in.
        evidence = learned_log_e(agrees, rng.random(10 * labels) < WRONG, 10)
        assert (evidence[:at_threshold].max(axis=1) >= -np.log(left)).mean() <= ALPHA
        shares = []
        for after in range(labels):
            taken = discoveries(evidence[:, after], left)
            shares.append(taken[:at_threshold].sum() / max(taken.sum(), 1))
        assert max(shares) <= ALPHA
        assert evidence[at_threshold:, -1].max() >= -np.log(left), "what is far below is confirmed"


def test_nothing_is_confirmed_by_labels_of_people_of_whom_nothing_is_known() -> None:
    agrees = np.zeros((2, 50), np.bool_)
    assert np.isneginf(learned_log_e(agrees, np.zeros(0, np.bool_), 1)).all()
