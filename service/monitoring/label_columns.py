"""Labels one by one, as columns."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.arrays import Flags, Floats, Indices, UInt64s
from service.domain.request_order import Places


@dataclass(frozen=True)
class ScoredLabels:
    """Labels with their scores, as columns [n].

    Attributes:
        cells: label cell of each.
        predicted: index of the predicted class.
        scores: of the predicted class.
        sources: codes of who asked.
        true_classes: index of the true class.
        freshness: what forgetting leaves of each.
    """

    cells: Indices
    predicted: Indices
    scores: Floats
    sources: Indices
    true_classes: Indices
    freshness: Floats

    def part(self, which: Flags) -> ScoredLabels:
        """Some of them."""
        return ScoredLabels(
            self.cells[which],
            self.predicted[which],
            self.scores[which],
            self.sources[which],
            self.true_classes[which],
            self.freshness[which],
        )


@dataclass(frozen=True)
class LabelSequence:
    """Labels that one grouping asked for, as columns [n].

    Attributes:
        marks: of each, as good as random, which identify the outcome and whether it is right.
        cells: label cell of each.
        scores: of the predicted class.
        correct: whether that is the true class.
        predicted_at: when it was predicted, seconds since the epoch.
        places: of their requests among all requests, as `service/domain/request_order.py` gives them.
    """

    marks: UInt64s
    cells: Indices
    scores: Floats
    correct: Flags
    predicted_at: Floats
    places: Places

    def part(self, which: Flags | Indices) -> LabelSequence:
        """Some of them, or in another order."""
        return LabelSequence(
            self.marks[which],
            self.cells[which],
            self.scores[which],
            self.correct[which],
            self.predicted_at[which],
            self.places[which],
        )
