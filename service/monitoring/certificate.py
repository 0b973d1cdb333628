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
    """Evidence that every group of one grouping meets its threshold; arrays are [G]."""

    test: CertificateTest
    targets: Floats  # of the test; NaN of groups without one
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
    return replace(state, met=certificate.log_e, met_target=certificate.targets)


def certificate_targets(settings: ModelSettings, min_accuracy: Floats) -> Floats:
    """What labels must agree with to show that groups meet their thresholds [G].

    NaN of groups without a threshold, and of those whose threshold cannot be shown to be met.
    """
    thresholds, which = np.unique(min_accuracy, return_inverse=True)
    targets = [
        None if np.isnan(least) else certificate_target(float(least), settings.labels_per_item)
        for least in thresholds
    ]
    return np.array(targets, np.float64)[which]


def first_labels(settings: ModelSettings, min_accuracy: Floats) -> Floats:
    """Labels that every group lacks for a certificate before the first label of its grouping [G].

    Infinite without a threshold that can be shown to be met.
    """
    targets, which = np.unique(certificate_targets(settings, min_accuracy), return_inverse=True)
    known = ~np.isnan(targets)
    left = np.full(len(targets), np.inf)
    if known.any():
        test = CertificateTest(targets[known])
        left[known] = test.labels_left(
            test.collected(*np.zeros((3, 1, known.sum()))), settings.evidence.alpha
        )[0]
    return left[which]


def _test_of(targets: Floats, before: Certificate | None) -> CertificateTest:
    """The test of all groups; those without a target, whose labels do not count, have that of another one."""
    known = targets[~np.isnan(targets)]
    same = bool((known == known[0]).all())
    target = known[0] if same else np.where(np.isnan(targets), known[0], targets)
    return (
        before.test
        if before is not None and np.array_equal(before.test.target, target)
        else CertificateTest(target)
    )


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
    """The certificate of one grouping; None if no group has a threshold that can be shown to be met.

    Labels of requests from the place `until` on wait. `before` is the certificate of the last round if its
    groups, checkpoint and reference are the same; only what is new since is added, unless labels changed.
    """
    targets = certificate_targets(settings, watched.min_accuracy)
    possible = ~np.isnan(targets)
    if not possible.any():
        return None
    test, count = _test_of(targets, before), len(watched.names)
    which = np.ones(count, np.bool_)
    if before is not None and (before.test is not test or until <= before.last):
        before = None
    if before is not None:
        changed = ~tallies.same(before.labels)
        which = changed | (before.waiting > 0)
        if not changed.any() and (until == before.until or not which.any()):
            return before
    labels, groups = labels_of(which)
    counting = (labels.places > watched.base_position) & possible[groups]
    if reference is not None:
        counting &= labels.predicted_at >= reference.until
    waits = counting & (labels.places >= until)
    chosen = np.flatnonzero(counting & ~waits)
    used, base = SumTallies(count), watched.base
    if before is None:
        agreeing = np.where(possible, base.correct - base.unanswered, 0.0)
        # Evidence of another target says nothing of this one.
        evidence = np.where(base.met_target == targets, base.met, 0.0)
        collected = test.collected(np.where(possible, base.labels, 0.0)[None], agreeing[None], evidence[None])
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
        targets=targets,
        alpha=settings.evidence.alpha,
        collected=test.advance(collected, groups[None, chosen], correct[None, chosen]),
        labels=tallies,
        used=used,
        last=int(labels.places[chosen[-1]]) if len(chosen) else last,
        until=until,
        waiting=np.bincount(groups[waits], minlength=count),
        possible=possible & np.array([name != OTHER for name in watched.names], np.bool_),
    )
