"""Precision, recall and other measures of a binary classifier, and the best threshold (pure).

They are those of the model-based posterior. If labels alone contradict it, what is said of the model's
threshold is the design-based estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from service.config.assessments import PerformanceSettings
from service.domain.arrays import Floats, Ints
from service.monitoring.design_check import AtThreshold, DesignCheck, at_every_threshold, check_against_design
from service.monitoring.performance_facts import PerformanceFacts
from service.monitoring.score_gains import ScoreGains, score_gains
from service.statistics.binary.performance import (
    Costs,
    Target,
    ThresholdChoice,
    choose_threshold,
    performance,
)
from service.statistics.binary.score_bins import UNLABELLED, ScoreBins, bin_scores
from service.statistics.binary.score_mixture import MixtureFit, fit_mixture
from service.statistics.binary.semi_supervised import (
    MIXTURE_DRAWS,
    ScoreLearner,
    pooled_posterior,
)
from service.statistics.estimate import MedianEstimate
from service.statistics.recalibration import FORMS, Form, RecalibrationMap, recalibrate

RECALLS = np.linspace(0.01, 1.0, 100)
FALSE_POSITIVE_RATES = np.linspace(0.0, 1.0, 101)

_DRAWS = 1_000  # of the posterior, from all imputations together

MISFIT_P_VALUE, MISFIT_DISTANCE = 0.01, 0.02
"""Scores are reported to be no mixture where both say so: very many scores always differ significantly."""


@dataclass(frozen=True)
class PerformanceSnapshot:
    """Estimates of the performance; arrays are as in `service.statistics.binary.performance`."""

    taken_at: float  # when the facts were read, seconds since the epoch
    positive_class: str
    threshold: float  # from which on the model calls positive
    labels: int  # that are known
    effective_labels: float  # as how many they count after weighting and forgetting
    scores: int  # of unlabelled items
    # what is said of the model's threshold: as in `AtThreshold`, design-based if labels contradict the model
    measures: Mapping[str, MedianEstimate]
    design: DesignCheck
    targets: Mapping[str, float]  # that are configured, by measure
    missed: Mapping[str, float]
    curve: MedianEstimate  # precision at `RECALLS` [R]
    roc: MedianEstimate  # recall at `FALSE_POSITIVE_RATES` [R]
    thresholds: ThresholdChoice  # how well every threshold does
    at_thresholds: Mapping[str, MedianEstimate]  # precision, recall and others at every one [T], by name
    maps: Mapping[Form, RecalibrationMap]  # from scores to probabilities, by form
    model: str  # name of the way to see the scores that has most of the weight, or `average`
    weights: Mapping[str, float]  # of these ways, by name
    mixture: MixtureFit  # parameters and fit of the mixture of two classes
    gains: ScoreGains | None  # what further labels are worth; None if the policy does not ask

    @property
    def misfit(self) -> bool:
        """Whether the scores are no mixture of two classes, as far as its families go."""
        mixture = self.mixture
        return mixture.misfit_p_value < MISFIT_P_VALUE and mixture.distance > MISFIT_DISTANCE


def _learning(
    facts: PerformanceFacts, threshold: float, rng: np.random.Generator
) -> tuple[ScoreLearner, list[tuple[Floats, Floats]]]:
    """What learns the class behind every score, and positive and negative labels of every bin to learn from.

    There are as many of these as imputations, or one where labels are the truth.
    """

    def bins(labels: Ints) -> ScoreBins:
        return bin_scores(
            facts.scores,
            labels,
            weights=facts.weights,
            label_weights=facts.label_weights,
            # A bin is in one of the groups that labels are requested by.
            thresholds=[threshold, *facts.score_edges],
        )

    every = [bins(labels) for labels in facts.imputed or [facts.labels]]
    mixture = fit_mixture(every[0], rng, draws=MIXTURE_DRAWS, unit=True)
    learner = ScoreLearner(every[0], mixture, threshold=threshold)
    return learner, [(each.positives, each.negatives) for each in every]


def assess_performance(
    facts: PerformanceFacts,
    settings: PerformanceSettings,
    rng: np.random.Generator,
    *,
    interval: float,
    now: float,
) -> PerformanceSnapshot:
    """Learn the performance; the work of a second, or of ten if labels may be wrong.

    `interval` is the probability inside intervals.
    """
    learner, labels = _learning(facts, settings.threshold, rng)
    draws = -(-_DRAWS // len(labels))
    posterior = pooled_posterior([learner.learn(*each, rng, draws=draws) for each in labels])
    unclear = None
    if facts.unclear is not None:
        unclear = facts.unclear.shares(posterior.bins.scores, len(posterior.probabilities), rng)
    drawn = performance(posterior, rng, scope="population", unclear=unclear)
    wanted = settings.targets.wanted
    costs = None if settings.error_costs is None else Costs(**settings.error_costs.model_dump())
    at = drawn.nearest(settings.threshold)
    everywhere = at_every_threshold(drawn, interval)
    design = check_against_design(
        facts,
        settings,
        learner.bins,
        labels,
        log_evidence=posterior.log_evidence,
        interval=interval,
        rng=rng.spawn(1)[0],
    )
    shown = AtThreshold.of(drawn, everywhere, at, wanted, interval)
    if design.disagrees:
        shown, everywhere = design.estimate, design.estimate.among(everywhere, at)
    return PerformanceSnapshot(
        taken_at=now,
        positive_class=settings.positive_class,
        threshold=settings.threshold,
        labels=int(np.count_nonzero(facts.labels != UNLABELLED)),
        effective_labels=float(facts.label_weights[facts.labels != UNLABELLED].sum()),
        scores=int(np.count_nonzero(facts.labels == UNLABELLED)),
        measures=shown.measures,
        design=design,
        targets=wanted,
        missed=shown.missed,
        curve=MedianEstimate.of(drawn.precision_at_recall(RECALLS), interval),
        roc=MedianEstimate.of(drawn.recall_at_false_positive_rate(FALSE_POSITIVE_RATES), interval),
        thresholds=choose_threshold(drawn, Target(**wanted), costs, mass=interval),
        at_thresholds=everywhere,
        maps={form: recalibrate(posterior, form, mass=interval) for form in FORMS},
        model=posterior.model,
        weights=posterior.weights,
        mixture=posterior.mixture,
        gains=replace(score_gains(learner, labels, facts.score_edges, settings, rng), answered=facts.answered)
        if settings.policy == "adaptive"
        else None,
    )
