"""Many replays at once: label item after item as a policy wishes, and measure what is believed on the way.

What the paper leaves open is settled so: shares, scores and truth are those of the whole pool; an item is
labelled once; a group without items is skipped; ties are decided by chance; budgets are counted in labels,
also where a step asks for several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from service.domain.arrays import Indices, Ints
from service.replay.pool import Pool, Shuffled
from service.statistics.beliefs import Beliefs
from service.statistics.certificates import RunningCertificates
from service.statistics.policies import NONE, POLICIES, Policy, Situation
from service.statistics.questions import Task


@dataclass(frozen=True)
class Method:
    """A way to assess: `prior` is what is believed before labels, `policy` who is labelled next."""

    prior: str
    policy: str

    def __str__(self) -> str:
        return f"{self.prior}+{self.policy}"


PAPERS = {
    "UPrior": Method("uniform", "random"),
    "IPrior": Method("informed", "random"),
    "IPrior+TS": Method("informed", "thompson"),
}
"""Methods of the paper by its names for them: Ji, Logan, Smyth, Steyvers, Active Bayesian Assessment of
Black-Box Classifiers (AAAI 2021)."""

OURS = (Method("learned", "random"), Method("learned", "thompson"))


class Measure(Protocol):
    """Something measured on the way, over R runs."""

    def record(self, used: int, beliefs: Any) -> None:
        """Look at the beliefs after so many labels of every run; called before the first, and after each."""


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
    certificates: RunningCertificates | None = None,
) -> None:
    """Replay so many runs R, each of `budget` labels, which are no more than the pool has.

    `beliefs` are those before the first label, and are changed. Measures look after every label; `rng` is for
    the order of items, and the policy. Policies see how many labels `certificates` lack, if any, which are
    changed, too.
    """
    orders, chances = rng.spawn(2)
    shuffled = Shuffled(pool, runs, orders)
    plays = _Plays(task, POLICIES[policy](), runs, certificates)
    for measure in measures:
        measure.record(0, beliefs)
    for used in range(1, budget + 1):
        groups = plays.next(beliefs, shuffled.left, chances)
        going = np.flatnonzero(groups != NONE)
        if going.size:
            asked = groups[going]
            outcomes = shuffled.label(going, asked)
            beliefs.observe(going, asked, outcomes)
            if certificates is not None:
                certificates.observe(going, asked, outcomes.correct > 0)
        for measure in measures:
            measure.record(used, beliefs)


class _Plays:
    """The groups that a policy has named and that are still to be asked, of every run.

    A step of multiple plays names fewer groups in a run where fewer have items left; that run then takes its
    next step earlier, so all runs have as many labels at any time.
    """

    def __init__(
        self, task: Task[Any], policy: Policy, runs: int, certificates: RunningCertificates | None
    ) -> None:
        self._task, self._policy, self._certificates = task, policy, certificates
        self._relevant = task.relevant(runs)
        self._named = np.full((runs, 1), NONE)
        self._cursor = np.zeros(runs, dtype=np.intp)
        self._every = np.arange(runs)

    def next(self, beliefs: Any, left: Ints, rng: np.random.Generator) -> Indices:
        """The next group of every run [R]; `NONE` where no item is left."""
        width = self._named.shape[1]
        wanting = self._cursor >= width
        wanting |= self._named[self._every, np.minimum(self._cursor, width - 1)] == NONE
        if wanting.any():
            if self._relevant is not None:
                left = np.where(self._relevant, left, 0)
            lacking = None if self._certificates is None else self._certificates.labels_left()
            situation = Situation(beliefs, left.astype(np.float64), left > 0, lacking)
            fresh = self._policy.choose(self._task, situation, rng)
            if fresh.shape != self._named.shape:
                self._named = np.full(fresh.shape, NONE)
            self._named[wanting], self._cursor[wanting] = fresh[wanting], 0
        groups: Indices = self._named[self._every, self._cursor]
        self._cursor += 1
        return groups
