"""Snapshots as the documents of the performance of binary classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np

from service.config.alerts import AlertSettings
from service.config.assessments import ErrorCosts, PerformanceSettings
from service.domain.arrays import Indices
from service.domain.errors import NotKnown
from service.monitoring.binary_performance import FALSE_POSITIVE_RATES, RECALLS, PerformanceSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.base import Interval, Range, Verdict, finite_or_none
from service.serving.documents.performance_documents import (
    CostState,
    CurvePoint,
    MapPoint,
    Measure,
    MeasureState,
    PerformanceState,
    PerformanceSummary,
    Recalibration,
    RocPoint,
    Seeing,
    ThresholdState,
)
from service.statistics.recalibration import FORMS, Form

MOST_THRESHOLDS = 101

_MEASURES: tuple[Measure, ...] = get_args(Measure)

_BY_TABLE = (
    "Scores are those of class {positive}: where another class was predicted, use 1 minus its score. The "
    "table gives the probability of each score. Interpolate linearly between two scores; outside the table "
    "use the nearest one."
)
_FORMULAS: Mapping[Form, str] = {
    "platt": "1 / (1 + exp(-(offset + slope * ln(s / (1 - s)))))",
    "beta": "1 / (1 + exp(-(offset + a * ln(s) - b * ln(1 - s)))), a the slope of log s and b that of "
    "-log(1 - s)",
}
_BY_FORMULA = (
    " As a formula of a score s, clipped to 0.000001 to 0.999999: {formula}, with the means of the "
    "coefficients. It gives nearly the same probabilities."
)


def performance_summaries(snapshot: ModelSnapshot) -> list[PerformanceSummary]:
    """All assessments of performance in short, including those without an estimate yet."""
    return [
        PerformanceSummary.of(
            settings,
            name=name,
            taken_at=estimate.taken_at if estimate else None,
            labels=estimate.labels if estimate else 0,
            measures=_measures(estimate, snapshot.settings.alerts) if estimate else [],
            design_disagrees=estimate is not None and estimate.design.disagrees,
            sentence=words.performance_sentence(estimate) if estimate else words.NO_ESTIMATE,
        )
        for name, settings in snapshot.settings.assessments_of(PerformanceSettings).items()
        for estimate in [snapshot.performances.get(name)]
    ]


def performance_state(snapshot: ModelSnapshot, assessment: str) -> PerformanceState:
    """How a binary classifier does at its threshold, and would at every other one.

    Raises:
        NotKnown: there is no such assessment, or there is no estimate yet.
    """
    there = _estimate(snapshot, assessment)
    error_costs = snapshot.settings.assessments_of(PerformanceSettings)[assessment].error_costs
    mixture = there.mixture
    operating = int(np.searchsorted(there.thresholds.thresholds, there.threshold, side="left"))
    shown = _shown_thresholds(there, operating)
    return PerformanceState.of(
        there,
        model=snapshot.model,
        assessment=assessment,
        interval=snapshot.settings.interval,
        measures=_measures(there, snapshot.settings.alerts),
        design_disagrees=there.design.disagrees,
        design_log10_factor=there.design.log10_factor,
        sentence=words.performance_sentence(there),
        curve=[
            CurvePoint(recall=recall, precision=Range.if_any(there.curve, i))
            for i, recall in enumerate(RECALLS.tolist())
        ],
        roc=[
            RocPoint(false_positive_rate=rate, recall=Range.if_any(there.roc, i))
            for i, rate in enumerate(FALSE_POSITIVE_RATES.tolist())
        ],
        thresholds=[_threshold(there, at) for at in shown.tolist()],
        operating=int(np.searchsorted(shown, operating)),
        best=int(np.searchsorted(shown, there.thresholds.best)),
        error_costs=CostState.of(error_costs or ErrorCosts(), configured=error_costs is not None),
        seeing=Seeing.of(
            mixture,
            way=there.model,
            weights=dict(there.weights),
            misfit=there.misfit,
            negative_family=mixture.negative,
            positive_family=mixture.positive,
            effective_draws=mixture.draws.effective,
            method=mixture.draws.method,
        ),
    )


def recalibration(snapshot: ModelSnapshot, assessment: str, form: str) -> Recalibration:
    """A map from scores to probabilities.

    Raises:
        NotKnown: there is no such assessment or form, or there is no estimate yet.
    """
    there = _estimate(snapshot, assessment)
    if form not in FORMS:
        raise NotKnown(f"a map has one of the forms {', '.join(FORMS)}")
    found = there.maps[form]
    how = _BY_TABLE.format(positive=there.positive_class)
    if found.form in _FORMULAS:
        how += _BY_FORMULA.format(formula=_FORMULAS[found.form])
    return Recalibration.of(
        there,
        model=snapshot.model,
        assessment=assessment,
        form=found.form,
        interval=snapshot.settings.interval,
        how=how,
        coefficients={name: Interval.at_index(one) for name, one in found.coefficients.items()},
        table=[
            MapPoint.at_index(found.probability, i, score=score, probability=found.probability.mean[i].item())
            for i, score in enumerate(found.scores.tolist())
        ],
    )


def _estimate(snapshot: ModelSnapshot, assessment: str) -> PerformanceSnapshot:
    if assessment not in snapshot.settings.assessments_of(PerformanceSettings):
        raise NotKnown("the model has no performance assessment of this name")
    if assessment not in snapshot.performances:
        raise NotKnown("there is no estimate of the performance yet")
    return snapshot.performances[assessment]


def _measures(there: PerformanceSnapshot, alerts: AlertSettings) -> list[MeasureState]:
    return [
        MeasureState(
            measure=name,
            value=Range.if_any(there.measures[name]),
            design=Range.if_any(there.design.estimate.measures[name]),
            target=there.targets.get(name),
            missed=there.missed.get(name),
            verdict=_verdict(there.missed.get(name), there.effective_labels, alerts),
        )
        for name in _MEASURES
    ]


def _verdict(missed: float | None, labels: float, alerts: AlertSettings) -> Verdict:
    if missed is None:
        return "none"
    if labels < alerts.min_labels or 1 - alerts.confidence < missed < alerts.confidence:
        return "open"
    return "fails" if missed >= alerts.confidence else "meets"


def _shown_thresholds(there: PerformanceSnapshot, operating: int) -> Indices:
    """Positions of the thresholds to show: from one to the next, the measures change evenly.

    The model's own threshold (at `operating`) and the best one are always among them.
    """
    choice = there.thresholds
    last = len(choice.thresholds) - 1
    if last < MOST_THRESHOLDS:
        return np.arange(last + 1)
    changing = [measure.median for measure in there.at_thresholds.values()] + [choice.probability]
    steps = np.nan_to_num(np.abs(np.diff(np.stack(changing), axis=1))).max(axis=0)
    way = np.concatenate(([0.0], np.cumsum(steps)))
    always: Sequence[int] = (0, operating, choice.best, last)
    even = np.searchsorted(way, np.linspace(0, way[-1], MOST_THRESHOLDS - len(always) + 2)[1:-1])
    return np.union1d(even, always).astype(np.intp)


def _threshold(there: PerformanceSnapshot, at: int) -> ThresholdState:
    choice, at_thresholds = there.thresholds, there.at_thresholds
    return ThresholdState(
        threshold=finite_or_none(choice.thresholds[at]),
        precision=Range.if_any(at_thresholds["precision"], at),
        recall=Range.if_any(at_thresholds["recall"], at),
        f1=Range.if_any(at_thresholds["f1"], at),
        false_positive_rate=Range.if_any(at_thresholds["false_positive_rate"], at),
        met=float(choice.probability[at]) if there.targets else None,
        cost=Interval.at_index(choice.cost, at),
    )
