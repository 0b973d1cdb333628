"""The Bayes factor of a positive share with steps against the score model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from service.statistics.binary.score_bins import bin_scores
from service.statistics.binary.score_mixture import fit_mixture
from service.statistics.binary.score_steps import LOG_CONTRADICTED, log_evidence_of_steps
from service.statistics.binary.semi_supervised import ScoreLearner

_LABELS = 500
ONE = special.betaln(0.5, 0.5)
SMALL = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5)


def by_enumeration(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Sum over all positions of steps, of strata that all have labels."""
    gaps, total = len(positives) - 1, -np.inf
    for steps in itertools.product([False, True], repeat=gaps):
        cuts = np.flatnonzero(np.append(True, steps))
        found, others = (np.add.reduceat(labels, cuts) for labels in (positives, negatives))
        prior = sum(steps) * np.log(0.1) + (gaps - sum(steps)) * np.log(0.9)
        total = np.logaddexp(total, prior + (special.betaln(found + 0.5, others + 0.5) - ONE).sum())
    return float(total)


@given(SMALL)
def test_all_positions_of_steps_are_summed_over(labels: list[tuple[int, int]]) -> None:
    positives, negatives = np.array(labels, np.float64).T
    some = positives + negatives > 0
    if some.any():
        expected = by_enumeration(positives[some], negatives[some])
        assert log_evidence_of_steps(positives, negatives) == pytest.approx(expected)


def test_no_labels_have_probability_one() -> None:
    assert log_evidence_of_steps(np.zeros(3), np.zeros(3)) == 0


def test_a_share_of_one_stratum_is_a_beta_binomial_sequence() -> None:
    found = log_evidence_of_steps(np.array([3.0]), np.array([1.0]))
    assert found == pytest.approx(special.betaln(3.5, 1.5) - ONE)


def factor(seed: int, shares: np.ndarray | None) -> float:
    """Log Bayes factor after many random labels; scores are right as probabilities without other shares."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.5, 0.8, 3_000)
    bins = bin_scores(scores, thresholds=[0.5])
    expected = scores if shares is None else shares[np.minimum((10 * scores).astype(int), 9)]
    positive = (rng.random(len(scores)) < expected)[:_LABELS]
    at = np.searchsorted(bins.edges, scores[:_LABELS], side="right")
    positives, negatives = (
        np.bincount(at[each], minlength=len(bins.counts)).astype(float) for each in (positive, ~positive)
    )
    learner = ScoreLearner(bins, fit_mixture(bins, rng, draws=200, unit=True))
    learned = learner.learn(positives, negatives, rng, draws=50)
    sums = learner.strata.sums
    return log_evidence_of_steps(sums(positives), sums(negatives)) - learned.log_evidence


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_agree_with_scores_do_not_contradict(seed: int) -> None:
    assert factor(seed, None) < 0


@pytest.mark.parametrize("seed", range(3))
def test_labels_in_steps_contradict(seed: int) -> None:
    steps = np.where((np.arange(10) == 3) | (np.arange(10) == 4), 0.9, 0.02)
    assert factor(seed, steps) > LOG_CONTRADICTED
