"""Bands of the precision-recall curve hold the truth as often as they say, whatever the scores are like."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from service.statistics.binary.performance import performance
from service.statistics.binary.score_bins import UNLABELLED, bin_scores
from service.statistics.binary.score_mixture import fit_mixture
from service.statistics.binary.semi_supervised import MIXTURE_DRAWS, learn_scores
from service.statistics.estimate import Estimate

ITEMS, CLASSIFIERS = 1_500, 14
RECALLS = np.linspace(0.05, 0.95, 19)
LABELS = (10, 20, 50, 100)
NOMINAL, ALLOWED = 0.95, 0.02
CHANCE = 2 * (NOMINAL * (1 - NOMINAL) / CLASSIFIERS) ** 0.5
"""Two standard errors of a coverage of as many curves, each wholly held or not."""


def classifier(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the items of one classifier, and which are positive: separated or not, calibrated or not."""
    rng = np.random.default_rng([7, number])
    prevalence, distance = rng.uniform(0.05, 0.5), rng.uniform(0.8, 4.0)
    positive = rng.random(ITEMS) < prevalence
    estimated = rng.normal(0, rng.uniform(0.6, 1.4, 2)[positive.astype(int)]) + distance * positive
    honest = distance * (estimated - distance / 2) + special.logit(prevalence)
    return special.expit(rng.normal(0, 0.5) + np.exp(rng.normal(0, 0.4)) * honest), positive


def covered(number: int) -> list[np.ndarray]:
    """Whether the band holds the true precision at every recall, one array for each number of labels.

    What scores tell without labels is the same for each of them, so it is learned once.
    """
    scores, positive = classifier(number)
    rng = np.random.default_rng([8, number])
    mixture = fit_mixture(bin_scores(scores), rng, draws=MIXTURE_DRAWS, unit=True)
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum(positive[order])
    at = np.searchsorted(found, RECALLS * found[-1])
    truth = found[at] / (at + 1)
    held = []
    for labels in LABELS:
        known = np.zeros(ITEMS, np.bool_)
        known[rng.choice(ITEMS, labels, replace=False)] = True
        given = np.where(known, positive, UNLABELLED).astype(np.int64)
        posterior = learn_scores(bin_scores(scores, given), rng, draws=300, mixture=mixture)
        band = Estimate.of(performance(posterior, rng).precision_at_recall(RECALLS), NOMINAL)
        held.append((band.lower <= truth + 1e-9) & (truth <= band.upper + 1e-9))
    return held


@pytest.fixture(scope="module")
def coverage() -> dict[int, float]:
    """Share of the recalls at which the band holds the truth, by number of labels."""
    held = np.array([covered(number) for number in range(CLASSIFIERS)])
    return dict(zip(LABELS, held.mean(axis=(0, 2)).tolist(), strict=True))


def test_bands_hold_the_true_curves(coverage: dict[int, float]) -> None:
    assert np.mean(list(coverage.values())) >= NOMINAL - ALLOWED


@pytest.mark.parametrize("labels", LABELS)
def test_no_number_of_labels_is_told_too_surely(coverage: dict[int, float], labels: int) -> None:
    # Precision at one recall is off with that at the others: so few classifiers tell little of one number.
    assert coverage[labels] >= NOMINAL - CHANCE
