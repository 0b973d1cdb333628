"""Tasks: what a label is worth, as the expected reward of asking a group for one more.

Source: Ji, Logan, Smyth, Steyvers (AAAI 2021), Table 1. A task is a class here and a line in `TASKS`. It tells
policies three things about the reward of every group in every run [R, G]: a draw of it by Thompson sampling, its
posterior mean, and an upper quantile; so policies need not know what the question is about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment import beta as betas
from service.assessment import dirichlet
from service.assessment.beliefs import AccuracyBeliefs, BinBeliefs, ConfusionBeliefs
from service.assessment.comparison import expected_confidence
from service.assessment.curves import Cells

Floats = npt.NDArray[np.float64]
Kind = Literal["accuracy", "bins", "confusion"]
Believed = TypeVar("Believed", contravariant=True)

COMPARISON_NODES = 32
"""Nodes of the quadrature that compares rewards of two groups."""


@dataclass(frozen=True)
class Question:
    """What a task is about, beside its metric.

    Attributes:
        cells: what traffic tells of the groups.
        top_m: with identification: how many groups to find.
        extreme: with identification: which end of the metric.
        costs: with cost: of every true class, per group [G, K].
        pair: with comparison: the two groups.
        region: with comparison: difference of accuracies that does not matter.
    """

    cells: Cells
    top_m: int = 1
    extreme: Literal["lowest", "highest"] = "lowest"
    costs: Floats | None = None
    pair: tuple[int, int] = (0, 1)
    region: float = 0.05


class Task(Protocol[Believed]):
    """A question about the groups of one grouping."""

    kind: Kind
    """What beliefs it reads."""

    question: Question

    def sampled(self, beliefs: Believed, rng: np.random.Generator) -> Floats:
        """Expected reward of one more label in every group [R, G], under parameters drawn from the beliefs."""

    def expected(self, beliefs: Believed) -> Floats:
        """Posterior mean of the same [R, G]."""

    def upper(self, beliefs: Believed, probability: float) -> Floats:
        """Its quantile [R, G]."""


@dataclass(frozen=True)
class EstimateAccuracy:
    """Reduce the traffic-weighted posterior variance of groupwise accuracy.

    The reward is p_g (Var(theta_g) - E Var(theta_g given one more label)), the label's outcome ~ Bern(theta_g).
    """

    question: Question
    kind: Kind = "accuracy"

    @property
    def _weights(self) -> Floats:
        return self.question.cells.group_shares

    def sampled(self, beliefs: AccuracyBeliefs, rng: np.random.Generator) -> Floats:
        """Under drawn accuracies."""
        alpha, beta = beliefs.draw(rng)
        return self._weights * betas.expected_variance_drop(alpha, beta, rng.beta(alpha, beta))

    def expected(self, beliefs: AccuracyBeliefs) -> Floats:
        """Under the mean accuracies; the reward is linear in theta."""
        alpha, beta = beliefs.matched()
        return self._weights * betas.expected_variance_drop(alpha, beta, betas.mean(alpha, beta))

    def upper(self, beliefs: AccuracyBeliefs, probability: float) -> Floats:
        """Under that end of the accuracies which rewards more."""
        alpha, beta = beliefs.matched()
        ends = (special.betaincinv(alpha, beta, p) for p in (1 - probability, probability))
        return self._weights * np.maximum(*(betas.expected_variance_drop(alpha, beta, end) for end in ends))


@dataclass(frozen=True)
class EstimateOverallAccuracy(EstimateAccuracy):
    """Reduce the posterior variance of the accuracy over all traffic, sum_g p_g theta_g.

    As for groupwise accuracy, with p_g squared: the variance of the sum has these weights. Groups by score bin
    are the right ones for it.
    """

    @property
    def _weights(self) -> Floats:
        return self.question.cells.group_shares**2


@dataclass(frozen=True)
class IdentifyByAccuracy:
    """Find the least (most) accurate groups: the reward is -theta_g (theta_g)."""

    question: Question
    kind: Kind = "accuracy"

    @property
    def _sign(self) -> float:
        return -1.0 if self.question.extreme == "lowest" else 1.0

    def sampled(self, beliefs: AccuracyBeliefs, rng: np.random.Generator) -> Floats:
        """Drawn accuracies."""
        return self._sign * rng.beta(*beliefs.draw(rng))

    def expected(self, beliefs: AccuracyBeliefs) -> Floats:
        """Mean accuracies."""
        return self._sign * beliefs.mixture.mean()

    def upper(self, beliefs: AccuracyBeliefs, probability: float) -> Floats:
        """Their quantiles."""
        alpha, beta = beliefs.matched()
        tail = probability if self._sign > 0 else 1 - probability
        return np.asarray(self._sign * special.betaincinv(alpha, beta, tail), np.float64)
