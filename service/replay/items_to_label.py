"""Items of a pool that a policy labels, to learn the performance of a binary classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Ints
from service.statistics.binary.label_gains import (
    PLANNING_SIGMAS,
    LabelledStrata,
    expected_gains,
    next_labels,
)
from service.statistics.binary.semi_supervised import ScoreLearner

RANDOM: Final = "random"
ADAPTIVE: Final = "adaptive"

_BATCH_SHARE: Final = 0.1  # of the labels that there are already, which are chosen at once
_SMALLEST_BATCH: Final = 5
_DRAWS: Final = 400  # of the posterior, to choose from


class ItemsToLabel:
    """A pool of which ever more items are labelled, in a random order within every stratum of scores."""

    def __init__(
        self, learner: ScoreLearner, scores: Floats, positive: Flags, rng: np.random.Generator
    ) -> None:
        bins = learner.bins
        self._strata, self._rng, self._positive = learner.strata, rng, positive
        self._planner = replace(learner, sigmas=PLANNING_SIGMAS)
        self._bins = np.searchsorted(bins.edges, scores, side="right")
        self._counts = self._strata.sums(bins.counts)
        self._order = rng.permutation(len(scores))
        self.positives: Floats = np.zeros(len(bins.counts))
        """Positive labels of every bin."""
        self.negatives: Floats = np.zeros(len(bins.counts))
        """Negative labels of every bin."""

    @property
    def labelled(self) -> LabelledStrata:
        """Items and labels of every stratum."""
        sums = self._strata.sums
        return LabelledStrata(
            self._strata.called.astype(np.float64), self._counts, sums(self.positives), sums(self.negatives)
        )

    def draw(self, labels: int, policy: str, aim: str) -> Ints:
        """Label so many items, and tell which."""
        if policy == RANDOM:
            drawn = self._order[:labels]
            self._label(drawn)
            return drawn
        strata = self._strata.of_bins[self._bins[self._order]]
        queues = [self._order[strata == stratum] for stratum in range(len(self._counts))]
        taken = np.zeros(len(queues), np.int64)
        drawn = np.zeros(0, np.int64)
        while len(drawn) < labels:
            batch = max(_SMALLEST_BATCH, int(_BATCH_SHARE * len(drawn)))
            wanted = self._plan(min(batch, labels - len(drawn)), aim)
            chosen = np.concatenate(
                [queues[at][taken[at] : taken[at] + wanted[at]] for at in np.flatnonzero(wanted)]
            )
            taken += wanted
            self._label(chosen)
            drawn = np.concatenate((drawn, chosen))
        return drawn

    def _plan(self, count: int, aim: str) -> Ints:
        """How many of the next labels each stratum gets."""
        drawn = self._planner.log_odds(self.positives, self.negatives, self._rng, draws=_DRAWS)
        known = self.labelled
        return next_labels(known, expected_gains(known, special.expit(drawn.log_odds), aim), count, self._rng)

    def _label(self, items: Ints) -> None:
        size = len(self.positives)
        positive = self._positive[items]
        self.positives += np.bincount(self._bins[items[positive]], minlength=size)
        self.negatives += np.bincount(self._bins[items[~positive]], minlength=size)
