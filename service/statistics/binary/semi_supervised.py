"""P(positive | score), learned from few labels and many scores.

Smooth curves with several coordinates of the score are averaged, weighted by the probability that each gave
to the labels in advance (Bayesian model averaging; Hoeting, Madigan, Raftery and Volinsky, Statistical
Science 1999). `service/statistics/binary/score_process.py` has the curves.

- `calibrated`: in the logit of the score, near the score itself or flatter.
- `lapsing`: likewise, but the highest scores all mean the same. Some items with such scores are negative, as
  an observer errs even where nothing is hard to see.
- `informed`: likewise, near the curve of a mixture of two distributions, one of each class, that is fitted to
  the scores alone (`service/statistics/binary/score_mixture.py`).
- `ranked`: in the normal quantile of the score's rank; it assumes nothing but the order.

A mixture of overlapping classes predicts labels poorly, however well it fits the scores. So the prior weight
of `informed` is multiplied by the separation of its classes before any label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics.binary.logistic_projection import project_logistic
from service.statistics.binary.score_bins import ScoreBins
from service.statistics.binary.score_mixture import MixtureFit, fit_mixture
from service.statistics.binary.score_process import (
    SIGMAS,
    CurveDraws,
    CurvePrior,
    Hypothesis,
    Labels,
    ScoreProcess,
)
from service.statistics.binary.strata import Strata, stratify

WAYS: Final = ("calibrated", "lapsing", "ranked", "informed")
"""Names of the curves' coordinates."""

MIXTURE_DRAWS: Final = 600  # of the mixture, at least
_CLEAR_WEIGHT: Final = 0.8  # a model with more of the weight gives its name to the whole
_LEAST_SLOPE: Final = 0.02

# Most networks are overconfident: inverse temperatures are 0.4 to 1 (Guo et al., ICML 2017).
_OF_PROBABILITIES: Final = (
    CurvePrior("calibrated", 0.0, 1.0, 1.0, 0.5, length=2.0, weight=0.25),
    CurvePrior("calibrated", 0.0, 1.5, 0.4, 0.3, length=2.0, weight=0.25),
    CurvePrior("calibrated", 0.0, 2.0, 1.0, 1.0, length=2.0, weight=0.25),
    CurvePrior("lapsing", 0.0, 1.5, 1.0, 0.7, length=1.0, weight=0.25),
    CurvePrior("ranked", 0.0, 1.5, 2.5, 1.5, length=1.0, weight=0.25),
)
_OF_MARGINS: Final = (
    CurvePrior("calibrated", 0.0, 1.5, 2.2, 1.3, length=1.0, weight=0.35),
    CurvePrior("lapsing", 0.0, 1.5, 2.0, 1.3, length=1.0, weight=0.3),
    CurvePrior("ranked", 0.0, 1.5, 2.5, 1.5, length=1.0, weight=0.35),
)
_INFORMED: Final = 0.35  # prior weight of `informed` beside them, for separated classes
_LAPSES: Final = 0.03  # share of the highest scores whose items may have any class, in `lapsing`
_SATURATION: Final = 1.3  # where margins tell no more, in standard deviations


@dataclass(frozen=True)
class ScorePosterior:
    """Posterior of the class behind every score."""

    bins: ScoreBins
    probabilities: Floats  # draws of P(positive) of every bin [S, B]
    weights: Mapping[str, float]  # of the models, by name; they sum to 1
    mixture: MixtureFit
    log_evidence: float = 0.0  # log probability of the labels, given their scores; 0 without labels

    @property
    def model(self) -> str:
        """Name of the model with most of the weight, or `average`."""
        name = max(self.weights, key=lambda each: self.weights[each])
        return name if self.weights[name] > _CLEAR_WEIGHT else "average"


def _lapsing(values: Floats, unit: bool) -> Floats:
    """A coordinate that grows no more where scores are highest.

    As if a share of the items with such scores had any class (Wichmann and Hill, Perception & Psychophysics
    2001, equation 1).
    """
    if unit:
        return np.asarray(special.logit((1 - _LAPSES) * special.expit(values)), np.float64)
    return np.where(values > 0, _SATURATION * np.tanh(values / _SATURATION), values)


