"""Predictions of classifiers whose error rates by group are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from benchmarks.error_rates import SIZES, World
from service.domain.arrays import Flags, Floats, Indices
from service.domain.assessments import RateName
from service.statistics.rates.measures import RATES

ITEMS = 5_000


class Items(NamedTuple):
    """Predictions [N]."""

    groups: Indices
    positive: Flags
    selected: Flags
    scores: Floats  # of the predicted class

    def rates(self, name: RateName) -> Floats:
        """A rate of every group [G]; NaN where nothing counts."""
        place = self.positive.astype(np.intp), self.selected.astype(np.intp)
        counted, among = RATES[name].numerator[place], RATES[name].denominator[place]
        with np.errstate(invalid="ignore"):
            return np.bincount(self.groups, counted) / np.bincount(self.groups, among)


def made(rng: np.random.Generator) -> Items:
    """One classifier; both classes have normal scores in every group."""
    count = int(rng.integers(2, 7))
    groups = np.sort(rng.choice(count, ITEMS, p=rng.dirichlet(np.full(count, 3.0))))
    _, groups = np.unique(groups, return_inverse=True)
    count = int(groups.max()) + 1
    base = rng.uniform(0.05, 0.6, count)
    recall, false = rng.uniform(0.4, 0.95, count), rng.uniform(0.03, 0.45, count)
    slope = float(np.exp(rng.normal(0, 0.5)))
    shift = float(rng.normal(0, 0.5))
    positive, noise = rng.random(ITEMS) < base[groups], rng.normal(size=ITEMS)
    return _scored(groups, (positive, noise), base, recall, false, slope=slope, shift=shift)


def of_world(world: World, rng: np.random.Generator) -> Items:
    """Two groups with these rates, whose scores are right as probabilities."""
    groups = (np.arange(ITEMS) >= ITEMS * SIZES[0] / sum(SIZES)).astype(np.intp)
    base, recall, false = (np.array(each) for each in world)
    positive, noise = np.zeros(ITEMS, np.bool_), np.zeros(ITEMS)
    for group, share in enumerate(base):
        of = np.flatnonzero(groups == group)
        positive[of] = rng.permutation(np.arange(len(of)) < round(share * len(of)))
    # Even quantiles in random order: by chance alone, the gap of few items may be a fifth smaller or larger.
    for kind in np.unique(2 * groups + positive):
        of = np.flatnonzero(2 * groups + positive == kind)
        noise[of] = rng.permutation(special.ndtri((np.arange(len(of)) + 0.5) / len(of)))
    return _scored(groups, (positive, noise), base, recall, false, slope=1.0, shift=0.0)


def _scored(
    groups: Indices,
    seen: tuple[Flags, Floats],
    base: Floats,
    recall: Floats,
    false: Floats,
    *,
    slope: float,
    shift: float,
) -> Items:
    """Items of groups with these shares of positive items and rates [G]; slope and shift are of logits.

    What the classifier sees of an item is its class and standard normal noise [N].
    """
    positive, noise = seen
    high, low = special.ndtri(recall), special.ndtri(false)
    latent = np.where(positive, high[groups], low[groups]) + noise
    logits = special.logit(base) + (high - low) * -(high + low) / 2
    chance = special.expit(logits[groups] + slope * (high - low)[groups] * latent + shift)
    selected = latent > 0
    return Items(groups, positive, selected, np.where(selected, chance, 1 - chance))
