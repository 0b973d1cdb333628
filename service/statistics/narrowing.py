"""The task of narrowing a measure of a binary classifier's performance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Floats, Indices, Ints
from service.statistics.questions import Task

EXPLORED: Final = 0.1
"""Share of the labels that are of random items: they find what estimates do not expect."""


def diminished(labels: Floats, more: Floats | Ints | float) -> Floats:
    """What is left of the worth of a label after `more` labels, where there were some already.

    Its square root falls as the labels grow, because a variance falls in proportion to them.
    """
    kept: Floats = ((labels + 1) / (labels + 1 + more)) ** 2
    return kept


@dataclass
class LabelGains:
    """What one more label of every group is worth [R, G], and its labels: those that are expected, too."""

    gains: Floats
    labels: Floats

    def expect(self, groups: Indices) -> None:
        """Count a label of a group in every run [R]; the next one is worth less."""
        of = np.arange(len(groups)), groups
        self.gains[of] *= diminished(self.labels[of], 1.0)
        self.labels[of] += 1


class NarrowMeasure(Task[LabelGains]):
    """Narrow a measure of performance: what labels are worth is learned with the performance itself."""

    kind = "gains"

    def sampled(self, beliefs: LabelGains, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - one signature
        """The same for every draw."""
        return beliefs.gains

    def expected(self, beliefs: LabelGains) -> Floats:
        """As learned."""
        return beliefs.gains

    def upper(self, beliefs: LabelGains, probability: float) -> Floats:  # noqa: ARG002 - one signature
        """The same at every quantile."""
        return beliefs.gains
