"""The task of narrowing a measure of a binary classifier's performance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Floats, Indices
from service.statistics.questions import Task


@dataclass
class LabelGains:
    """What one more label of every group is worth [R, G], and its labels: those that are expected, too."""

    gains: Floats
    labels: Floats

    def expect(self, groups: Indices) -> None:
        """Count a label of a group in every run [R]; the next one is worth less.

        A gain falls with the square of the labels, as a variance does in proportion to them.
        """
        of = np.arange(len(groups)), groups
        self.gains[of] *= ((self.labels[of] + 1) / (self.labels[of] + 2)) ** 2
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
