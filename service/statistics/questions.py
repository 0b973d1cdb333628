"""What tasks are about, and what they have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.laplace import Cells

Kind = Literal["accuracy", "bins", "confusion"]
Believed_contra = TypeVar("Believed_contra", contravariant=True)


@dataclass(frozen=True)
class Question:
    """What a task is about, beside its metric."""

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
        """By which a metric is a reward: 1 where its highest values are looked for, else -1."""
        return 1.0 if self.extreme == "highest" else -1.0


class Task(Protocol[Believed_contra]):
    """A question about the groups of one grouping."""

    @property
    def kind(self) -> Kind:
        """Which posterior it reads."""

    @property
    def question(self) -> Question:
        """What it is about."""

    def sampled(self, beliefs: Believed_contra, rng: np.random.Generator) -> Floats:
        """Expected reward of one more label in every group [R, G], under drawn parameters."""

    def expected(self, beliefs: Believed_contra) -> Floats:
        """Posterior mean of the same [R, G]."""

    def upper(self, beliefs: Believed_contra, probability: float) -> Floats:
        """Its quantile [R, G]."""

    def relevant(self, runs: int) -> Flags | None:
        """Groups worth a label at all [R, G]; None for all of them."""


@dataclass(frozen=True)
class EveryGroup:
    """Base of tasks for which all groups are worth labels."""

    question: Question

    def relevant(self, runs: int) -> Flags | None:  # noqa: ARG002 - one signature for all tasks
        """All groups."""
        return None


class LinearReward(EveryGroup):
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
