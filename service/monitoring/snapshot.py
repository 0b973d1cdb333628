"""The result of one assessment round: everything that metrics, page and API show of one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from service.config.assessments import AssessmentSettings
from service.config.model import ModelSettings
from service.monitoring.absent_learning import LearnedAccuracies
from service.monitoring.acquisition import open_draws
from service.monitoring.annotator_estimates import LabellingEstimates, labelling_estimates
from service.monitoring.annotator_watch import LearnedAnnotators
from service.monitoring.assessment_results import assessment_results
from service.monitoring.assessment_snapshot import AssessmentSnapshot, assessment_snapshot
from service.monitoring.binary_performance import PerformanceSnapshot
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.count_trends import CountTrends, count_trends, counts_at
from service.monitoring.drift import ModelDrift, model_drift
from service.monitoring.ensembles import EnsembleSnapshot
from service.monitoring.error_rates import ErrorRatesSnapshot
from service.monitoring.gold_labels import allowed_errors, gold_counts
from service.monitoring.group_index import AttributeTraffic, GroupIndex, attribute_traffic
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.history import Fault, Moment, Since, faults_since
from service.monitoring.label_flow import LabelFlow, label_flow
from service.monitoring.label_truth import LearnedTruth
from service.monitoring.model_evidence import model_evidence
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.monitoring.problem import Problem
from service.monitoring.problems import listed_problems, snapshot_problems
from service.monitoring.reference_filling import ReferenceFilling, reference_filling
from service.monitoring.suspected_groups import Suspects, find_suspects, suspected_aim
from service.monitoring.traffic_windows import ComparedTraffic
from service.monitoring.unanswered_requests import UnansweredRequests
from service.monitoring.waiting_predictions import WaitingPredictions, waiting_predictions
from service.monitoring.week_ago import WeekAgo
from service.monitoring.weighted_labels import weigh_model_labels
from service.statistics.estimate import Estimate
from service.statistics.label_errors import GoldCounts, WrongLabels
from service.store.checkpoints import EvidenceCheckpoint
from service.store.cohorts import JoinSummary
from service.store.count_histories import CountHistory
from service.store.drift_verdicts import DriftVerdicts
from service.store.facts import RequestFacts, TrafficFacts
from service.store.outcome_entries import OutcomeEntry
from service.store.references import ReferenceWindow
from service.store.requests import OpenRequest


@dataclass(frozen=True)
class Facts:
    """What was read of one model."""

    traffic: TrafficFacts
    requests: RequestFacts  # as of the same moment as the outcomes
    ledger: OutcomeLedger
    index: GroupIndex  # built once a round
    unanswered: UnansweredRequests
    # the window that recent traffic is compared with, if one was set
    reference: ReferenceWindow | None = None
    # evidence by labels that were, or soon will be, trimmed from the outcome stream
    checkpoint: EvidenceCheckpoint | None = None
    # the reference of drift and recent traffic; None while there is no reference
    compared: ComparedTraffic | None = None
    predictions_by_time: tuple[tuple[float, int], ...] = ()  # by some times before now, ascending
    due_pins: frozenset[float] | None = None  # times that the reference needs, if others are pinned
    counts: CountHistory = ()  # by earlier times
    short: Mapping[str, int] = field(default_factory=dict)  # draws that found no item, not in `counts` yet
    week_ago: WeekAgo | None = None  # None where there were no labels then
    annotators: LearnedAnnotators | None = None  # where people may err, what is learned of them
    # groups that had drifted in the last round of the leader
    verdicts: DriftVerdicts | None = None
    absent: LearnedAccuracies | None = None  # what is learned of items without a self-selected label
    joins: JoinSummary | None = None  # what waits for unrequested labels; None if the model takes none

    @property
    def truth(self) -> LearnedTruth | None:
        """Draws of what labels leave open; None where they are the truth."""
        return None if self.annotators is None else self.annotators.truth


@dataclass(frozen=True)
class ModelSnapshot:
    """Everything known of one model at one time."""

    model: str
    settings: ModelSettings
    taken_at: float  # seconds since the epoch
    predictions: int
    newest_record: float  # when the newest record came, seconds since the epoch; infinite if not known
    attributes: Mapping[str, AttributeTraffic]  # that groupings use, by name
    pool_items: int  # unlabelled
    pool_item_age: float | None  # median, seconds, from a sample; None of an empty pool
    outbox_size: int  # label requests that wait to be published
    outcomes: int  # that the estimates use
    unanswered: UnansweredRequests  # requests that ended without a label
    # accuracy of items with an unrequested label minus that of all traffic, if these labels are self-selected
    selection_bias: Estimate | None
    last_label_at: float | None  # seconds since the epoch
    groupings: dict[str, GroupingSnapshot]  # those that have traffic
    assessments: dict[str, AssessmentSnapshot]  # all that are configured
    requests: dict[str, OpenRequest]  # open ones without those for gold items, by id
    recent: list[OutcomeEntry]  # the outcomes that came last, the newest first
    flow: LabelFlow  # labels over the time that is remembered
    past: tuple[Moment, ...]  # estimates of earlier times, oldest first
    since: dict[Fault, Since]  # when what is wrong was first seen
    performances: Mapping[str, PerformanceSnapshot]  # the latest, by assessment
    ensembles: Mapping[str, EnsembleSnapshot]  # by assessment
    challenges: Mapping[str, ChallengeSnapshot]  # by assessment
    error_rates: Mapping[str, ErrorRatesSnapshot]  # by assessment
    labelling: LabellingEstimates | None  # who labels, and how well; None where labels are the truth
    gold: GoldCounts  # first labels about gold items that the bound is learned from
    wrong_labels: WrongLabels  # for which evidence allows
    reference: ReferenceWindow | None  # the window that "now" is compared with, if one was set
    drift: ModelDrift | None  # None while there is no reference
    trends: CountTrends  # what has happened recently
    waiting: WaitingPredictions | None  # for unrequested labels; None if the model takes none
    week_ago: WeekAgo | None  # estimates that those of now are compared with
    # when the performance could last not be learned, by assessment; of recent failures alone
    performance_failures: Mapping[str, float]

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong as of the snapshot's time."""
        return tuple(one for one in self._problems_and_notes if one.alerts)

    @cached_property
    def notes(self) -> tuple[Problem, ...]:
        """What is confirmed, and no problem: no alert fires about it."""
        return tuple(one for one in self._problems_and_notes if not one.alerts)

    @cached_property
    def _problems_and_notes(self) -> tuple[Problem, ...]:
        return listed_problems(self)  # found once, as every reader asks for them


