"""`credence replay --task certificate`: labels until all groups are shown to meet a threshold."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.domain.assessments import MOST_TARGET
from service.domain.errors import RecordingError
from service.replay import engine
from service.replay.pool import Pool
from service.replay.study import RUNS_AT_ONCE, beliefs_before
from service.replay.tables import Cell, Report, Table
from service.replay.workers import Workers, batches
from service.statistics.certificates import RunningCertificates
from service.statistics.questions import Question
from service.statistics.tasks import TASKS

_POLICIES: Final = ("certify", "random")
_PRIOR: Final = "informed"  # of policies that read estimates
_MOST_NAMES: Final = 5


class Ends(NamedTuple):
    """After how many labels each run had its certificate, and showed a miss; infinite if never [R]."""

    certified: Floats
    missed: Floats


class _Watch:
    """A measure that notes when either happens first."""

    def __init__(self, running: RunningCertificates, runs: int) -> None:
        self._running = running
        self.ends = Ends(np.full(runs, np.inf), np.full(runs, np.inf))

    def record(self, used: int, beliefs: Any) -> None:  # noqa: ARG002 - one signature for all measures
        for ends, happened in zip(self.ends, (self._running.is_given, self._running.is_missed), strict=True):
            ends[happened & np.isinf(ends)] = used


@dataclass(frozen=True)
class CertificateStudy:
    """Whether every group of a recording meets a threshold."""

    pool: Pool
    target: float
    alpha: float
    runs: int
    budget: int
    seed: int

    def run(self, policy: str, workers: Workers) -> Ends:
        """All runs of a policy."""
        parts = batches(self.runs, RUNS_AT_ONCE)
        arguments = [(self, policy, *part) for part in parts]
        found = workers.each(run_batch, arguments, policy, [runs for _, runs in parts])
        return Ends(*map(np.concatenate, zip(*found, strict=True)))

    @property
    def least(self) -> Cell:
        """Labels that a certificate takes on average, at the least (Wald); None if a group misses it."""
        accuracy = self.pool.accuracy
        if (accuracy <= self.target).any():
            return None
        gains = special.rel_entr(accuracy, self.target) + special.rel_entr(1 - accuracy, 1 - self.target)
        return float((-np.log(self.alpha) / gains).sum())


def run_batch(study: CertificateStudy, policy: str, first: int, runs: int) -> Ends:
    """One batch of runs: a function of its arguments alone, whoever runs it."""
    rng = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(first,)))
    pool = study.pool
    running = RunningCertificates(runs, len(pool.names), target=study.target, alpha=study.alpha)
    task, watch = TASKS["identification", "accuracy"](Question(cells=pool.cells)), _Watch(running, runs)
    engine.run(
        pool,
        task,
        beliefs_before(_PRIOR, task.kind, pool, runs),
        policy,
        runs=runs,
        budget=study.budget,
        measures=[watch],
        rng=rng,
        certificates=running,
    )
    return watch.ends


def certificate_report(pool: Pool, options: argparse.Namespace, crew: Workers) -> Report:
    """How many labels a certificate of a recording takes, by policy.

    Raises:
        RecordingError: there is no threshold, or the budget exceeds the recording.
    """
    size, name = pool.recording.size, pool.recording.name
    if options.threshold is None or not 0 < options.threshold <= MOST_TARGET:
        raise RecordingError("--threshold", "name the accuracy that every group has to meet, such as 0.9")
    if options.plots:
        raise RecordingError("--plots", "the task certificate draws nothing; leave it out")
    if (options.budget or 0) > size:
        raise RecordingError(
            name, f"it has {size} items, the budget is {options.budget} labels; lower --budget"
        )
    study = CertificateStudy(
        pool=pool,
        target=options.threshold,
        alpha=1 - options.interval,
        runs=options.runs,
        budget=options.budget or size,
        seed=options.seed,
    )
    rows = [_row(policy, study.run(policy, crew), study.least) for policy in options.policy or _POLICIES]
    title = f"{name}: labels until every group is shown to be at least {100 * study.target:g}% accurate"
    notes = [
        "Least: the average of any rule with so few false certificates, if all groups meet the threshold.",
        f"{study.runs} runs of at most {study.budget:,} labels, seed {study.seed}.",
    ]
    columns = ("shown, %", "labels", "least", "missed, %", "labels until missed", "undecided, %")
    return Report(_conclusion(study), [Table(title, "policy", columns, rows, notes=notes)])


def _row(policy: str, ends: Ends, least: Cell) -> tuple[str, tuple[Cell, ...]]:
    # Labels go on after either; the first one is the answer.
    missed = ends.missed < ends.certified
    shown = np.isfinite(ends.certified) & ~missed
    shares = [100 * float(each.mean()) for each in (shown, missed, ~shown & ~missed)]
    figures = (
        shares[0],
        _mean(ends.certified[shown]),
        least,
        shares[1],
        _mean(ends.missed[missed]),
        shares[2],
    )
    return policy, figures


def _mean(values: Floats) -> Cell:
    return float(values.mean()) if len(values) else None


def _conclusion(study: CertificateStudy) -> list[str]:
    pool = study.pool
    below = [name for name, one in zip(pool.names, pool.accuracy, strict=True) if one < study.target]
    groups = f"{len(pool.names)} groups of {pool.recording.name}"
    if not below:
        return [f"By all of its labels, all {groups} meet the threshold."]
    named = ", ".join(below[:_MOST_NAMES])
    return [f"By all of its labels, {len(below)} of {groups} miss the threshold: {named}."]
