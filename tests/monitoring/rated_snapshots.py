"""Snapshots of a model whose error rates are estimated by region."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from snapshots import BUDGET, snapshot

from service.config.assessments import ErrorRateSettings
from service.domain.assessments import RateName
from service.domain.groupings import ByStratum
from service.domain.value_strata import ValueStrata
from service.monitoring.error_rate_evidence import RateProof
from service.monitoring.error_rates import ErrorRatesSnapshot, RateSnapshot
from service.monitoring.score_gains import ScoreGains
from service.monitoring.snapshot import ModelSnapshot
from service.monitoring.stratum_plan import StratumPlan
from service.statistics.estimate import Estimate

REGIONS = ["north", "south"]
STRATA = ValueStrata(
    ByStratum("strata", "region", positive="cat"),
    ["not selected", "selected"],
    np.array([[1], [0]]),
    np.array([False, True]),
)
EVEN = np.full((2, 2), 0.5)
MEANS: dict[RateName, tuple[float, float]] = {
    "false_positive_rate": (0.45, 0.25),
    "false_negative_rate": (0.3, 0.35),
    "true_positive_rate": (0.7, 0.65),
    "precision": (0.6, np.nan),
    "selection_rate": (0.5, 0.4),
}


def rate(name: RateName, **fields: Any) -> RateSnapshot:
    """One rate of both regions, five points either way."""
    mean = np.array(MEANS[name])
    high, low = float(np.nanmax(mean)), float(np.nanmin(mean))
    apart = None if np.isnan(mean).any() else (max(0.0, high - low - 0.1), high - low, high - low + 0.1)
    alike = None if apart is None else (low / high - 0.1, low / high, min(1.0, low / high + 0.1))
    known: dict[str, Any] = {
        "estimate": Estimate(mean - 0.05, mean, mean + 0.05),
        "difference": apart,
        "ratio": alike,
        "limits": np.full(2, np.nan),
        "max_difference": None,
        "min_ratio": None,
        "violated": np.zeros(2, np.bool_),
        "differs_too_much": False,
        "ratio_too_low": False,
        "proof": None,
    }
    return RateSnapshot(**(known | fields))


def error_rates() -> ErrorRatesSnapshot:
    """The north has too many false positives, more than the south, and is selected more often."""
    rates: dict[RateName, RateSnapshot] = {name: rate(name) for name in MEANS}
    rates["false_positive_rate"] = rate(
        "false_positive_rate",
        limits=np.array([0.3, 0.35]),
        violated=np.array([True, False]),
        max_difference=0.05,
        differs_too_much=True,
        proof=RateProof(
            log_e=np.array([np.log(500.0), 0.0]),
            log_e_difference=1.0,
            log_e_ratio=2.0,
            confirmed=np.array([True, False]),
            difference_confirmed=False,
            ratio_confirmed=False,
        ),
    )
    rates["selection_rate"] = rate("selection_rate", min_ratio=0.95, ratio_too_low=True)
    return ErrorRatesSnapshot(
        positive_class="cat",
        grouping="region",
        groups=REGIONS,
        shares=np.array([0.4, 0.6]),
        labels=np.array([120.0, 80.0]),
        rates=rates,
        gains=ScoreGains({"north": 0.1, "south": 0.2}, {"north": 120.0, "south": 80.0}),
        plan=StratumPlan(REGIONS, STRATA, EVEN, EVEN, EVEN),
        counted={},
    )


def rated() -> ModelSnapshot:
    """A snapshot of a model whose assessment `fair` is about these rates."""
    taken = snapshot(assessments={"fair": {"budget": BUDGET}})
    asked = {"task": "error_rates", "grouping": "region", "positive_class": "cat", "budget": BUDGET}
    settings = ErrorRateSettings.model_validate(asked)
    state = replace(taken.assessments["fair"], settings=settings)
    return replace(taken, assessments={"fair": state}, error_rates={"fair": error_rates()})
