"""The precision of labels that are spread over strata whose positive shares are known."""

from __future__ import annotations

import numpy as np
import pytest

from service.replay.best_design import best_standard_error, best_width
from service.statistics.binary.label_gains import LabelledStrata

COUNTS = np.array([400.0, 100.0])
POSITIVES = np.array([40.0, 50.0])


def strata(*called: float) -> LabelledStrata:
    none = np.zeros(2)
    return LabelledStrata(np.array(called), COUNTS, none, none)


def test_the_error_of_precision_is_that_of_a_sample_without_replacement() -> None:
    (error,) = best_standard_error(strata(0, 1), POSITIVES, 20, "precision")
    # The other stratum does not matter, so all labels are of the items called positive.
    assert error == pytest.approx(np.sqrt(0.25 / 20 * (100 - 20) / 99))


def test_labels_are_in_proportion_to_size_and_standard_deviation() -> None:
    (error,) = best_standard_error(strata(1, 1), POSITIVES, 60, "precision")
    variances = POSITIVES * (COUNTS - POSITIVES) / COUNTS / (COUNTS - 1)
    deviations = COUNTS * np.sqrt(variances)
    # Neyman's least variance, with the correction for finite strata.
    expected = deviations.sum() ** 2 / 60 - (COUNTS * variances).sum()
    assert error == pytest.approx(np.sqrt(expected) / COUNTS.sum())


def test_no_other_spread_has_a_smaller_error_of_f1() -> None:
    (best,) = best_standard_error(strata(0, 1), POSITIVES, 80, "f1")
    both = COUNTS[1] + POSITIVES.sum()
    changes = np.array([0, 2 / both]) - 2 * POSITIVES[1] / both**2
    variances = POSITIVES * (COUNTS - POSITIVES) / COUNTS / (COUNTS - 1)
    others = []
    for first in range(1, 80):
        labels = np.array([first, 80 - first])
        others.append(np.sqrt((changes**2 * COUNTS**2 * variances * (1 / labels - 1 / COUNTS)).sum()))
    # The best spread need not be of whole labels.
    assert best <= min(others) <= 1.001 * best


def test_once_all_items_that_matter_have_labels_nothing_is_uncertain() -> None:
    assert best_standard_error(strata(0, 1), POSITIVES, 500, "f1") == pytest.approx(0, abs=1e-9)
    assert best_width(strata(0, 1), POSITIVES, 500, 0.95) == pytest.approx(0, abs=1e-9)


def test_strata_of_one_class_take_no_labels() -> None:
    (error,) = best_standard_error(strata(0, 1), np.array([0.0, 50.0]), 20, "precision")
    assert error == pytest.approx(np.sqrt(0.25 / 20 * (100 - 20) / 99))
    assert best_standard_error(strata(0, 1), np.array([0.0, 100.0]), 20, "f1") == pytest.approx(0)
