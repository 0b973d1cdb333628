"""P(positive | score), learned from few labels and many scores.

Four models of the scores are averaged, weighted by the probability that each gave to the labels in advance
(Bayesian model averaging; Hoeting, Madigan, Raftery and Volinsky, Statistical Science 1999):

- `calibrated`: the score is nearly calibrated; a logistic curve of its logit corrects it.
- `mixture`: each class has a distribution of scores, and the scores of all items are a mixture of both
  (`service/statistics/binary/score_mixture.py`).
- `informed`: a logistic curve again, with a prior from the mixture that is fitted to the scores alone.
- `ranked`: a logistic curve of the score's normal quantile among all scores; it assumes nothing but the
  order.

A mixture of overlapping classes predicts labels poorly, however well it fits the scores. So the prior weight
of the models that use it is multiplied by the separation of its classes before any label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics.binary.score_bins import ScoreBins
from service.statistics.binary.score_logistic import LogisticPrior, Transform, fit_logistic, project_logistic
from service.statistics.binary.score_mixture import MixtureFit, UnlabelledFit, fit_mixture, fit_unlabelled

# prior, for separated classes; `ranked` keeps intervals honest if all else fails
_WEIGHTS: Mapping[str, float] = {"calibrated": 0.35, "informed": 0.35, "mixture": 0.15, "ranked": 0.15}
_OF_MIXTURE = frozenset({"mixture", "informed"})

_CALIBRATED = LogisticPrior(0.0, 0.5, -0.2, 0.4)
"""Modern networks are overconfident: inverse temperatures are 0.4 to 1 (Guo et al., ICML 2017)."""

_STANDARDISED = LogisticPrior(0.0, 2.0, float(np.log(2.0)), 0.6)
_RANKED = LogisticPrior(-1.0, 1.5, float(np.log(2.0)), 0.6)
_INFORMED_SCALES = (1.5, 0.5)

MIXTURE_DRAWS = 600  # of the mixture, at least
_NEAR_END = 1e-6  # probabilities are clipped to be this far from 0 and 1
_LEAST_SLOPE = 0.02

_CLEAR_WEIGHT = 0.8  # a model with more of the weight gives its name to the whole


@dataclass(frozen=True)
class ScorePosterior:
    """Posterior of the class behind every score."""

    bins: ScoreBins
    probabilities: Floats  # draws of P(positive) of every bin [S, B]
    weights: Mapping[str, float]  # of the models, by name; they sum to 1
    mixture: MixtureFit

    @property
    def model(self) -> str:
        """Name of the model with most of the weight, or `average`."""
        name = max(self.weights, key=lambda each: self.weights[each])
        return name if self.weights[name] > _CLEAR_WEIGHT else "average"


def learn_scores(
    bins: ScoreBins,
    rng: np.random.Generator,
    *,
    draws: int = 400,
    unit: bool = True,
    unlabelled: UnlabelledFit | None = None,
) -> ScorePosterior:
    """Learn P(positive | score), with or without labels.

    `unit` says whether the scores are probabilities; else they are any real numbers that increase with the
    probability. `unlabelled` is `fit_unlabelled` of the same scores, if available.
    """
    if unlabelled is None:
        unlabelled = fit_unlabelled(bins, rng, draws=MIXTURE_DRAWS, unit=unit)
    mixture = fit_mixture(bins, unlabelled, rng, draws=max(draws, MIXTURE_DRAWS))
    of_scores = _logits if unit else _standardising(bins)
    values = of_scores(bins)
    design, straight = np.column_stack((np.ones_like(values), values)), np.array([0.0, 1.0])
    offset, slope = project_logistic(design, unlabelled.expected, bins.counts / bins.total, towards=straight)
    log_slope = float(np.log(max(slope, _LEAST_SLOPE)))
    informed = LogisticPrior(float(offset), _INFORMED_SCALES[0], log_slope, _INFORMED_SCALES[1])
    curves = {
        "calibrated": (of_scores, _CALIBRATED if unit else _STANDARDISED),
        "informed": (of_scores, informed),
        "ranked": (_normal_quantiles, _RANKED),
    }
    seen = {"mixture": mixture.probabilities[:draws]}
    evidence = {"mixture": mixture.log_label_evidence}
    for name, (transform, prior) in curves.items():
        fit = fit_logistic(bins, transform, prior, rng, draws=draws)
        seen[name], evidence[name] = fit.probabilities(transform(bins)), fit.log_label_evidence
    names = list(_WEIGHTS)
    before = [_WEIGHTS[name] * (mixture.separation if name in _OF_MIXTURE else 1.0) for name in names]
    log_evidence = np.array([evidence[name] for name in names])
    weights = special.softmax(np.log(np.maximum(before, np.finfo(float).tiny)) + log_evidence)
    chosen = rng.choice(len(names), draws, p=weights)
    probabilities = np.stack([seen[name] for name in names])[chosen, np.arange(draws)]
    return ScorePosterior(
        bins=bins,
        probabilities=probabilities,
        weights=dict(zip(names, map(float, weights), strict=True)),
        mixture=mixture,
    )


def pooled_posterior(imputed: Sequence[ScorePosterior]) -> ScorePosterior:
    """The even mixture of posteriors of the same scores, each given one imputation of their labels.

    Draws of the imputations come in turn. The mixture model's fit is that of the first one.
    """
    first = imputed[0]
    draws = np.stack([each.probabilities for each in imputed], axis=1)
    return replace(
        first,
        probabilities=draws.reshape(-1, draws.shape[-1]),
        weights={name: float(np.mean([each.weights[name] for each in imputed])) for name in first.weights},
    )


def _logits(bins: ScoreBins) -> Floats:
    return np.asarray(special.logit(np.clip(bins.scores, _NEAR_END, 1 - _NEAR_END)))


def _normal_quantiles(bins: ScoreBins) -> Floats:
    return np.asarray(special.ndtri(bins.ranks))


def _standardising(bins: ScoreBins) -> Transform:
    """Transform that gives these scores a mean of 0 and a deviation of 1."""
    shares = bins.counts / bins.total
    mean = float(shares @ bins.scores)
    deviation = float(np.sqrt(shares @ (bins.scores - mean) ** 2))
    return lambda some: (some.scores - mean) / max(deviation, np.finfo(float).tiny)
