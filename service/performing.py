"""Facts -> what is believed of a binary classifier's performance, and what to do about it (pure).

Scores of unlabelled items come from the pool, whose items stand for the traffic of their cells; labels come
with the weights of the balance heuristic, so it does not matter who asked for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.assessment.estimate import Estimate
from service.assessment.performance import performance
from service.assessment.recalibration import FORMS, Form, RecalibrationMap, recalibrate
from service.assessment.score_bins import NEGATIVE, POSITIVE, UNLABELLED, bin_scores
from service.assessment.score_mixture import MixtureFit
from service.assessment.semi_supervised import learn_scores
from service.assessment.thresholds import Costs, Target, ThresholdChoice, choose_threshold
from service.assessment.weights import Asked, balance_weights, sums
from service.cells import ALL, POSITIVE_SCORE, CellSpace, CombinationDirectory
from service.ledger import OutcomeLedger
from service.model_settings import AssessmentSettings
from service.store.facts import TrafficFacts
from service.store.records import PoolRecord

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]

RECALLS = np.linspace(0.01, 1.0, 100)
FALSE_POSITIVE_RATES = np.linspace(0.0, 1.0, 101)

MISFIT_P_VALUE, MISFIT_DISTANCE = 0.01, 0.02
"""Scores are told to be no mixture where both say so: of very many scores any is significantly off."""

_MOST_SCORES = 50_000.0
"""As so many items the traffic counts at the most."""

_NO_TRAFFIC = 1e-9
"""Items of which the label matters, and which tell no more of the traffic."""


@dataclass(frozen=True)
class PerformanceFacts:
    """What the performance is learned from, as columns [n].

    Attributes:
        scores: of the positive class.
        weights: of how many items of the traffic each tells; next to none for labelled ones.
        labels: `POSITIVE`, `NEGATIVE` or `UNLABELLED`.
        label_weights: as how many labels each counts.
    """

    scores: Floats
    weights: Floats
    labels: Integers
    label_weights: Floats


@dataclass(frozen=True)
class PerformanceSnapshot:
    """What is believed of the performance; arrays are as in `service.assessment.performance`.

    Attributes:
        taken_at: when the facts were read, seconds since the epoch.
        positive_class: by name.
        threshold: from which on the model calls positive.
        labels: that were known.
        scores: of unlabelled items that were looked at.
        measures: precision, recall, f1 and false positive rate at the model's threshold, and the prevalence
            of the positive class, by name.
        targets: that are configured, by measure.
        missed: probability that a target is missed at the model's threshold, by measure.
        curve: precision at `RECALLS` [R].
        roc: recall at `FALSE_POSITIVE_RATES` [R].
        thresholds: how well every threshold does.
        at_thresholds: precision, recall and others at every threshold [T], by name.
        maps: from scores to probabilities, by form.
        model: name of the way to see the scores that has most of the weight, or `average`.
        weights: of these ways, by name.
        mixture: what the mixture of two classes says of itself.
    """

    taken_at: float
    positive_class: str
    threshold: float
    labels: int
    scores: int
    measures: Mapping[str, Estimate]
    targets: Mapping[str, float]
    missed: Mapping[str, float]
    curve: Estimate
    roc: Estimate
    thresholds: ThresholdChoice
    at_thresholds: Mapping[str, Estimate]
    maps: Mapping[Form, RecalibrationMap]
    model: str
    weights: Mapping[str, float]
    mixture: MixtureFit

    @property
    def misfit(self) -> bool:
        """Whether the scores are no mixture of two classes, as far as its families go."""
        mixture = self.mixture
        return mixture.misfit_p_value < MISFIT_P_VALUE and mixture.distance > MISFIT_DISTANCE


def performance_facts(
    space: CellSpace,
    traffic: TrafficFacts,
    pooled: Sequence[PoolRecord],
    ledger: OutcomeLedger,
    *,
    positive: str,
    decay: float,
    now: float,
) -> PerformanceFacts | None:
    """What the performance is learned from; None without an unlabelled score.

    Args:
        space: cells of the model.
        traffic: its traffic.
        pooled: some of its unlabelled items.
        ledger: its outcomes, placed in cells.
        positive: the class to be found.
        decay: how fast labels lose weight, 1/s.
        now: seconds since the epoch.
    """
    index = space.classes.index(positive)
    pool_scores, pool_weights = _pool(space, traffic, pooled, index)
    if not len(pool_scores):
        return None
    known = ledger.scored(at=now, decay=decay)
    asked = [
        Asked(
            space.groups(grouping if grouping in space.groupings else ALL, traffic.combinations)[1],
            np.flatnonzero(known.sources == code),
        )
        for code, (_, grouping) in enumerate(ledger.sources)
    ]
    balanced = balance_weights(
        cells=known.cells,
        freshness=known.freshness,
        traffic=traffic.traffic.weights,
        asked=[each for each in asked if each.labels.size],
    )
    # A score tells all that the score decides; within one, labels weigh as they were asked for.
    strata = space.groups(POSITIVE_SCORE, traffic.combinations)[1][known.cells]
    label_weights = _worth(balanced, known.freshness, strata, space.bin_count)
    own = np.where(known.predicted == index, known.scores, 1 - known.scores)
    labels = np.where(known.true_classes == index, POSITIVE, NEGATIVE)
    return PerformanceFacts(
        scores=np.concatenate((pool_scores, own)),
        weights=np.concatenate((pool_weights, np.full(len(own), _NO_TRAFFIC))),
        labels=np.concatenate((np.full(len(pool_scores), UNLABELLED), labels)).astype(np.int64),
        label_weights=np.concatenate((np.ones(len(pool_scores)), label_weights)),
    )


def _pool(
    space: CellSpace, traffic: TrafficFacts, pooled: Sequence[PoolRecord], positive: int
) -> tuple[Floats, Floats]:
    """Scores of the positive class and weights of pooled items; cells without one tell their mean score."""
    directory = CombinationDirectory(space, traffic.combinations)
    classes = {name: i for i, name in enumerate(space.classes)}
    usable = [
        (number, classes[record.predicted_class], record.score)
        for record in pooled
        if record.predicted_class in classes
        and (number := directory.number(directory.fold(space.raw_combination(record.attributes)))) is not None
    ]
    columns = np.array(usable, np.float64).reshape(-1, 3)
    predicted, scores = columns[:, 1].astype(np.intp), columns[:, 2]
    cells = space.cells(combinations=columns[:, 0].astype(np.intp), classes=predicted, scores=scores)
    counts = np.bincount(cells, minlength=len(traffic.traffic.weights))
    weights = traffic.traffic.weights[cells] / counts[cells]
    alone = np.flatnonzero((counts == 0) & (traffic.traffic.weights > 0))
    alone_scores = traffic.traffic.score_sums[alone] / traffic.traffic.weights[alone]
    called = space.predicted_positive(len(traffic.combinations))[alone]
    all_scores = np.concatenate(
        (
            np.where(predicted == positive, scores, 1 - scores),
            np.where(called, alone_scores, 1 - alone_scores),
        )
    )
    all_weights = np.concatenate((weights, traffic.traffic.weights[alone]))
    some = all_weights > 0
    total = min(float(traffic.traffic.counts.sum()), _MOST_SCORES)
    shares = all_weights[some] / max(float(all_weights.sum()), np.finfo(float).tiny)
    return np.clip(all_scores[some], 0.0, 1.0), np.maximum(shares * total, _NO_TRAFFIC)


def _worth(balanced: Floats, freshness: Floats, strata: Indices, count: int) -> Floats:
    """As how many labels each counts [n].

    In proportion to its weight, and all of a stratum together as Kish's effective number.

    Args:
        balanced: weights of the balance heuristic [n].
        freshness: what forgetting leaves of every label [n].
        strata: of every label [n].
        count: of strata.
    """
    total = sums(strata, balanced * freshness, count)
    squares = sums(strata, balanced**2 * freshness, count)
    return balanced * freshness * np.divide(total, squares, out=np.zeros(count), where=squares > 0)[strata]


def assess_performance(
    facts: PerformanceFacts,
    settings: AssessmentSettings,
    rng: np.random.Generator,
    *,
    interval: float,
    now: float,
) -> PerformanceSnapshot:
    """Learn the performance; the work of a second.

    Args:
        facts: scores and labels.
        settings: of the assessment.
        rng: random numbers.
        interval: probability inside intervals.
        now: when the facts were read, seconds since the epoch.
    """
    bins = bin_scores(
        facts.scores,
        facts.labels,
        weights=facts.weights,
        label_weights=facts.label_weights,
        thresholds=[settings.operating_threshold],
    )
    posterior = learn_scores(bins, rng)
    drawn = performance(posterior, rng, scope="population")
    target = Target() if settings.targets is None else Target(**settings.targets.model_dump())
    costs = None if settings.error_costs is None else Costs(**settings.error_costs.model_dump())
    at = drawn.nearest(settings.operating_threshold)
    names = ("precision", "recall", "f1", "false_positive_rate")
    everywhere = {name: Estimate.of(getattr(drawn, name), interval) for name in names}
    asked = {} if settings.targets is None else settings.targets.model_dump(exclude_none=True)
    return PerformanceSnapshot(
        taken_at=now,
        positive_class=settings.positive_class or "",
        threshold=settings.operating_threshold,
        labels=int(np.count_nonzero(facts.labels != UNLABELLED)),
        scores=int(np.count_nonzero(facts.labels == UNLABELLED)),
        measures={
            **{name: estimate.part(np.array(at)) for name, estimate in everywhere.items()},
            "prevalence": Estimate.of(drawn.prevalence, interval),
        },
        targets=asked,
        missed={
            name: float(1 - Target(**{name: wanted}).met(drawn)[:, at].mean())
            for name, wanted in asked.items()
        },
        curve=Estimate.of(drawn.precision_at_recall(RECALLS), interval),
        roc=Estimate.of(drawn.recall_at_false_positive_rate(FALSE_POSITIVE_RATES), interval),
        thresholds=choose_threshold(drawn, target, costs, mass=interval),
        at_thresholds=everywhere,
        maps={form: recalibrate(posterior, form, mass=interval) for form in FORMS},
        model=posterior.model,
        weights=posterior.weights,
        mixture=posterior.mixture,
    )
