"""How well few labels tell the performance of a binary classifier: many runs, held against all labels.

In every run so many items are labelled, at random or as a policy chooses, and the precision-recall curve is
estimated from these labels and the scores of all items (`service/statistics/binary/semi_supervised.py`), and,
where labels are random, from labels alone. The truth is the pool's own curve. So Welinder, Welling and Perona
measure it (CVPR 2013, section 4.3): by the area between the estimated and the true curve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from service.domain.arrays import Flags, Floats, Ints
from service.domain.assessments import Aim
from service.replay.best_design import best_standard_error, best_width
from service.replay.items_to_label import RANDOM, ItemsToLabel
from service.replay.workers import Workers
from service.statistics.binary.design import design_estimate
from service.statistics.binary.label_gains import LabelledStrata
from service.statistics.binary.performance import Performance, Target, choose_threshold, performance
from service.statistics.binary.score_bins import ScoreBins, bin_scores
from service.statistics.binary.score_mixture import MixtureFit, fit_mixture
from service.statistics.binary.score_steps import LOG_CONTRADICTED, log_evidence_of_steps
from service.statistics.binary.semi_supervised import MIXTURE_DRAWS, WAYS, ScoreLearner, ScorePosterior
from service.statistics.estimate import Estimate, MedianEstimate

RECALLS: Floats = np.linspace(0.005, 0.995, 199)
"""Where curves are compared."""

_DRAWS = 400  # of the posterior

AT_THRESHOLD = ("precision", "recall", "f1", "false_positive_rate")
"""What is estimated at the operating threshold."""

SQUARED_ERROR = "_squared_error"
"""Suffix of measures whose mean is a squared error."""

_ROUNDING = 1e-9
"""An interval whose ends coincide with the truth holds it, however they were added up."""

_NEGLIGIBLE = 1e-3
"""An interval that misses the truth by this share of it is not wrong: that matters to rates near 0 alone."""


@dataclass(frozen=True)
class BinaryScores:
    """A pool of items, scored for one class."""

    positive_class: int  # its number; all others are negative
    scores: Floats  # of the positive class [N]
    positive: Flags  # whether items are of it [N]; some are, and some are not
    unit: bool = True  # whether scores are probabilities; else margins

    @property
    def size(self) -> int:
        """Number of items N."""
        return len(self.scores)

    @cached_property
    def truth(self) -> Performance:
        """What all labels tell; one draw, with every distinct score as a threshold."""
        bins = bin_scores(self.scores, self.positive.astype(np.int64), most=self.size, unit=self.unit)
        called, right = (
            np.append(np.cumsum(counts[::-1])[::-1], 0.0)[None] for counts in (bins.counts, bins.positives)
        )
        thresholds = np.concatenate(([bins.low], bins.edges, [np.inf]))
        return Performance(thresholds, called, right, positives=right[:, 0], items=called[:, 0])

    @cached_property
    def true_precision(self) -> Floats:
        """At each of `RECALLS`."""
        precision: Floats = self.truth.precision_at_recall(RECALLS)[0]
        return precision

    def position(self, known: Performance, threshold: float) -> int:
        """Position of a threshold among those of a performance; one below all scores calls all positive."""
        return 0 if threshold <= self.scores.min() else known.nearest(threshold)


@dataclass(frozen=True)
class Run:
    """What one run found: measures by name, NaN of what does not exist; precision at each of `RECALLS`."""

    measures: Mapping[str, float]
    band: MedianEstimate


@dataclass(frozen=True)
class PerformanceStudy:
    """The question, asked of one pool."""

    scores: BinaryScores  # of the pool's items
    labels: tuple[int, ...]  # how many to ask for; each number has `runs` independent runs
    runs: int
    threshold: float  # from which on an item is called positive
    target: Target | None = None  # to choose a threshold by; none is chosen without
    mass: float = 0.95  # probability inside intervals
    seed: int = 0
    policy: str = RANDOM  # by which items are labelled: `RANDOM` or `ADAPTIVE`
    aim: Aim = "f1"  # the measure that labels are chosen for

    @cached_property
    def bins(self) -> ScoreBins:
        """The pool's scores, without labels."""
        return bin_scores(self.scores.scores, thresholds=(self.threshold,), unit=self.scores.unit)

    @cached_property
    def mixture(self) -> MixtureFit:
        """What the scores tell by themselves."""
        rng = np.random.default_rng(
            np.random.SeedSequence(self.seed, spawn_key=(self.scores.positive_class,))
        )
        return fit_mixture(self.bins, rng, draws=MIXTURE_DRAWS, unit=self.scores.unit)

    def run(self, labels: int, workers: Workers, name: str = "") -> list[Run]:
        """All runs with so many labels."""
        # Scores tell the same in all runs, so that is learned here and not in each.
        mixture = self.mixture
        numbers = range(self.runs)
        return workers.each(run_once, [(self, mixture, labels, number) for number in numbers], name)


