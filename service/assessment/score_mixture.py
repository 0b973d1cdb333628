"""A mixture of two distributions of scores, one of each class, learned from scores with few labels.

Semi-supervised performance evaluation: Welinder, Welling and Perona, CVPR 2013, equations 2 to 4 and 8 to 10.
Scores come in bins, of which the families give the masses, so that equal scores, and scores that a classifier
cuts off at 0 or 1, are what they are. Three things differ from the paper:

- Labels need not be of random items. All scores tell of the mixture, and a label tells of its item's class
  given the score; so whoever chooses items by their scores biases nothing.
- No family is exact, and a million scores would make a wrong one certain. So the scores count as so many
  that a Kolmogorov-Smirnov test would just not refuse the fit (in the spirit of Miller and Dunson's
  coarsened posteriors, JASA 2019).
- Some labels are wrong (`LABEL_ERROR`), so that a single one can not refute a mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment.importance import Draws, Mode, draw, find_modes, laplace_evidence, log_evidence
from service.assessment.score_bins import ScoreBins
from service.assessment.score_families import OF_PROBABILITIES, OF_REAL_SCORES, Family

Floats = npt.NDArray[np.float64]

LABEL_ERROR: Final = 0.01
"""Probability that a label is wrong."""

_BINS, _SCREENING_BINS = 72, 36
_RESOLUTION = 1e-12
_LEAST_MASS = 1e-12
_SHARE_LIMIT = 14.0
_SPLITS = (0.3, 0.5, 0.8, 0.92, 0.98, 0.995)
_SCREENING_SPLITS = (0.6, 0.96)
"""Shares of the scores that are taken for negative, to start from."""

_SCREENED, _KEPT = 2, 8
"""Pairs that are looked at closely; and that are looked at again with labels."""

_MOST_COUNTED = 10_000.0
"""Of more scores a mixture is not believed, however well it fits: families are not exact to that degree."""

_DIFFERENCE = 1e-5
_KS_QUANTILE = 1.36
"""Of the root of n times the Kolmogorov-Smirnov distance: 95 % (Smirnov 1948)."""

_ORDER_CENTRE, _ORDER_SLOPE = 0.6, 500.0
"""A positive item scores higher than a negative one with a probability above this, whatever scores say."""


_Pair = tuple[Family, Family]


@dataclass(frozen=True)
class _Found:
    """A pair of families, and the modes of its posterior."""

    pair: _Pair
    modes: Sequence[Mode]


@dataclass(frozen=True)
class UnlabelledFit:
    """What scores tell of the families by themselves: the same for whatever labels.

    Attributes:
        ranked: pairs of families by their marginal likelihoods, the highest first.
        likeliest: the pair of the highest, looked at closely.
    """

    ranked: Sequence[_Pair]
    likeliest: _Found


@dataclass(frozen=True)
class MixtureFit:
    """What a mixture tells.

    Attributes:
        negative: family of the negative class.
        positive: family of the positive class.
        log_odds: that an item of a bin is positive [S, B], one row for each draw of the posterior.
        draws: how they were made.
        log_label_evidence: logarithm of the probability that the mixture gave to the labels, when it knew
            the scores alone.
        distance: Kolmogorov-Smirnov distance of the scores from the mixture at its mode.
        misfit_p_value: of the posterior predictive check: how often scores that the mixture makes are as far
            off.
        counted_scores: as how many the scores count.
        separation: which share of the uncertainty about an item's class its score takes away, in [0, 1].
    """

    negative: str
    positive: str
    log_odds: Floats
    draws: Draws
    log_label_evidence: float
    distance: float
    misfit_p_value: float
    counted_scores: float
    separation: float


def fit_unlabelled(bins: ScoreBins, *, unit: bool) -> UnlabelledFit:
    """Rank the pairs of families by scores alone, which takes most of the time of `fit_mixture`.

    Args:
        bins: scores; labels are left out.
        unit: whether the scores are probabilities.
    """
    families = OF_PROBABILITIES if unit else OF_REAL_SCORES
    alone = bins.resolved(_RESOLUTION).merged(_BINS).without_labels()
    ranked = _ranked(alone.merged(_SCREENING_BINS), list(product(families, families)))
    return UnlabelledFit(ranked, _likeliest(alone, ranked))


def fit_mixture(
    bins: ScoreBins,
    rng: np.random.Generator,
    *,
    draws: int,
    unit: bool,
    unlabelled: UnlabelledFit | None = None,
) -> MixtureFit:
    """Choose the pair of families with the highest marginal likelihood, and learn its parameters.

    Args:
        bins: scores with their labels.
        rng: random numbers.
        draws: of the posterior to make.
        unit: whether the scores are probabilities.
        unlabelled: of the same scores, if it is known.
    """
    by_scores = fit_unlabelled(bins, unit=unit) if unlabelled is None else unlabelled
    fine = bins.resolved(_RESOLUTION)
    used = fine.merged(_BINS)
    chosen = expected = by_scores.likeliest
    if bins.label_count:
        chosen = _likeliest(used, _ranked(used.merged(_SCREENING_BINS), by_scores.ranked[:_KEPT]))
    pair = chosen.pair
    mixture = _Mixture(used, *pair)
    distance = mixture.distance(chosen.modes[0].at)
    refused = (_KS_QUANTILE / max(distance, _LEAST_MASS)) ** 2
    share = min(bins.effective, refused, _MOST_COUNTED) / bins.total
    posterior = _Mixture(used, *pair, share=share).draw(draws, rng, chosen.modes)
    evidence = 0.0
    if bins.label_count:
        # Knowing the scores alone, another pair may be the likeliest: labels are held to its word.
        unknowing = _Mixture(used.without_labels(), *expected.pair, share=share)
        evidence = posterior.log_evidence - unknowing.log_evidence(draws // 2, rng, expected.modes)
    # The bins of the fit are coarser than those in which its word is asked for.
    everywhere = _Mixture(fine, *pair)
    negative, positive = everywhere.parts(posterior.parameters)
    log_odds = np.log(positive) - np.log(negative)
    return MixtureFit(
        negative=pair[0].name,
        positive=pair[1].name,
        log_odds=log_odds[:, _places(fine, bins)],
        draws=posterior,
        log_label_evidence=evidence,
        distance=distance,
        misfit_p_value=mixture.misfit_p_value(posterior.parameters, rng),
        counted_scores=share * bins.total,
        separation=_separation(special.expit(log_odds), fine.counts / fine.total),
    )


def _ranked(bins: ScoreBins, pairs: Sequence[_Pair]) -> list[_Pair]:
    """Pairs by their marginal likelihoods, the highest first."""
    return sorted(pairs, key=lambda pair: -_evidence(_Mixture(bins, *pair), _SCREENING_SPLITS))


def _likeliest(bins: ScoreBins, ranked: Sequence[_Pair]) -> _Found:
    """The pair of the highest marginal likelihood; only the best in coarse bins are looked at closely."""
    found = []
    for pair in ranked[:_SCREENED]:
        mixture = _Mixture(bins, *pair)
        found.append(_Found(pair, mixture.modes(mixture.starts(_SPLITS))))
    return max(found, key=lambda each: _highest(_Mixture(bins, *each.pair), each.modes))


def _evidence(mixture: _Mixture, splits: Sequence[float]) -> float:
    return _highest(mixture, mixture.modes(mixture.starts(splits)))


def _highest(mixture: _Mixture, modes: Sequence[Mode]) -> float:
    """Marginal likelihood around the mode that has most of it."""
    return max(laplace_evidence(mixture.log_densities, mode) for mode in modes)


def _places(coarse: ScoreBins, fine: ScoreBins) -> npt.NDArray[np.intp]:
    """Which bin of the coarse ones every fine one is part of [B]."""
    return np.searchsorted(coarse.edges, np.append(-np.inf, fine.edges), side="right")


def _separation(probabilities: Floats, shares: Floats) -> float:
    """Mutual information of class and score over the entropy of the class; mean over the draws."""

    def entropy(p: Floats) -> Floats:
        return np.asarray(special.entr(p) + special.entr(1 - p))

    before, after = entropy(probabilities @ shares), entropy(probabilities) @ shares
    return float(np.clip(np.mean(1 - after / np.maximum(before, _LEAST_MASS)), 0.0, 1.0))


class _Mixture:
    """The posterior of one pair of families.

    Parameters [P, 5]: log odds of the share of the positive class; two of the family of the negative class;
    two of the positive one's.

    Args:
        bins: scores with their labels.
        negative: family of the negative class.
        positive: family of the positive class.
        share: as which share of their number the scores count.
    """

    def __init__(self, bins: ScoreBins, negative: Family, positive: Family, *, share: float = 1.0) -> None:
        self._bins, self._negative, self._positive, self._share = bins, negative, positive, share
        self._order_slope = max(_ORDER_SLOPE, share * bins.total)
        self._labelled = np.flatnonzero(bins.positives + bins.negatives)
        self.lowest = np.array([-_SHARE_LIMIT, *negative.lowest, *positive.lowest])
        self.highest = np.array([_SHARE_LIMIT, *negative.highest, *positive.highest])

    @cached_property
    def _edges(self) -> Floats:
        return self._bins.edge_positions

    def _masses(self, family: Family, parameters: Floats) -> Floats:
        below = family.below(parameters, self._edges)
        ends = np.zeros((len(parameters), 1))
        return np.maximum(np.diff(np.hstack((ends, below, ends + 1)), axis=1), _LEAST_MASS)

    def parts(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Probability of every bin together with the negative class, and with the positive one [P, B]."""
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
        if self._labelled.size:
            at = self._labelled
            right = LABEL_ERROR + (1 - 2 * LABEL_ERROR) * positive[:, at] / together[:, at]
            density += np.log(right) @ self._bins.positives[at] + np.log1p(-right) @ self._bins.negatives[at]
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
        """Negative log density and its gradient [5], by differences; each part moves alone."""
        moved = at + np.vstack((np.zeros(5), _DIFFERENCE * np.eye(5)))
        of_negative, of_positive = np.array([0, 0, 1, 2, 0, 0]), np.array([0, 0, 0, 0, 1, 2])
        negative = self._masses(self._negative, moved[[0, 2, 3], 1:3])[of_negative]
        positive = self._masses(self._positive, moved[[0, 4, 5], 3:5])[of_positive]
        values = self._of_parts(
            moved,
            special.expit(-moved[:, :1]) * negative,
            special.expit(moved[:, :1]) * positive,
            self._log_family_priors(moved),
        )
        return -float(values[0]), -(values[1:] - values[0]) / _DIFFERENCE

    def modes(self, starts: Sequence[Floats]) -> list[Mode]:
        """Modes that are found from some starts."""
        return find_modes(self._objective, starts, lowest=self.lowest, highest=self.highest)

    def starts(self, splits: Sequence[float]) -> list[Floats]:
        """Parameters by which the lower part of the scores is negative, one start for each share."""
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
        return draw(
            self.log_densities, self._moved(near), count, rng, lowest=self.lowest, highest=self.highest
        )

    def log_evidence(self, count: int, rng: np.random.Generator, near: Sequence[Mode]) -> float:
        """Logarithm of the marginal likelihood by so many draws, likewise."""
        return log_evidence(
            self.log_densities, self._moved(near), count, rng, lowest=self.lowest, highest=self.highest
        )

    def _moved(self, near: Sequence[Mode]) -> list[Mode]:
        return self.modes([mode.at for mode in near])

    def distance(self, at: Floats) -> float:
        """Kolmogorov-Smirnov distance of the scores from the mixture, at the bins' edges."""
        negative, positive = self.parts(at[None])
        observed = np.cumsum(self._bins.counts) / self._bins.total
        return float(np.abs(np.cumsum(negative[0] + positive[0]) - observed).max())

    def misfit_p_value(self, parameters: Floats, rng: np.random.Generator) -> float:
        """Share of draws [S, 5] of which scores, drawn anew, are as far off as the real ones (Rubin 1984)."""
        negative, positive = self.parts(parameters)
        together = negative + positive
        together /= together.sum(axis=1, keepdims=True)
        below = np.cumsum(together, axis=1)
        total = max(round(self._bins.effective), 1)
        replicated = np.cumsum(rng.multinomial(total, together), axis=1) / total
        observed = np.cumsum(self._bins.counts) / self._bins.total
        off = np.abs(below - observed).max(axis=1)
        return float(np.mean(np.abs(below - replicated).max(axis=1) >= off))
