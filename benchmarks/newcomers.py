"""How often healthy groups are ever confirmed, when groups arrive one by one and traffic is counted again.

Every group is exactly as accurate as it must be, its scores are right, and evidence of all kinds is looked
at after every label. A group is suspected while its posterior says that it is less accurate; labels requested
then are not of its reference. The share of alpha that a group gets when it arrives is compared with e-BH over
as many groups as there are at the moment, of each kind by itself. Further tables: late answers, as a wrong
prediction takes people longer than a right one; evidence from the last labels alone; and what the shares of
alpha cost, in labels until a drop is confirmed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import special

from benchmarks.change_evidence import log_e_changed
from benchmarks.lone_grouping import grouping_evidence, lone_groups
from service.config.alerts import AlertSettings
from service.config.model import ModelSettings
from service.domain.arrays import Flags, Floats, Indices
from service.domain.request_order import request_places
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.outcome_aggregates import mixed
from service.monitoring.outcome_table import LabelSequence
from service.replay.tables import Cell, Table, print_tables
from service.statistics.baselines import baselines
from service.statistics.e_processes import (
    discoveries,
    log_arrival_weights,
    log_e_below,
    log_e_declined,
    log_e_miscalibrated,
    log_gains,
)

ALPHA = 0.05
THRESHOLD = 0.92
ALERTS = AlertSettings()
LABELS, REFERENCE = 150, 50
"""Of every group, and of these those of its reference."""

KINDS = 4
"""Below the threshold, declined, miscalibrated, changed."""

_DAY = 86_400.0

_EVERY = 50
"""Labels from one look to the next, in runs of very many."""


def suspicions(correct: Flags) -> Flags:
    """Whether the group is suspected when each label is requested, by its labels so far [..., labels]."""
    count = np.arange(correct.shape[-1])
    right = correct.cumsum(axis=-1) - correct
    believed = special.betainc(1.0 + right, 1.0 + count - right, THRESHOLD) >= ALERTS.confidence
    return np.asarray(believed & (count >= ALERTS.min_labels), np.bool_)


class _Compared(NamedTuple):
    """What is compared with the references of groups."""

    then: Floats
    """Right labels of each reference, which has `REFERENCE` [..., 1]."""

    now: Flags
    """Which labels came once it was complete [..., labels]."""


def _compared(correct: Flags) -> _Compared:
    fits = ~suspicions(correct)
    now = fits.cumsum(axis=-1) - fits >= REFERENCE
    then = (correct & fits & ~now).sum(axis=-1, keepdims=True)
    return _Compared(then.astype(np.float64), now)


def paths(correct: Flags, declines: Floats | None = None) -> Floats:
    """Logarithm of the e-value of every kind after every label, times the shares of kinds [G, labels, kinds].

    Args:
        correct: what labels of healthy groups say, groups in the order of their arrival [G, labels].
        declines: `log_e_of_declines` of these labels, if it is known.
    """
    count, labels = correct.shape
    right = correct.cumsum(axis=1).astype(np.float64)
    wrong = np.arange(1, labels + 1) - right
    found = np.full((count, labels, KINDS), -np.inf)
    then, now = _compared(correct)
    found[..., 0] = _of_counts(right, wrong)
    found[..., 1] = log_e_of_declines(correct) if declines is None else declines
    found[..., 2] = _of_scores(right, wrong)
    shares = np.exp(log_arrival_weights(np.arange(1, count + 1))) / KINDS
    lower = baselines(
        then[:, 0], REFERENCE - then[:, 0], alpha=ALPHA * shares / 2, fixed=True, threshold=THRESHOLD
    )
    for group in np.flatnonzero(now.any(axis=1)).tolist():
        compared, baseline = now[group], float(lower[group])
        found[group, compared, 3] = log_e_changed(correct[group, compared], baseline) - np.log(2)
    return found


def _of_counts(right: Floats, wrong: Floats) -> Floats:
    return log_e_below(right, wrong, np.array(THRESHOLD))


def log_e_of_declines(correct: Flags) -> Floats:
    """Logarithm of the e-value of a decline after every label [..., labels]; nothing before it is compared.

    Of very many groups few counts differ, and each takes a search.

    Args:
        correct: what labels of healthy groups say [..., labels].
    """
    then, now = _compared(correct)
    right, wrong = (correct & now).cumsum(axis=-1), (~correct & now).cumsum(axis=-1)
    most = correct.shape[-1] + 1
    different, places = np.unique(((then * most + right) * most + wrong)[now], return_inverse=True)
    references, counts = np.divmod(different, most * most)
    evidence = log_e_declined(counts // most, counts % most, references, REFERENCE - references)
    found = np.full(correct.shape, -np.inf)
    found[now] = evidence[places]
    return found


def _of_scores(right: Floats, wrong: Floats) -> Floats:
    """All scores are the threshold, so what a label says is all that matters."""
    said = np.array([True, False])
    gains = log_gains(np.full(2, THRESHOLD), said, np.arange(2), 2)
    flat = right.reshape(-1, 1) * gains[0] + wrong.reshape(-1, 1) * gains[1]
    return log_e_miscalibrated(flat).reshape(right.shape)


class Ever(NamedTuple):
    """Whether anything is ever confirmed in a run: by shares fixed at arrival, by today's number."""

    by_arrival: bool
    by_number: bool


