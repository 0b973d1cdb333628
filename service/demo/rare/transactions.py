"""The transactions of the demo of a rare class, and a simulated classifier that scores them.

Everything follows from a seed and the number of a transaction, so the producer and the labeller agree without
communicating: the labeller knows the truth and never sees a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats

GENUINE, FRAUD = CLASSES = ("genuine", "fraud")
PREVALENCE = 1 / 500
THRESHOLD = 0.5
"""Score from which a transaction is flagged."""

_DISTANCE = 6.0
"""Of the classes' means, in standard deviations of the evidence that the classifier sees."""

_OFFSET = 2.0
"""Of the scores' log odds: 0 is calibrated.

The classifier was trained with one in seven of the genuine transactions, as is usual for rare classes, and
its scores were not corrected. So they are too high.
"""

_BLOCK = 4_096
_ITEM_PREFIX = "tx-"


class TruePerformance(NamedTuple):
    """What the classifier does in the long run at `THRESHOLD`."""

    precision: float
    recall: float


def item_id(number: int) -> str:
    """Id of a transaction; it says nothing about its class."""
    return f"{_ITEM_PREFIX}{number:07d}"


def item_number(identifier: str) -> int:
    """Number of a transaction, from its id."""
    return int(identifier.removeprefix(_ITEM_PREFIX))


class _Block(NamedTuple):
    frauds: Flags
    scores: Floats


class Transactions:
    """Truth and score of every transaction, by the same seed for all who must agree."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._block = lru_cache(maxsize=8)(self._make_block)

    def frauds(self, numbers: Sequence[int]) -> Flags:
        """Which transactions are fraud [n]."""
        return np.array([self._block(n // _BLOCK).frauds[n % _BLOCK] for n in numbers], np.bool_)

    def scores(self, numbers: Sequence[int]) -> Floats:
        """The classifier's probability of fraud [n]."""
        return np.array([self._block(n // _BLOCK).scores[n % _BLOCK] for n in numbers], np.float64)

    def is_flagged(self, number: int) -> bool:
        """Whether the classifier flags a transaction."""
        return bool(self.scores([number])[0] >= THRESHOLD)

    def true_class(self, number: int) -> str:
        """The true class of a transaction, whatever is predicted."""
        return CLASSES[int(self.frauds([number])[0])]

    def _make_block(self, block: int) -> _Block:
        rng = np.random.default_rng((self._seed, 3, block))
        frauds = rng.random(_BLOCK) < PREVALENCE
        evidence = rng.normal(size=_BLOCK) + _DISTANCE * frauds
        log_odds = special.logit(PREVALENCE) + _DISTANCE * (evidence - _DISTANCE / 2)
        return _Block(frauds, special.expit(_OFFSET + log_odds))


def true_performance() -> TruePerformance:
    """Precision and recall in closed form: the evidence is normal in both classes."""
    log_odds = special.logit(THRESHOLD) - _OFFSET
    cut = _DISTANCE / 2 + (log_odds - special.logit(PREVALENCE)) / _DISTANCE
    recall, false_positive_rate = special.ndtr(_DISTANCE - cut), special.ndtr(-cut)
    found = PREVALENCE * recall
    return TruePerformance(
        precision=float(found / (found + (1 - PREVALENCE) * false_positive_rate)), recall=float(recall)
    )