@dataclass
class ScoreLearner:
    """Learns the classes behind the same scores again and again, as labels come.

    `unit` says whether the scores are probabilities; else they are any real numbers that increase with the
    probability. From `threshold` on, an item is called positive.
    """

    bins: ScoreBins  # whose labels do not matter
    mixture: MixtureFit  # of these scores
    unit: bool = True
    threshold: float = 0.5
    sigmas: Sequence[float] = field(default=SIGMAS)

    @cached_property
    def strata(self) -> Strata:
        """The strata in which curves are learned."""
        return stratify(self.bins, self.threshold)

    @cached_property
    def _process(self) -> ScoreProcess:
        return ScoreProcess(self._hypotheses(), self.strata.called, self.sigmas)

    def log_odds(
        self, positives: Floats, negatives: Floats, rng: np.random.Generator, *, draws: int
    ) -> CurveDraws:
        """Draws of the log odds of every stratum from labels of every bin."""
        strata = self.strata
        return self._process.draw(Labels(strata.sums(positives), strata.sums(negatives)), rng, count=draws)

    def learn(
        self, positives: Floats, negatives: Floats, rng: np.random.Generator, *, draws: int
    ) -> ScorePosterior:
        """The posterior given the numbers of positive and negative labels of every bin."""
        drawn = self.log_odds(positives, negatives, rng, draws=draws)
        return ScorePosterior(
            bins=replace(self.bins, positives=positives, negatives=negatives),
            probabilities=self.strata.of_all_bins(drawn.log_odds, self.bins.counts),
            weights=drawn.weights,
            mixture=self.mixture,
            log_evidence=drawn.log_evidence,
        )

    def _hypotheses(self) -> list[Hypothesis]:
        strata = self.strata
        values = strata.logits if self.unit else strata.deviations
        coordinates = {"lapsing": _lapsing(values, self.unit), "ranked": strata.ranks}
        priors = _OF_PROBABILITIES if self.unit else _OF_MARGINS
        hypotheses = [Hypothesis(coordinates.get(prior.name, values), prior) for prior in priors]
        if (weight := _INFORMED * self.mixture.separation) > 0:
            offset, slope = self._projected(values)
            informed = CurvePrior("informed", offset, 1.5, slope, slope / 2, priors[0].length, weight)
            hypotheses.append(Hypothesis(values, informed))
        return hypotheses

    def _projected(self, values: Floats) -> tuple[float, float]:
        """Offset and slope of the logistic curve of a coordinate that is nearest to the mixture's."""
        shares = self.strata.sums(self.bins.counts) / self.bins.total
        expected = self.strata.sums(self.bins.counts * self.mixture.expected) / self.bins.total / shares
        design = np.column_stack((np.ones_like(values), values))
        ((offset, slope),) = project_logistic(design, expected[None], shares, towards=np.array([0.0, 1.0]))
        return float(offset), max(float(slope), _LEAST_SLOPE)


def learn_scores(
    bins: ScoreBins,
    rng: np.random.Generator,
    *,
    draws: int = 400,
    unit: bool = True,
    threshold: float | None = None,
    mixture: MixtureFit | None = None,
) -> ScorePosterior:
    """Learn P(positive | score), with or without labels.

    `threshold` is 0.5 of probabilities and 0 of other scores if None; `mixture` is `fit_mixture` of the same
    scores, if available.
    """
    if threshold is None:
        threshold = 0.5 if unit else 0.0
    if mixture is None:
        mixture = fit_mixture(bins, rng, draws=MIXTURE_DRAWS, unit=unit)
    learner = ScoreLearner(bins, mixture, unit=unit, threshold=threshold)
    return learner.learn(bins.positives, bins.negatives, rng, draws=draws)


def pooled_posterior(imputed: Sequence[ScorePosterior]) -> ScorePosterior:
    """The even mixture of posteriors of the same scores, each given one imputation of their labels.

    Draws of the imputations come in turn. The mixture model's fit is that of the first one. The log
    probability of the labels is the mean.
    """
    first = imputed[0]
    draws = np.stack([each.probabilities for each in imputed], axis=1)
    return replace(
        first,
        probabilities=draws.reshape(-1, draws.shape[-1]),
        weights={name: float(np.mean([each.weights[name] for each in imputed])) for name in first.weights},
        log_evidence=float(np.mean([each.log_evidence for each in imputed])),
    )
