"""Labels, and requests that have ended, as columns."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.arrays import Codes, Flags, Floats, Indices, UInt64s
from service.domain.request_order import Places
from service.monitoring.outcome_aggregates import NO_CLASS, Columns


@dataclass(frozen=True)
class ScoredLabels(Columns):
    """Labels with their scores, as columns [n]."""

    cells: Indices  # label cell of each
    predicted: Indices  # index of the predicted class
    scores: Floats  # of the predicted class
    sources: Indices  # codes of who asked
    true_classes: Indices  # index of the true class
    freshness: Floats  # what forgetting leaves of each
    rows: Indices  # row of the outcome


@dataclass(frozen=True)
class StratumLabels(Columns):
    """Labels of items that were drawn for their strata, as columns [n]."""

    cells: Indices  # label cell of each
    true_classes: Indices  # index of the true class, or what is in its place
    predicted_at: Floats  # seconds since the epoch
    places: Places  # of their requests among all requests
    estimators: Floats  # what is kept of the draws of the strata [n, 10]
    marks: UInt64s  # of each, as good as random, which identify the outcome and whether it is right


@dataclass(frozen=True)
class EndedRequests(Columns):
    """Requests that have ended, as columns [n]."""

    groups: Codes  # number of the group that each was drawn for
    scores: Floats  # of the predicted class
    reasons: Codes  # why there is no label: `EXPIRED_CLASS` or `SKIPPED_CLASS`; higher if there is one
    attempts: Codes  # the attempt that was answered, or was the last one; from 1
    correct: Flags  # whether there is a label that is the predicted class

    @property
    def is_answered(self) -> Flags:
        """Whether there is a label [n]."""
        answered: Flags = self.reasons >= NO_CLASS
        return answered
