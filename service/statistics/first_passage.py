"""When a growing, perhaps fading, number of wrong labels first reaches a boundary."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Floats

_STATES: Final = 400.0  # grid of the number of wrong labels, at most about so long
_EXACT: Final = 24  # labels between two looks up to which their binomial distribution is exact
_QUANTILES: Final[Floats] = special.ndtri((np.arange(15) + 0.5) / 15)
_DEVIATIONS: Final = 5.0  # above the mean, where an unbounded number is cut off


def first_passage(labels: Floats, errors: Floats, kept: Floats, boundary: Floats) -> Floats:
    """Probability that the boundary is reached at a look or before it [L].

    The number of wrong labels is a Markov chain: between two looks a share `kept` of it is left, and the
    wrong ones of the new labels are added. So the distribution of the number over all paths that have not
    reached the boundary is propagated exactly from look to look, on a grid (Wald, Sequential Analysis, 1947;
    Jennison and Turnbull, Group Sequential Methods, 2000, chapter 19).

    Args:
        labels: whole numbers of new labels at every look [L].
        errors: the probability that one of them is wrong [L].
        kept: the share of earlier wrong labels that still counts, in (0, 1] [L].
        boundary: the least number of wrong labels that counts as reached; infinite for none [L].
    """
    step = _grid_step(labels, errors, kept, boundary)
    size = int(_STATES) + 2
    silent = np.zeros(size)
    silent[0] = 1.0
    numbers = step * np.arange(size)
    reached = np.zeros(len(labels))
    for look, (new, error, left, limit) in enumerate(zip(labels, errors, kept, boundary, strict=True)):
        wrong, chances = _wrong_of(int(new), float(error))
        # Those that came between the looks have faded for half of the time, on average.
        faded = faded_share(left)
        there = np.flatnonzero(silent > 1e-12)  # noqa: PLR2004 - what is less probable changes nothing
        moved = left * numbers[there] + faded * wrong[:, None]
        mass = silent[there] * chances[:, None]
        outside = moved >= limit - 1e-9
        mass[outside] = 0.0
        silent = _on_grid(moved / step, mass, size)
        reached[look] = 1 - silent.sum()
    return reached


def faded_share(kept: float) -> float:
    """What is left, on average, of labels that came between two looks, when so much is left of older ones."""
    if kept == 1:
        return 1.0
    return float((1 - kept) / -np.log(max(kept, 1e-300)))


def _grid_step(labels: Floats, errors: Floats, kept: Floats, boundary: Floats) -> float:
    """Distance of two grid points: half a label where it fades, else whole ones, as far as they suffice."""
    mean = variance = highest = 0.0
    for new, error, left, limit in zip(labels, errors, kept, boundary, strict=True):
        mean = left * mean + new * error
        variance = left**2 * variance + new * error
        highest = max(highest, min(limit, mean + _DEVIATIONS * np.sqrt(variance) + 1))
    least = 1.0 if np.all(kept == 1) else 0.25
    return float(max(least, 2.0 ** np.ceil(np.log2(highest / _STATES))))


def _wrong_of(labels: int, error: float) -> tuple[Floats, Floats]:
    """How many of some labels are wrong, and with which probability."""
    if labels <= _EXACT:
        wrong = np.arange(labels + 1)
        ways = special.gammaln(labels + 1) - special.gammaln(wrong + 1) - special.gammaln(labels - wrong + 1)
        chances = np.exp(ways + special.xlogy(wrong, error) + special.xlog1py(labels - wrong, -error))
        likely = chances > 1e-12  # noqa: PLR2004 - as above
        return wrong[likely].astype(np.float64), chances[likely]
    mean, deviation = labels * error, np.sqrt(labels * error * (1 - error))
    return np.maximum(mean + deviation * _QUANTILES, 0.0), np.full(len(_QUANTILES), 1 / len(_QUANTILES))


def _on_grid(places: Floats, mass: Floats, size: int) -> Floats:
    """Mass at any places, put on the two grid points beside each so that means are kept."""
    flat = np.minimum(places.ravel(), size - 1.001)
    below = flat.astype(np.intp)
    above = flat - below
    weights = mass.ravel()
    found = np.bincount(below, weights * (1 - above), size) + np.bincount(below + 1, weights * above, size)
    return np.asarray(found[:size], np.float64)
