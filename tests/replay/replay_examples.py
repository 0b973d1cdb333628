"""Small recordings and beliefs that the tests of replay share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from service.replay.engine import run
from service.replay.grouping import Grouper
from service.replay.pool import Pool
from service.replay.recording import Recording
from service.replay.study import beliefs_before
from service.statistics.beliefs import AccuracyBeliefs


def recording(sizes: Sequence[int], seed: int = 0, name: str = "model") -> Recording:
    """So many items are predicted as each class; classes differ in accuracy and confidence."""
    rng = np.random.default_rng(seed)
    classes = len(sizes)
    predicted = rng.permutation(np.repeat(np.arange(classes), sizes))
    scores = rng.uniform(0.6, 0.95, len(predicted))
    probabilities = rng.dirichlet(np.ones(classes), len(predicted)) * (1 - scores)[:, None]
    probabilities[np.arange(len(predicted)), predicted] += scores
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    right = rng.random(len(predicted)) < np.linspace(0.95, 0.4, classes)[predicted]
    others = (predicted + rng.integers(1, classes, len(predicted))) % classes
    return Recording(name, probabilities, np.where(right, predicted, others).astype(np.int64))


def pool_of(sizes: Sequence[int], seed: int = 0, bins: int = 4) -> Pool:
    """Its groups are the predicted classes."""
    made = recording(sizes, seed)
    return Grouper(bins, "equal_size").by_predicted_class(made)


def plain_pool(right: Sequence[int], wrong: Sequence[int], score: float = 0.7) -> Pool:
    """So many right and wrong items of every predicted class, all with the same score; a mistake is of the
    next class."""
    classes = len(right)
    predicted = np.repeat(np.arange(classes), np.add(right, wrong))
    correct = np.concatenate([np.arange(a + b) < a for a, b in zip(right, wrong, strict=True)])
    probabilities = np.full((len(predicted), classes), (1 - score) / (classes - 1))
    probabilities[np.arange(len(predicted)), predicted] = score
    labels = np.where(correct, predicted, (predicted + 1) % classes)
    made = Recording("plain", probabilities, labels)
    return Grouper(1).by_predicted_class(made)


def believing(alpha: Sequence[float], beta: Sequence[float], runs: int = 1) -> AccuracyBeliefs:
    """The same Betas in every run."""
    return AccuracyBeliefs.fixed(np.array(alpha, np.float64), np.array(beta, np.float64), runs)


class Watch:
    """A measure that keeps what it is shown."""

    def __init__(self, look: Callable[[Any], Any]) -> None:
        self.seen: list[tuple[int, Any]] = []
        self._look = look

    def record(self, used: int, beliefs: Any) -> None:
        self.seen.append((used, self._look(beliefs)))


def labels_told(beliefs: AccuracyBeliefs) -> np.ndarray:
    """How many labels Beta(1, 1) beliefs have taken in [R, G]."""
    return beliefs.mixture.alpha[:, 0] + beliefs.mixture.beta[:, 0] - 2


def replayed(
    pool: Pool,
    task: Any,
    policy: str,
    *,
    prior: str = "uniform",
    runs: int = 20,
    budget: int | None = None,
    seed: int = 0,
    measures: Sequence[Any] = (),
) -> Any:
    """The beliefs after a replay."""
    beliefs = beliefs_before(prior, task.kind, pool, runs)
    run(
        pool,
        task,
        beliefs,
        policy,
        runs=runs,
        budget=pool.recording.size if budget is None else budget,
        measures=measures,
        rng=np.random.default_rng(seed),
    )
    return beliefs