def one_by_one(found: Floats) -> Ever:
    """Groups arrive one after the other, each with all its labels.

    Args:
        found: as `paths` makes it, groups in the order of their arrival.
    """
    return _ever([(np.arange(group + 1), _looks(found, group)) for group in range(len(found))])


def reappearing(found: Floats, order: Indices) -> Ever:
    """Traffic is counted again at the end, and groups reappear one by one.

    Args:
        found: as `paths` makes it.
        order: in which they do.
    """
    final = found[:, -1]
    orders = (order[:count] for count in range(1, len(order) + 1))
    return _ever([(there, final[there][None]) for there in orders])


def _looks(found: Floats, group: int) -> Floats:
    """Evidence while a group gets its labels: that of earlier ones stays [labels, groups, kinds]."""
    labels = found.shape[1]
    before = np.broadcast_to(found[:group, -1], (labels, group, KINDS))
    return np.concatenate((before, found[group][:, None]), axis=1)


def from_the_start(found: Floats) -> Ever:
    """All groups are there, and get their labels in turn."""
    return _ever([(np.arange(len(found)), found.transpose(1, 0, 2))])


def _ever(looks: Sequence[tuple[Indices, Floats]]) -> Ever:
    by_arrival = by_number = False
    for groups, evidence in looks:
        weights = np.repeat(log_arrival_weights(groups + 1) - np.log(KINDS), KINDS)
        by_arrival |= _any_taken(evidence.reshape(len(evidence), -1), weights)
        even = np.full(len(groups), -np.log(len(groups)))
        # As it was: of each kind by itself, and changes had no e-values.
        by_number |= any(_any_taken(evidence[..., kind], even) for kind in range(KINDS - 1))
    return Ever(by_arrival, by_number)


def _any_taken(evidence: Floats, weights: Floats) -> bool:
    """Whether e-BH takes anything at any look [looks, hypotheses]."""
    # Nothing is taken where all weighted e-values together are less than 1 / alpha.
    with np.errstate(over="ignore"):
        likely = np.flatnonzero(np.exp(evidence + weights).sum(axis=1) >= 1 / ALPHA)
    return any(bool(discoveries(evidence[look], ALPHA, weights).any()) for look in likely.tolist())


