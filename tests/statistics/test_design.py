"""The design-based estimate of a binary classifier's performance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from service.statistics.binary.design import DesignEstimate, design_estimate
from service.statistics.binary.label_gains import LabelledStrata
from service.statistics.estimate import Estimate

MEASURES = ("precision", "recall", "f1", "false_positive_rate", "prevalence")


def strata(
    counts: list[float], called: list[float], labels: list[float], positives: list[float]
) -> LabelledStrata:
    found = np.array(positives)
    return LabelledStrata(np.array(called), np.array(counts), found, np.array(labels) - found)


def estimated(sample: LabelledStrata, unclear: np.ndarray | None = None) -> DesignEstimate:
    return design_estimate([sample], np.random.default_rng(0), unclear)


def ends(found: DesignEstimate, measure: str, mass: float = 0.95) -> tuple[float, float]:
    drawn = getattr(found.performance(0.5, np.random.default_rng(1)), measure)
    interval = Estimate.of(drawn.reshape(len(drawn)), mass)
    return float(interval.lower), float(interval.upper)


@pytest.mark.parametrize("positives", [0.0, 3.0, 20.0])
def test_of_one_stratum_the_distributions_are_those_of_clopper_and_pearson(positives: float) -> None:
    found = estimated(strata([10, 90], [1, 0], [20, 20], [positives, 0])).precision
    ends = stats.binomtest(int(positives), 20).proportion_ci(0.95, method="exact")
    # A quantile of 8,000 draws is within 0.02.
    assert np.quantile(found.lower, 0.025) == pytest.approx(ends.low, abs=0.02)
    assert np.quantile(found.upper, 0.975) == pytest.approx(ends.high, abs=0.02)


def test_the_mean_weighs_strata_by_their_traffic() -> None:
    found = estimated(strata([30, 10, 60], [1, 1, 0], [4_000, 4_000, 4_000], [3_600, 2_000, 40]))
    # The estimate of so many labels is within 0.01.
    assert found.precision.lower.mean() == pytest.approx(0.75 * 0.9 + 0.25 * 0.5, abs=0.01)
    assert found.missed.upper.mean() == pytest.approx(0.01, abs=0.005)
    assert found.called == pytest.approx(0.4)


def test_where_no_label_is_positive_the_interval_depends_on_the_largest_weight() -> None:
    many = estimated(strata([10, 90], [1, 0], [10, 90], [5, 0]))
    few = estimated(strata([10, 80, 10], [1, 0, 0], [10, 5, 85], [5, 0, 0]))
    upper = 1 - 0.025 ** (1 / 90)
    assert np.quantile(many.missed.upper, 0.975) == pytest.approx(upper, rel=0.1)
    assert np.quantile(few.missed.upper, 0.975) > 10 * upper


def test_without_labels_the_share_may_be_anything() -> None:
    found = estimated(strata([10, 90], [1, 0], [10, 0], [5, 0]))
    assert (found.missed.lower.max(), found.missed.upper.min()) == (0, 1)
    assert ends(found, "prevalence") == (pytest.approx(0.05, abs=0.04), pytest.approx(0.95, abs=0.04))


def test_a_stratum_without_labels_may_have_any_share() -> None:
    found = estimated(strata([20, 80, 100], [1, 0, 0], [100, 0, 1_000], [100, 0, 0]))
    assert found.missed.lower.max() == 0
    assert found.missed.upper.min() == pytest.approx(80 / 180, abs=0.01)


def test_items_of_any_class_widen_the_interval_by_their_share() -> None:
    sample = strata([50, 50], [1, 0], [200, 200], [100, 100])
    lower, upper = ends(estimated(sample), "precision")
    wide = ends(estimated(sample, np.full((50, 2), 0.2)), "precision")
    # The two ends are 0.8 times the lower one, and that of the upper one and 0.2.
    assert wide[0] == pytest.approx(0.8 * lower, abs=0.03)
    assert wide[1] == pytest.approx(0.8 * upper + 0.2, abs=0.03)


def test_imputations_of_the_labels_are_mixed() -> None:
    samples = [strata([50, 50], [1, 0], [100, 100], [found, 0]) for found in (20.0, 80.0)]
    drawn = design_estimate(samples, np.random.default_rng(0)).precision.lower
    assert np.quantile(drawn, 0.05) < 0.25
    assert np.quantile(drawn, 0.95) > 0.75


def test_no_item_that_is_called_positive_leaves_recall_at_zero() -> None:
    found = estimated(strata([100], [0], [50], [5])).performance(0.5, np.random.default_rng(0))
    assert not found.called.any()
    assert np.nanmax(found.recall) == 0


def test_merged_strata_are_those_of_either_side() -> None:
    merged = strata([10, 20, 70], [1, 1, 0], [5, 5, 10], [4, 1, 2]).merged()
    assert merged.counts.tolist() == [30, 70]
    assert merged.positives.tolist() == [5, 2]
    assert merged.called.tolist() == [1, 0]


WORLDS = {
    "balanced": ([0.3, 0.7], [0.8, 0.1], [1, 0], [30, 70]),
    "rare": ([0.002, 0.008, 0.09, 0.9], [0.8, 0.05, 0.002, 1e-3], [1, 0, 0, 0], [100, 60, 20, 20]),
    "many strata": (
        [0.05, 0.05, 0.1, 0.1, 0.2, 0.5],
        [0.95, 0.7, 0.4, 0.2, 0.05, 0.01],
        [1, 1, 1, 0, 0, 0],
        [2, 5, 20, 20, 5, 3],
    ),
}


@pytest.mark.parametrize("world", WORLDS)
def test_intervals_hold_the_truth_as_often_as_they_say(world: str) -> None:
    shares, theta, called, labels = (np.array(column) for column in WORLDS[world])
    rng, runs = np.random.default_rng(3), 200
    right, positives = float(shares * called @ theta), float(shares @ theta)
    calls = float(shares @ called)
    truth = {
        "precision": right / calls,
        "recall": right / positives,
        "f1": 2 * right / (calls + positives),
        "false_positive_rate": (calls - right) / (1 - positives),
        "prevalence": positives,
    }
    held = dict.fromkeys(MEASURES, 0)
    for _ in range(runs):
        found = rng.binomial(labels, theta).astype(float)
        design = design_estimate([LabelledStrata(called, shares, found, labels - found)], rng)
        for measure, true in truth.items():
            lower, upper = ends(design, measure)
            held[measure] += lower <= true <= upper
    # Three standard errors of 200 runs below 95% are 90%.
    assert min(held.values()) >= 0.9 * runs, held
