"""Lapses: items whose class has nothing to do with their score.

Some positive items have scores like those of negative ones, and the other way round, however a curve goes on
between the two, as an observer errs even where nothing is hard to see (Wichmann and Hill, Perception &
Psychophysics 2001, equation 1, of psychometric functions). How many they are is learned with everything
else. They make the recall uncertain where most scores are next to 0, and keep a single label from refuting a
curve.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from service.domain.arrays import Floats

_COUNT, _STRIDE = 16, 7
_LEAST: Final = (1e-4, 1e-4)
_MOST: Final = (0.5, 0.05)
_HARDLY_ANY: Final = 1e-6
_NO_LAPSES: Final = 1 / 3
"""Probability that there are none worth telling."""

_MOST_ODDS: Final = 0.1
"""Of classes more alike in size than this, no more of the negative scores belong to positive items."""


def _lattice() -> Floats:
    """Pairs that spread evenly over the logarithms of both shares, and hardly any lapses [K, 2]."""
    turns = (np.arange(_COUNT) + 0.5) / _COUNT
    both = np.column_stack((turns, turns[_STRIDE * np.arange(_COUNT) % _COUNT]))
    spread = np.exp(np.log(_LEAST) + both * (np.log(_MOST) - np.log(_LEAST)))
    return np.vstack((np.full((1, 2), _HARDLY_ANY), spread))


LAPSES: Final = _lattice()
"""Shares that lapse [K, 2]: of the positive items, to scores of negative ones, and of the items with scores
of positive ones, which are negative."""

LOG_PRIOR: Final[Floats] = np.log(np.append(_NO_LAPSES, np.full(_COUNT, (1 - _NO_LAPSES) / _COUNT)))
"""Logarithm of the probability of each [K], before any label."""


def with_lapses(probabilities: Floats, lapses: Floats, prevalence: Floats) -> Floats:
    """P(positive) where lapses happen too [..., B].

    Args:
        probabilities: where none do [..., B]; above 0 afterwards.
        lapses: shares as in `LAPSES` [..., 2].
        prevalence: share of the positive items among all [...].
    """
    missed, mistaken = lapsing_below(lapses, prevalence), lapses[..., 1]
    told: Floats = missed[..., None] + (1 - missed - mistaken)[..., None] * probabilities
    # Without a positive item even one that lapses is improbable, and yet not impossible.
    return np.maximum(told, np.finfo(np.float64).tiny)


def lapsing_below(lapses: Floats, prevalence: Floats) -> Floats:
    """Share of the items with scores of negative ones that are positive [...].

    Args:
        lapses: shares as in `LAPSES` [..., 2].
        prevalence: share of the positive items among all [...].
    """
    odds = np.minimum(prevalence / np.maximum(1 - prevalence, _MOST_ODDS), _MOST_ODDS)
    return lapses[..., 0] * odds
