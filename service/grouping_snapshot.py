"""What a snapshot tells of one grouping: intervals, and of predicted classes their confusion and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.assessment import beta as betas
from service.assessment.confusion import Confusion, CostBeliefs, Estimate, assess_confusion
from service.assessment.groups import GroupingBeliefs, Labels
from service.assessment.mixture import BetaMixture
from service.model_settings import CONFUSION_CLASSES, CostSettings, ModelSettings
from service.store.facts import TrafficFacts

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class CostSnapshot:
    """What a prediction of every group is expected to cost.

    Attributes:
        costs: of every true class [G, K].
        beliefs: about the expected cost.
        estimate: its mean and interval [G].
    """

    costs: Floats
    beliefs: CostBeliefs
    estimate: Estimate


@dataclass(frozen=True)
class ConfusionSnapshot:
    """The confusion matrix, a group being a predicted class.

    Attributes:
        classes: names of the true classes [K].
        beliefs: from which intervals of single entries come, where one is shown.
        mean: probability of every true class [G, K]; rows sum to 1.
        labels: effective number of labels of every group [G].
        cost: where costs are configured.
    """

    classes: list[str]
    beliefs: Confusion
    mean: Floats
    labels: Floats
    cost: CostSnapshot | None


@dataclass(frozen=True)
class GroupingSnapshot:
    """What is believed about one grouping; arrays are [G]."""

    groups: list[str]
    beliefs: GroupingBeliefs
    accuracy_lower: Floats
    accuracy_mean: Floats
    accuracy_upper: Floats
    ece_lower: Floats
    ece_mean: Floats
    ece_upper: Floats
    accuracy_below: Floats | None
    """P(accuracy < the alert threshold), where one is configured."""
    ece_above: Floats | None
    """P(ECE > the alert threshold), where one is configured."""
    confusion: ConfusionSnapshot | None
    """Where groups are predicted classes, and not too many."""


def grouping_snapshot(
    names: list[str],
    beliefs: GroupingBeliefs,
    settings: ModelSettings,
    confusion: ConfusionSnapshot | None = None,
) -> GroupingSnapshot:
    """Intervals and alerts from beliefs."""
    accuracy_lower, accuracy_upper = _interval(beliefs.accuracy, settings)
    ece_lower, ece_upper = beliefs.ece.interval(settings.interval)
    alerts = settings.alerts
    return GroupingSnapshot(
        groups=names,
        beliefs=beliefs,
        accuracy_lower=accuracy_lower,
        accuracy_mean=beliefs.accuracy.mean(),
        accuracy_upper=accuracy_upper,
        ece_lower=ece_lower,
        ece_mean=beliefs.ece.mean,
        ece_upper=ece_upper,
        accuracy_below=None
        if alerts.min_accuracy is None
        else beliefs.accuracy.probability_below(alerts.min_accuracy),
        ece_above=None if alerts.max_ece is None else beliefs.ece.probability_above(alerts.max_ece),
        confusion=confusion,
    )


def confusion_snapshot(
    names: list[str],
    beliefs: GroupingBeliefs,
    settings: ModelSettings,
    *,
    cell_groups: Indices,
    labels: Labels,
    traffic: TrafficFacts,
) -> ConfusionSnapshot | None:
    """The confusion matrix of a grouping by predicted class; None of a model with too many classes."""
    classes = settings.classes
    if len(classes) > CONFUSION_CLASSES:
        return None
    index = {name: i for i, name in enumerate(classes)}
    predicted = np.array([index[name] for name in names], dtype=np.intp)
    confusion = assess_confusion(
        beliefs,
        cell_groups=cell_groups,
        labels=labels,
        predicted=predicted,
        probability_sums=[traffic.probability_sums.get(int(k)) for k in predicted],
        class_count=len(classes),
        prior=settings.prior,
    )
    cost = None
    if settings.costs is not None:
        costs = cost_matrix(settings.costs, classes)[predicted]
        believed = confusion.cost_beliefs(costs)
        estimated = believed.estimate(mass=settings.interval, kind=settings.interval_kind)
        cost = CostSnapshot(costs, believed, estimated)
    return ConfusionSnapshot(classes, confusion, confusion.mean(), confusion.labels, cost)


def cost_matrix(settings: CostSettings, classes: Sequence[str]) -> Floats:
    """Cost of every predicted class, by true class [K, K]; 0 for right predictions."""
    index = {name: i for i, name in enumerate(classes)}
    costs = np.full((len(classes), len(classes)), settings.default)
    np.fill_diagonal(costs, 0.0)
    for mistake in settings.mistakes:
        costs[index[mistake.predicted], index[mistake.true]] = mistake.cost
    return costs


def _interval(beliefs: BetaMixture, settings: ModelSettings) -> tuple[Floats, Floats]:
    if settings.interval_kind == "equal_tailed":
        return beliefs.interval(settings.interval)
    return betas.highest_density(*betas.matching(beliefs.mean(), beliefs.variance()), settings.interval)
