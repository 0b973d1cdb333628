"""Snapshots of one small model, made from facts that tests choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from made_once import made_once
from traffic_tables import JointCell, traffic_of

from service.config.assessments import ChallengeSettings, EnsembleSettings, PerformanceSettings
from service.config.model import ModelSettings
from service.config.settings import Settings
from service.domain.cells import CellSpace
from service.domain.traffic import Traffic
from service.domain.traffic_counts import TrafficCounts
from service.monitoring.binary_performance import PerformanceSnapshot, assess_performance
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.ensembles import EnsembleSnapshot
from service.monitoring.group_index import GroupIndex
from service.monitoring.history import Moment, moment
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.performance_facts import PerformanceFacts
from service.monitoring.posteriors import assess_groupings
from service.monitoring.snapshot import Facts, ModelSnapshot, take_snapshot
from service.monitoring.traffic_windows import ComparedTraffic, Stretch
from service.monitoring.unanswered_requests import unanswered_requests
from service.monitoring.waiting_predictions import WaitingPredictions
from service.statistics.binary.score_bins import UNLABELLED
from service.statistics.challenge import ChallengeBeliefs, PairedLabels
from service.statistics.estimate import Estimate
from service.statistics.vote_patterns import VotePatterns, allocate, member_beliefs
from service.store.cohorts import JoinSummary
from service.store.facts import RequestFacts, TrafficFacts
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact
from service.store.requests import OpenRequest

NOW = 1_800_000_000.0
CLASSES = ["cat", "dog", "owl"]
ACCURACY = {"cat": 0.95, "dog": 0.6, "owl": 0.9}
BUDGET = {"labels": 100}
ASSESSMENTS: dict[str, Any] = {
    "worst": {"task": "identification", "grouping": "class", "budget": BUDGET},
    "best": {"task": "identification", "grouping": "class", "extreme": "highest", "budget": BUDGET},
    "least-calibrated": {
        "task": "identification",
        "metric": "calibration",
        "grouping": "class",
        "budget": BUDGET,
    },
    "dearest": {"task": "identification", "metric": "cost", "grouping": "class", "budget": BUDGET},
    "compare": {"task": "comparison", "grouping": "class", "between": ["dog", "cat"], "budget": BUDGET},
    "whole": {"metric": "overall_accuracy", "budget": BUDGET},
}
PERFORMANCE: dict[str, Any] = {
    "task": "performance",
    "positive_class": "spam",
    "budget": BUDGET,
    "targets": {"precision": 0.8, "recall": 0.9},
}


@dataclass(frozen=True)
class Known:
    """What a snapshot is taken of."""

    settings: ModelSettings
    space: CellSpace
    traffic: TrafficFacts
    ledger: OutcomeLedger

    @property
    def index(self) -> GroupIndex:
        """Groups of all groupings."""
        return GroupIndex(self.space, self.traffic.traffic, self.ledger.cells)


def known(
    count: int = 100,
    *,
    traffic: bool = True,
    given: Sequence[float] = (NOW,),
    changed: str | None = None,
    **model: Any,
) -> Known:
    """Facts of a model with so many labels of every predicted class, half of them asked by either of two.

    Labels are given at the times in `given`, in turn. Of the class `changed` the first half of predictions is
    right, and the others are wrong.
    """
    settings = Settings.model_validate(
        {
            "models": {
                "m": {
                    "classes": CLASSES,
                    "score_bins": 2,
                    "groupings": {"class": {"by": "predicted_class"}},
                    "costs": {"mistakes": [{"true": "cat", "predicted": "dog", "cost": 10}]},
                    "assessments": ASSESSMENTS,
                    **model,
                }
            }
        }
    )
    space, classes = settings.cell_space("m"), settings.models["m"].classes
    rng = np.random.default_rng(3)
    entries = []
    for i, predicted in enumerate(np.repeat(classes, count).tolist()):
        score = 0.3 + 0.6 * (i % 2)
        right = rng.random() < ACCURACY.get(predicted, 0.9)
        if predicted == changed:
            right = i % count < count / 2
        true = predicted if right else "cat" if predicted == "dog" else "dog"
        asked = ("class", predicted) if i % 4 < 2 else ("score_bin", "[0,0.5)")
        time = given[i % len(given)]
        # Classes are predicted in turn: else a score bin would seem to change from one to the next.
        predicted_at = NOW - 9 + 1e-6 * (i % count)
        requested_at = time - 9 + 1e-3 * (i % count)
        fact = Fact(f"r{i}", f"i{i}", *asked, predicted, score, {}, predicted_at, requested_at)
        assessment = "worst" if i % 4 < 2 else "whole"
        entries.append(OutcomeEntry((1, i), (1, i), assessment, fact, LabelFact(true, time, "")))
    ledger = OutcomeLedger(space)
    ledger.fold(entries)
    ledger.place(votes_missing=False)
    facts = TrafficFacts(
        [0],
        counted(space, [10, 30] * len(classes)) if traffic else traffic_of(space, []),
        {0: 5},
        {0: np.array([NOW - 60, NOW - 20, NOW - 10])},
        {0: 40},
        {0: np.array([3.0, *np.full(len(classes) - 1, 0.5)])},
    )
    return Known(settings.models["m"], space, facts, ledger)


def counted(space: CellSpace, predictions: Sequence[int]) -> Traffic:
    """Traffic of so many predictions by class and score bin, of which those of late weigh as in `known`."""
    cells = [
        JointCell((), at // 2, at % 2, count, *((1.0, 0.3), (3.0, 3 * 0.9))[at % 2])
        for at, count in enumerate(predictions)
    ]
    return traffic_of(space, cells, landmark=NOW)


@made_once
def snapshot(
    count: int = 100,
    *,
    past: tuple[Moment, ...] = (),
    performances: Mapping[str, PerformanceSnapshot] | None = None,
    compared: ComparedTraffic | None = None,
    predictions: Sequence[int] | None = None,
    **model: Any,
) -> ModelSnapshot:
    """A snapshot of `known`, with so many predictions by class and score bin if that is given."""
    there = known(count, **model)
    if predictions is not None:
        there = replace(there, traffic=replace(there.traffic, traffic=counted(there.space, predictions)))
    opened = OpenRequest("whole", "[0.5,1]", {}, "cat", 0.9, 1, NOW - 30)
    return take_snapshot(
        model="m",
        settings=there.settings,
        facts=Facts(
            traffic=there.traffic,
            requests=RequestFacts({"x": opened}, 0, {"worst|0": 40}, {}, {("issued", "worst"): 40}),
            ledger=there.ledger,
            unanswered=unanswered_requests(there.settings, there.ledger),
            index=there.index,
            compared=compared,
        ),
        performances=performances or {},
        history_seconds=3_600,
        now=NOW,
        rng=np.random.default_rng(1),
        past=past,
    )


_OF_SNAPSHOTS = frozenset({"count", "past", "performances"})
"""Arguments of `snapshot` that `known` does not take alike."""

MIXED = [100, 900] * len(CLASSES)
"""Predictions by class and score bin in a reference: nine of ten are sure."""

DROPPED = [100, 900, 600, 400, 100, 900]
"""The same later, when the classifier is not so sure of dogs any more."""


@made_once
def drifting(recent: Sequence[int] = DROPPED, **model: Any) -> ModelSnapshot:
    """A snapshot of a model whose predictions of the last hour are compared with those before."""
    found = {name: value for name, value in model.items() if name not in _OF_SNAPSHOTS}
    begun, space = np.array(MIXED), known(**found).space
    reference, lately = (TrafficCounts.of(counted(space, counts)) for counts in (MIXED, recent))
    compared = ComparedTraffic(
        Stretch(reference, NOW - 7_200, NOW - 3_600, NOW - 7_200, reference),
        Stretch(lately, NOW - 3_600, NOW, NOW - 3_600, lately),
    )
    drift = {"reference_predictions": 1_000, **model.pop("drift", {})}
    return snapshot(
        compared=compared, predictions=(2 * begun + np.array(recent)).tolist(), drift=drift, **model
    )


@cache
def performance(labelled: int = 100, **fields: Any) -> PerformanceSnapshot:
    """What is believed of a small classifier of mail, half of whose scores are labelled."""
    settings = PerformanceSettings.model_validate({**PERFORMANCE, **fields})
    rng = np.random.default_rng(5)
    spam = rng.random(200) < 0.4
    scores = np.where(spam, rng.beta(5, 2, 200), rng.beta(2, 6, 200))
    labels = np.where(np.arange(200) < labelled, spam, UNLABELLED).astype(np.int64)
    facts = PerformanceFacts(scores, np.ones(200), labels, np.ones(200), (0.1, 0.3, 0.5, 0.7, 0.9))
    return assess_performance(facts, settings, rng, interval=0.95, now=NOW)


def ensemble() -> EnsembleSnapshot:
    """How an ensemble of two stands whose second member is wrong where it is alone."""
    allocation = allocate(VotePatterns(np.array([0b111, 0b011, 0b100]), np.array([6.0, 2.0, 2.0]), 3), 50)
    known, positive = np.array([40.0, 15.0, 10.0]), np.array([38.0, 13.0, 2.0])
    return EnsembleSnapshot(
        members=("ensemble", "first", "second"),
        positive_class="cat",
        shares=np.array([0.8, 0.8, 0.8]),
        beliefs=member_beliefs(allocation, known, positive, mass=0.95),
        labels=np.array([55.0, 55.0, 50.0]),
        missed=np.array([0.1, 0.1, 0.9]),
        target=0.8,
        plan=allocation.plan(known, np.random.default_rng(0)),
        groups=["111", "110", "001"],
        wanted=50,
        asked=65.0,
        alone=140.0,
    )


def challenge() -> ChallengeSnapshot:
    """How a challenger stands that is better, but for the third class."""
    won, lost = np.array([60.0, 40.0, 19.0, 1.0]), np.array([25.0, 5.0, 2.0, 18.0])
    beliefs = ChallengeBeliefs(np.array([0.2, 0.2, 0.2, 0.2]), PairedLabels(won, lost, np.zeros(4)))
    lower, upper = beliefs.interval(0.95)
    return ChallengeSnapshot(
        challenger="v2",
        margin=0.01,
        grouping="class",
        groups=["all", *CLASSES],
        shares=np.array([1.0, 0.4, 0.3, 0.3]),
        disagreement=beliefs.disagreement,
        labels=beliefs.labels.total,
        difference=Estimate(lower, beliefs.mean, upper),
        better=beliefs.better(0.01),
        worse=beliefs.worse(0.01),
        evidence_better=np.exp(beliefs.log_e_better(0.01)),
        evidence_worse=np.exp(beliefs.log_e_worse(0.01)),
        known=0.9,
        aimed={"disagree": 0.8, "agree": 0.2},
    )


def challenged() -> ModelSnapshot:
    """A snapshot of a model whose assessment `next` is about that challenger."""
    taken = snapshot(assessments={"next": {"budget": BUDGET}})
    asked = ChallengeSettings.model_validate({"task": "challenge", "challenger": "v2", "budget": BUDGET})
    state = replace(taken.assessments["next"], settings=asked)
    return replace(taken, assessments={"next": state}, challenges={"next": challenge()})


def waiting(**fields: Any) -> WaitingPredictions:
    """Predictions that wait for unrequested labels, half of which come within a minute."""
    known = {
        "items": 0,
        "level": 1,
        "closed": 0,
        "dropped": 0,
        "oldest": NOW,
        "not_joined": {},
        "cohorts": (),
    }
    return WaitingPredictions(
        JoinSummary(**(known | fields)), {0.5: 60.0, 0.99: 7_200.0}, {"too_late": 2}, None
    )


def mail(learned: PerformanceSnapshot | None, *, alerts: Any = None, **fields: Any) -> ModelSnapshot:
    """A snapshot of that classifier, whose assessment `curve` has the settings `fields`."""
    return snapshot(
        classes=["ham", "spam"],
        groupings={"class": {"by": "predicted_class"}},
        costs=None,
        assessments={"curve": {**PERFORMANCE, **fields}},
        alerts=alerts or {},
        performances={} if learned is None else {"curve": learned},
    )


def pooled() -> ModelSnapshot:
    """A snapshot of a model whose assessment `votes` is about that ensemble."""
    taken = snapshot(assessments={"votes": {"budget": BUDGET}})
    asked = EnsembleSettings.model_validate(
        {
            "task": "ensemble",
            "positive_class": "cat",
            "members": ["first", "second"],
            "targets": {"precision": 0.8},
            "budget": BUDGET,
        }
    )
    state = replace(taken.assessments["votes"], settings=asked)
    found = replace(ensemble(), missed=np.array([0.1, 0.9999, 0.9]))
    return replace(taken, assessments={"votes": state}, ensembles={"votes": found})


def recalled(there: Known, now: ModelSnapshot, at: float) -> Moment:
    """Estimates of all groups at an earlier time."""
    groupings = assess_groupings(
        settings=there.settings,
        index=there.index,
        probability_sums=there.traffic.probability_sums,
        ledger=there.ledger,
        at=at,
    )
    return moment(at, groupings, {name: grouping.groups for name, grouping in now.groupings.items()})
