"""What is expected of people who label, and how often they are right: see `annotators.py` for the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from service.domain.arrays import Floats
from service.statistics.strata_accuracy import START_ACCURACY

POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
LOG_WEIGHTS: Final = np.log(_WEIGHTS / _WEIGHTS.sum())
_ABILITIES: Final = (0.01, 1_000.0)  # the lowest and the highest that a prior may expect
_HALVINGS: Final = 50


def probability_right(knowledge: Floats, classes: int) -> Floats:
    """P(an answer is right), by x: 1 / K at 0, 1 far above and 0 far below."""
    known = np.tanh(0.5 * knowledge)
    # The slope is 1 - 1 / K above 0, and 1 / K below.
    slopes = np.where(known > 0, 1 - 1 / classes, 1 / classes)
    return np.asarray(1 / classes + slopes * known, np.float64)


def share_right(abilities: Floats, log_difficulty: float, harder: float, classes: int) -> Floats:
    """Share of items of all difficulties about which people are right [annotators]."""
    ease = np.exp(-np.exp(log_difficulty) * POINTS - harder)
    return np.asarray(probability_right(abilities[:, None] * ease, classes) @ np.exp(LOG_WEIGHTS), np.float64)


@dataclass(frozen=True)
class AnnotatorPrior:
    """What is expected before any answer: (mean, standard deviation) of normal priors."""

    ability: tuple[float, float] = (3.0, 1.0)  # of a person; 3 knows 91% of items of mean difficulty
    harder: tuple[float, float] = (1.0, 1.0)  # h: how much more difficult wrongly predicted items are
    log_difficulty: tuple[float, float] = (-0.36, 0.7)  # log of the difficulties' standard deviation
    log_unlike: tuple[float, float] = (-0.36, 0.5)  # log of the scale of the abilities
    fooled: tuple[float, float] = (0.5, 1.2)  # logit of k, less that of equally frequent wrong classes

    def expecting(self, reliability: float, classes: int) -> AnnotatorPrior:
        """The same of people who are expected to be right in this share of items, of all difficulties.

        Items are as difficult as this prior expects, and a usual share of their predictions is correct. By
        what factor an ability may differ stays the same.
        """
        low, high = _ABILITIES
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_low = self._share_right(middle, classes) < reliability
            low, high = (middle, high) if is_low else (low, middle)
        mean, deviation = self.ability
        return replace(self, ability=(high, deviation * high / mean))

    def _share_right(self, ability: float, classes: int) -> float:
        log_difficulty, harder = self.log_difficulty[0], self.harder[0]
        rights = [share_right(np.array([ability]), log_difficulty, each, classes) for each in (0.0, harder)]
        return float(START_ACCURACY * rights[0][0] + (1 - START_ACCURACY) * rights[1][0])


class Shared(NamedTuple):
    """What all items share."""

    ability: float
    harder: float
    log_difficulty: float
    log_unlike: float
    fooled: float
