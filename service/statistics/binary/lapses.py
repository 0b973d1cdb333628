"""Lapses: items whose class does not depend on their score.

Some positive items have scores like those of negative ones, and vice versa, whatever the curve between the
two, as an observer errs even where nothing is hard to see (Wichmann and Hill, Perception & Psychophysics
2001, equation 1, of psychometric functions). Their shares are estimated with everything else. They make the
recall uncertain where most scores are near 0, and prevent a single label from refuting a curve.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from service.domain.arrays import Floats

_COUNT, _STRIDE = 16, 7
_LEAST: Final = (1e-4, 1e-4)
_MOST: Final = (0.5, 0.05)
_HARDLY_ANY: Final = 1e-6
_NO_LAPSES: Final = 1 / 3  # prior probability that there are hardly any
_MOST_ODDS: Final = 0.1  # bound of class odds, and so of negative scores that belong to positive items


def _lattice() -> Floats:
    """Pairs spread evenly over the logarithms of both shares, and one with hardly any lapses [K, 2]."""
    turns = (np.arange(_COUNT) + 0.5) / _COUNT
    both = np.column_stack((turns, turns[_STRIDE * np.arange(_COUNT) % _COUNT]))
    spread = np.exp(np.log(_LEAST) + both * (np.log(_MOST) - np.log(_LEAST)))
    return np.vstack((np.full((1, 2), _HARDLY_ANY), spread))


LAPSES: Final = _lattice()
"""Lapse shares [K, 2].

The first is of the positive items, those with scores of negative ones; the second is of the items with scores
of positive ones, those that are negative.
"""

# log prior probability of each [K]
LOG_PRIOR: Final[Floats] = np.log(np.append(_NO_LAPSES, np.full(_COUNT, (1 - _NO_LAPSES) / _COUNT)))


def with_lapses(probabilities: Floats, lapses: Floats, prevalence: Floats) -> Floats:
    """P(positive) with lapses [..., B], from that without, lapse shares [..., 2] and prevalence [...].

    It is always above 0.
    """
    missed, mistaken = lapsing_below(lapses, prevalence), lapses[..., 1]
    lapsed: Floats = missed[..., None] + (1 - missed - mistaken)[..., None] * probabilities
    # Without a positive item even one that lapses is improbable, and yet not impossible.
    return np.maximum(lapsed, np.finfo(np.float64).tiny)


def lapsing_below(lapses: Floats, prevalence: Floats) -> Floats:
    """Positive share of items with scores of negative ones [...], by lapse shares [..., 2] and prevalence."""
    odds = np.minimum(prevalence / np.maximum(1 - prevalence, _MOST_ODDS), _MOST_ODDS)
    return lapses[..., 0] * odds
