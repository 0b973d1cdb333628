"""A mixture of two distributions of scores, one of each class, learned from scores with few labels.

Semi-supervised performance evaluation: Welinder, Welling and Perona, CVPR 2013, equations 2 to 4 and 8 to 10.
Scores are binned, and the families give the bins' masses, so that equal scores, and scores that a classifier
clips at 0 or 1, are handled exactly. Two things differ from the paper:

- The mixture is fitted to the scores alone. A label informs about its item's class given the score, and so
  about the curve that `service/statistics/binary/score_process.py` learns; so choosing items by their scores
  causes no bias, and a mixture that fits the scores but not the classes is overruled.
- No family is exact, and a million scores would make a wrong one certain. So the likelihood of the scores is
  tempered to the sample size at which a Kolmogorov-Smirnov test would just not reject the fit (in the spirit
  of Miller and Dunson's coarsened posteriors, JASA 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices
from service.statistics.binary.score_bins import ScoreBins
from service.statistics.binary.score_families import OF_PROBABILITIES, OF_REAL_SCORES, Family
from service.statistics.binary.score_mixture_posterior import ScoreMixture
from service.statistics.importance import Draws, Mode, laplace_evidence

_BINS, _SCREENING_BINS = 72, 36
_RESOLUTION = 1e-12
_LEAST_MASS = 1e-12
_SPLITS = (0.3, 0.5, 0.8, 0.92, 0.98, 0.995)
_SCREENING_SPLITS = (0.6, 0.96)  # shares of the scores that are taken to be negative in a starting point
_SCREENED = 2  # pairs that are refined
_MOST_COUNTED = 10_000.0  # largest sample size of the tempered likelihood: families are no more exact
_KS_QUANTILE = 1.36  # 95% quantile of sqrt(n) times the Kolmogorov-Smirnov distance (Smirnov 1948)
_Pair = tuple[Family, Family]


class _FittedPair(NamedTuple):
    """A pair of families, the modes of its posterior, and the marginal likelihood around the highest."""

    pair: _Pair
    modes: Sequence[Mode]
    evidence: float


class _SampledPair(NamedTuple):
    """A pair of families, and draws of its posterior."""

    pair: _Pair
    modes: Sequence[Mode]
    draws: Draws


@dataclass(frozen=True)
class MixtureFit:
    """Posterior of a mixture."""

    negative: str  # family of the negative class
    positive: str  # family of the positive class
    draws: Draws  # of the parameters, and how they were made
    share: float  # weight of each score in the tempered likelihood
    expected: Floats  # P(positive) of an item of a bin [B]
    distance: float  # Kolmogorov-Smirnov distance of the scores from the mixture at its mode
    misfit_p_value: float  # posterior predictive: how often scores from the mixture are as far off
    separation: float  # share of the uncertainty about an item's class that its score removes, in [0, 1]


def fit_mixture(bins: ScoreBins, rng: np.random.Generator, *, draws: int, unit: bool) -> MixtureFit:
    """Choose the pair of families with the highest marginal likelihood, and draw from its posterior."""
    families = OF_PROBABILITIES if unit else OF_REAL_SCORES
    fine = bins.resolved(_RESOLUTION)
    used = fine.merged(_BINS)
    ranked = _rank_pairs(used.merged(_SCREENING_BINS), list(product(families, families)))
    found = sorted((_fit_pair(used, pair) for pair in ranked[:_SCREENED]), key=lambda each: -each.evidence)
    mixture = ScoreMixture(used, *found[0].pair)
    refused = (_KS_QUANTILE / max(mixture.distance(found[0].modes[0].at), _LEAST_MASS)) ** 2
    share = min(bins.effective, refused, _MOST_COUNTED) / bins.total
    best = max(
        (_sample_pair(used, each, share, draws, rng) for each in found),
        key=lambda each: each.draws.log_evidence,
    )
    tempered = ScoreMixture(used, *best.pair, share=share)
    negative, positive = ScoreMixture(fine, *best.pair).parts(best.draws.parameters)
    probabilities = special.expit(np.log(positive) - np.log(negative))
    return MixtureFit(
        negative=best.pair[0].name,
        positive=best.pair[1].name,
        draws=best.draws,
        share=share,
        expected=probabilities.mean(axis=0)[_coarse_bins(fine, bins)],
        distance=tempered.distance(best.modes[0].at),
        misfit_p_value=tempered.misfit_p_value(best.draws.parameters, rng),
        separation=_separation(probabilities, fine.counts / fine.total),
    )


def _rank_pairs(bins: ScoreBins, pairs: Sequence[_Pair]) -> list[_Pair]:
    """Pairs by their marginal likelihoods, the highest first."""

    def evidence(pair: _Pair) -> float:
        mixture = ScoreMixture(bins, *pair)
        return _highest_evidence(mixture, mixture.modes(mixture.starts(_SCREENING_SPLITS)))

    return sorted(pairs, key=evidence, reverse=True)


def _fit_pair(bins: ScoreBins, pair: _Pair) -> _FittedPair:
    mixture = ScoreMixture(bins, *pair)
    modes = mixture.modes(mixture.starts(_SPLITS))
    return _FittedPair(pair, modes, _highest_evidence(mixture, modes))


def _sample_pair(
    bins: ScoreBins, fitted: _FittedPair, share: float, draws: int, rng: np.random.Generator
) -> _SampledPair:
    mixture = ScoreMixture(bins, *fitted.pair, share=share)
    return _SampledPair(fitted.pair, fitted.modes, mixture.draw(draws, rng, fitted.modes))


def _highest_evidence(mixture: ScoreMixture, modes: Sequence[Mode]) -> float:
    """Marginal likelihood around the mode that has most of it."""
    return max(laplace_evidence(mixture.log_densities, mode) for mode in modes)


def _coarse_bins(coarse: ScoreBins, fine: ScoreBins) -> Indices:
    """Which of the coarse bins every fine one is in [B]."""
    return np.searchsorted(coarse.edges, np.append(-np.inf, fine.edges), side="right")


def _separation(probabilities: Floats, shares: Floats) -> float:
    """Mutual information of class and score over the entropy of the class; mean over the draws."""

    def entropy(p: Floats) -> Floats:
        return np.asarray(special.entr(p) + special.entr(1 - p))

    before, after = entropy(probabilities @ shares), entropy(probabilities) @ shares
    return float(np.clip(np.mean(1 - after / np.maximum(before, _LEAST_MASS)), 0.0, 1.0))
