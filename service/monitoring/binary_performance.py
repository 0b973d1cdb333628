"""Precision, recall and other measures of a binary classifier, and the best threshold (pure).

Items of the pool and labelled ones stand for the traffic of their predicted class and score bin; labels come
with the weights of the balance heuristic, so it does not matter who asked for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from service.config.assessments import PerformanceSettings
from service.domain.arrays import Flags, Floats, Indices, Ints
from service.domain.cells import POSITIVE_SCORE, CellSpace
from service.domain.value_table import Block
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_truth import LearnedTruth
from service.monitoring.label_weights import DrawnLabels, label_weights
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.positive_items import UnclearItems, imputed_positives, unclear_items
from service.monitoring.score_gains import ScoreGains, answered_by_score, score_gains
from service.statistics.balance_heuristic import sums
from service.statistics.binary.performance import (
    Costs,
    Target,
    ThresholdChoice,
    choose_threshold,
    performance,
)
from service.statistics.binary.score_bins import NEGATIVE, POSITIVE, UNLABELLED, ScoreBins, bin_scores
from service.statistics.binary.score_mixture import MixtureFit, fit_mixture
from service.statistics.binary.semi_supervised import (
    MIXTURE_DRAWS,
    ScoreLearner,
    pooled_posterior,
)
from service.statistics.estimate import Band, Estimate
from service.statistics.ratios import ratio
from service.statistics.recalibration import FORMS, Form, RecalibrationMap, recalibrate
from service.store.records import PoolRecord

RECALLS = np.linspace(0.01, 1.0, 100)
FALSE_POSITIVE_RATES = np.linspace(0.0, 1.0, 101)

_DRAWS = 1_000  # of the posterior, from all imputations together

MISFIT_P_VALUE, MISFIT_DISTANCE = 0.01, 0.02
"""Scores are reported to be no mixture where both say so: very many scores always differ significantly."""


@dataclass(frozen=True)
class PerformanceFacts:
    """What the performance is learned from, as columns [n]."""

    scores: Floats  # of the positive class
    weights: Floats  # how much of the traffic each represents
    labels: Ints  # `POSITIVE`, `NEGATIVE` or `UNLABELLED`
    label_weights: Floats  # as how many labels each counts
    score_edges: tuple[float, ...]  # of the groups that labels are requested by
    imputed: Sequence[Ints] = ()  # the labels, once for every imputation; none where labels are the truth
    unclear: UnclearItems | None = None  # if some requested items may have either class
    answered: Mapping[str, int] = field(default_factory=dict)  # items with a label, by positive score


@dataclass(frozen=True)
class PerformanceSnapshot:
    """Estimates of the performance; arrays are as in `service.statistics.binary.performance`."""

    taken_at: float  # when the facts were read, seconds since the epoch
    positive_class: str
    threshold: float  # from which on the model calls positive
    labels: int  # that are known
    effective_labels: float  # as how many they count after weighting and forgetting
    scores: int  # of unlabelled items
    # precision, recall, f1 and false positive rate at the model's threshold, and the prevalence of the
    # positive class, by name
    measures: Mapping[str, Estimate]
    targets: Mapping[str, float]  # that are configured, by measure
    # probability that a target is missed at the model's threshold, by measure; nothing of the precision
    # where nothing is called positive
    missed: Mapping[str, float]
    curve: Band  # precision at `RECALLS` [R]
    roc: Band  # recall at `FALSE_POSITIVE_RATES` [R]
    thresholds: ThresholdChoice  # how well every threshold does
    at_thresholds: Mapping[str, Estimate]  # precision, recall and others at every threshold [T], by name
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


def performance_facts(
    index: GroupIndex,
    ledger: OutcomeLedger,
    pooled: Sequence[PoolRecord],
    *,
    positive: str,
    decay: float,
    now: float,
    truth: LearnedTruth | None = None,
    any_class: Collection[int] = (),
) -> PerformanceFacts | None:
    """What the performance is learned from; None without traffic.

    Of a model's outcomes, which lose weight at a rate of `decay`, 1/s, and of some of its unlabelled items;
    `positive` is the class to be found. If labels may be wrong, `truth` is what they leave open. Items
    without a label for a reason in `any_class` may have either class.
    """
    space, whole = index.space, index.traffic.whole
    traffic = Block(whole.counts[0], whole.weights[0], whole.score_sums[0])
    if not traffic.weights.any():
        return None
    number = space.classes.index(positive)
    item_cells, item_classes, item_scores = _pooled_items(space, traffic, pooled)
    scored = ledger.scored_labels(at=now, decay=decay)
    cells = index.cells.classes[scored.cells] * space.bin_count + index.cells.bins[scored.cells]
    drawn = DrawnLabels.of(index, ledger, scored.cells, scored.sources)
    usable = drawn.usable(any_class) & (traffic.weights[cells] > 0)
    scored, cells = scored.part(usable), cells[usable]
    balanced = label_weights(drawn.part(usable), scored.freshness).weights
    # A score tells all that the score decides; within one, labels weigh as they were asked for.
    strata = index[POSITIVE_SCORE].cells[scored.cells]
    worth = _worth(balanced, scored.freshness, strata, space.bin_count)
    alone = _cells_alone(traffic, np.concatenate((item_cells, cells)))
    own = np.concatenate(
        (
            _positive(item_scores, item_classes == number),
            _positive(scored.scores, scored.predicted == number),
            _positive(traffic.score_sums[alone] / traffic.weights[alone], alone // space.bin_count == number),
        )
    )

    def labels(positive: Flags) -> Ints:
        found = np.full(len(own), UNLABELLED, np.int64)
        found[len(item_cells) : len(own) - len(alone)] = np.where(positive, POSITIVE, NEGATIVE)
        return found

    imputed: list[Flags] = []
    if truth is not None:
        imputed = imputed_positives(truth, index, ledger, scored, positive=number, at=now)
    return PerformanceFacts(
        scores=np.clip(own, 0.0, 1.0),
        weights=_stood_for(traffic, np.concatenate((item_cells, cells, alone))),
        score_edges=space.score_edges,
        labels=labels(scored.true_classes == number),
        label_weights=np.concatenate((np.ones(len(item_cells)), worth, np.ones(len(alone)))),
        imputed=[labels(each) for each in imputed],
        unclear=unclear_items(index, ledger, at=now, decay=decay, any_class=any_class),
        answered=answered_by_score(index, ledger, now=now),
    )


def _pooled_items(
    space: CellSpace, traffic: Block, pooled: Sequence[PoolRecord]
) -> tuple[Indices, Indices, Floats]:
    """Cells, predicted classes by index, and scores of unlabelled items [n]."""
    classes = {name: i for i, name in enumerate(space.classes)}
    usable = [
        (classes[record.predicted_class], record.score)
        for record in pooled
        if record.predicted_class in classes
    ]
    columns = np.array(usable, np.float64).reshape(-1, 2)
    predicted, scores = columns[:, 0].astype(np.intp), columns[:, 1]
    cells = predicted * space.bin_count + space.bins(scores)
    # The pool may know a cell already that the traffic, as it was read, does not.
    scored = traffic.weights[cells] > 0
    return cells[scored], predicted[scored], scores[scored]


def _cells_alone(traffic: Block, cells: Indices) -> Indices:
    """Cells with traffic, but without an item: their mean score represents it."""
    weights = traffic.weights
    return np.flatnonzero((np.bincount(cells, minlength=len(weights)) == 0) & (weights > 0))


def _positive(scores: Floats, called: Flags) -> Floats:
    return np.where(called, scores, 1 - scores)


def _stood_for(traffic: Block, cells: Indices) -> Floats:
    """How much each counts [n]: its cell's share of the traffic, shared by all items of the cell.

    All together count as many as the traffic, as the share of every cell is known from all of it. How scores
    are spread within a cell is known from its items alone; so score bins should be fine where it matters.
    """
    weights = traffic.weights
    shares = weights[cells] / np.bincount(cells, minlength=len(weights))[cells]
    counted: Floats = shares * (float(traffic.counts.sum()) / float(shares.sum()))
    return counted


def _worth(balanced: Floats, freshness: Floats, strata: Indices, count: int) -> Floats:
    """As how many labels each counts [n].

    In proportion to its weight by the balance heuristic and age, and all of a stratum together as Kish's
    effective number.
    """
    total = sums(strata, balanced * freshness, count)
    squares = sums(strata, balanced**2 * freshness, count)
    return balanced * freshness * ratio(total, squares, 0.0)[strata]


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


_NOTHING = Estimate(*(np.array(np.nan) for _ in range(3)))


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
    names = ("precision", "recall", "f1", "false_positive_rate")
    calls = bool(drawn.called[:, at].any())
    everywhere = {name: Estimate.of(getattr(drawn, name), interval) for name in names}
    return PerformanceSnapshot(
        taken_at=now,
        positive_class=settings.positive_class,
        threshold=settings.threshold,
        labels=int(np.count_nonzero(facts.labels != UNLABELLED)),
        effective_labels=float(facts.label_weights[facts.labels != UNLABELLED].sum()),
        scores=int(np.count_nonzero(facts.labels == UNLABELLED)),
        measures={
            **{name: estimate.part(np.array(at)) for name, estimate in everywhere.items()},
            **({} if calls else {"precision": _NOTHING}),
            "prevalence": Estimate.of(drawn.prevalence, interval),
        },
        targets=wanted,
        missed={
            name: float(1 - Target(**{name: least}).met(drawn)[:, at].mean())
            for name, least in wanted.items()
            if calls or name != "precision"
        },
        curve=Band.of(drawn.precision_at_recall(RECALLS), interval),
        roc=Band.of(drawn.recall_at_false_positive_rate(FALSE_POSITIVE_RATES), interval),
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
