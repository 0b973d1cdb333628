"""A study: one question, asked of one recording by several methods, in many runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, TypeVar

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
from service.replay.priors import beliefs_before
from service.statistics.bin_beliefs import BinBeliefs
from service.statistics.priors import FIXED_PRIORS
from service.statistics.questions import Question, Task
from service.statistics.tasks import TASKS

RUNS_AT_ONCE = 100
"""Runs of one batch: enough that numpy's overhead is shared, few enough that arrays stay in the cache."""

Progress = Callable[[int], None]

Found = TypeVar("Found")


@dataclass(frozen=True)
class Study:
    """One question, asked of one recording.

    Attributes:
        pool: the items, in groups; for the estimation of calibration, in score bins.
        task: what to do: estimation, identification or comparison.
        metric: of what.
        runs: independent runs R.
        budget: labels of a run, at most the pool's.
        at: numbers of labels after which estimates are looked at.
        top_m: with identification: how many groups.
        extreme: with identification: which end.
        costs: with cost: of every true class, per group [G, K].
        region: with comparison: difference of accuracies that does not matter.
        mass: probability inside intervals.
        seed: of all chance.
    """

    pool: Pool
    task: str
    metric: str
    runs: int
    budget: int
    at: tuple[int, ...] = ()
    top_m: int = 1
    extreme: Literal["lowest", "highest"] = "lowest"
    costs: Floats | None = None
    region: float = 0.05
    mass: float = 0.95
    seed: int = 0

    def run(self, method: Method, workers: Workers, progress: Progress | None = None) -> Result:
        """All runs of one method."""
        batches = workers.map(self, method)
        first = next(batches)
        joined = first[1]
        if progress is not None:
            progress(first[0])
        for runs, result in batches:
            joined = joined.joined(result)
            if progress is not None:
                progress(runs)
        return joined

    def batches(self) -> list[tuple[int, int]]:
        """First run and number of runs of every batch."""
        return [(first, min(RUNS_AT_ONCE, self.runs - first)) for first in range(0, self.runs, RUNS_AT_ONCE)]


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
        return np.asarray(np.einsum("gk,gk->g", pool.confusion, _given(study.costs)), np.float64)
    return pool.accuracy


def _given(costs: Floats | None) -> Floats:
    if costs is None:
        raise ValueError("a study of costs needs a cost matrix")
    return costs


class Workers:
    """Calls functions many times: here, or in other processes.

    Args:
        executor: of other processes; None for this one.
    """

    def __init__(self, executor: ProcessPoolExecutor | None = None) -> None:
        self._executor = executor

    def each(self, function: Callable[..., Found], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Found]:
        """What a function finds for each of many arguments, in their order."""
        if self._executor is None:
            for given in arguments:
                yield function(*given)
            return
        for future in [self._executor.submit(function, *given) for given in arguments]:
            yield future.result()

    def map(self, study: Study, method: Method) -> Iterator[tuple[int, Result]]:
        """Number of runs and result of every batch, in order."""
        batches = study.batches()
        found = self.each(run_batch, [(study, method, first, runs) for first, runs in batches])
        for (_, runs), result in zip(batches, found, strict=True):
            yield runs, result


@contextmanager
def workers(jobs: int) -> Iterator[Workers]:
    """Workers in so many processes."""
    if jobs == 1:
        yield Workers()
        return
    with ProcessPoolExecutor(jobs) as executor:
        yield Workers(executor)
