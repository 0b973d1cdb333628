"""A mixture of two distributions of scores, one of each class, learned from scores with few labels.

Semi-supervised performance evaluation: Welinder, Welling and Perona, CVPR 2013, equations 2 to 4 and 8 to 10.
Scores come in bins, of which the families give the masses, so that equal scores, and scores that a classifier
cuts off at 0 or 1, are what they are. Three things differ from the paper:

- Labels need not be of random items. All scores tell of the mixture, and a label tells of its item's class
  given the score; so whoever chooses items by their scores biases nothing.
- No family is exact, and a million scores would make a wrong one certain. So the scores count as so many
  that a Kolmogorov-Smirnov test would just not refuse the fit (in the spirit of Miller and Dunson's
  coarsened posteriors, JASA 2019).
- Some items lapse (`service/assessment/lapses.py`), so that a single label can not refute a mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment.importance import Draws, Mode, laplace_evidence
from service.assessment.lapses import with_lapses
from service.assessment.score_bins import ScoreBins
from service.assessment.score_families import OF_PROBABILITIES, OF_REAL_SCORES, Family
from service.assessment.score_mixture_posterior import ScoreMixture

Floats = npt.NDArray[np.float64]

_BINS, _SCREENING_BINS = 72, 36
_RESOLUTION = 1e-12
_LEAST_MASS = 1e-12
_SPLITS = (0.3, 0.5, 0.8, 0.92, 0.98, 0.995)
_SCREENING_SPLITS = (0.6, 0.96)
"""Shares of the scores that are taken for negative, to start from."""

_SCREENED, _KEPT = 2, 8
"""Pairs that are looked at closely; and that are looked at again with labels."""

_MOST_COUNTED = 10_000.0
"""Of more scores a mixture is not believed, however well it fits: families are not exact to that degree."""

_KS_QUANTILE = 1.36
"""Of the root of n times the Kolmogorov-Smirnov distance: 95 % (Smirnov 1948)."""


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
        log_odds: that an item of a bin is positive [S, B], one row for each draw of the posterior; where
            nothing lapses.
        probabilities: the same where items lapse.
        draws: how they were made, before lapses.
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
    probabilities: Floats
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
    mixture = ScoreMixture(used, *pair)
    distance = mixture.distance(chosen.modes[0].at)
    refused = (_KS_QUANTILE / max(distance, _LEAST_MASS)) ** 2
    share = min(bins.effective, refused, _MOST_COUNTED) / bins.total
    posterior = ScoreMixture(used, *pair, share=share).draw(draws, rng, chosen.modes)
    evidence = 0.0
    if bins.label_count:
        # Knowing the scores alone, another pair may be the likeliest: labels are held to its word.
        unknowing = ScoreMixture(used.without_labels(), *expected.pair, share=share)
        evidence = posterior.log_evidence - unknowing.log_evidence(draws // 2, rng, expected.modes)
    parameters, lapses, gain = mixture.lapsing(posterior.parameters, rng)
    # The bins of the fit are coarser than those in which its word is asked for.
    everywhere = ScoreMixture(fine, *pair)
    negative, positive = everywhere.parts(parameters)
    log_odds = np.log(positive) - np.log(negative)
    probabilities = with_lapses(special.expit(log_odds), lapses, special.expit(parameters[:, 0]))
    places = _places(fine, bins)
    return MixtureFit(
        negative=pair[0].name,
        positive=pair[1].name,
        log_odds=log_odds[:, places],
        probabilities=probabilities[:, places],
        draws=posterior,
        log_label_evidence=evidence + gain,
        distance=distance,
        misfit_p_value=mixture.misfit_p_value(posterior.parameters, rng),
        counted_scores=share * bins.total,
        separation=_separation(special.expit(log_odds), fine.counts / fine.total),
    )


def _ranked(bins: ScoreBins, pairs: Sequence[_Pair]) -> list[_Pair]:
    """Pairs by their marginal likelihoods, the highest first."""
    return sorted(pairs, key=lambda pair: -_evidence(ScoreMixture(bins, *pair), _SCREENING_SPLITS))


def _likeliest(bins: ScoreBins, ranked: Sequence[_Pair]) -> _Found:
    """The pair of the highest marginal likelihood; only the best in coarse bins are looked at closely."""
    found = []
    for pair in ranked[:_SCREENED]:
        mixture = ScoreMixture(bins, *pair)
        found.append(_Found(pair, mixture.modes(mixture.starts(_SPLITS))))
    return max(found, key=lambda each: _highest(ScoreMixture(bins, *each.pair), each.modes))


def _evidence(mixture: ScoreMixture, splits: Sequence[float]) -> float:
    return _highest(mixture, mixture.modes(mixture.starts(splits)))


def _highest(mixture: ScoreMixture, modes: Sequence[Mode]) -> float:
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
