"""A mixture of two distributions of scores, one of each class, learned from scores with few labels.

Semi-supervised performance evaluation: Welinder, Welling and Perona, CVPR 2013, equations 2 to 4 and 8 to 10.
Scores are binned, and the families give the bins' masses, so that equal scores, and scores that a classifier
clips at 0 or 1, are handled exactly. Three things differ from the paper:

- Labels need not be of random items. All scores inform the mixture, and a label informs about its item's
  class given the score; so choosing items by their scores causes no bias.
- No family is exact, and a million scores would make a wrong one certain. So the likelihood of the scores is
  tempered to the sample size at which a Kolmogorov-Smirnov test would just not reject the fit (in the spirit
  of Miller and Dunson's coarsened posteriors, JASA 2019).
- Some items lapse (`service/statistics/binary/lapses.py`), so that a single label can not refute a mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Floats, Indices
from service.statistics.binary.lapses import with_lapses
from service.statistics.binary.score_bins import ScoreBins
from service.statistics.binary.score_families import OF_PROBABILITIES, OF_REAL_SCORES, Family
from service.statistics.binary.score_mixture_posterior import ScoreMixture
from service.statistics.importance import Draws, Mode, laplace_evidence

_BINS, _SCREENING_BINS = 72, 36
_RESOLUTION = 1e-12
_LEAST_MASS = 1e-12
_SPLITS = (0.3, 0.5, 0.8, 0.92, 0.98, 0.995)
_SCREENING_SPLITS = (0.6, 0.96)  # shares of the scores that are taken to be negative in a starting point
_SCREENED, _KEPT = 2, 8  # pairs that are refined; and that are screened again with labels
_LEAST_KEPT = 0.2  # effective share after reweighting by lapses, below which draws are repeated
_MOST_COUNTED = 10_000.0  # largest sample size of the tempered likelihood: families are no more exact
_KS_QUANTILE = 1.36  # 95% quantile of sqrt(n) times the Kolmogorov-Smirnov distance (Smirnov 1948)
_Pair = tuple[Family, Family]


class _FittedPair(NamedTuple):
    """A pair of families, and the modes of its posterior."""

    pair: _Pair
    modes: Sequence[Mode]


class _SampledPair(NamedTuple):
    """A pair of families, and draws of its posterior."""

    pair: _Pair
    modes: Sequence[Mode]
    draws: Draws


@dataclass(frozen=True)
class UnlabelledFit:
    """Fit of the families to the scores without labels; it can be combined with any labels."""

    ranked: Sequence[_Pair]  # pairs of families by their marginal likelihoods, the highest first
    drawn: Sequence[_SampledPair]  # the best of them with draws of their posteriors, likewise
    share: float  # weight of each score in the tempered likelihood
    expected: Floats  # P(positive) of an item of a bin [B], without lapses
    separation: float  # share of the uncertainty about an item's class that its score removes, in [0, 1]


@dataclass(frozen=True)
class MixtureFit:
    """Posterior of a mixture."""

    negative: str  # family of the negative class
    positive: str  # family of the positive class
    probabilities: Floats  # that an item of a bin is positive [S, B], one row per draw
    draws: Draws  # how they were made, before lapses
    log_label_evidence: float  # log probability of the labels, given the scores alone
    distance: float  # Kolmogorov-Smirnov distance of the scores from the mixture at its mode
    misfit_p_value: float  # posterior predictive: how often scores from the mixture are as far off
    separation: float  # of `UnlabelledFit`


def fit_unlabelled(bins: ScoreBins, rng: np.random.Generator, *, draws: int, unit: bool) -> UnlabelledFit:
    """Fit a mixture to the scores alone, which takes most of the time."""
    families = OF_PROBABILITIES if unit else OF_REAL_SCORES
    fine = bins.resolved(_RESOLUTION)
    used = fine.merged(_BINS).without_labels()
    ranked = _rank_pairs(used.merged(_SCREENING_BINS), list(product(families, families)))
    found = _refit_best(used, ranked)
    mixture = ScoreMixture(used, *found[0].pair)
    refused = (_KS_QUANTILE / max(mixture.distance(found[0].modes[0].at), _LEAST_MASS)) ** 2
    share = min(bins.effective, refused, _MOST_COUNTED) / bins.total
    drawn = _sample_pairs(used, found, share, draws, rng)
    probabilities = _probabilities(fine, drawn[0].pair, drawn[0].draws.parameters)
    return UnlabelledFit(
        ranked=ranked,
        drawn=drawn,
        share=share,
        expected=probabilities.mean(axis=0)[_coarse_bins(fine, bins)],
        separation=_separation(probabilities, fine.counts / fine.total),
    )


def fit_mixture(
    bins: ScoreBins, unlabelled: UnlabelledFit, rng: np.random.Generator, *, draws: int
) -> MixtureFit:
    """Choose the pair of families with the highest marginal likelihood, and draw from its posterior.

    `unlabelled` is the fit to the same scores.
    """
    fine = bins.resolved(_RESOLUTION)
    used = fine.merged(_BINS)
    best = unlabelled.drawn[0]
    if bins.label_count:
        ranked = _rank_pairs(used.merged(_SCREENING_BINS), unlabelled.ranked[:_KEPT])
        best = _sample_pairs(used, _refit_best(used, ranked), unlabelled.share, draws, rng)[0]
    pair, posterior = best.pair, best.draws
    mixture = ScoreMixture(used, *pair, share=unlabelled.share)
    lapsed = mixture.lapsed(posterior.parameters, rng)
    if lapsed.effective_share < _LEAST_KEPT:
        nearer = ScoreMixture(used, *pair, share=unlabelled.share, lapsing=lapsed.likeliest)
        posterior = nearer.draw(draws, rng, best.modes)
        lapsed = nearer.lapsed(posterior.parameters, rng)
    # The bins of the fit are coarser than those of the result.
    curves = _probabilities(fine, pair, lapsed.parameters)
    probabilities = with_lapses(curves, lapsed.lapses, special.expit(lapsed.parameters[:, 0]))
    evidence = posterior.log_evidence + lapsed.log_gain
    return MixtureFit(
        negative=pair[0].name,
        positive=pair[1].name,
        probabilities=probabilities[:, _coarse_bins(fine, bins)],
        draws=replace(posterior, effective=posterior.effective * lapsed.effective_share),
        log_label_evidence=_label_evidence(used, best, evidence, unlabelled, rng),
        distance=mixture.distance(best.modes[0].at),
        misfit_p_value=mixture.misfit_p_value(lapsed.parameters, rng),
        separation=unlabelled.separation,
    )


def _label_evidence(
    bins: ScoreBins, best: _SampledPair, evidence: float, unlabelled: UnlabelledFit, rng: np.random.Generator
) -> float:
    """Log probability of the labels, given the scores.

    The evidence of both, of the most probable pair, over that of scores alone, of which another pair may be
    the most probable.
    """
    if not bins.label_count:
        return 0.0
    alone = [each.draws.log_evidence for each in unlabelled.drawn]
    if best.pair not in [each.pair for each in unlabelled.drawn]:
        found = _fit_pair(bins.without_labels(), best.pair)
        [drawn] = _sample_pairs(
            bins.without_labels(), [found], unlabelled.share, len(best.draws.parameters), rng
        )
        alone.append(drawn.draws.log_evidence)
    # Both come of chance; a probability is no more than 1.
    return min(evidence - max(alone), 0.0)


def _rank_pairs(bins: ScoreBins, pairs: Sequence[_Pair]) -> list[_Pair]:
    """Pairs by their marginal likelihoods, the highest first."""

    def evidence(pair: _Pair) -> float:
        mixture = ScoreMixture(bins, *pair)
        return _highest_evidence(mixture, mixture.modes(mixture.starts(_SCREENING_SPLITS)))

    return sorted(pairs, key=evidence, reverse=True)


def _fit_pair(bins: ScoreBins, pair: _Pair) -> _FittedPair:
    mixture = ScoreMixture(bins, *pair)
    return _FittedPair(pair, mixture.modes(mixture.starts(_SPLITS)))


def _refit_best(bins: ScoreBins, ranked: Sequence[_Pair]) -> list[_FittedPair]:
    """The best pairs of those ranked in coarse bins, refitted, the most probable first."""
    found = [_fit_pair(bins, pair) for pair in ranked[:_SCREENED]]
    return sorted(found, key=lambda each: -_highest_evidence(ScoreMixture(bins, *each.pair), each.modes))


def _sample_pairs(
    bins: ScoreBins, found: Sequence[_FittedPair], share: float, draws: int, rng: np.random.Generator
) -> list[_SampledPair]:
    """Draws of the posteriors of some pairs, the most probable first."""
    drawn = [
        _SampledPair(pair, modes, ScoreMixture(bins, *pair, share=share).draw(draws, rng, modes))
        for pair, modes in found
    ]
    return sorted(drawn, key=lambda each: -each.draws.log_evidence)


def _probabilities(bins: ScoreBins, pair: _Pair, parameters: Floats) -> Floats:
    """Probability that an item of a bin is positive [S, B], without lapses."""
    negative, positive = ScoreMixture(bins, *pair).parts(parameters)
    return np.asarray(special.expit(np.log(positive) - np.log(negative)), np.float64)


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
