"""Groups whose traffic stays as it was, looked at every hour for a month, and those whose traffic changes."""

from __future__ import annotations

import numpy as np

from service.config.model import DriftSettings
from service.statistics.drift import mix_drift

GROUPS, BINS = 1_000, 10
DAYS, HOURS = 30, 24
A_GROUP_AN_HOUR = 20


def test_of_a_thousand_groups_that_stay_as_they_were_none_drifts_in_a_month_of_hourly_looks() -> None:
    rng = np.random.default_rng(11)
    shares = rng.dirichlet(np.geomspace(3, 0.05, BINS), size=GROUPS)
    reference = rng.multinomial(HOURS * A_GROUP_AN_HOUR, shares)
    hours = [rng.multinomial(A_GROUP_AN_HOUR, shares) for _ in range(HOURS)]
    window = np.sum(hours, axis=0)
    drifted = np.zeros(GROUPS, np.bool_)
    suspected = 0
    for look in range(DAYS * HOURS):
        found = mix_drift(reference, window, comparisons=GROUPS).excess
        drifted |= found > DriftSettings().max_distance
        suspected += bool((found > 0).any())
        # Windows overlap: all but an hour of one is in the next.
        oldest = hours[look % HOURS]
        hours[look % HOURS] = rng.multinomial(A_GROUP_AN_HOUR, shares)
        window = window - oldest + hours[look % HOURS]
    assert not drifted.any()
    # A look in a thousand is expected to suspect any group, by less than drifting takes; a suspicion lasts
    # for a day of looks, as their windows overlap.
    assert suspected <= 3 * HOURS


def test_a_group_among_a_thousand_whose_scores_fall_is_found_within_a_day() -> None:
    rng = np.random.default_rng(12)
    shares = np.tile(np.diff(np.linspace(0, 1, BINS + 1) ** 6), (GROUPS, 1))
    fallen = shares.copy()
    fallen[0] = np.diff(np.linspace(0, 1, BINS + 1) ** 2)
    reference = rng.multinomial(HOURS * A_GROUP_AN_HOUR, shares)
    recent = rng.multinomial(HOURS * A_GROUP_AN_HOUR, fallen)
    drifted = mix_drift(reference, recent, comparisons=GROUPS).excess > DriftSettings().max_distance
    assert np.flatnonzero(drifted).tolist() == [0]
