"""What waits for labels that nobody requests, and how late these come (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.monitoring.absent_learning import LearnedAccuracies
from service.monitoring.outcome_table import OutcomeLedger
from service.store.cohorts import JoinSummary

QUANTILES: Final = (0.5, 0.99)
_NEWEST: Final = 20_000  # outcomes that delays are of


@dataclass(frozen=True)
class WaitingPredictions:
    """Predictions of one model that wait for unrequested labels.

    Attributes:
        delays: quantiles of the time from a prediction to its label, in seconds, by probability; none before
            the first label.
        learned: what is known of items without a self-selected label; None if nothing is.
        not_joined: labels of the last day that could not be joined, by reason (`NOT_JOINED`).
    """

    joins: JoinSummary
    delays: Mapping[float, float]
    not_joined: Mapping[str, int]
    learned: LearnedAccuracies | None


def waiting_predictions(
    joins: JoinSummary | None,
    ledger: OutcomeLedger,
    not_joined: Mapping[str, int],
    learned: LearnedAccuracies | None,
) -> WaitingPredictions | None:
    """What waits; None for a model that takes no unrequested labels."""
    if joins is None:
        return None
    delays = ledger.label_delays(_NEWEST)
    found = np.quantile(delays, QUANTILES).tolist() if len(delays) else []
    return WaitingPredictions(joins, dict(zip(QUANTILES, found, strict=False)), not_joined, learned)
