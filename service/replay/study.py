"""A study: one question, asked of one recording by several methods, in many runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any, Literal

import numpy as np

from service.domain.arrays import Floats, Indices
from service.replay import engine
from service.replay.engine import Method
from service.replay.measures import (
    AccuracyErrors,
    BinErrors,
    Comparisons,
    ConfusionErrors,
    Identification,
    Result,
    ece_merit,
)
from service.replay.pool import Pool
from service.replay.workers import Workers, batches
from service.statistics.beliefs import AccuracyBeliefs, LearnedAccuracy
from service.statistics.bin_beliefs import BinBeliefs, LearnedBins
from service.statistics.confusion_beliefs import ConfusionBeliefs, LearnedConfusion
from service.statistics.curves import LearnedCurve
from service.statistics.priors import FIXED_PRIORS
from service.statistics.questions import Kind, Question, Task
from service.statistics.tasks import TASKS

RUNS_AT_ONCE = 100
"""Runs of one batch: enough that numpy's overhead is shared, few enough that arrays stay in the cache."""


@dataclass(frozen=True)
class Study:
    """One question, asked of one recording."""

    pool: Pool  # the items, in groups; for the estimation of calibration, in score bins
    task: str  # estimation, identification or comparison of a metric
    metric: str
    runs: int
    budget: int  # labels of a run, at most the pool's
    at: tuple[int, ...] = ()  # numbers of labels after which estimates are looked at
    top_m: int = 1  # groups to find, with identification
    extreme: Literal["lowest", "highest"] = "lowest"
    costs: Floats | None = None  # of every true class, per group [G, K], with cost
    region: float = 0.05  # difference of accuracies that does not matter, with comparison
    mass: float = 0.95  # probability inside intervals
    seed: int = 0

    def run(self, method: Method, workers: Workers, name: str = "") -> Result:
        """All runs of one method."""
        parts = batches(self.runs, RUNS_AT_ONCE)
        found = workers.each(
            run_batch, [(self, method, *part) for part in parts], name, [runs for _, runs in parts]
        )
        return reduce(Result.joined, found)


def run_batch(study: Study, method: Method, first: int, runs: int) -> Result:
    """One batch of runs: a function of its arguments alone, whoever runs it."""
    seed = np.random.SeedSequence(study.seed, spawn_key=(first,))
    rng, ties = (np.random.Generator(np.random.SFC64(child)) for child in seed.spawn(2))
    pairs = _pairs(study, first, runs)
    task = _task(study)(
        Question(
            cells=study.pool.cells,
            top_m=study.top_m,
            extreme=study.extreme,
            costs=study.costs,
            pair=pairs,
            region=study.region,
        )
    )
    measure = _measure(study, task, pairs, runs, ties)
    engine.run(
        study.pool,
        task,
        beliefs_before(method.prior, task.kind, study.pool, runs),
        method.policy,
        runs=runs,
        budget=study.budget,
        measures=[measure],
        rng=rng,
    )
    result: Result = measure.result()
    return result


def _task(study: Study) -> Callable[[Question], Task[Any]]:
    # Calibration is estimated through the accuracy of score bins, which are the pool's groups.
    binwise = (study.task, study.metric) == ("estimation", "calibration")
    return TASKS[study.task, "accuracy" if binwise else study.metric]


def _pairs(study: Study, first: int, runs: int) -> Indices:
    """Two groups for every run [R, 2]: all pairs in turn."""
    every = np.array(list(combinations(range(len(study.pool.names)), 2)) or [(0, 0)], dtype=np.intp)
    return every[(first + np.arange(runs)) % len(every)]


def _measure(study: Study, task: Task[Any], pairs: Indices, runs: int, rng: np.random.Generator) -> Any:
    pool = study.pool
    if study.task == "comparison":
        return Comparisons(pool, pairs, study.region, study.budget)
    if study.task == "identification":
        sign = 1.0 if study.extreme == "highest" else -1.0
        truly = sign * true_metric(study)
        return Identification(task.expected, truly, study.top_m, runs=runs, budget=study.budget, rng=rng)
    if study.metric == "confusion":
        return ConfusionErrors(pool, study.at)
    if study.metric == "calibration":
        return BinErrors(pool, study.at)
    return AccuracyErrors(pool, study.at, study.mass)


def true_metric(study: Study) -> Floats:
    """What is looked for, of every group [G], from all labels of the pool.

    Of the calibration error it is the posterior mean under the informed prior: the plain one counts the noise
    of every bin as miscalibration.
    """
    pool = study.pool
    if study.metric == "calibration":
        items, correct = pool.bin_counts
        alpha, beta = FIXED_PRIORS["informed"].parameters(pool.cells.scores)
        known = BinBeliefs(pool.cells, alpha + correct, beta + items - correct, runs=1)
        return np.asarray(ece_merit(pool)(known)[0], np.float64)
    if study.metric == "cost":
        if study.costs is None:
            raise ValueError("a study of costs needs a cost matrix")
        return np.asarray(np.einsum("gk,gk->g", pool.confusion, study.costs), np.float64)
    return pool.accuracy


def beliefs_before(prior: str, kind: Kind, pool: Pool, runs: int) -> Any:
    """Beliefs of R runs before their first labels, under a prior of a name."""
    cells = pool.cells
    if prior == "learned":
        if kind == "confusion":
            others = np.maximum(pool.probabilities, 1e-12)
            others[np.arange(len(others)), pool.predicted] = 0.0
            others /= others.sum(axis=1, keepdims=True)
            return LearnedConfusion(LearnedCurve(), cells, others, pool.predicted, runs)
        return (LearnedBins if kind == "bins" else LearnedAccuracy)(LearnedCurve(), cells, runs)
    fixed = FIXED_PRIORS[prior]
    if kind == "confusion":
        return ConfusionBeliefs(fixed.dirichlet(pool.probabilities), runs)
    if kind == "bins":
        return BinBeliefs(cells, *fixed.parameters(cells.scores), runs)
    return AccuracyBeliefs.fixed(*fixed.parameters(cells.group_scores), runs)
