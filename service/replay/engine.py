"""Many replays at once: label item after item, as a policy wishes, and measure what is believed on the way.

What the paper leaves open is settled so: shares, scores and truth are those of the whole pool; an item is labelled
once; a group without items is skipped; ties are decided by chance; budgets are counted in labels, also where a step
asks for several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from service.assessment.beliefs import Beliefs
from service.assessment.policies import NONE, POLICIES, Situation
from service.assessment.tasks import Task
from service.replay.pool import Pool, Shuffled

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Method:
    """A way to assess: `prior` is what is believed before labels, `policy` who is labelled next."""

    prior: str
    policy: str

    def __str__(self) -> str:
        return f"{self.prior}+{self.policy}"


class Measure(Protocol):
    """Something measured on the way, over R runs."""

    def record(self, used: int, beliefs: Any) -> None:
        """Look at the beliefs after so many labels; called after every label, and before the first."""


def run(
    pool: Pool,
    task: Task[Any],
    beliefs: Beliefs,
    policy: str,
    *,
    runs: int,
    budget: int,
    measures: Sequence[Measure],
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Replay.

    Args:
        pool: the items.
        task: what is asked.
        beliefs: before the first label; owned.
        policy: its name.
        runs: how many runs R.
        budget: labels of every run, at most the pool's.
        measures: told after every label.
        rng: for the order of items, and the policy.
        progress: told the labels of every step.
    """
    orders, chances = rng.spawn(2)
    shuffled = Shuffled(pool, runs, budget, orders)
    chooser = POLICIES[policy]()
    relevant = task.relevant(runs)
    plays, cursor = np.full((runs, 1), NONE), np.zeros(runs, dtype=np.intp)
    every = np.arange(runs)
    for measure in measures:
        measure.record(0, beliefs)
    for used in range(1, budget + 1):
        wanting = plays[every, np.minimum(cursor, plays.shape[1] - 1)] == NONE
        wanting |= cursor >= plays.shape[1]
        if wanting.any():
            left = shuffled.left if relevant is None else np.where(relevant, shuffled.left, 0)
            fresh = chooser.choose(task, Situation(beliefs, left, left > 0), chances)
            if fresh.shape != plays.shape:
                plays = np.full(fresh.shape, NONE)
            plays[wanting], cursor[wanting] = fresh[wanting], 0
        groups = plays[every, cursor]
        cursor += 1
        beliefs.observe(every, groups, shuffled.label(groups))
        for measure in measures:
            measure.record(used, beliefs)
        if progress is not None:
            progress(runs)
