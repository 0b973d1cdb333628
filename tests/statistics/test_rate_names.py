"""Names of error rates: statistics may not import those of settings, so both are written down."""

from __future__ import annotations

from typing import get_args

from service.domain import assessments
from service.statistics import names
from service.statistics.rates.measures import RATES


def test_settings_and_statistics_know_the_same_rates() -> None:
    assert get_args(assessments.RateName) == get_args(names.RateName) == tuple(RATES)
    assert get_args(assessments.LabelledRate) == names.LABELLED_RATES
