"""The posterior of a mixture of two distributions of scores, of given families.

Welinder, Welling and Perona, CVPR 2013, equations 2 to 4; `service/statistics/binary/score_mixture.py`
explains the differences, and how families are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics.binary.score_bins import ScoreBins
from service.statistics.binary.score_families import Family
from service.statistics.importance import Draws, Mode, draw, find_modes

_LEAST_MASS = 1e-12
_SHARE_LIMIT = 14.0

_DIFFERENCE = 1e-5
_MOVES: Floats = _DIFFERENCE * np.eye(6, 5, -1)
"""Of the parameters, for their gradient: none, then each alone."""

_NEGATIVE_MOVES, _POSITIVE_MOVES = np.array([0, 2, 3]), np.array([0, 4, 5])
"""Those that change a family's masses, and none; these are then of all moves:"""

_OF_NEGATIVE, _OF_POSITIVE = np.array([0, 0, 1, 2, 0, 0]), np.array([0, 0, 0, 0, 1, 2])

# the prior demands that a positive item scores higher than a negative one with this probability
_ORDER_CENTRE, _ORDER_SLOPE = 0.6, 500.0


class ScoreMixture:
    """The posterior of one pair of families, in which each score has this share of its weight.

    Parameters [P, 5]: log odds of the share of the positive class; two of the family of the negative class;
    two of the positive one's.
    """

    def __init__(
        self,
        bins: ScoreBins,
        negative: Family,
        positive: Family,
        *,
        share: float = 1.0,
    ) -> None:
        self._bins, self._negative, self._positive, self._share = bins, negative, positive, share
        self._order_slope = max(_ORDER_SLOPE, share * bins.total)
        self._edges = bins.edge_positions
        self.lowest = np.array([-_SHARE_LIMIT, *negative.lowest, *positive.lowest])
        self.highest = np.array([_SHARE_LIMIT, *negative.highest, *positive.highest])

    def _masses(self, family: Family, parameters: Floats) -> Floats:
        edges = self._edges
        below = np.empty((len(parameters), len(edges) + 2))
        below[:, 0], below[:, 1:-1], below[:, -1] = 0.0, family.below(parameters, edges), 1.0
        return np.maximum(below[:, 1:] - below[:, :-1], _LEAST_MASS)

    def parts(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Joint probability of every bin with the negative class, and with the positive one [P, B]."""
        log_odds = parameters[:, :1]
        return (
            special.expit(-log_odds) * self._masses(self._negative, parameters[:, 1:3]),
            special.expit(log_odds) * self._masses(self._positive, parameters[:, 3:5]),
        )

    def log_densities(self, parameters: Floats) -> Floats:
        """Log posterior [P], up to a constant that all pairs of families share."""
        negative, positive = self.parts(parameters)
        return self._of_parts(parameters, negative, positive, self._log_family_priors(parameters))

    def _log_family_priors(self, parameters: Floats) -> Floats:
        return self._negative.log_prior(parameters[:, 1:3]) + self._positive.log_prior(parameters[:, 3:5])

    def _of_parts(self, parameters: Floats, negative: Floats, positive: Floats, log_prior: Floats) -> Floats:
        together = negative + positive
        density: Floats = self._share * (np.log(together) @ self._bins.counts) + log_prior
        # Jeffreys' Beta(1/2, 1/2) for the share of the positive class, as a density of its log odds.
        log_odds = parameters[:, 0]
        density += 0.5 * (special.log_expit(log_odds) + special.log_expit(-log_odds)) - np.log(np.pi)
        ordered = self._order(negative, positive)
        density += special.log_expit(self._order_slope * (ordered - _ORDER_CENTRE))
        return density

    def _order(self, negative: Floats, positive: Floats) -> Floats:
        """Probability that a positive item scores higher than a negative one [P]."""
        lower = np.cumsum(negative, axis=1) - negative / 2
        ordered: Floats = (positive * lower).sum(axis=1) / (positive.sum(axis=1) * negative.sum(axis=1))
        return ordered

    def _objective(self, at: Floats) -> tuple[float, Floats]:
        """Negative log density and its gradient [5] by finite differences.

        Each family is evaluated only where its parameters move.
        """
        moved = at + _MOVES
        negative = self._masses(self._negative, moved[_NEGATIVE_MOVES, 1:3])[_OF_NEGATIVE]
        positive = self._masses(self._positive, moved[_POSITIVE_MOVES, 3:5])[_OF_POSITIVE]
        values = self._of_parts(
            moved,
            special.expit(-moved[:, :1]) * negative,
            special.expit(moved[:, :1]) * positive,
            self._log_family_priors(moved),
        )
        return -float(values[0]), -(values[1:] - values[0]) / _DIFFERENCE

    def modes(self, starts: Sequence[Floats]) -> list[Mode]:
        """Modes found from these starts."""
        return find_modes(self._objective, starts, lowest=self.lowest, highest=self.highest)

    def starts(self, splits: Sequence[float]) -> list[Floats]:
        """For each split, parameters by which this lower share of the scores is negative."""
        starts = []
        for split in splits:
            upper = np.clip(50 * (self._bins.ranks - split) + 0.5, 0.02, 0.98)
            starts.append(
                np.concatenate(
                    (
                        [special.logit(1 - split)],
                        self._negative.matching(self._bins.positions, self._bins.counts * (1 - upper)),
                        self._positive.matching(self._bins.positions, self._bins.counts * upper),
                    )
                )
            )
        return starts

    def draw(self, count: int, rng: np.random.Generator, near: Sequence[Mode]) -> Draws:
        """Draws of the posterior, whose modes are near those of a similar one."""
        modes = self.modes([mode.at for mode in near])
        return draw(self.log_densities, modes, count, rng, lowest=self.lowest, highest=self.highest)

    def distance(self, at: Floats) -> float:
        """Kolmogorov-Smirnov distance of the scores from the mixture, at the bins' edges."""
        negative, positive = self.parts(at[None])
        observed = np.cumsum(self._bins.counts) / self._bins.total
        return float(np.abs(np.cumsum(negative[0] + positive[0]) - observed).max())

    def misfit_p_value(self, parameters: Floats, rng: np.random.Generator) -> float:
        """Posterior predictive p-value of the distance from the mixture, by draws [S, 5] (Rubin 1984)."""
        negative, positive = self.parts(parameters)
        together = negative + positive
        together /= together.sum(axis=1, keepdims=True)
        below = np.cumsum(together, axis=1)
        total = max(round(self._bins.effective), 1)
        replicated = np.cumsum(rng.multinomial(total, together), axis=1) / total
        observed = np.cumsum(self._bins.counts) / self._bins.total
        off = np.abs(below - observed).max(axis=1)
        return float(np.mean(np.abs(below - replicated).max(axis=1) >= off))
