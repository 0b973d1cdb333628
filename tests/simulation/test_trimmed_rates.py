"""Evidence on error rates has to be that of all labels: those that are left confirm what is not there."""

from __future__ import annotations

import numpy as np
import pytest
from trimmed_rates import ALPHA, confirmed

from service.domain.arrays import Flags

RUNS = 100


@pytest.fixture(scope="module")
def ever() -> dict[str, Flags]:
    """Of every run, whether anything is ever confirmed in 100,000 labels, by what evidence uses."""
    return confirmed(RUNS, 100_000, 2)


def test_few_runs_ever_confirm_a_group_at_its_limit_by_all_labels(ever: dict[str, Flags]) -> None:
    assert ever["of_all"].mean() <= ALPHA


@pytest.mark.parametrize("way", ["shared", "flickering"])
def test_more_runs_than_alpha_do_by_labels_that_are_left(ever: dict[str, Flags], way: str) -> None:
    # It is 20% or so: 10% of 100 runs would be a chance of one in a hundred.
    assert np.count_nonzero(ever[way]) > 2 * ALPHA * RUNS
