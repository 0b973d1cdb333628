"""Labels over time (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Floats, Ints
from service.monitoring.outcome_table import OutcomeLedger

_BINS: Final = 48  # intervals of time


@dataclass(frozen=True)
class LabelFlow:
    """Labels over time."""

    edges: Floats  # of time intervals, seconds since the epoch [n + 1]
    correct: Ints  # labels of correct predictions [n]
    incorrect: Ints  # labels of the others [n]


def label_flow(ledger: OutcomeLedger, begin: float, end: float) -> LabelFlow:
    """Labels that were given between two times."""
    given_at, is_correct = ledger.labels_since(begin)
    correct, edges = np.histogram(given_at[is_correct], _BINS, (begin, end))
    incorrect, _ = np.histogram(given_at[~is_correct], _BINS, (begin, end))
    return LabelFlow(edges, correct, incorrect)
