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
from service.statistics import beta as betas
from service.statistics.confusion import Confusion, CostBeliefs, assess_confusion
from service.statistics.estimate import Estimate
from service.statistics.groups import GroupingBeliefs, Labels
from service.statistics.labels_needed import labels_to_verdict, own_share
from service.statistics.ratios import ratio
from service.statistics.weakest import probability_of_any, weakest_lower_end

ECE_LABELS = 2  # an ECE, whose estimate is never 0, needs so many times the labels that accuracy needs


LONGEST_SECONDS = 10 * 365.25 * 86_400
"""A time to a verdict beyond ten years is infinite: the budget does not suffice.

No model and no traffic stays the same for so long."""


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
    # lower bound of P(a group is below the alert threshold), of groups with enough labels; None without
    below: float | None


@dataclass(frozen=True)
class GroupingSnapshot:
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
    # P(accuracy < the alert threshold), where one is configured; not of score bins
    accuracy_below: Floats | None
    ece_above: Floats | None  # P(ECE > the alert threshold), where one is configured
    enough: Flags  # whether it has the labels that a verdict on its accuracy needs
    enough_for_ece: Flags  # whether it has those that one on its ECE needs
    # whether the accuracy is known to be below the threshold: with enough labels, and with confidence
    low: Flags
    meets: Flags  # whether it is known to be no less than the threshold
    miscalibrated: Flags  # whether the ECE is known to be above the threshold, likewise
    # labels still needed for a verdict on the accuracy threshold, where one is configured
    verdict_labels: Floats | None
    # time to them at the budgets' pace, infinite beyond LONGEST_SECONDS; None without a pace
    verdict_seconds: Floats | None
    confusion: ConfusionSnapshot | None  # where groups are predicted classes, and not too many
    weakest: WeakestSnapshot | None  # None of a single group, of score bins and votes
    share_failing: float  # traffic share of the groups that are low
    share_meeting: float  # traffic share of the groups that meet the threshold
    missed: Floats  # share of the group's traffic that may be in `__other__` instead, at most
    unanswered: Floats  # share of the ended requests of its items that have no label; NaN without any
    positive: Floats | None  # mean score of the positive class, where groups are by it
    evidence: GroupingEvidence | None  # anytime-valid evidence, where labels were requested for this grouping
    in_certificate: Flags  # whether a certificate needs the group: it has enough of the traffic
    first_labels: float  # that a group lacks for a certificate before the first label of the grouping
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
    alerts = settings.alerts
    mean, variance = beliefs.accuracy.mean(), beliefs.accuracy.variance()
    accuracy = _accuracy(beliefs, settings, settings.interval)
    # Benjamini and Yekutieli (JASA 2005): the interval of one of G chosen has the G-th part of the tails.
    adjusted = _accuracy(beliefs, settings, 1 - (1 - settings.interval) / len(groups.names))
    ece_lower, ece_upper = beliefs.ece.interval(settings.interval)
    below = above = verdict_labels = None
    low, meets, miscalibrated = (np.zeros(len(groups.names), dtype=np.bool_) for _ in range(3))
    enough, enough_for_ece = (beliefs.labels >= times * alerts.min_labels for times in (1, ECE_LABELS))
    if alerts.min_accuracy is not None and by.has_threshold:
        below = beliefs.accuracy.probability_below(alerts.min_accuracy)
        verdict_labels = labels_to_verdict(
            mean=mean,
            variance=variance,
            below=below,
            threshold=alerts.min_accuracy,
            confidence=alerts.confidence,
        )
        # Nobody gives half a label.
        verdict_labels = np.ceil(np.maximum(verdict_labels, alerts.min_labels - beliefs.labels))
        low = enough & (below >= alerts.confidence)
        meets = enough & (below <= 1 - alerts.confidence)
    if alerts.max_ece is not None and not by.is_by_votes:
        above = beliefs.ece.probability_above(alerts.max_ece)
        miscalibrated = enough_for_ece & (above >= alerts.confidence)
    return GroupingSnapshot(
        groups=groups.names,
        by=by,
        beliefs=beliefs,
        accuracy=accuracy,
        adjusted=adjusted,
        predictions=groups.counts.sum(axis=1),
        ece=Estimate(ece_lower, beliefs.ece.mean, ece_upper),
        own_rate=ratio(beliefs.correct, beliefs.labels),
        own_share=own_share(labels=beliefs.labels, mean=mean, variance=variance),
        accuracy_below=below,
        ece_above=above,
        enough=enough,
        enough_for_ece=enough_for_ece,
        low=low,
        meets=meets,
        miscalibrated=miscalibrated,
        verdict_labels=verdict_labels,
        verdict_seconds=_seconds_to(verdict_labels, beliefs, settings, label_count),
        confusion=confusion,
        weakest=None
        if len(groups.names) == 1 or not by.has_threshold
        else _weakest(beliefs, settings, accuracy, adjusted, below=None if below is None else below[enough]),
        share_failing=float(beliefs.shares[low].sum()),
        share_meeting=float(beliefs.shares[meets].sum()),
        missed=groups.missed,
        unanswered=unanswered,
        positive=positive,
        evidence=evidence,
        in_certificate=(beliefs.shares > 0) & (beliefs.shares >= settings.evidence.certificate_least_share),
        first_labels=first_labels(settings, has_threshold=by.has_threshold),
        change_points=change_points,
    )


def _weakest(
    beliefs: GroupingBeliefs,
    settings: ModelSettings,
    accuracy: Estimate,
    adjusted: Estimate,
    *,
    below: Floats | None,
) -> WeakestSnapshot:
    """The weakest group, from estimates [G], and P(accuracy < threshold) of groups with enough labels."""
    lower = weakest_lower_end(beliefs.accuracy, (1 - settings.interval) / 2)
    return WeakestSnapshot(
        group=int(accuracy.mean.argmin()),
        # But for rounding, it is below those of single groups.
        lower=min(lower, float(accuracy.lower.min())),
        # No group is more accurate than the upper end of its adjusted interval, so neither is the weakest.
        upper=float(adjusted.upper.min()),
        below=None if below is None or not below.size else probability_of_any(below, len(accuracy.mean)),
    )


def _seconds_to(
    labels: Floats | None, beliefs: GroupingBeliefs, settings: ModelSettings, label_count: int
) -> Floats | None:
    """Time until every group has so many more labels, if it goes on to get its share of all of them.

    Labels come at a rate r and lose weight at a rate d: n' = r - d n, from which the time to L more than n0
    is -log(1 - L / (r / d - n0)) / d. They never add up to more than r / d.
    """
    labels_per_second = sum(assessment.labels_per_second for assessment in settings.assessments.values())
    if labels is None or labels_per_second == 0:
        return None
    decay = settings.label_decay_per_second
    accuracy = float(beliefs.shares @ beliefs.accuracy.mean())
    items_per_second = labels_per_second * settings.labels_per_item.items_per_label(accuracy)
    rate = items_per_second * (beliefs.labels_counted + beliefs.shares) / (label_count + 1)
    seconds = np.full(len(labels), np.inf)
    if decay == 0:
        np.divide(labels, rate, out=seconds, where=rate > 0)
    else:
        room = rate / decay - beliefs.labels
        suffices = labels < room
        seconds[suffices] = -np.log1p(-labels[suffices] / room[suffices]) / decay
    seconds[labels <= 0] = 0.0
    return np.where(seconds > LONGEST_SECONDS, np.inf, seconds)


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
