"""Posterior of the share of positive items in every stratum, around scores that may be wrong.

Of a group's selected items, and of the others, the logit of the share of positive items in a stratum is that
of the model's mean score times a slope, plus an offset; and strata scatter around this curve:

    theta_k ~ Beta(N m_k, N (1 - m_k)),    logit m_k = offset + slope logit s_k

Offset, slope and N are on a grid, whose posterior is exact: given a point the strata are independent, and the
marginal likelihood of their labels is beta-binomial. So groups learn nothing from one another.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats

_MARGIN: Final = 0.01  # mean scores are clipped to be this far from 0 and 1
_OFFSET_SPREAD: Final = 1.5  # of the normal prior of offsets
_OFFSETS: Final[Floats] = np.linspace(-4.5, 4.5, 37)
_SLOPES: Final = (0.25, 0.5, 1.0, 1.5)
_STRENGTHS: Final = (3.0, 20.0, 200.0)
_GRID: Final[Floats] = np.array(list(product(_OFFSETS, _SLOPES, _STRENGTHS))).T  # [3, Q]
_LOG_PRIOR: Final[Floats] = -(_GRID[0] ** 2) / (2 * _OFFSET_SPREAD**2)


def draw_positive_shares(
    labels: Floats,
    positives: Floats,
    scores: Floats,
    selected: Flags,
    *,
    rng: np.random.Generator,
    draws: int,
) -> Floats:
    """Draws of the share of positive items [S, G, K], given labels, positive ones and mean scores [G, K]."""
    found = np.empty((draws, *labels.shape))
    for part in (selected, ~selected):
        if part.any():
            found[:, :, part] = _draw(labels[:, part], positives[:, part], scores[:, part], rng, draws)
    return found


def _draw(labels: Floats, positives: Floats, scores: Floats, rng: np.random.Generator, draws: int) -> Floats:
    logits = special.logit(np.clip(scores, _MARGIN, 1 - _MARGIN))
    # Strata without labels say nothing of the curve.
    groups, strata = np.nonzero(labels)
    alpha, beta = _around(_GRID, logits[groups, strata, None])
    right, all_ = positives[groups, strata, None], labels[groups, strata, None]
    fits = special.betaln(alpha + right, beta + all_ - right) - special.betaln(alpha, beta)
    fit = np.tile(_LOG_PRIOR, (len(labels), 1))
    np.add.at(fit, groups, fits)
    weights = special.softmax(fit, axis=1)
    # One point of the grid for every draw of every group, by inversion.
    cumulative = np.cumsum(weights, axis=1)
    points = np.stack(
        [np.searchsorted(each, rng.random(draws) * each[-1], side="right") for each in cumulative], axis=1
    )
    alpha, beta = _around(_GRID[:, points, None], logits)
    return np.asarray(rng.beta(alpha + positives, beta + labels - positives), np.float64)


def _around(points: Floats, logits: Floats) -> tuple[Floats, Floats]:
    """Parameters of Beta distributions around the curves of some points of the grid [3, ...]."""
    offset, slope, strength = points
    mean = special.expit(offset + slope * logits)
    return strength * mean, strength * (1 - mean)