def run_once(study: PerformanceStudy, mixture: MixtureFit, labels: int, number: int) -> Run:
    """One run: a function of its arguments alone, whoever runs it."""
    pool = study.scores
    seed = np.random.SeedSequence(study.seed, spawn_key=(pool.positive_class, labels, number))
    rng = np.random.default_rng(seed)
    learner = ScoreLearner(study.bins, mixture, unit=pool.unit, threshold=study.threshold)
    items = ItemsToLabel(learner, pool.scores, pool.positive, rng)
    drawn = items.draw(labels, study.policy, study.aim)
    posterior = learner.learn(items.positives, items.negatives, rng, draws=_DRAWS)
    believed = performance(posterior, rng)
    band = MedianEstimate.of(believed.precision_at_recall(RECALLS), study.mass)
    truth = pool.true_precision
    measures = {
        "area": area(band.median, truth),
        **_of_labels_alone(study, drawn),
        "band_width": float(np.mean(band.upper - band.lower)),
        "band_coverage": float(_held(band, truth).mean()),
        **_at_threshold(study, believed),
        **_by_design(study, items.labelled, believed, posterior, rng.spawn(1)[0]),
        **_best_design(study, learner, items.labelled, labels),
        **_making(posterior),
    }
    measures["area_if_positive"] = measures["area"] if measures["positive_label"] else np.nan
    if study.target is not None:
        measures |= _chosen(pool, study.target, believed)
    return Run(measures, band)


def _of_labels_alone(study: PerformanceStudy, drawn: Ints) -> dict[str, float]:
    """The area that labels alone leave; they estimate nothing where they are not random."""
    pool, some = study.scores, bool(study.scores.positive[drawn].any())
    alone = np.nan
    if study.policy == RANDOM:
        estimated = label_only_precision(pool.scores[drawn], pool.positive[drawn], RECALLS)
        alone = area(estimated, pool.true_precision)
    return {
        "label_only_area": alone,
        # Labels of which none is positive cost labels alone so much that nothing else is seen in a mean.
        "label_only_area_if_positive": alone if some else np.nan,
        "positive_label": float(some),
    }


def label_only_precision(scores: Floats, positive: Flags, recalls: Floats) -> Floats:
    """Precision at every recall, as labelled items alone tell it: steps from one score to the next.

    Scores and truth are of the labelled items [n], recalls in (0, 1] [R]. Each recall takes the highest
    threshold that reaches it. Without a positive item the precision is 0 everywhere.
    """
    if not positive.any():
        return np.zeros_like(recalls)
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    right = np.cumsum(positive[order])[last]
    # Recalls are compared as counts, of which rounding must not ask for one item more.
    at = np.searchsorted(right, recalls * right[-1] - _ROUNDING)
    return np.asarray(right[at] / (last[at] + 1), np.float64)


def area(estimated: Floats, true: Floats) -> float:
    """Area between two curves of the precision at each of `RECALLS`."""
    return float(np.abs(estimated - true).mean())


def _held(interval: MedianEstimate, truth: Floats | float) -> Flags:
    """Where the interval holds the truth."""
    near = _ROUNDING + _NEGLIGIBLE * truth
    return np.asarray((interval.lower - near <= truth) & (truth <= interval.upper + near), np.bool_)


