"""Binary classifiers, challengers and ensembles of known truth, and what the service shows of them.

Their traffic, requested items and labels, through the service's own path from outcomes to estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import special

from benchmarks.several_labels import NOW, TRAFFIC, USUAL, World
from service.config.assessments import ChallengeSettings, EnsembleSettings, PerformanceSettings
from service.config.labels_per_item import LabelsPerItem
from service.config.model import ModelSettings
from service.config.settings import Settings
from service.domain.arrays import Floats, Ints
from service.domain.cells import AGREE, CHALLENGE, DISAGREE, POSITIVE_SCORE, VOTES
from service.domain.groupings import ALL
from service.domain.traffic import Traffic
from service.domain.traffic_tables import tables
from service.monitoring.annotator_watch import AnnotatorWatch
from service.monitoring.background_job import ImmediateExecutor
from service.monitoring.binary_performance import assess_performance
from service.monitoring.challenger import challenge_snapshot
from service.monitoring.ensembles import ensemble_snapshot
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_truth import LearnedTruth
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.performance_facts import performance_facts
from service.monitoring.unanswered_requests import unanswered_requests
from service.monitoring.weighted_labels import weigh_model_labels
from service.store.outcome_entries import OutcomeEntry
from service.store.records import ABSENT, SKIPPED, Fact, LabelFact, PoolRecord

POOLED: Final = 1_000
THRESHOLD: Final = 0.5
ALIKE: Final = 0.6  # share of the errors of several classifiers that are the same
ASKED_BY: Final = {"performance": POSITIVE_SCORE, "challenge": CHALLENGE, "ensemble": VOTES}
BUDGET: Final = {"budget": {"labels": 1}}
TASKS: Final[Mapping[str, dict[str, Any]]] = {
    "performance": {"positive_class": "0"},
    "challenge": {"challenger": "v0"},
    "ensemble": {"positive_class": "0", "members": ["v0", "v1", "v2"], "member_labels": 100},
}


@dataclass(frozen=True)
class Case:
    """A task, and how labels are imperfect."""

    task: str
    classes: int = 2
    requests: int = 250
    hardest_skipped: float = 0.0  # share of the items that nobody labels; then labels are true
    prevalence: float = 0.3  # of the positive class, for performance
    policy: LabelsPerItem = USUAL
    people: int = 12
    guessing: float = 0.0  # share of people who guess
    ability: float = 6.0  # with the next one: about 5% of first labels are wrong
    harder: float = 0.5

    @property
    def labellers(self) -> World:
        """The people who label."""
        return World(
            classes=self.classes,
            people=self.people,
            guessing=self.guessing,
            policy=self.policy,
            ability=self.ability,
            harder=self.harder,
        )


class Items(NamedTuple):
    """Predictions [N]."""

    truth: Ints
    predicted: Ints
    scores: Floats  # of the predicted class
    others: Ints  # what other classifiers say [N, 3]
    hardness: Floats  # rank among all, from 0 to 1


def predictions(case: Case, rng: np.random.Generator) -> Items:
    """The traffic; what is hard for one classifier is hard for all, and for people."""
    hard = rng.normal(size=TRAFFIC)
    if case.task == "performance":
        positive = rng.random(TRAFFIC) < case.prevalence
        score = np.where(positive, rng.beta(5, 2, TRAFFIC), rng.beta(2, 6, TRAFFIC))
        truth, predicted = np.where(positive, 0, 1), np.where(score >= THRESHOLD, 0, 1)
        hard += np.where(truth == predicted, 0.0, 2.0)
        others = np.repeat(predicted[:, None], 3, axis=1)
        return Items(truth, predicted, np.where(predicted == 0, score, 1 - score), others, _ranks(hard))
    truth = rng.integers(case.classes, size=TRAFFIC)
    said = np.empty((TRAFFIC, 4), np.int64)
    fooling = (truth + rng.integers(1, case.classes, TRAFFIC)) % case.classes
    for one, skill in enumerate((2.2, 2.6, 1.8, 2.0)):
        wrong = rng.logistic(size=TRAFFIC) + 1.2 * hard > skill
        any_other = (truth + rng.integers(1, case.classes, TRAFFIC)) % case.classes
        said[:, one] = np.where(wrong, np.where(rng.random(TRAFFIC) < ALIKE, fooling, any_other), truth)
    scores = np.clip(special.expit(2.2 - 1.2 * hard + 0.7 * rng.normal(size=TRAFFIC)), 0.34, 0.999)
    return Items(truth, said[:, 0], scores, said[:, 1:], _ranks(hard + 0.3 * rng.normal(size=TRAFFIC)))


def settings_of(case: Case, **more: Any) -> Settings:
    """The configuration, with more keys of the model."""
    asked = {"task": case.task, **TASKS[case.task], **BUDGET}
    classes = [str(number) for number in range(case.classes)]
    model = {"classes": classes, "assessments": {"x": asked}, "forgetting": {"after_change": False}, **more}
    return Settings.model_validate({"models": {"m": model}})


def _ranks(values: Floats) -> Floats:
    return np.asarray(np.argsort(np.argsort(values)) / len(values), np.float64)


class Site:
    """One case's traffic and requests, and estimates from what labels say."""

    def __init__(self, case: Case, items: Items, rng: np.random.Generator) -> None:
        self.case, self.items, self.space = case, items, settings_of(case).cell_space("m")
        voters, classes = self.space.voters, self.space.classes
        self._votes = [{f"v{n}": classes[c] for n, c in enumerate(row)} for row in items.others.tolist()]
        self._bins = self.space.bins(items.scores)
        if voters is None:
            _, of_classes = self.space.class_groups(POSITIVE_SCORE) or ([], np.zeros((0, 0), np.intp))
            numbers = of_classes[items.predicted, self._bins]
            self.groups = np.array([str(number) for number in numbers.tolist()])
        else:
            said = zip(items.predicted.tolist(), self._votes, strict=True)
            self.groups = np.array([voters[1].pattern(classes[own], votes) for own, votes in said])
        self.traffic = self._traffic()
        self.chosen = self._requested(rng)
        self._pooled = [
            PoolRecord(f"i{i}", classes[items.predicted[i]], float(items.scores[i]), NOW, {})
            for i in rng.permutation(TRAFFIC)[:POOLED].tolist()
        ]

    def _traffic(self) -> Traffic:
        traffic = Traffic(tables(self.space))
        traffic.landmark = NOW
        names, rows = np.unique(self.groups, return_inverse=True)
        columns = self.items.predicted * self.space.bin_count + self._bins
        for attribute, table in traffic.tables.items():
            if attribute:
                table.restore(names.tolist(), np.zeros(len(names)))
            block = table.block("class_bins")
            place = (rows if attribute else np.zeros(TRAFFIC, np.intp), columns)
            for into, values in (
                *((block.counts, 1), (block.weights, 1.0)),
                (block.score_sums, self.items.scores),
            ):
                np.add.at(into, place, values)
        return traffic

    def _requested(self, rng: np.random.Generator) -> Ints:
        """Items that labels are requested of, mixed."""
        task, requests = self.case.task, self.case.requests
        if task == "ensemble":
            # As the plan has it: about as many of every member's positives.
            called = np.flatnonzero(
                (np.column_stack((self.items.predicted, self.items.others)) == 0).any(axis=1)
            )
            return rng.permutation(called)[:requests]
        names = [AGREE, DISAGREE] if task == "challenge" else np.unique(self.groups).tolist()
        shares = [0.2, 0.8] if task == "challenge" else np.full(len(names), 1 / len(names))
        parts = [
            rng.permutation(np.flatnonzero(self.groups == name))[: round(share * requests)]
            for name, share in zip(names, shares, strict=True)
        ]
        return rng.permutation(np.concatenate(parts))

    def entries(self, labels: Mapping[int, list[tuple[int, int]]]) -> list[OutcomeEntry]:
        """Outcomes of requested items, by the person and class of each label; a skip without any."""
        classes, entries, by = self.space.classes, list[OutcomeEntry](), ASKED_BY[self.case.task]
        for item in labels:
            fact = self._fact(item, f"r{item}", by, str(self.groups[item]))
            given = [LabelFact(classes[label], NOW, f"p{person}") for person, label in labels[item]]
            first = None
            for each in given or [LabelFact("", NOW, "", unanswered=SKIPPED)]:
                place = (1, len(entries))
                entries.append(OutcomeEntry(place, place, "x", fact, each, first))
                first = first or place
        return entries

    def unrequested(self, labels: Mapping[int, int | None], *, begin: int) -> list[OutcomeEntry]:
        """Outcomes of items that waited for a label, by its class; the first ones are in place `begin`."""
        entries = []
        for number, (item, label) in enumerate(labels.items(), begin):
            given = LabelFact("" if label is None else self.space.classes[label], NOW, "")
            if label is None:
                given = LabelFact("", NOW, "", unanswered=ABSENT)
            place = (1, number)
            entries.append(OutcomeEntry(place, place, "", self._fact(item, "", ALL, ALL), given))
        return entries

    def _fact(self, item: int, request: str, by: str, group: str) -> Fact:
        return Fact(
            *(request, f"i{item}", by, group, self.space.classes[self.items.predicted[item]]),
            *(float(self.items.scores[item]), {}, NOW - 1, NOW - 1),
            votes={} if self.space.voters is None else self._votes[item],
            voters=self.space.voters_of(by) if request else "",
        )

    def estimates(self, entries: list[OutcomeEntry], **more: Any) -> Floats:
        """Ends of the intervals of all measures [2, measures], with more keys of the model."""
        model = settings_of(self.case, **more).models["m"]
        unrequested = model.unrequested_labels
        ledger = OutcomeLedger(
            self.space,
            may_err=model.labels_per_item.may_err,
            unrequested=None if unrequested is None else unrequested.items,
        )
        ledger.fold(entries)
        ledger.place(votes_missing=False)
        index = GroupIndex(self.space, self.traffic, ledger.cells)
        return self._measured(model, index, ledger)

    def _measured(self, model: ModelSettings, index: GroupIndex, ledger: OutcomeLedger) -> Floats:
        """Ends of the intervals of the model's only assessment [2, measures]."""
        rng, asked, truth = np.random.default_rng(0), model.assessments["x"], learned(model, index, ledger)
        any_class = unanswered_requests(model, ledger).any_class
        if isinstance(asked, PerformanceSettings):
            facts = performance_facts(
                *(index, ledger, self._pooled),
                positive="0",
                decay=0.0,
                now=NOW,
                truth=truth,
                any_class=any_class,
            )
            assert facts is not None
            found = assess_performance(facts, asked, rng, interval=model.interval, now=NOW)
            shown = [found.measures[name] for name in ("precision", "recall", "f1")]
            return np.array([[float(each.lower) for each in shown], [float(each.upper) for each in shown]])
        compared = weigh_model_labels(model, index, ledger, now=NOW, truth=truth).compared
        if isinstance(asked, ChallengeSettings):
            challenge = challenge_snapshot(asked, index, compared, ledger, now=NOW, interval=model.interval)
            assert challenge is not None
            return np.array([challenge.difference.lower[:1], challenge.difference.upper[:1]])
        assert isinstance(asked, EnsembleSettings)
        ensemble = ensemble_snapshot(asked, index, compared, in_flight={}, rng=rng, interval=model.interval)
        assert ensemble is not None
        return np.array([ensemble.beliefs.lower, ensemble.beliefs.upper])

    def truths(self) -> Floats:
        """The values of all measures."""
        items = self.items
        called = np.column_stack((items.predicted, items.others)) == 0
        positive = items.truth == 0
        if self.case.task == "challenge":
            return np.array(
                [(items.others[:, 0] == items.truth).mean() - (items.predicted == items.truth).mean()]
            )
        if self.case.task == "ensemble":
            return np.array([positive[each].mean() for each in called.T])
        right = (called[:, 0] & positive).sum()
        precision, recall = right / called[:, 0].sum(), right / positive.sum()
        return np.array([precision, recall, 2 * precision * recall / (precision + recall)])


def learned(model: ModelSettings, index: GroupIndex, ledger: OutcomeLedger) -> LearnedTruth | None:
    """What labels leave open, as the service learns it; None where they are the truth."""
    if ledger.item_labels is None:
        return None
    watch = AnnotatorWatch("m", model, ImmediateExecutor(), 0.0)
    watch.refresh(index, ledger, now=NOW)
    return None if watch.learned is None else watch.learned.truth
