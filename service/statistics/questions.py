"""Questions of tasks, and the base class of tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.laplace import Cells

Kind = Literal["accuracy", "bins", "confusion", "gains"]
Posterior = TypeVar("Posterior")


@dataclass(frozen=True)
class Question:
    """Subject of a task: groups, options and costs."""

    cells: Cells
    top_m: int = 1  # identification: how many groups to find
    extreme: Literal["lowest", "highest"] = "lowest"  # identification: which end of the metric
    costs: Floats | None = None  # cost: of every true class, per group [G, K]
    pair: Indices = field(default_factory=lambda: np.array([0, 1]))  # comparison: of all runs [2], or [R, 2]
    region: float = 0.05  # comparison: difference of accuracies that is practically zero
    # performance: probability of the positive class, of groups by its score, the lowest first [G]
    positive: Floats | None = None

    @property
    def sign(self) -> float:
        """Sign that makes the metric a reward: 1 if the highest values are sought, else -1."""
        return 1.0 if self.extreme == "highest" else -1.0


@dataclass(frozen=True)
class Task(Generic[Posterior]):
    """A question about the groups of one grouping, which reads one kind of posterior."""

    kind: ClassVar[Kind]
    question: Question

    def sampled(self, beliefs: Posterior, rng: np.random.Generator) -> Floats:
        """Expected reward of one more label in every group [R, G], under drawn parameters."""
        raise NotImplementedError

    def expected(self, beliefs: Posterior) -> Floats:
        """Posterior mean of the same [R, G]."""
        raise NotImplementedError

    def upper(self, beliefs: Posterior, probability: float) -> Floats:
        """Its quantile [R, G]."""
        raise NotImplementedError

    def relevant(self, runs: int) -> Flags | None:  # noqa: ARG002 - one signature for all tasks
        """Groups worth a label at all [R, G]; None for all of them."""
        return None


class LinearReward(Task[Any]):
    """Base of tasks whose reward is linear in the probabilities of every group that a posterior is about."""

    def sampled(self, beliefs: Any, rng: np.random.Generator) -> Floats:
        """Under drawn probabilities."""
        return self._reward(beliefs, beliefs.draw(rng))

    def expected(self, beliefs: Any) -> Floats:
        """Under the mean probabilities."""
        return self._reward(beliefs, beliefs.mean())

    def _reward(self, beliefs: Any, theta: Floats) -> Floats:
        """Reward if the probabilities are theta [R, G]."""
        raise NotImplementedError
