"""Tasks: what a label is worth, as the expected reward of asking a group for one more.

Source: Ji, Logan, Smyth, Steyvers (AAAI 2021), Table 1. A task is a class here and a line in `TASKS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from service.assessment import beta as betas
from service.assessment.mixture import BetaMixture

Floats = npt.NDArray[np.float64]


class Task(Protocol):
    """A question about the groups of one grouping."""

    @property
    def top_m(self) -> int:
        """Groups to ask at each step (multiple-play Thompson sampling; Komiyama, Honda, Nakagawa 2015)."""

    def reward(self, *, beliefs: BetaMixture, sampled: Floats, shares: Floats) -> Floats:
        """Expected reward of one more label in every group [G].

        Args:
            beliefs: one component: the hyperparameters that were drawn.
            sampled: accuracy of every group drawn from it [G].
            shares: traffic share of every group [G].
        """


@dataclass(frozen=True)
class EstimateAccuracy:
    """Estimation: reduce the traffic-weighted posterior variance of groupwise accuracy."""

    top_m: int = 1

    def reward(self, *, beliefs: BetaMixture, sampled: Floats, shares: Floats) -> Floats:
        """p_g (Var(theta_g) - E Var(theta_g given one more label)), the label's outcome ~ Bern(sampled)."""
        alpha, beta = beliefs.alpha[0], beliefs.beta[0]
        after = sampled * betas.variance(alpha + 1, beta) + (1 - sampled) * betas.variance(alpha, beta + 1)
        return shares * (betas.variance(alpha, beta) - after)


@dataclass(frozen=True)
class LeastAccurate:
    """Identification: find the `top_m` least accurate groups."""

    top_m: int = 1

    def reward(self, *, beliefs: BetaMixture, sampled: Floats, shares: Floats) -> Floats:  # noqa: ARG002 - one signature for all tasks
        """-theta_g."""
        return -sampled


TASKS: dict[tuple[str, str], Callable[[int], Task]] = {
    ("estimation", "accuracy"): EstimateAccuracy,
    ("identification", "accuracy"): LeastAccurate,
}
"""Tasks by (task, metric), as configured."""
