"""Policies: which groups are labelled next.

A policy is a class here and a line in `POLICIES`. At every step it selects the groups of the next labels in
every run: one, or for multiple plays as many as the task looks for. Groups without an item to label are
skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.narrowing import EXPLORED
from service.statistics.questions import Task

NONE = -1
"""Stands for a group in a run that has none left."""


@dataclass(frozen=True)
class Situation:
    """What a policy decides on, in R runs."""

    beliefs: Any  # of the kind that the task reads
    weights: Floats  # what can be labelled of every group [R, G]: traffic, or the rest of a pool
    available: Flags  # whether a group has anything to label [R, G]
    # labels that every group lacks for a certificate, infinite if it may miss its target [R, G]; None if
    # nothing is known of it
    labels_left: Floats | None = None

    def expect(self, groups: Indices) -> None:
        """Count a label of a group in every run [R] as answered, with what is expected of it."""
        self.beliefs.expect(groups)
        if self.labels_left is not None:
            of = np.arange(len(groups)), groups
            self.labels_left[of] = np.maximum(self.labels_left[of] - 1, 0)


class Policy(Protocol):
    """Selects the groups of the next labels."""

    def choose(self, task: Task[Any], situation: Situation, rng: np.random.Generator) -> Indices:
        """Groups of the next labels [R, m], distinct within a run; `NONE` where none is left."""


class RandomPolicy:
    """In proportion to traffic."""

    def choose(self, task: Task[Any], situation: Situation, rng: np.random.Generator) -> Indices:  # noqa: ARG002 - one signature for all policies
        """One group of every run."""
        return proportional(np.where(situation.available, situation.weights, 0.0), rng)[:, None]


class MultiplePlayPolicy:
    """Thompson sampling that asks all of the highest groups at every step.

    Source: Komiyama, Honda, Nakagawa (ICML 2015); the supplement of Ji et al., Algorithm 3.
    """

    def choose(self, task: Task[Any], situation: Situation, rng: np.random.Generator) -> Indices:
        """As many groups of every run as the task looks for."""
        return highest(task.sampled(situation.beliefs, rng), situation.available, task.question.top_m, rng)


class ThompsonPolicy(MultiplePlayPolicy):
    """Thompson sampling: draw from the posterior, ask where the task's reward is highest.

    Source: Ji, Logan, Smyth, Steyvers (AAAI 2021), Algorithm 1. If several groups are looked for, one of the
    highest is asked at random: the very highest alone would leave the others unknown.
    """

    def choose(self, task: Task[Any], situation: Situation, rng: np.random.Generator) -> Indices:
        """One group of every run."""
        return one_of(super().choose(task, situation, rng), rng)


@dataclass(frozen=True)
class TopTwoPolicy:
    """Top-two Thompson sampling: sometimes ask the strongest rival of the groups that seem highest.

    Source: Russo (COLT 2016); the supplement of Ji et al., Algorithm 2.
    """

    resample: float = 0.5  # probability that a rival is asked
    attempts: int = 20  # draws in search of a rival; after that the second of the first draw is taken

    def choose(self, task: Task[Any], situation: Situation, rng: np.random.Generator) -> Indices:
        """One group of every run."""
        top_m = task.question.top_m
        best = highest(task.sampled(situation.beliefs, rng), situation.available, top_m + 1, rng)
        leaders, second = best[:, :top_m], best[:, top_m:]
        chosen = one_of(leaders, rng)[:, 0]
        if not second.size:
            return chosen[:, None]
        wanting = (rng.random(len(chosen)) < self.resample) & (second[:, 0] != NONE)
        chosen = np.where(wanting, second[:, 0], chosen)
        for _ in range(self.attempts):
            if not wanting.any():
                break
            drawn = highest(task.sampled(situation.beliefs, rng), situation.available, top_m, rng)
            rivals = (drawn[:, :, None] != leaders[:, None, :]).all(axis=2) & (drawn != NONE)
            found = wanting & rivals.any(axis=1)
            chosen[found] = drawn[found, rivals[found].argmax(axis=1)]
            wanting &= ~found
        return chosen[:, None]


@dataclass(frozen=True)
class EpsilonGreedyPolicy:
    """Ask where the expected reward is highest, and a group at random with probability `epsilon`."""

    epsilon: float = 0.1

    def choose(self, task: Task[Any], situation: Situation, rng: np.random.Generator) -> Indices:
        """As many groups of every run as the task looks for."""
        reward = task.expected(situation.beliefs)
        anywhere = rng.random((len(reward), 1)) < self.epsilon
        scattered = np.where(anywhere, rng.random(reward.shape), reward)
        return highest(scattered, situation.available, task.question.top_m, rng)


@dataclass(frozen=True)
class BayesUcbPolicy:
    """Ask where an upper quantile of the reward, at `probability`, is highest.

    Source: Kaufmann, Cappe, Garivier (AISTATS 2012), with the fixed quantile of Ji et al.'s supplement.
    """

    probability: float = 0.975

    def choose(self, task: Task[Any], situation: Situation, rng: np.random.Generator) -> Indices:
        """As many groups of every run as the task looks for."""
        reward = task.upper(situation.beliefs, self.probability)
        return highest(reward, situation.available, task.question.top_m, rng)


class CertifyPolicy:
    """Ask where a certificate lacks most labels, and nowhere once it lacks none.

    A certificate needs all groups, so their order does not change how many labels it takes; but the groups
    that may miss their target come first, so that the others get no labels in vain.
    """

    def choose(self, task: Task[Any], situation: Situation, rng: np.random.Generator) -> Indices:  # noqa: ARG002 - one signature for all policies
        """One group of every run."""
        left = situation.labels_left
        if left is None:
            left = np.ones(situation.weights.shape)
        return highest(left, situation.available & (left > 0), 1, rng)


class AdaptivePolicy:
    """Ask where the reward is expected to be highest, and in proportion to traffic for some of the labels."""

    def choose(self, task: Task[Any], situation: Situation, rng: np.random.Generator) -> Indices:
        """One group of every run."""
        best = highest(task.expected(situation.beliefs), situation.available, 1, rng)
        anywhere = proportional(np.where(situation.available, situation.weights, 0.0), rng)[:, None]
        return np.where(rng.random((len(best), 1)) < EXPLORED, anywhere, best)


POLICIES: dict[str, type[Policy]] = {
    "random": RandomPolicy,
    "thompson": ThompsonPolicy,
    "multiple_play": MultiplePlayPolicy,
    "top_two": TopTwoPolicy,
    "epsilon_greedy": EpsilonGreedyPolicy,
    "bayes_ucb": BayesUcbPolicy,
    "certify": CertifyPolicy,
    "adaptive": AdaptivePolicy,
}
"""Policies by their names in the configuration."""


def highest(reward: Floats, available: Flags, count: int, rng: np.random.Generator) -> Indices:
    """The `count` available groups of highest reward in every run [R, count], highest first; ties at random.

    `NONE` where fewer are available; fewer columns where there are fewer groups.
    """
    masked = np.where(available, reward, -np.inf)
    runs = np.arange(len(reward))
    if count == 1:
        best = masked.argmax(axis=1)
        top = masked[runs, best]
        tied = np.count_nonzero(masked == top[:, None], axis=1) > 1
        if tied.any():
            among = masked[tied] == top[tied, None]
            best[tied] = np.where(among, rng.random(among.shape), -1.0).argmax(axis=1)
        return np.where(top > -np.inf, best, NONE)[:, None]
    order = np.lexsort((rng.random(masked.shape), -masked), axis=1)[:, :count]
    return np.where(masked[runs[:, None], order] > -np.inf, order, NONE)


def one_of(groups: Indices, rng: np.random.Generator) -> Indices:
    """One of the groups of every run at random [R, 1]; any `NONE` are at the end."""
    if groups.shape[1] == 1:
        return groups
    named = np.count_nonzero(groups != NONE, axis=1)
    column = (rng.random(len(groups)) * np.maximum(named, 1)).astype(np.intp)
    chosen: Indices = groups[np.arange(len(groups)), column]
    return chosen[:, None]


def proportional(weights: Floats, rng: np.random.Generator) -> Indices:
    """A group of every run [R] in proportion to its weight [R, G]; `NONE` where all weights are 0."""
    cumulative = np.cumsum(weights, axis=1)
    total = cumulative[:, -1]
    drawn = (cumulative <= (rng.random(len(weights)) * total)[:, None]).sum(axis=1)
    return np.where(total > 0, np.minimum(drawn, weights.shape[1] - 1), NONE)
