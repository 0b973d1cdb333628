"""Agreement of people if items are labelled again where a label differs from the prediction."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from service.config.labels_per_item import LabelsPerItem
from service.monitoring.label_quality import Ends, label_quality
from service.monitoring.label_truth import LabelledItems

RUNS, ITEMS, CLASSES = 300, 400, 3
RELIABILITY = np.array([0.97, 0.95, 0.9, 0.9, 0.7])  # of the people
ACCURACY = 0.9  # of the model
PEOPLE = [("acme" if person < 3 else "beta", f"p{person}") for person in range(len(RELIABILITY))]


def probability_of_agreement() -> tuple[float, float]:
    """That two people give an item the same label, and Krippendorff's alpha: closed forms of the world below.

    Who errs says any other class, each equally often; classes are equally frequent.
    """
    first, second = np.triu_indices(len(RELIABILITY), 1)
    right, wrong = RELIABILITY, 1 - RELIABILITY
    agree = right[first] * right[second] + wrong[first] * wrong[second] / (CLASSES - 1)
    share = float(agree.mean())
    return share, 1 - (1 - share) / (1 - 1 / CLASSES)


@dataclass
class Run:
    """Labels of one run, as the service asks for them."""

    seed: int
    policy: LabelsPerItem = field(default_factory=lambda: LabelsPerItem(most=3, audit_share=0.15))

    def items(self) -> LabelledItems:
        rng = np.random.default_rng([7, self.seed])
        true = rng.integers(CLASSES, size=ITEMS)
        predicted = np.where(rng.random(ITEMS) < ACCURACY, true, self._other(true, rng))
        audited = rng.random(ITEMS) < self.policy.audit_share
        labels: list[tuple[int, int, int]] = []
        for item in range(ITEMS):
            people = rng.permutation(len(RELIABILITY))
            given: list[int] = []
            while self.policy.wants_another(given, int(predicted[item]), is_audited=bool(audited[item])):
                person = int(people[len(given)])
                is_right = rng.random() < RELIABILITY[person]
                answer = true[item] if is_right else self._other(true[item : item + 1], rng)[0]
                labels.append((item, person, int(answer)))
                given.append(int(answer))
        of, people_codes, classes = np.array(labels).T
        return LabelledItems(
            rows=np.arange(ITEMS),
            cells=np.zeros(ITEMS, np.intp),
            predicted=predicted,
            scores=np.full(ITEMS, 0.9),
            items=of,
            people=people_codes,
            classes=classes,
            as_given=classes,
            delays=np.full(len(labels), 60.0),
            original=np.ones(ITEMS, np.bool_),
        )

    @staticmethod
    def _other(true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.asarray((true + rng.integers(1, CLASSES, size=len(true))) % CLASSES)


@cache
def found() -> tuple[list[Ends], list[Ends], list[float], list[Ends]]:
    """Of all runs: agreement, alpha, plain agreement of all pairs, and that of the least reliable person."""
    agreements, alphas, plain, of_last = [], [], [], []
    for run in range(RUNS):
        items = Run(run).items()
        quality = label_quality(items, PEOPLE, least=1, mass=0.95, rng=np.random.default_rng(run))
        last = quality.people["beta", "p4"].agreement
        assert quality.agreement is not None
        assert quality.alpha is not None
        assert last is not None
        agreements.append(quality.agreement)
        alphas.append(quality.alpha)
        of_last.append(last)
        same = (items.items[:, None] == items.items) & np.triu(np.ones((len(items.items),) * 2, np.bool_), 1)
        first, second = np.nonzero(same)
        plain.append(float((items.classes[first] == items.classes[second]).mean()))
    return agreements, alphas, plain, of_last


def error_of(estimates: list[float], truth: float) -> tuple[float, float]:
    """Mean error, and its standard error."""
    return float(np.mean(estimates) - truth), float(np.std(estimates) / np.sqrt(len(estimates)))


def test_the_weighted_agreement_has_no_bias_where_that_of_all_pairs_has() -> None:
    share, _ = probability_of_agreement()
    agreements, _, plain, _ = found()
    bias, error = error_of([mean for _, mean, _ in agreements], share)
    assert abs(bias) < 3 * error + 0.002  # 0.002: a ratio of sums has a bias of the order of 1 / items
    of_plain, error = error_of(plain, share)
    assert of_plain < -0.1
    assert of_plain < -10 * error


def test_weighted_alpha_has_no_bias() -> None:
    _, alpha = probability_of_agreement()
    bias, error = error_of([mean for _, mean, _ in found()[1]], alpha)
    assert abs(bias) < 3 * error + 0.004


def test_the_weighted_agreement_of_a_person_has_no_bias() -> None:
    right, others = RELIABILITY[-1], RELIABILITY[:-1]
    share = float((right * others + (1 - right) * (1 - others) / (CLASSES - 1)).mean())
    bias, error = error_of([mean for _, mean, _ in found()[3]], share)
    assert abs(bias) < 3 * error + 0.01  # few items


@pytest.mark.parametrize("which", [0, 1])
def test_intervals_hold_in_95_percent_of_runs(which: int) -> None:
    truth = probability_of_agreement()[which]
    held = np.mean([lower <= truth <= upper for lower, _, upper in found()[which]])
    # The share of 300 runs has a standard error of 1.3 points.
    assert held > 0.95 - 3 * 0.013
