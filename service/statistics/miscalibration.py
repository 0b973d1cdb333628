"""Anytime-valid evidence that scores are miscalibrated as probabilities.

The null hypothesis is that every prediction is right with the probability that its score gives. A bet on each
label, at the odds that the model itself offers, is fair under it; so the wealth of the bettor is a test
martingale (Shafer, JRSS A 2021). Bets are those of scores corrected by a logistic curve, mixed over several
corrections.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices

_OFFSETS: Final = (-1.0, -0.5, 0.0, 0.5)
_SLOPES: Final = (0.4, 0.7, 1.0, 1.5)
_UNCHANGED: Final = (0.0, 1.0)

_CORRECTIONS: Final[Floats] = np.array([each for each in product(_OFFSETS, _SLOPES) if each != _UNCHANGED])
"""Offsets and slopes of the logit [K, 2], equally probable; more of them are for scores that are too high."""

_NEAR_END: Final = 1e-3  # scores are clipped to be this far from 0 and 1: one error there is no proof


def log_gains(scores: Floats, correct: Flags, groups: Indices, group_count: int) -> Floats:
    """Log gains of each bet in every group [G, K]; those of further labels are added.

    The order of labels does not matter, as every correction always bets the same. Scores of the predicted
    classes, whether these are right, and groups are columns [n].

    Raises:
        ValueError: a score is not in [0, 1].
    """
    if not np.all((scores >= 0) & (scores <= 1)):
        raise ValueError("scores must be probabilities, in [0, 1]")
    clipped = np.clip(scores, _NEAR_END, 1 - _NEAR_END)
    logits = special.logit(clipped)
    gains = np.empty((group_count, len(_CORRECTIONS)))
    for number, (offset, slope) in enumerate(_CORRECTIONS):
        odds = offset + slope * logits
        # What is surer than the ends may be right more often: nobody may win by what was cut off.
        odds = np.where(scores > clipped, np.minimum(odds, logits), odds)
        odds = np.where(scores < clipped, np.maximum(odds, logits), odds)
        ratios = np.where(
            correct,
            special.log_expit(odds) - np.log(clipped),
            special.log_expit(-odds) - np.log1p(-clipped),
        )
        gains[:, number] = np.bincount(groups, weights=ratios, minlength=group_count)
    return gains


def log_wealth(gains: Floats) -> Floats:
    """Log e-value of every group [G], from the log gains of each bet [G, K]."""
    evidence: Floats = special.logsumexp(gains, axis=1) - np.log(len(_CORRECTIONS))
    return evidence
