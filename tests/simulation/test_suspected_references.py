"""Evidence stays valid when labels requested under suspicion are left out of the reference.

Suspicion follows from earlier labels, so it leaves out labels after bad luck: which labels are of the
reference depends on the past, and not on what they say. Each run is a group of its own.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from service.monitoring.reference_labels import split_labels
from service.statistics.grouped_e_processes import GroupedLabels, GroupEvidence, assess_evidence

RUNS, LABELS, REFERENCE, EVERY = 300, 400, 100, 40
LAST = 30  # labels that the posterior remembers
THRESHOLD, ALPHA = 0.9, 0.05


def labels_of(rng: np.random.Generator, accuracy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether labels are right, and whether the posterior before each suspected the group [R, n]."""
    correct = rng.random((RUNS, LABELS)) < accuracy
    total = np.pad(np.cumsum(correct, axis=1), ((0, 0), (1, 0)))
    until = np.arange(LABELS)
    since = np.maximum(until - LAST, 0)
    right, count = total[:, until] - total[:, since], until - since
    suspected = special.betainc(1 + right, 1 + count - right, THRESHOLD) >= 0.8
    return correct, suspected


def alarmed(correct: np.ndarray, suspected: np.ndarray) -> dict[str, np.ndarray]:
    """After how many labels evidence first reaches 2 / alpha, by kind [R]; infinite if never."""
    first = {kind: np.full(RUNS, np.inf) for kind in ("declined", "changed")}
    none = GroupEvidence.none(RUNS)
    for count in range(EVERY, LABELS + 1, EVERY):
        groups = np.repeat(np.arange(RUNS), count)
        left = np.full(RUNS, float(REFERENCE))
        then, now = split_labels(groups, suspected[:, :count].ravel(), left)
        found = assess_evidence(
            GroupedLabels(
                groups,
                scores=np.full(len(groups), THRESHOLD),
                correct=correct[:, :count].ravel(),
                unanswered=np.zeros(len(groups), np.bool_),
                in_reference=then,
                is_compared=now,
                is_counted=np.ones(len(groups), np.bool_),
            ),
            seen=np.zeros(RUNS, np.intp),
            before=none,
            thresholds=np.full(RUNS, np.nan),
            alpha=ALPHA,
            baseline_alpha=np.full(RUNS, ALPHA / 2),
            fixed=True,
            base=none,
        )
        for kind, times in first.items():
            with np.errstate(invalid="ignore"):
                reached = getattr(found, kind) >= np.log(2 / ALPHA)
            times[:] = np.where(reached, np.minimum(times, count), times)
    return first


@pytest.mark.parametrize("accuracy", [0.85, 0.9, 0.95])
def test_a_group_whose_accuracy_stays_is_seldom_ever_confirmed(accuracy: float) -> None:
    correct, suspected = labels_of(np.random.default_rng(4), np.full(LABELS, accuracy))
    assert suspected.any()
    for kind, times in alarmed(correct, suspected).items():
        # At most alpha, and four standard errors of a share of so many runs.
        assert np.isfinite(times).mean() <= ALPHA + 4 * np.sqrt(ALPHA / RUNS), kind


def test_a_fault_while_the_reference_is_collected_does_not_hide_the_next_one() -> None:
    at = np.arange(LABELS)
    # Faults after 20 and after 300 labels; the first one is repaired after 100.
    accuracy = np.where((at >= 20) & (at < 100), 0.5, np.where(at < 300, 0.97, 0.55))
    correct, suspected = labels_of(np.random.default_rng(5), accuracy)
    estimated = {
        "left out": np.isfinite(alarmed(correct, suspected)["changed"]).mean(),
        "let in": np.isfinite(alarmed(correct, np.zeros_like(suspected))["changed"]).mean(),
    }
    # Of 100 labels of the reference, about 10 are from the first fault, before it is suspected; else 80 are.
    assert estimated["left out"] > 0.9
    assert estimated["let in"] < 0.1