def _at_threshold(study: PerformanceStudy, believed: Performance) -> dict[str, float]:
    """Whether intervals at the threshold hold the truth, their widths and errors; and the prevalence."""
    pool, truth = study.scores, study.scores.truth
    at, truly_at = (pool.position(each, study.threshold) for each in (believed, truth))
    found = {}
    for name in AT_THRESHOLD:
        # Where nothing is called positive, there is no precision to be right about.
        exists = name != "precision" or truth.called[0, truly_at] > 0
        true = getattr(truth, name)[0, truly_at] if exists else np.nan
        interval = MedianEstimate.of(getattr(believed, name)[:, at], study.mass)
        found[f"{name}_coverage"] = float(_held(interval, true)) if exists else np.nan
        found[f"{name}_width"] = float(interval.upper - interval.lower) if exists else np.nan
        found[f"{name}{SQUARED_ERROR}"] = float((interval.median - true) ** 2)
    mean = Estimate.of(believed.f1[:, at], study.mass).mean
    found[f"f1_of_means{SQUARED_ERROR}"] = float((mean - truth.f1[0, truly_at]) ** 2)
    prevalence = MedianEstimate.of(believed.prevalence, study.mass)
    return found | {"prevalence_coverage": float(_held(prevalence, truth.prevalence[0]))}


def _by_design(
    study: PerformanceStudy,
    labelled: LabelledStrata,
    believed: Performance,
    posterior: ScorePosterior,
    rng: np.random.Generator,
) -> dict[str, float]:
    """How the design-based estimate does, and what is shown: it, if labels contradict the score model."""
    # Labels at random have equal inclusion probabilities in all strata of a side.
    sample = labelled.merged() if study.policy == RANDOM else labelled
    design = design_estimate([sample], rng).performance(study.threshold, rng)
    steps = log_evidence_of_steps(labelled.positives, labelled.negatives)
    disagrees = steps - posterior.log_evidence >= LOG_CONTRADICTED
    truth = study.scores.truth
    truly_at = study.scores.position(truth, study.threshold)
    modelled_at = study.scores.position(believed, study.threshold)
    found = {"design_disagrees": float(disagrees)}
    for name in AT_THRESHOLD:
        by_design = MedianEstimate.of(getattr(design, name)[:, 0], study.mass)
        by_model = MedianEstimate.of(getattr(believed, name)[:, modelled_at], study.mass)
        exists = name != "precision" or truth.called[0, truly_at] > 0
        true = getattr(truth, name)[0, truly_at]
        for kind, interval in (("design", by_design), ("shown", by_design if disagrees else by_model)):
            found[f"{name}_{kind}_coverage"] = float(_held(interval, true)) if exists else np.nan
            found[f"{name}_{kind}_width"] = float(interval.upper - interval.lower) if exists else np.nan
    return found


def _best_design(
    study: PerformanceStudy, learner: ScoreLearner, labelled: LabelledStrata, labels: int
) -> dict[str, float]:
    """How precise labels alone would be, were they spread with the truth in view."""
    pool, bins = study.scores, learner.bins
    of = np.searchsorted(bins.edges, pool.scores[pool.positive], side="right")
    positives = learner.strata.sums(np.bincount(of, minlength=len(bins.counts)).astype(np.float64))
    (error,) = best_standard_error(labelled, positives, labels, "f1")
    return {
        "best_f1_error": float(error),
        "best_band_width": best_width(labelled, positives, labels, study.mass),
    }


def _making(posterior: ScorePosterior) -> dict[str, float]:
    """How the estimate came about."""
    mixture = posterior.mixture
    return {
        **{f"weight_{name}": posterior.weights.get(name, 0.0) for name in WAYS},
        "separation": mixture.separation,
        "misfit_p_value": mixture.misfit_p_value,
        "effective_draws": mixture.draws.effective,
        "walkers": float(mixture.draws.method == "walkers"),
    }


def _chosen(pool: BinaryScores, target: Target, believed: Performance) -> dict[str, float]:
    """What the chosen threshold promises, and what it keeps."""
    choice = choose_threshold(believed, target)
    met = target.met(pool.truth)[0]
    return {
        "target_met": float(met[pool.position(pool.truth, choice.thresholds[choice.best])]),
        "target_promised": float(choice.probability[choice.best]),
        "target_possible": float(met.any()),
    }
