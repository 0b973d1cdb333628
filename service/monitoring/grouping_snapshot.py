"""Estimates of one grouping: intervals and alerts, and of predicted classes their confusion and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.config.model import CONFUSION_CLASSES, CostSettings, ModelSettings
from service.domain.arrays import Flags, Floats, Ints
from service.domain.groupings import Grouping
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.certificate import first_labels
from service.monitoring.change_discounting import DetectedChange
from service.monitoring.group_index import Groups
from service.monitoring.verdicts import GroupVerdicts, group_verdicts
from service.statistics import beta as betas
from service.statistics.confusion import Confusion, CostBeliefs, assess_confusion
from service.statistics.estimate import Estimate
from service.statistics.groups import GroupingBeliefs, Labels
from service.statistics.labels_needed import own_share
from service.statistics.ratios import ratio
from service.statistics.weakest import probability_of_any, weakest_lower_end


@dataclass(frozen=True)
class CostSnapshot:
    """What a prediction of every group is expected to cost."""

    costs: Floats  # of every true class [G, K]
    beliefs: CostBeliefs
    estimate: Estimate  # [G]


@dataclass(frozen=True)
class ConfusionSnapshot:
    """The confusion matrix, a group being a predicted class."""

    classes: list[str]  # of true classes [K]
    beliefs: Confusion  # from which intervals of single entries come, where one is shown
    mean: Floats  # probability of every true class [G, K]; rows sum to 1
    labels: Floats  # effective number of labels of every group [G]
    cost: CostSnapshot | None  # where costs are configured


@dataclass(frozen=True)
class WeakestSnapshot:
    """The weakest group of a grouping with several."""

    group: int  # whose estimate is the lowest
    # credible interval of the accuracy of the weakest group, whichever it is
    lower: float
    upper: float
    # lower bound of P(a group is below its threshold), of groups with enough labels; None without
    below: float | None


@dataclass(frozen=True)
class GroupingSnapshot(GroupVerdicts):
    """Estimates of the groups of one grouping; arrays are [G]."""

    groups: list[str]
    by: Grouping
    beliefs: GroupingBeliefs
    predictions: Ints  # ever counted [G]
    accuracy: Estimate
    # the same with intervals that hold even of a group chosen by its estimate, such as the lowest
    adjusted: Estimate
    ece: Estimate  # expected calibration error
    own_rate: Floats  # share of the group's own labels that say that it is right; NaN without any
    own_share: Floats  # part of the estimate of its accuracy that comes from them
    confusion: ConfusionSnapshot | None  # where groups are predicted classes, and not too many
    weakest: WeakestSnapshot | None  # None of a single group, of score bins and votes
    share_failing: float  # traffic share of the groups that are low
    share_meeting: float  # traffic share of the groups that meet the threshold
    missed: Floats  # share of the group's traffic that may be in `__other__` instead, at most
    unanswered: Floats  # share of the ended requests of its items that have no label; NaN without any
    positive: Floats | None  # mean score of the positive class, where groups are by it
    evidence: GroupingEvidence | None  # anytime-valid evidence, where labels were requested for this grouping
    # whether a certificate needs the group: it has a threshold, and enough of the traffic
    in_certificate: Flags
    first_labels: Floats  # that every group lacks for a certificate before the first label of the grouping
    # groups whose accuracy has changed, by name: labels from before count little
    change_points: Mapping[str, DetectedChange]

    @property
    def certificate_labels(self) -> Floats | None:
        """Labels that every group lacks for the certificate [G], where labels were requested for it.

        Infinite if the group is not expected to meet the threshold, or left out; None without a threshold.
        """
        certificate = None if self.evidence is None else self.evidence.certificate
        return None if certificate is None else np.where(self.in_certificate, certificate.labels_left, np.inf)

    @property
    def changed_at(self) -> Floats:
        """When the last change of every group was; NaN without one [G]."""
        known = self.change_points
        return np.array([known[name].since if name in known else np.nan for name in self.groups], np.float64)

    @property
    def cost(self) -> Estimate | None:
        """Mean and interval of the expected cost, where it is known."""
        return self.confusion.cost.estimate if self.confusion and self.confusion.cost else None


def grouping_snapshot(
    by: Grouping,
    groups: Groups,
    beliefs: GroupingBeliefs,
    settings: ModelSettings,
    *,
    label_count: int,
    confusion: ConfusionSnapshot | None,
    unanswered: Floats,
    positive: Floats | None,
    evidence: GroupingEvidence | None,
    change_points: Mapping[str, DetectedChange],
) -> GroupingSnapshot:
    """Intervals and alerts from the posterior of the groups; the model has so many labels in all."""
    mean, variance = beliefs.accuracy.mean(), beliefs.accuracy.variance()
    accuracy = _accuracy(beliefs, settings, settings.interval)
    # Benjamini and Yekutieli (JASA 2005): the interval of one of G chosen has the G-th part of the tails.
    adjusted = _accuracy(beliefs, settings, 1 - (1 - settings.interval) / len(groups.names))
    ece_lower, ece_upper = beliefs.ece.interval(settings.interval)
    verdicts = group_verdicts(by, groups.names, beliefs, settings, label_count=label_count)
    return GroupingSnapshot(
        **vars(verdicts),
        groups=groups.names,
        by=by,
        beliefs=beliefs,
        accuracy=accuracy,
        adjusted=adjusted,
        predictions=groups.counts.sum(axis=1),
        ece=Estimate(ece_lower, beliefs.ece.mean, ece_upper),
        own_rate=ratio(beliefs.correct, beliefs.labels),
        own_share=own_share(labels=beliefs.labels, mean=mean, variance=variance),
        confusion=confusion,
        weakest=None
        if len(groups.names) == 1 or not by.has_threshold
        else _weakest(beliefs, settings, accuracy, adjusted, verdicts),
        share_failing=float(beliefs.shares[verdicts.low].sum()),
        share_meeting=float(beliefs.shares[verdicts.meets].sum()),
        missed=groups.missed,
        unanswered=unanswered,
        positive=positive,
        evidence=evidence,
        in_certificate=verdicts.has_min_accuracy
        & (beliefs.shares > 0)
        & (beliefs.shares >= settings.evidence.certificate_least_share),
        first_labels=first_labels(settings, verdicts.min_accuracy),
        change_points=change_points,
    )


def _weakest(
    beliefs: GroupingBeliefs,
    settings: ModelSettings,
    accuracy: Estimate,
    adjusted: Estimate,
    verdicts: GroupVerdicts,
) -> WeakestSnapshot:
    """The weakest group, from estimates [G], and whether any misses its threshold."""
    tested = verdicts.enough & verdicts.has_min_accuracy
    below = None
    if verdicts.accuracy_below is not None and tested.any():
        choices = int(verdicts.has_min_accuracy.sum())
        below = probability_of_any(verdicts.accuracy_below[tested], choices)
    lower = weakest_lower_end(beliefs.accuracy, (1 - settings.interval) / 2)
    return WeakestSnapshot(
        group=int(accuracy.mean.argmin()),
        # But for rounding, it is below those of single groups.
        lower=min(lower, float(accuracy.lower.min())),
        # No group is more accurate than the upper end of its adjusted interval, so neither is the weakest.
        upper=float(adjusted.upper.min()),
        below=below,
    )


def confusion_snapshot(
    groups: Groups,
    beliefs: GroupingBeliefs,
    settings: ModelSettings,
    *,
    labels: Labels,
    probability_sums: Mapping[int, Floats],
    missing: Floats | None = None,
) -> ConfusionSnapshot | None:
    """The confusion matrix of a grouping by predicted class; None of a model with too many classes.

    Of all labels of the model, those without a group are left out. `probability_sums` has the weighted sums
    of class probabilities of every predicted class, and `missing` the share of every group's items that may
    have any true class [G], and so be errors of the most expensive kind.
    """
    classes = settings.classes
    if len(classes) > CONFUSION_CLASSES:
        return None
    index = {name: i for i, name in enumerate(classes)}
    predicted = np.array([index[name] for name in groups.names], dtype=np.intp)
    confusion = assess_confusion(
        beliefs,
        cell_groups=groups.cells,
        labels=groups.labels_of(labels),
        predicted=predicted,
        probability_sums=[probability_sums.get(int(k)) for k in predicted],
        class_count=len(classes),
        prior=settings.prior,
    )
    cost = None
    if settings.costs is not None:
        costs = cost_matrix(settings.costs, classes)[predicted]
        believed = confusion.cost_beliefs(costs)
        estimated = believed.estimate(mass=settings.interval, kind=settings.interval_kind)
        if missing is not None:
            more = missing * confusion.dearest(costs)
            estimated = Estimate(estimated.lower, estimated.mean + more / 2, estimated.upper + more)
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


def _accuracy(beliefs: GroupingBeliefs, settings: ModelSettings, mass: float) -> Estimate:
    """Accuracies of the groups [G], with intervals of probability `mass`."""
    mean = beliefs.accuracy.mean()
    if settings.interval_kind == "equal_tailed":
        lower, upper = beliefs.accuracy_interval(mass)
    else:
        lower, upper = betas.highest_density(*betas.matching(mean, beliefs.accuracy.variance()), mass)
    return Estimate(lower, mean, upper)
