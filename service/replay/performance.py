"""How well few labels tell the performance of a binary classifier: many runs, held against all labels.

In every run so many items are labelled at random, and the precision-recall curve is estimated twice: from
these labels alone, and from them and the scores of all items
(`service/statistics/binary/semi_supervised.py`). The truth is the pool's own curve. So Welinder, Welling and
Perona measure it (CVPR 2013, section 4.3): by the area between the estimated and the true curve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from service.domain.arrays import Flags, Floats
from service.replay.workers import Workers
from service.statistics.binary.performance import Performance, Target, choose_threshold, performance
from service.statistics.binary.score_bins import UNLABELLED, bin_scores
from service.statistics.binary.score_mixture import UnlabelledFit, fit_unlabelled
from service.statistics.binary.semi_supervised import MIXTURE_DRAWS, ScorePosterior, learn_scores
from service.statistics.estimate import Band, Estimate

RECALLS: Floats = np.linspace(0.005, 0.995, 199)
"""Where curves are compared."""

AT_THRESHOLD = ("precision", "recall", "f1")
"""What is estimated at the operating threshold."""

_ROUNDING = 1e-9
"""An interval whose ends coincide with the truth holds it, however they were added up."""


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
    band: Band


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

    @property
    def unlabelled(self) -> UnlabelledFit:
        """What the scores tell by themselves."""
        pool = self.scores
        bins = bin_scores(pool.scores, thresholds=(self.threshold,), unit=pool.unit)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(pool.positive_class,)))
        return fit_unlabelled(bins, rng, draws=MIXTURE_DRAWS, unit=pool.unit)

    def run(self, labels: int, workers: Workers, name: str = "") -> list[Run]:
        """All runs with so many labels."""
        # Scores tell the same in all runs, so that is learned here and not in each.
        unlabelled = self.unlabelled
        numbers = range(self.runs)
        return workers.each(run_once, [(self, unlabelled, labels, number) for number in numbers], name)


def run_once(study: PerformanceStudy, unlabelled: UnlabelledFit, labels: int, number: int) -> Run:
    """One run: a function of its arguments alone, whoever runs it."""
    pool = study.scores
    seed = np.random.SeedSequence(study.seed, spawn_key=(pool.positive_class, labels, number))
    rng = np.random.default_rng(seed)
    drawn = rng.choice(pool.size, labels, replace=False)
    known = np.full(pool.size, UNLABELLED)
    known[drawn] = pool.positive[drawn]
    bins = bin_scores(pool.scores, known, thresholds=(study.threshold,), unit=pool.unit)
    posterior = learn_scores(bins, rng, unit=pool.unit, unlabelled=unlabelled)
    believed = performance(posterior, rng)
    band = Band.of(believed.precision_at_recall(RECALLS), study.mass)
    alone = label_only_precision(pool.scores[drawn], pool.positive[drawn], RECALLS)
    truth, some = pool.true_precision, pool.positive[drawn].any()
    areas = {"label_only_area": area(alone, truth), "area": area(band.median, truth)}
    measures = {
        **areas,
        # Labels of which none is positive cost labels alone so much that nothing else is seen in a mean.
        **{f"{name}_if_positive": each if some else np.nan for name, each in areas.items()},
        "positive_label": float(some),
        "band_width": float(np.mean(band.upper - band.lower)),
        "band_coverage": float(_held(band, truth).mean()),
        **_at_threshold(study, believed),
        **_making(posterior),
    }
    if study.target is not None:
        measures |= _chosen(pool, study.target, believed)
    return Run(measures, band)


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


def _held(interval: Estimate | Band, truth: Floats) -> Flags:
    """Where the interval holds the truth."""
    return np.asarray((interval.lower - _ROUNDING <= truth) & (truth <= interval.upper + _ROUNDING), np.bool_)


def _at_threshold(study: PerformanceStudy, believed: Performance) -> dict[str, float]:
    """Whether intervals at the operating threshold hold the truth; and that of the prevalence."""
    pool, truth = study.scores, study.scores.truth
    at, truly_at = (pool.position(each, study.threshold) for each in (believed, truth))
    held = {}
    for name in AT_THRESHOLD:
        true = getattr(truth, name)[0, truly_at]
        interval = Estimate.of(getattr(believed, name)[:, at], study.mass)
        held[f"{name}_coverage"] = float(_held(interval, true))
    if not truth.called[0, truly_at]:
        # Nothing is called positive, so there is no precision to be right about.
        held["precision_coverage"] = np.nan
    prevalence = Estimate.of(believed.prevalence, study.mass)
    return held | {"prevalence_coverage": float(_held(prevalence, truth.prevalence[0]))}


def _making(posterior: ScorePosterior) -> dict[str, float]:
    """How the estimate came about."""
    mixture = posterior.mixture
    return {
        **{f"weight_{name}": weight for name, weight in posterior.weights.items()},
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
