"""Policies: which groups are labelled next.

A policy is a class here and a line in `POLICIES`. It chooses a batch one label at a time, and counts what
it has chosen, like all requests in flight, as labelled: delayed labels do not pile up on one group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from service.assessment.mixture import BetaMixture
from service.assessment.tasks import Task

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Situation:
    """What a policy decides on.

    Attributes:
        beliefs: about every group's accuracy [G].
        shares: traffic share of every group [G].
        pending: requests in flight per group [G].
        available: whether a group has anything to label [G].
    """

    beliefs: BetaMixture
    shares: Floats
    pending: Floats
    available: npt.NDArray[np.bool_]


class Policy(Protocol):
    """Chooses the groups of the next labels."""

    def choose(self, task: Task, situation: Situation, count: int, rng: np.random.Generator) -> list[int]:
        """Groups of the next `count` labels, in order; fewer only if no group is available."""


class RandomPolicy:
    """In proportion to traffic, whatever is believed."""

    def choose(self, task: Task, situation: Situation, count: int, rng: np.random.Generator) -> list[int]:  # noqa: ARG002 - one signature for all policies
        """Groups of the next labels."""
        shares = np.where(situation.available, situation.shares, 0.0)
        total = shares.sum()
        if total <= 0:
            return []
        return [int(g) for g in rng.choice(len(shares), size=count, p=shares / total)]


class ThompsonPolicy:
    """Thompson sampling: draw accuracies from the beliefs, ask where the task's reward is highest.

    Source: Ji, Logan, Smyth, Steyvers (AAAI 2021), Algorithm 1; for several groups at a step its
    multiple-play form (supplement, Algorithm 3).
    """

    def choose(self, task: Task, situation: Situation, count: int, rng: np.random.Generator) -> list[int]:
        """Groups of the next labels."""
        pending = situation.pending.astype(float).copy()
        # A group without traffic is nobody's concern, and must not win "least accurate".
        available = np.flatnonzero(situation.available & (situation.shares > 0))
        chosen: list[int] = []
        while len(chosen) < count and available.size:
            drawn = situation.beliefs.component(rng).expecting(pending)
            sampled = drawn.sample(rng, 1)[0]
            reward = task.reward(beliefs=drawn, sampled=sampled, shares=situation.shares)[available]
            # Equal rewards are decided by chance, not by the order of groups.
            order = np.lexsort((rng.random(available.size), -reward))
            for group in available[order[: min(task.top_m, count - len(chosen))]]:
                chosen.append(int(group))
                pending[group] += 1
        return chosen


POLICIES: dict[str, type[RandomPolicy | ThompsonPolicy]] = {
    "random": RandomPolicy,
    "thompson": ThompsonPolicy,
}
"""Policies by their names in the configuration."""