def newcomers(groups: int, runs: int, seed: int = 0) -> dict[str, Floats]:
    """Runs in which healthy groups are ever confirmed, by how they came: by arrival and by number, % [2]."""
    rng = np.random.default_rng(seed)
    ever: dict[str, list[Ever]] = {"from the start": [], "one by one": [], "one by one, then rebuilt": []}
    drawn = [(rng.random((groups, LABELS)) < THRESHOLD, rng.permutation(groups)) for _ in range(runs)]
    declines = log_e_of_declines(np.stack([correct for correct, _ in drawn]))
    for (correct, order), declined in zip(drawn, declines, strict=True):
        found = paths(correct, declined)
        ever["from the start"].append(from_the_start(found))
        arrived, again = one_by_one(found), reappearing(found, order)
        ever["one by one"].append(arrived)
        ever["one by one, then rebuilt"].append(Ever(*(a or b for a, b in zip(arrived, again, strict=True))))
    return {name: 100 * np.mean(each, axis=0) for name, each in ever.items()}


class Answered(NamedTuple):
    """Requests of one group in their order, a model that is accurate as before, and slow answers."""

    correct: Flags
    requested_at: Floats
    answered_at: Floats


def slowly_answered(
    accuracy: float,
    *,
    per_day: int,
    days: int,
    right_days: float,
    wrong_days: float,
    rng: np.random.Generator,
) -> Answered:
    """Requests of a healthy group whose wrong predictions take another time than right ones."""
    correct = rng.random(per_day * days) < accuracy
    requested_at = np.arange(len(correct)) * _DAY / per_day
    return Answered(correct, requested_at, requested_at + _DAY * np.where(correct, right_days, wrong_days))


def looks_at(answered: Answered, *, every_days: float, in_order: bool) -> Iterator[GroupingEvidence]:
    """The service's evidence as answers come.

    Args:
        answered: the requests.
        every_days: from one look to the next.
        in_order: whether labels count in the order of requests, once all earlier ones have ended; else in the
            order of answers, as they come.
    """
    settings = ModelSettings.model_validate({"classes": ["right", "wrong"], "reference": {"labels": 300}})
    ids = np.arange(len(answered.correct))
    times = answered.requested_at if in_order else answered.answered_at
    places = request_places((at, "") for at in times.tolist())
    labels = LabelSequence(
        marks=mixed(ids << 1 | answered.correct),
        cells=np.zeros(len(ids), np.intp),
        scores=np.full(len(ids), THRESHOLD),
        correct=answered.correct,
        unanswered=np.zeros(len(ids), np.bool_),
        predicted_at=answered.requested_at,
        places=places,
        suspected=np.zeros(len(ids), np.bool_),
        requested=np.ones(len(ids), np.bool_),
    )
    watched = lone_groups(["group"], min_accuracy=settings.alerts.min_accuracy)
    known: GroupingEvidence | None = None
    for now in np.arange(every_days, answered.requested_at[-1] / _DAY, every_days) * _DAY:
        there = answered.answered_at <= now
        waiting = ~there & (answered.requested_at <= now)
        if in_order and waiting.any():
            watched = replace(watched, ended=places[waiting][:1])
        known = grouping_evidence(
            watched, labels.part(there), np.zeros(there.sum(), np.intp), settings=settings, before=known
        )
        yield known


def false_changes(accuracy: float, runs: int, *, in_order: bool, days: int = 60) -> float:
    """Share of runs in which a change of a healthy group is ever confirmed; wrong answers take a week, %."""
    rng, ever = np.random.default_rng(1), []
    for _ in range(runs):
        answered = slowly_answered(accuracy, per_day=80, days=days, right_days=1.0, wrong_days=7.0, rng=rng)
        ever.append(any(known.changed[0] for known in looks_at(answered, every_days=1.0, in_order=in_order)))
    return 100 * float(np.mean(ever))


def false_in_windows(window: int | None, runs: int, *, labels: int = 100_000) -> float:
    """Share of runs in which a healthy group is ever found below the threshold by its last labels alone, %.

    Args:
        window: labels that are kept; None if what all labels said is kept.
        runs: of one group each.
        labels: of every run.
    """
    rng, ever = np.random.default_rng(4), []
    ends = np.arange(_EVERY, labels + 1, _EVERY)
    begins = np.zeros_like(ends) if window is None else np.maximum(ends - window, 0)
    for _ in range(runs):
        right = np.append(0, (rng.random(labels) < THRESHOLD).cumsum())
        correct = (right[ends] - right[begins]).astype(np.float64)
        evidence = _of_counts(correct, ends - begins - correct)
        ever.append(bool((evidence >= -np.log(ALPHA)).any()))
    return 100 * float(np.mean(ever))


