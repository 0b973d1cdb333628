"""One model, round by round: facts -> snapshot, and, for the leader, snapshot -> label requests."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from service.config.model import ModelSettings
from service.domain.cells import CellSpace
from service.domain.traffic_counts import TrafficCounts
from service.monitoring.absent_watch import AbsentWatch
from service.monitoring.annotator_watch import AnnotatorWatch
from service.monitoring.background_performance import POOLED_SCORES, PerformanceWatch
from service.monitoring.count_trends import STEP_SECONDS, counts_at, due_history
from service.monitoring.drift_holding import due_verdicts
from service.monitoring.group_index import GroupIndex, has_voteless_traffic
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.history import Timeline, moment
from service.monitoring.model_evidence import due_checkpoint
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.performance_facts import PerformanceFacts, performance_facts
from service.monitoring.posteriors import assess_groupings
from service.monitoring.prominence import prominent_groups
from service.monitoring.request_issuer import RequestIssuer, Round
from service.monitoring.snapshot import Facts, ModelSnapshot, take_snapshot
from service.monitoring.traffic_windows import compared_traffic, traffic_history, traffic_windows
from service.monitoring.unanswered_requests import unanswered_requests
from service.monitoring.week_ago import WeekAgo, time_a_week_ago, week_ago
from service.store.checkpoints import CheckpointStore
from service.store.cohorts import CohortStore
from service.store.count_histories import CountHistoryStore
from service.store.drift_facts import DriftStore
from service.store.facts import FactReader, RequestFacts
from service.store.outcome_entries import BEGINNING
from service.store.records import PoolRecord

log = logging.getLogger(__name__)


@dataclass(eq=False)
class ModelMonitor:
    """Watches one model."""

    model: str
    settings: ModelSettings
    space: CellSpace
    reader: FactReader
    issuer: RequestIssuer
    drift_store: DriftStore
    checkpoints: CheckpointStore
    count_histories: CountHistoryStore
    cohorts: CohortStore | None  # of predictions that wait for unrequested labels, if the model takes any
    performance: PerformanceWatch
    annotators: AnnotatorWatch
    absent: AbsentWatch
    rng: np.random.Generator
    outcome_limit: int  # about how many outcomes the stream keeps
    history_groups: int  # most groups of a grouping whose earlier estimates are remembered
    history_seconds: float

    def __post_init__(self) -> None:
        self._timeline = Timeline(self.history_seconds)
        self._ledger = self._empty_ledger()
        self._read_to = BEGINNING
        self._facts: Facts | None = None
        self._snapshot: ModelSnapshot | None = None
        self._week_ago: WeekAgo | None = None
        # Draws of this process that found no item since counts were last kept, by assessment.
        self._short: Counter[str] = Counter()
        self._asked_at = -np.inf

    def _empty_ledger(self) -> OutcomeLedger:
        unrequested = self.settings.unrequested_labels
        return OutcomeLedger(
            self.space,
            may_err=self.settings.labels_per_item.may_err,
            unrequested=None if unrequested is None else unrequested.items,
            outcome_limit=self.outcome_limit,
        )

    def refresh(self, now: float) -> ModelSnapshot:
        """Read the facts and compute the snapshot.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        if now - self._asked_at > STEP_SECONDS:
            self._short.clear()  # another process leads, and keeps counts of its own
        facts = self._read(now)
        self.annotators.refresh(facts.index, facts.ledger, now=now)
        self.absent.refresh(facts.index, facts.ledger, self._read_to, now=now)
        facts = replace(facts, annotators=self.annotators.learned, absent=self.absent.learned)
        facts = replace(facts, week_ago=self._estimates_a_week_ago(facts, now))
        self.performance.refresh(
            partial(self.reader.pooled_scores, POOLED_SCORES),
            partial(self._performance_facts, facts, now),
            now=now,
        )
        snapshot = take_snapshot(
            model=self.model,
            settings=self.settings,
            facts=facts,
            performances=self.performance.snapshots_with(facts.index, facts.ledger, now=now),
            history_seconds=self.history_seconds,
            now=now,
            rng=self.rng,
            last=self._snapshot,
            past=self._timeline.moments,
            performance_failures=self.performance.failures(now),
        )
        self._facts, self._snapshot = facts, snapshot
        if self._timeline.lacks(now):
            self._timeline.remember(moment(now, snapshot.groupings, self._remembered(snapshot)))
        return snapshot

    def _performance_facts(
        self, facts: Facts, now: float, pooled: Sequence[PoolRecord]
    ) -> PerformanceFacts | None:
        return performance_facts(
            facts.index,
            facts.ledger,
            pooled,
            positive=self.settings.positive_class or "",
            decay=self.settings.label_decay_per_second,
            now=now,
            truth=facts.truth,
            any_class=facts.unanswered.any_class,
        )

    def _read(self, now: float) -> Facts:
        """The facts of this round."""
        traffic, marked = self.reader.marked_traffic()
        requests = self._read_outcomes(votes_missing=has_voteless_traffic(self.space, traffic.traffic))
        reference, (verdicts, pins) = self.reader.reference(), self.reader.drift()
        windows = traffic_windows(marked.timeline, reference, self.settings.drift, now=now)
        history, compared = None, None
        if windows is not None:
            counts, earlier = TrafficCounts.of(traffic.traffic), self.reader.counts_at(marked, windows.times)
            history = traffic_history(windows.epochs, earlier, counts)
            compared = compared_traffic(windows, earlier, counts, now=now)
        return Facts(
            traffic=traffic,
            requests=requests,
            ledger=self._ledger,
            unanswered=unanswered_requests(self.settings, self._ledger),
            index=GroupIndex(self.space, traffic.traffic, self._ledger.cells, history),
            reference=reference,
            checkpoint=self.checkpoints.checkpoint(),
            compared=compared,
            predictions_by_time=() if windows is None else windows.predictions_by_time,
            due_pins=None if windows is None or windows.pins == {*pins} else windows.pins,
            counts=self.count_histories.history(),
            short=dict(self._short),
            verdicts=verdicts,
            joins=None if self.cohorts is None else self.cohorts.summary(),
        )

    def _estimates_a_week_ago(self, facts: Facts, now: float) -> WeekAgo | None:
        """Computed once every quarter of an hour; None if there were no labels then."""
        at, first_label_at = time_a_week_ago(now), self._ledger.first_label_at
        if first_label_at is None or first_label_at > at:
            return None
        if self._week_ago is None or self._week_ago.time != at:
            self._week_ago = week_ago(at, self._estimates_at(at, facts))
        return self._week_ago

    def _estimates_at(self, at: float, facts: Facts) -> dict[str, GroupingSnapshot]:
        """Estimates from the labels that were there at an earlier time."""
        return assess_groupings(
            settings=self.settings,
            index=facts.index,
            probability_sums=facts.traffic.probability_sums,
            ledger=facts.ledger,
            at=at,
            truth=facts.truth,
            absent=facts.absent,
        )

    def _remembered(self, snapshot: ModelSnapshot) -> dict[str, list[str]]:
        """Names of the groups whose estimates are remembered, by grouping."""
        latest = self._timeline.latest
        names: dict[str, list[str]] = {}
        for name, grouping in snapshot.groupings.items():
            before = latest.groupings[name].index if latest and name in latest.groupings else ()
            chosen = prominent_groups(
                name, grouping, snapshot.drift, limit=self.history_groups, before=before
            )
            names[name] = [grouping.groups[g] for g in chosen]
        return names

    def _read_outcomes(self, *, votes_missing: bool) -> RequestFacts:
        """Bring the ledger up to the stream, a page at a time, so that no memory is needed for all of it.

        Returns requests as of the moment of the last page: each is open or has an outcome, never both. So no
        label counts for evidence before an earlier request has ended.
        """
        while True:
            page, requests = self.reader.outcomes_and_requests(self._read_to)
            if page is None:
                log.warning("reading all outcomes again: the stream has changed", extra={"model": self.model})
                self._ledger, self._read_to = self._empty_ledger(), BEGINNING
                continue
            self._ledger.fold(page.entries)
            self._ledger.forget(page.first)
            self._ledger.place(votes_missing=votes_missing)
            self._read_to = page.last
            if page.complete:
                return requests

    def recall(self, now: float) -> bool:
        """Compute the estimates of one earlier time that is not remembered; whether there was one.

        One at a time, so that a process which has just started answers before it remembers all.
        """
        latest, facts = self._timeline.latest, self._facts
        if latest is None or facts is None:
            return False
        at = self._timeline.missing(now=now, first_label_at=self._ledger.first_label_at)
        if at is None:
            return False
        groupings = self._estimates_at(at, facts)
        names = {name: past.index for name, past in latest.groupings.items()}
        self._timeline.remember(moment(at, groupings, names))
        return True

    def ask(self, *, epoch: int, now: float) -> Round:
        """By the last snapshot: keep verdicts, evidence and counts, expire what is due, and ask.

        Before that, close the cohorts that have waited for unrequested labels.

        Raises:
            FenceRefused: a newer leader has written.
            Unavailable: Redis cannot answer now.
        """
        if self._snapshot is None or self._facts is None:
            return self.issuer.play(None, None, epoch=epoch, now=now)
        if self.cohorts is not None and self._facts.joins is not None:
            self.cohorts.advance(self._facts.joins, epoch=epoch, now=now)
        traffic = self._facts.traffic
        drift = self._snapshot.drift
        verdicts = None if drift is None else due_verdicts(self._facts.verdicts, drift.verdicts)
        if verdicts is not None or self._facts.due_pins is not None:
            self.drift_store.keep(epoch=epoch, verdicts=verdicts, pins=self._facts.due_pins)
        self._keep_evidence(self._facts, epoch)
        self._keep_counts(self._facts, epoch, self._snapshot.taken_at)
        done = self.issuer.play(self._snapshot, traffic, epoch=epoch, now=now)
        self._short.update(done.shortfall)
        self._asked_at = now
        return done

    def _keep_counts(self, facts: Facts, epoch: int, now: float) -> None:
        """Keep the counts of this round, where the last ones that were kept are old enough."""
        counts = counts_at(now, facts.traffic, facts.requests, self._short, facts.counts, joins=facts.joins)
        history = due_history(facts.counts, counts)
        if history is not None:
            self.count_histories.keep(history, epoch=epoch)
            self._short.clear()

    def _keep_evidence(self, facts: Facts, epoch: int) -> None:
        """Write down what labels said, before they are trimmed from the stream."""
        if not self.settings.labels_per_item.has_evidence:
            return
        checkpoint = due_checkpoint(
            settings=self.settings,
            index=facts.index,
            ledger=facts.ledger,
            open_requests=facts.requests.of_new_items,
            reference=facts.reference,
            checkpoint=facts.checkpoint,
            outcome_limit=self.outcome_limit,
        )
        if checkpoint is not None:
            self.checkpoints.keep(checkpoint, epoch=epoch)
