"""The service's evidence under Thompson sampling: false alarms, and labels until a decline is reported.

Groups are looked at again and again, as the rounds do; who is asked next follows from what is believed. A
group that the last look warned of or confirmed is suspected: labels requested then are not of its reference.
Tables: alarms of groups that are all as accurate as they must be; and how many labels of all groups it takes
until the one that drops is reported, by the posterior and by each kind of evidence.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import special

from benchmarks.lone_grouping import grouping_evidence, lone_groups
from service.config.model import ModelSettings
from service.domain.arrays import Flags, Floats, Indices
from service.domain.request_order import request_places
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.outcome_aggregates import mixed
from service.monitoring.outcome_table import LabelSequence
from service.replay.tables import Cell, Table, print_tables
from service.statistics.beliefs import AccuracyBeliefs, Outcomes
from service.statistics.laplace import Cells
from service.statistics.policies import Situation, ThompsonPolicy
from service.statistics.questions import Question
from service.statistics.tasks import IdentifyByAccuracy

THRESHOLD = 0.92
PRIOR = (9.0, 1.0)
"""What the policy believes of every group before its labels."""


class Asked(NamedTuple):
    """Labels in the order in which they were asked for [labels, R]."""

    groups: Indices
    correct: Flags


def ask(before: Floats, after: Floats, *, drop_at: int, labels: int, runs: int, seed: int) -> Asked:
    """Labels that Thompson sampling for the least accurate group asks for.

    Args:
        before: accuracy of every group [G].
        after: the same, from the drop on [G].
        drop_at: labels before it, of all groups together.
        labels: of all groups together.
        runs: R, independent ones.
        seed: of all random numbers.
    """
    rng = np.random.default_rng(seed)
    count = len(before)
    shares = np.full(count, 1 / count)
    beliefs = AccuracyBeliefs.fixed(np.full(count, PRIOR[0]), np.full(count, PRIOR[1]), runs)
    situation = Situation(beliefs, np.tile(shares, (runs, 1)), np.ones((runs, count), dtype=np.bool_))
    task, policy, every = _least_accurate(shares), ThompsonPolicy(), np.arange(runs)
    groups = np.empty((labels, runs), dtype=np.intp)
    correct = np.empty((labels, runs), dtype=np.bool_)
    for label in range(labels):
        groups[label] = policy.choose(task, situation, rng)[:, 0]
        correct[label] = rng.random(runs) < (before if label < drop_at else after)[groups[label]]
        beliefs.observe(every, groups[label], Outcomes(correct[label].astype(np.float64), every, every))
    return Asked(groups, correct)


def _least_accurate(shares: Floats) -> IdentifyByAccuracy:
    count = len(shares)
    return IdentifyByAccuracy(Question(Cells(np.ones((count, 1)), np.full((count, 1), THRESHOLD), shares)))


class Alarms(NamedTuple):
    """After how many labels of all groups each first alarmed [R, G]; infinite where it never did."""

    warned: Floats
    """By the posterior of a uniform prior."""
    below: Floats
    declined: Floats
    miscalibrated: Floats
    changed: Floats


def watch(asked: Asked, group_count: int, *, every: int, reference: int, since: int = 0) -> Alarms:
    """Look at the service's evidence again and again.

    Scores say that groups are as accurate as they must be.

    Args:
        asked: labels in their order.
        group_count: G.
        every: labels from one look to the next.
        reference: labels of every group that are the reference.
        since: labels before the first look that may alarm.
    """
    settings = ModelSettings.model_validate(
        {
            "classes": ["right", "wrong"],
            "alerts": {"min_accuracy": THRESHOLD},
            "reference": {"labels": reference},
        }
    )
    watched = lone_groups([f"group {group}" for group in range(group_count)], min_accuracy=THRESHOLD)
    labels, runs = asked.groups.shape
    at = np.arange(labels, dtype=np.float64)
    places = request_places((requested, "") for requested in at.tolist())
    first = Alarms(*(np.full((runs, group_count), np.inf) for _ in Alarms._fields))
    for run in range(runs):
        groups, correct = asked.groups[:, run], asked.correct[:, run]
        suspected = np.zeros(labels, np.bool_)  # grows with every look
        sequence = LabelSequence(
            marks=mixed(np.arange(labels) << 1 | correct),
            cells=groups,
            scores=np.full(labels, THRESHOLD),
            correct=correct,
            unanswered=np.zeros(labels, np.bool_),
            predicted_at=at,
            places=places,
            suspected=suspected,
            requested=np.ones(labels, np.bool_),
        )
        known: GroupingEvidence | None = None
        for count in range(every, labels + 1, every):
            known = grouping_evidence(
                # In the order in which labels were first requested for them.
                replace(watched, numbers=_arrivals(groups, group_count)),
                sequence.part(np.arange(count)),
                groups[:count],
                settings=settings,
                before=known,
            )
            right = np.bincount(groups[:count], weights=correct[:count], minlength=group_count)
            wrong = np.bincount(groups[:count], weights=~correct[:count], minlength=group_count)
            believed = special.betainc(1 + right, 1 + wrong, THRESHOLD) >= settings.alerts.confidence
            warned = believed & (right + wrong >= settings.alerts.min_labels)
            flags = (
                warned,
                known.confirmed["below_threshold"],
                known.confirmed["declined"],
                known.confirmed["miscalibrated"],
                known.changed,
            )
            doubted = warned | known.changed
            doubted |= known.confirmed["below_threshold"] | known.confirmed["declined"]
            suspected[count : count + every] = doubted[groups[count : count + every]]
            if count <= since:
                continue
            for results, alarms in zip(first, flags, strict=True):
                results[run] = np.where(alarms, np.minimum(results[run], count), results[run])
    return first


def _arrivals(groups: Indices, group_count: int) -> Indices:
    """Number of every group in the order of its first label, from 1."""
    there, first = np.unique(groups, return_index=True)
    numbers = np.full(group_count, len(there) + 1, dtype=np.intp)
    numbers[there[np.argsort(first)]] = np.arange(1, len(there) + 1)
    return numbers


def healthy_alarms(*, groups: int, labels: int, runs: int, every: int) -> Alarms:
    """Alarms of groups that all are as accurate as they must be, and stay so."""
    accuracy = np.full(groups, THRESHOLD)
    asked = ask(accuracy, accuracy, drop_at=labels, labels=labels, runs=runs, seed=0)
    return watch(asked, groups, every=every, reference=20)


def _of_healthy(runs: int) -> Table:
    groups, labels = 20, 1_500
    found = healthy_alarms(groups=groups, labels=labels, runs=runs, every=15)
    ever = [100 * float(np.isfinite(alarms).any(axis=1).mean()) for alarms in found]
    return Table(
        f"{groups} healthy groups, {labels} labels in all: runs in which any group ever alarms, %",
        "accuracy",
        ("posterior", "below", "declined", "miscalibrated", "changed"),
        [(f"{THRESHOLD}", tuple(ever))],
    )


def _of_drops(runs: int) -> Table:
    groups, drop_at, labels = 10, 1_000, 3_000
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for lower in (0.82, 0.72, 0.52):
        before, after = np.full(groups, 0.95), np.full(groups, 0.95)
        after[0] = lower
        asked = ask(before, after, drop_at=drop_at, labels=labels, runs=runs, seed=1)
        found = watch(asked, groups, every=10, reference=50, since=drop_at)
        own = [results[:, 0] - drop_at for results in found]
        rows.append((f"0.95 to {lower}", tuple(float(np.median(results)) for results in own)))
    return Table(
        f"labels of {groups} groups, of which one drops after {drop_at}, until it is reported: "
        f"median of {runs}",
        "accuracy",
        ("posterior", "below", "declined", "miscalibrated", "changed"),
        rows,
    )


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40, help="of each kind (default: 40)")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    options = parser.parse_args()
    print_tables(
        [_of_healthy(options.runs), _of_drops(options.runs)], as_json=False, as_markdown=options.markdown
    )


if __name__ == "__main__":
    main()
