"""Verdicts on groups: on which side of its thresholds each one is, and how many labels it lacks (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.config.model import ModelSettings
from service.domain.arrays import Flags, Floats
from service.domain.groupings import Grouping
from service.monitoring.group_thresholds import group_thresholds
from service.statistics.groups import GroupingBeliefs
from service.statistics.labels_needed import labels_to_verdict

ECE_LABELS = 2  # an ECE, whose estimate is never 0, needs so many times the labels that accuracy needs


LONGEST_SECONDS = 10 * 365.25 * 86_400
"""A time to a verdict beyond ten years is infinite: the budget does not suffice.

No model and no traffic stays the same for so long."""


@dataclass(frozen=True)
class GroupVerdicts:
    """On which side of its thresholds every group of one grouping is; arrays are [G]."""

    min_accuracy: Floats  # the group's threshold of accuracy; NaN without one
    max_ece: Floats  # likewise of the expected calibration error (ECE)
    accuracy_below: Floats | None  # P(accuracy < the threshold), NaN without one; None if no group has one
    ece_above: Floats | None  # P(ECE > the threshold), likewise
    enough: Flags  # whether it has the labels that a verdict on its accuracy needs
    enough_for_ece: Flags  # whether it has those that one on its ECE needs
    # whether the accuracy is known to be below the threshold: with enough labels, and with confidence
    low: Flags
    meets: Flags  # whether it is known to be no less than the threshold
    miscalibrated: Flags  # whether the ECE is known to be above the threshold, likewise
    # labels still needed for a verdict on the accuracy, NaN without a threshold; None if no group has one
    verdict_labels: Floats | None
    # time to them at the budgets' pace, infinite beyond LONGEST_SECONDS; None without a pace
    verdict_seconds: Floats | None

    @property
    def has_min_accuracy(self) -> Flags:
        """Whether the group has a threshold of accuracy."""
        return ~np.isnan(self.min_accuracy)

    @property
    def has_max_ece(self) -> Flags:
        """Whether it has one of the calibration error."""
        return ~np.isnan(self.max_ece)

    @property
    def verdict_affordable(self) -> Floats | None:
        """Whether that time is finite, as 0 and 1 [G]; NaN without a threshold, None without a pace."""
        seconds = self.verdict_seconds
        return None if seconds is None else np.where(np.isnan(seconds), np.nan, np.isfinite(seconds))

    @property
    def undecided(self) -> Flags:
        """Whether it has one, and more labels decide whether it meets it."""
        return self.has_min_accuracy & ~self.low & ~self.meets


def group_verdicts(
    by: Grouping, names: Sequence[str], beliefs: GroupingBeliefs, settings: ModelSettings, *, label_count: int
) -> GroupVerdicts:
    """Verdicts from the posterior of the groups; the model has so many labels in all."""
    alerts = settings.alerts
    least, most = (group_thresholds(alerts, measure, by, names) for measure in ("min_accuracy", "max_ece"))
    enough, enough_for_ece = (beliefs.labels >= times * alerts.min_labels for times in (1, ECE_LABELS))
    below = above = verdict_labels = None
    low, meets, miscalibrated = (np.zeros(len(names), dtype=np.bool_) for _ in range(3))
    if not np.isnan(least).all():
        below = beliefs.accuracy.probability_below(least)
        labels = labels_to_verdict(
            mean=beliefs.accuracy.mean(),
            variance=beliefs.accuracy.variance(),
            below=below,
            threshold=least,
            confidence=alerts.confidence,
        )
        # Nobody gives half a label.
        lacking = np.ceil(np.maximum(labels, alerts.min_labels - beliefs.labels))
        verdict_labels = np.where(np.isnan(least), np.nan, lacking)
        low = enough & (below >= alerts.confidence)
        meets = enough & (below <= 1 - alerts.confidence)
    if not np.isnan(most).all():
        above = beliefs.ece.probability_above(most)
        miscalibrated = enough_for_ece & (above >= alerts.confidence)
    return GroupVerdicts(
        min_accuracy=least,
        max_ece=most,
        accuracy_below=below,
        ece_above=above,
        enough=enough,
        enough_for_ece=enough_for_ece,
        low=low,
        meets=meets,
        miscalibrated=miscalibrated,
        verdict_labels=verdict_labels,
        verdict_seconds=_seconds_to(verdict_labels, beliefs, settings, label_count),
    )


def _seconds_to(
    labels: Floats | None, beliefs: GroupingBeliefs, settings: ModelSettings, label_count: int
) -> Floats | None:
    """Time until every group has so many more labels, if it goes on to get its share of all of them [G].

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
    return np.where(np.isnan(labels), np.nan, np.where(seconds > LONGEST_SECONDS, np.inf, seconds))
