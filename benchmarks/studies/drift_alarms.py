"""How soon rules report a decline, on streams of labels, and how often they do without one.

Every rule is looked at after every label, from the `FIRST`th on, and a stream has alarmed once it holds. The
first two rules know how accurate the group was, as by a threshold; the others know it by the first labels
alone. An alarm before the drift begins is false, and what such a stream tells afterwards is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from benchmarks.change_evidence import log_e_changed
from benchmarks.studies.drift_streams import DRIFTING, FIRST, HEALTHY, NO_DRIFT, DriftStudy, Scenario
from service.domain.arrays import Flags, Indices
from service.replay.tables import Cell, Table
from service.replay.workers import Workers
from service.statistics.baselines import baselines
from service.statistics.e_processes import log_e_below, log_e_declined

RULES: Final = ("posterior", "below", "declined", "change")

_JEFFREYS = 0.5
_NEAR_END = 1e-6

_BASELINES = 0.5
"""Of the rule `change`: the part of alpha with which its baseline may be too high, as in the service."""

Alarms = Mapping[str, Indices]
"""By rule, the label after which every stream first alarms, counted from 1; 0 where it never does [S]."""


@dataclass(frozen=True)
class AlarmStudy:
    """The question, asked of the streams of one recording.

    Attributes:
        drift: the streams.
        alpha: of evidence; the posterior has to be as sure as 1 - alpha.
        reference: the first so many labels are, `HEALTHY` at the most.
    """

    drift: DriftStudy
    alpha: float
    reference: int

    def run(self, scenario: Scenario, workers: Workers, name: str = "") -> Alarms:
        """First alarms under one drift."""
        arguments = [(self, scenario, first, runs) for first, runs in self.drift.batches()]
        found = workers.each(alarm_batch, arguments, name, [runs for *_, runs in arguments])
        return {rule: np.concatenate([each[rule] for each in found]) for rule in RULES}

    def first_alarms(self, right: Flags) -> Alarms:
        """Of one stream of every group.

        Args:
            right: what the labels say [G, labels].
        """
        pool = self.drift.pool
        numbers, limit = np.arange(1, right.shape[1] + 1), -np.log(self.alpha)
        correct = right.cumsum(axis=1).astype(np.float64)
        wrong = numbers - correct
        # Of a group without an error one item more could be wrong: half of it is between the two.
        level = np.clip(pool.accuracy, _NEAR_END, 1 - 0.5 / pool.sizes)[:, None]

        n = self.reference
        then, mistaken = correct[:, n - 1 : n], wrong[:, n - 1 : n]
        baseline = baselines(
            then[:, 0],
            mistaken[:, 0],
            alpha=np.full(len(right), _BASELINES * self.alpha),
            fixed=True,
            threshold=0.0,
        )
        now = right[:, n:]
        changed = np.stack([log_e_changed(*each) for each in zip(now, baseline.tolist(), strict=True)])
        declined = log_e_declined(correct[:, n:] - then, wrong[:, n:] - mistaken, then, mistaken)

        believed = special.betainc(_JEFFREYS + correct, _JEFFREYS + wrong, level)
        holds: dict[str, Flags] = {
            "posterior": believed >= 1 - self.alpha,
            "below": log_e_below(correct, wrong, level) >= limit,
            "declined": declined >= limit,
            "change": changed >= limit - np.log1p(-_BASELINES),
        }
        return {rule: _first(flags, numbers[-flags.shape[1] :]) for rule, flags in holds.items()}


def alarm_batch(study: AlarmStudy, scenario: Scenario, first: int, runs: int) -> Alarms:
    """Some runs of every group, on the very streams of `run_batch`."""
    right, _ = study.drift.streams(scenario, first, runs)
    # One run after the other: evidence of all labels at once takes memory.
    found = [study.first_alarms(each) for each in right.reshape(runs, -1, right.shape[1])]
    return {rule: np.concatenate([each[rule] for each in found]) for rule in RULES}


def _first(holds: Flags, labels: Indices) -> Indices:
    """The first of the labels after which a rule holds [S]; 0 where it never does, once looked at."""
    looked_at = holds & (labels >= FIRST)
    return np.where(looked_at.any(axis=1), labels[looked_at.argmax(axis=1)], 0)


def alarm_summary(study: AlarmStudy, found: Mapping[Scenario, Alarms]) -> list[Table]:
    """Tables of one recording: labels until a decline is reported, and false alarms."""
    drift = study.drift
    name = drift.pool.recording.name
    runs = f"{drift.runs} runs of {len(drift.pool.names)} groups, seed {drift.seed}."
    drifts = {scenario: alarms for scenario, alarms in found.items() if scenario.shape != NO_DRIFT}
    reported = {scenario: [_told(alarms[rule]) for rule in RULES] for scenario, alarms in drifts.items()}

    def table(place: int, title: str, *notes: str) -> Table:
        rows = [(str(scenario), tuple(each[place] for each in rules)) for scenario, rules in reported.items()]
        return Table(f"{name}, drift: {title}", "drift", RULES, rows, notes=(*notes, runs))

    rule_by_rule: list[tuple[str, tuple[Cell, ...]]] = []
    for rule in RULES:
        drifting = [_false(alarms[rule], HEALTHY) for alarms in drifts.values()]
        quiet = _false(found[Scenario(NO_DRIFT)][rule], HEALTHY + DRIFTING)
        rule_by_rule.append((rule, (float(np.mean(drifting)), quiet)))
    return [
        table(
            0,
            "labels until a decline is reported, mean",
            f"Alpha {study.alpha:g}, reference {study.reference} labels. Of streams in which it is reported.",
        ),
        table(1, "labels until a decline is reported, median"),
        table(
            2, "streams in which a decline is reported, %", "Of those that have not alarmed before it begins."
        ),
        Table(
            f"{name}, drift: streams with a false alarm, %",
            "rule",
            (f"{HEALTHY} labels before a drift", f"{HEALTHY + DRIFTING} labels without one"),
            rule_by_rule,
            notes=(f"Looked at after every label from number {FIRST} on.", runs),
        ),
    ]


def _told(alarms: Indices) -> tuple[Cell, Cell, Cell]:
    """Labels from the beginning of the drift, mean and median; and the share of streams, %."""
    delays = alarms[alarms > HEALTHY] - HEALTHY
    open_yet = np.count_nonzero((alarms == 0) | (alarms > HEALTHY))
    if not len(delays):
        return None, None, 0.0 if open_yet else None
    return float(delays.mean()), float(np.median(delays)), 100 * len(delays) / open_yet


def _false(alarms: Indices, labels: int) -> float:
    """Share of streams that alarm within so many labels, %."""
    return 100 * float(np.mean((alarms > 0) & (alarms <= labels)))