def take_snapshot(
    *,
    model: str,
    settings: ModelSettings,
    facts: Facts,
    performances: Mapping[str, PerformanceSnapshot],
    history_seconds: float,
    now: float,
    rng: np.random.Generator,
    last: ModelSnapshot | None = None,
    past: tuple[Moment, ...] = (),
    performance_failures: Mapping[str, float] | None = None,
) -> ModelSnapshot:
    """Estimates from facts: a pure function, the same on every replica but for the Monte Carlo draws.

    The flow of labels reaches back `history_seconds`; `rng` is for joint draws. Only what
    has changed since the `last` round is computed; `past` are estimates of earlier times, oldest first.
    """
    index, ledger, requests, reference = facts.index, facts.ledger, facts.requests, facts.reference
    policy, unanswered = settings.labels_per_item, facts.unanswered
    gold = gold_counts(ledger.gold_labels, requests.of_new_items, facts.checkpoint)
    wrong_labels = allowed_errors(settings, gold)
    any_class = unanswered.any_class
    weighted = weigh_model_labels(
        settings, index, ledger, now=now, truth=facts.truth, absent=facts.absent, any_class=any_class
    )
    groupings = assess_groupings(
        settings=settings,
        index=index,
        probability_sums=facts.traffic.probability_sums,
        ledger=ledger,
        at=now,
        weighted=weighted,
        evidence={}
        if not policy.has_evidence
        else model_evidence(
            settings=settings,
            index=index,
            ledger=ledger,
            open_requests=requests.of_new_items,
            reference=reference,
            checkpoint=facts.checkpoint,
            before={} if last is None else {n: one.evidence for n, one in last.groupings.items()},
            wrong_labels=wrong_labels,
            any_class=any_class,
        ),
    )
    drift = model_drift(
        index=index,
        settings=settings.drift,
        compared=facts.compared,
        groupings=groupings,
        verdicts=facts.verdicts,
        now=now,
    )
    suspected = {
        name: find_suspects(
            grouping,
            None if drift is None else drift.groupings.get(name),
            since=now - settings.drift.window_hours * 3_600,
        )
        for name, grouping in groupings.items()
    }
    found = assessment_results(
        settings,
        index,
        weighted,
        ledger,
        requests=requests,
        before={} if last is None else last.error_rates,
        reference=reference,
        checkpoint=facts.checkpoint,
        any_class=any_class,
        now=now,
        rng=rng,
    )
    gains = {name: one.gains for name, one in performances.items()}
    gains |= {name: one.gains for name, one in found.error_rates.items()}
    drawn = open_draws(settings, requests)
    assessments = {
        name: assessment_snapshot(
            name,
            assessment,
            groupings,
            requests,
            interval=settings.interval,
            now=now,
            rng=rng,
            drawn=drawn[assessment.asked_grouping],
            filling=_filling(settings, assessment, groupings, drawn, suspected),
            aim=suspected_aim(suspected[assessment.asked_grouping], settings.drift.label_share)
            if assessment.asked_grouping in groupings
            else None,
            traffic=(*facts.predictions_by_time, (now, facts.traffic.traffic.predictions)),
            gains=gains.get(name),
        )
        for name, assessment in settings.assessments.items()
    }
    counts = counts_at(now, facts.traffic, requests, facts.short, facts.counts, joins=facts.joins)
    trends = count_trends(facts.counts, counts)
    bias = weighted.selection_bias
    taken = ModelSnapshot(
        model=model,
        settings=settings,
        taken_at=now,
        predictions=facts.traffic.traffic.predictions,
        newest_record=facts.traffic.newest_record,
        attributes=attribute_traffic(index.space, facts.traffic.traffic),
        pool_items=facts.traffic.pool_items,
        pool_item_age=facts.traffic.pool_item_age(now),
        outbox_size=requests.outbox_size,
        outcomes=len(ledger),
        unanswered=unanswered,
        selection_bias=None if bias is None else Estimate.of(bias, settings.interval),
        last_label_at=ledger.last_label_at,
        groupings=groupings,
        assessments=assessments,
        requests={name: one for name, one in requests.open.items() if not one.gold},
        recent=ledger.recent,
        flow=label_flow(ledger, now - history_seconds, now),
        past=past,
        since={},
        performances=performances,
        ensembles=found.ensembles,
        challenges=found.challenges,
        error_rates=found.error_rates,
        labelling=labelling_estimates(facts.annotators, settings),
        gold=gold,
        wrong_labels=wrong_labels,
        reference=reference,
        drift=drift,
        trends=trends,
        waiting=waiting_predictions(facts.joins, ledger, trends.not_joined, facts.absent),
        week_ago=facts.week_ago,
        performance_failures=performance_failures or {},
    )
    faults, before = (one.fault for one in snapshot_problems(taken)), None if last is None else last.since
    return replace(taken, since=faults_since(faults, before=before, past=past, now=now))


def _filling(
    settings: ModelSettings,
    assessment: AssessmentSettings,
    groupings: Mapping[str, GroupingSnapshot],
    drawn: Mapping[str, Sequence[OpenRequest]],
    suspected: Mapping[str, Suspects],
) -> ReferenceFilling | None:
    """What the references of the grouping that an assessment asks by still need."""
    name = assessment.asked_grouping
    if name not in groupings or not settings.labels_per_item.has_evidence:
        return None
    return reference_filling(assessment, settings.reference, groupings[name], drawn[name], suspected[name])
