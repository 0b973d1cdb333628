"""The certificate of a grouping: evidence that every one of its groups meets the accuracy threshold (pure).

The same labels count as for other evidence, in the order of their requests. But bets on a group's labels
learn from all groups, so a label counts once all earlier requests of the whole *grouping* have ended: what a
bet has learned from is then fixed for good. Items without a label for which any true class is allowed count
as incorrect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from service.config.evidence import certificate_target
from service.config.model import ModelSettings
from service.domain.arrays import Flags, Floats, Indices
from service.domain.cells import OTHER
from service.monitoring.evidence_base import WatchedGroups
from service.monitoring.outcome_aggregates import SumTallies
from service.monitoring.outcome_table import LabelSequence
from service.statistics.certificates import CertificateTest, Collected
from service.statistics.grouped_e_processes import GroupEvidence
from service.store.references import ReferenceWindow


@dataclass(frozen=True)
class Certificate:
    """Evidence that every group of one grouping meets the threshold; arrays are [G]."""

    test: CertificateTest
    alpha: float  # probability that a certificate is ever given of groups of which one misses the threshold
    collected: Collected  # from all labels that count; one run
    labels: SumTallies  # how many labels of each group there are, and which
    used: SumTallies  # those that count now and are not of the base checkpoint
    last: int  # the highest place among the requests of these
    until: int  # place of the first request of the grouping that is open; labels from there on wait
    waiting: Indices  # labels that wait for earlier requests of the grouping to end
    possible: Flags  # whether the group has evidence at all: `OTHER` has none

    @property
    def log_e(self) -> Floats:
        """Logarithm of the e-value against "the group misses the threshold"."""
        return np.asarray(self.collected.log_e[0], np.float64)

    @property
    def shown(self) -> Flags:
        """Which groups are shown to meet the threshold; the certificate is given once all are."""
        shown: Flags = self.log_e >= -np.log(self.alpha)
        return shown

    @cached_property
    def labels_left(self) -> Floats:
        """Labels that each group still lacks, on average; infinite if it is not expected to be shown."""
        left = self.test.labels_left(self.collected, self.alpha)[0]
        return np.where(self.possible, left, np.inf)


def kept_with(certificate: Certificate | None, state: GroupEvidence) -> GroupEvidence:
    """The evidence of a grouping with what a checkpoint keeps of its certificate.

    Without one, nothing is kept of an earlier one: labels in between would be missing from it.
    """
    count = len(state.labels)
    if certificate is None:
        return replace(state, met=np.zeros(count), met_target=np.full(count, np.nan))
    return replace(state, met=certificate.log_e, met_target=np.full(count, certificate.test.target))


def certificate_test(settings: ModelSettings, *, has_threshold: bool) -> CertificateTest | None:
    """The test of groups whose accuracy has a threshold; None without one that can be shown to be met."""
    target = certificate_target(settings.alerts.min_accuracy, settings.labels_per_item)
    return None if target is None or not has_threshold else CertificateTest(target)


def first_labels(settings: ModelSettings, *, has_threshold: bool) -> float:
    """Labels that a group lacks for a certificate before the first label of its grouping.

    Infinite without a threshold.
    """
    test = certificate_test(settings, has_threshold=has_threshold)
    if test is None:
        return np.inf
    nothing = test.collected(*np.zeros((3, 1, 1)))
    return float(test.labels_left(nothing, settings.evidence.alpha)[0, 0])


def grouping_certificate(
    watched: WatchedGroups,
    labels_of: Callable[[Flags], tuple[LabelSequence, Indices]],
    tallies: SumTallies,
    *,
    settings: ModelSettings,
    reference: ReferenceWindow | None,
    until: int,
    before: Certificate | None,
) -> Certificate | None:
    """The certificate of one grouping; None without a threshold that can be shown to be met.

    Labels of requests from the place `until` on wait. `before` is the certificate of the last round if its
    groups, checkpoint and reference are the same; only what is new since is added, unless labels changed.
    """
    test = certificate_test(settings, has_threshold=watched.has_threshold)
    if test is None:
        return None
    target, count = test.target, len(watched.names)
    which = np.ones(count, np.bool_)
    if before is not None and (before.test != test or until <= before.last):
        before = None
    if before is not None:
        changed = ~tallies.same(before.labels)
        which = changed | (before.waiting > 0)
        if not changed.any() and (until == before.until or not which.any()):
            return before
    labels, groups = labels_of(which)
    counting = labels.places > watched.base_position
    if reference is not None:
        counting &= labels.predicted_at >= reference.until
    waits = counting & (labels.places >= until)
    chosen = np.flatnonzero(counting & ~waits)
    used, base = SumTallies(count), watched.base
    if before is None:
        agreeing = base.correct - base.unanswered
        evidence = np.where(base.met_target == target, base.met, 0.0)
        collected = test.collected(base.labels[None], agreeing[None], evidence[None])
    else:
        known = labels.places[chosen] <= before.last
        used.add(groups[chosen[known]], labels.marks[chosen[known]])
        if not used.same(before.used)[which].all():
            # Labels were corrected, or retracted: all bets after them would have been others.
            return grouping_certificate(
                watched,
                labels_of,
                tallies,
                settings=settings,
                reference=reference,
                until=until,
                before=None,
            )
        collected, chosen = before.collected, chosen[~known]
        used.counts[:], used.marks[:] = before.used.counts, before.used.marks
    chosen = chosen[np.argsort(labels.places[chosen], kind="stable")]
    used.add(groups[chosen], labels.marks[chosen])
    correct = labels.correct & ~labels.unanswered
    last = watched.base_position if before is None else before.last
    return Certificate(
        test=test,
        alpha=settings.evidence.alpha,
        collected=test.advance(collected, groups[None, chosen], correct[None, chosen]),
        labels=tallies,
        used=used,
        last=int(labels.places[chosen[-1]]) if len(chosen) else last,
        until=until,
        waiting=np.bincount(groups[waits], minlength=count),
        possible=np.array([name != OTHER for name in watched.names], np.bool_),
    )
