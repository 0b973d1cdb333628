"""Labels until a verdict: beside the closed form, what really happens as labels come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from service.statistics.labels_needed import labels_to_verdict

CONFIDENCE = 0.95


def needed(alpha: float, beta: float, threshold: float, confidence: float = CONFIDENCE) -> float:
    believed = stats.beta(alpha, beta)
    return float(
        labels_to_verdict(
            mean=np.array([believed.mean()]),
            variance=np.array([believed.var()]),
            below=np.array([believed.cdf(threshold)]),
            threshold=threshold,
            confidence=confidence,
        )[0]
    )


@pytest.mark.parametrize(
    ("alpha", "beta", "threshold"), [(8, 2, 0.7), (30, 10, 0.8), (45, 5, 0.9), (3, 1, 0.5), (80, 20, 0.85)]
)
def test_half_of_the_time_so_many_labels_do(alpha: float, beta: float, threshold: float) -> None:
    """Simulated: accuracies drawn from the belief, labels from these, until the posterior is sure.

    A posterior that is looked at after exactly so many labels is sure in about half of the runs; the closed
    form is a normal approximation, so between 0.35 and 0.65 of 4,000 (standard error 0.008) will do.
    """
    rng = np.random.default_rng(5)
    labels = round(needed(alpha, beta, threshold))
    assert labels > 0
    accuracy = rng.beta(alpha, beta, 4_000)
    correct = rng.binomial(labels, accuracy)
    below = stats.beta.cdf(threshold, alpha + correct, beta + labels - correct)
    sure = (below >= CONFIDENCE) | (below <= 1 - CONFIDENCE)
    assert 0.35 < sure.mean() < 0.65


def test_what_is_known_needs_no_label() -> None:
    assert needed(95, 5, 0.8) == 0
    assert needed(60, 40, 0.8) == 0


def test_what_is_not_known_needs_at_least_one() -> None:
    assert needed(90, 10, 0.85) >= 1


@given(mean=st.floats(0.05, 0.95), size=st.floats(1, 1_000), threshold=st.floats(0.05, 0.95))
def test_a_stricter_confidence_never_needs_fewer(mean: float, size: float, threshold: float) -> None:
    alpha, beta = mean * size, (1 - mean) * size
    asked = [needed(alpha, beta, threshold, confidence) for confidence in (0.8, 0.9, 0.99)]
    assert asked == sorted(asked)
    assert np.isfinite(asked).all()
