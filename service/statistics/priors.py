"""Fixed priors of a group's accuracy, from the model's scores or uninformative.

Sources: Ji, Logan, Smyth, Steyvers (AAAI 2021), "Priors"; the floor is Jeffreys' prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Floats

_SCORE_MARGIN = 1e-3  # mean scores are clipped to be this far from 0 and 1, where a Beta is improper
_PROBABILITY_MARGIN = 1e-6  # mean probabilities are at least this, as a Dirichlet needs positive parameters


@dataclass(frozen=True)
class FixedPrior:
    """Beta(strength * s + floor, strength * (1 - s) + floor), with s = 1/2 if not informed.

    Of K true classes: Dirichlet(dirichlet_strength * s_k + 2 floor / K), with s_k = 1/K if not informed.
    """

    strength: float = 2.0  # pseudo-labels N0 of a Beta
    dirichlet_strength: float = 1.0  # pseudo-labels N0 of a Dirichlet
    informed: bool = True  # whether s is the model's mean score
    floor: float = 0.0  # keeps intervals wide where scores are near 1: 1/2 is Jeffreys'

    def parameters(self, scores: Floats) -> tuple[Floats, Floats]:
        """Alpha and beta for every mean score [...]."""
        centre: Floats = np.full(scores.shape, 0.5)
        if self.informed:
            centre = np.clip(scores, _SCORE_MARGIN, 1 - _SCORE_MARGIN)
        return self.strength * centre + self.floor, self.strength * (1 - centre) + self.floor

    def dirichlet(self, probabilities: Floats) -> Floats:
        """Dirichlet parameters from the model's mean probabilities [..., K]."""
        classes = probabilities.shape[-1]
        centre: Floats = np.full(probabilities.shape, 1 / classes)
        if self.informed:
            centre = np.maximum(probabilities, _PROBABILITY_MARGIN)
        alpha: Floats = self.dirichlet_strength * centre + 2 * self.floor / classes
        return alpha


FIXED_PRIORS: dict[str, FixedPrior] = {
    "informed": FixedPrior(),
    "informed_jeffreys": FixedPrior(floor=0.5),
    "uniform": FixedPrior(informed=False),
    # The tables of the paper were made with it, though its text says Beta(1, 1).
    "vague": FixedPrior(informed=False, strength=1e-6, dirichlet_strength=1e-6),
}
"""Fixed priors by their names in the configuration; `learned` is `curves.LearnedCurve`."""
