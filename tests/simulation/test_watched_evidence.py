"""The service's evidence cries no wolf while Thompson sampling asks, and finds the group that declines."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.watched_evidence import Alarms, ask, healthy_alarms, watch

GROUPS, LABELS, RUNS = 10, 800, 20
ALPHA = 0.05


@pytest.fixture(scope="module")
def healthy() -> Alarms:
    """Of groups that all are as accurate as they must be."""
    return healthy_alarms(groups=GROUPS, labels=LABELS, runs=RUNS, every=20)


@pytest.mark.parametrize("kind", ["below", "declined", "miscalibrated", "changed"])
def test_few_runs_ever_confirm_anything_of_healthy_groups(healthy: Alarms, kind: str) -> None:
    # One run of twenty is what alpha allows.
    assert np.isfinite(getattr(healthy, kind)).any(axis=1).mean() <= ALPHA


def test_the_posterior_warns_of_healthy_groups_in_most_runs(healthy: Alarms) -> None:
    # What evidence is for.
    assert np.isfinite(healthy.warned).any(axis=1).mean() > 0.5


def test_a_group_that_declines_is_confirmed_and_no_other() -> None:
    before = np.full(GROUPS, 0.98)
    after = np.where(np.arange(GROUPS) == 0, 0.5, before)
    asked = ask(before, after, drop_at=600, labels=1_200, runs=3, seed=2)
    found = watch(asked, GROUPS, every=50, since=600, reference=30)
    assert np.isfinite(found.below[:, 0]).all()
    assert np.isfinite(found.changed[:, 0]).all()
    assert not np.isfinite(found.changed[:, 1:]).any()