def labels_until_confirmed(groups: int, drop: float, runs: int, *, by_arrival: bool) -> float:
    """Median of its own labels that one of many groups takes until its drop is confirmed.

    It is in the middle of the order of arrival, and its scores are what they were. With shares of arrival,
    it is confirmed once any kind of evidence is.
    """
    rng, number, least = np.random.default_rng(2), max(1, groups // 2), []
    weight = float(log_arrival_weights(np.array(number)))
    for _ in range(runs):
        right = (rng.random(2_000) < THRESHOLD - drop).cumsum().astype(np.float64)
        wrong = np.arange(1, len(right) + 1) - right
        below, scores = _of_counts(right, wrong), _of_scores(right, wrong)
        if by_arrival:
            # Two kinds are confirmed together where each has half of what one alone would need.
            alone = -np.log(ALPHA) - weight + np.log(KINDS)
            found = (np.maximum(below, scores) >= alone) | (np.minimum(below, scores) >= alone - np.log(2))
        else:
            found = below >= np.log(groups / ALPHA)
        least.append(int(found.argmax()) + 1 if found.any() else len(found))
    return float(np.median(least))


def _of_newcomers(sizes: Sequence[int], runs: int) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for groups in sizes:
        for how, rates in newcomers(groups, runs).items():
            rows.append((f"{groups}, {how}", tuple(rates.tolist())))
    return Table(
        f"runs in which healthy groups are ever confirmed, of any kind, %: {LABELS} labels of every group, "
        f"looked at after each, {runs} runs, alpha {ALPHA}",
        "groups",
        ("share fixed at arrival", "today's number of groups"),
        rows,
    )


def _of_late_answers(runs: int) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (f"{accuracy}", tuple(false_changes(accuracy, runs, in_order=order) for order in (True, False)))
        for accuracy in (0.93, 0.95)
    ]
    return Table(
        f"runs in which a healthy group is ever found to have changed, %: right answers take 1 day, wrong "
        f"ones 7; 80 requests a day, 60 days, a reference of 300 labels, {runs} runs",
        "accuracy",
        ("in the order of requests", "in the order of answers"),
        rows,
    )


def _of_windows(runs: int) -> Table:
    return Table(
        f"runs in which a healthy group is ever found below the threshold in 100,000 labels, %: looked at "
        f"after every {_EVERY}, {runs} runs",
        "labels that count",
        ("alpha 0.05",),
        [
            ("the last 1,000", (false_in_windows(1_000, runs),)),
            ("the last 10,000", (false_in_windows(10_000, runs),)),
            ("all, by a checkpoint", (false_in_windows(None, runs),)),
        ],
    )


def _of_costs(runs: int) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (
            f"{groups}",
            tuple(labels_until_confirmed(groups, 0.1, runs, by_arrival=way) for way in (True, False)),
        )
        for groups in (1, 10, 50, 200)
    ]
    return Table(
        f"labels of its own until a drop from {THRESHOLD} by 10 points is confirmed, of the group in the "
        f"middle: median of {runs}",
        "groups",
        ("5% per model, share fixed at arrival", "5% per grouping and kind, today's number"),
        rows,
    )


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=600, help="of groups that arrive (default: 600)")
    parser.add_argument("--late-runs", type=int, default=200, help="of late answers (default: 200)")
    parser.add_argument(
        "--groups", type=int, nargs="+", default=[50, 200], help="that arrive (default: 50 200)"
    )
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    options = parser.parse_args()
    tables = [
        _of_newcomers(options.groups, options.runs),
        _of_late_answers(options.late_runs),
        _of_windows(max(options.runs, options.late_runs)),
        _of_costs(max(options.runs, options.late_runs)),
    ]
    print_tables(tables, as_json=False, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
