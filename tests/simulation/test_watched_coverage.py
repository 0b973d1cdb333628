"""What the service shows of binary classifiers holds the truth as often as it says: pool, policy and all.

`test_curve_coverage.py` holds the statistics to it, fed with all scores; here they have what the service has.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.known_classifiers import KINDS, MEASURES
from benchmarks.watched_coverage import covered

LABELS = (20, 200)
CLASSIFIERS = 3
"""Of every kind: each takes two or three seconds."""

AT_ONCE = 36
"""Labels in every round; after the first one there are five. All is learned again before each of them."""

NOMINAL, ALLOWED = 0.95, 0.02
CHANCE = 2 * (NOMINAL * (1 - NOMINAL) / (CLASSIFIERS * len(KINDS))) ** 0.5
"""Two standard errors of the coverage of as many intervals."""


@pytest.fixture(scope="module")
def held() -> dict[str, np.ndarray]:
    """Whether the intervals hold the truth [classifiers, numbers of labels], by measure."""
    found = [
        dict(covered(kind, seed, LABELS, at_once=AT_ONCE)) for kind in KINDS for seed in range(CLASSIFIERS)
    ]
    return {
        name: np.array([[each[n][name] for n in LABELS] for each in found]) for name in found[0][LABELS[0]]
    }


def test_intervals_at_the_threshold_hold_the_truth(held: dict[str, np.ndarray]) -> None:
    assert np.mean([held[name] for name in MEASURES]) >= NOMINAL - ALLOWED


@pytest.mark.parametrize("name", [*MEASURES, "curve"])
def test_no_measure_is_told_too_surely(held: dict[str, np.ndarray], name: str) -> None:
    # Few labels and many are of the same classifiers, so these tell hardly more than either alone.
    assert held[name].mean() >= NOMINAL - CHANCE


@pytest.mark.parametrize("labels", LABELS)
def test_neither_few_labels_nor_many_are_told_too_surely(held: dict[str, np.ndarray], labels: int) -> None:
    at = LABELS.index(labels)
    assert np.mean([held[name][:, at] for name in MEASURES]) >= NOMINAL - CHANCE
