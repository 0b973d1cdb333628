"""Agreement between people who label the same items, and Krippendorff's alpha.

There is no Fleiss' kappa: it needs equally many labels of every item. Where all have two labels, it differs
from alpha only by alpha's correction for small samples (Krippendorff, *Content Analysis*, 2004, chapter 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy import sparse

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.statistics.estimate import Estimate

_DRAWS: Final = 400
_JEFFREYS: Final = 0.5
_LEAST_ALPHA: Final = -1.0


def inclusion_weights(strata: Indices, is_shared: Flags) -> Floats:
    """How many items each item with several labels stands for [N]; 0 of the others.

    Whether an item gets a second label may depend on its stratum alone, such as whether its first label is
    the predicted class. The weight is the inverse of the share that got one, which stays right when the share
    that is asked for changes, or answers are missing. A stratum of which no item got one is not represented.
    """
    count = int(strata.max(initial=-1)) + 1
    of_all = np.bincount(strata, minlength=count)
    of_shared = np.bincount(strata[is_shared], minlength=count)
    return np.where(is_shared, (of_all / np.maximum(of_shared, 1))[strata], 0.0)


@dataclass(frozen=True)
class SharedLabels:
    """Labels [M] of items [N], sorted by item; items with one label have no part in any agreement.

    A label given after others were seen to differ is not of a random person about a random item. Leave such
    labels out, whatever the weights: they are fewer where people agree.
    """

    items: Indices  # of every label [M]
    people: Indices  # who gave it [M]
    classes: Indices  # [M]; numbers of any classes, those that the model does not have too
    weights: Floats  # how many items each item stands for [N]

    @cached_property
    def counts(self) -> Ints:
        """Labels of every item [N]."""
        return np.bincount(self.items, minlength=len(self.weights))

    @cached_property
    def pairs(self) -> tuple[Indices, Indices]:
        """The first and the second label of every pair that is about one item [P]."""
        first = [np.empty(0, np.intp)]
        ahead = [np.empty(0, np.intp)]
        for distance in range(1, int(self.counts.max(initial=0))):
            found = np.flatnonzero(self.items[distance:] == self.items[:-distance])
            first.append(found)
            ahead.append(found + distance)
        return np.concatenate(first), np.concatenate(ahead)

    @cached_property
    def pair_weights(self) -> Floats:
        """Weight of every pair [P]: those of an item add up to its weight times half its labels."""
        items = self.items[self.pairs[0]]
        return np.asarray(self.weights[items] / (self.counts[items] - 1), np.float64)

    @cached_property
    def agrees(self) -> Flags:
        """Whether the labels of a pair are the same class [P]."""
        first, second = self.pairs
        agrees: Flags = self.classes[first] == self.classes[second]
        return agrees


@dataclass(frozen=True)
class Agreement:
    """Probability that two people give an item the same label.

    Attributes:
        estimate: with its interval.
        items: shared items that it comes from, unweighted.
    """

    estimate: Estimate
    items: Ints


def agreement(
    labels: SharedLabels, groups: Indices, count: int, *, mass: float, rng: np.random.Generator
) -> Agreement:
    """Agreement of the labels of each group of people with all other labels of their items [count].

    `groups` has the group of every person, or -1. Intervals are from the Bayesian bootstrap of items (Rubin
    1981), with half an item more that agrees and half a one that does not, as in Jeffreys' prior: they have a
    width even if all agree. NaN of a group without shared items.
    """
    first, second = labels.pairs
    codes = groups[labels.people]
    sides = np.concatenate([codes[first], codes[second]])
    items, weights = np.tile(labels.items[first], 2), np.tile(labels.pair_weights, 2)
    member = sides >= 0
    shape, at = (len(labels.weights), count), (items[member], sides[member])
    whole = sparse.csr_array((weights[member], at), shape=shape)
    agreeing = sparse.csr_array((np.where(np.tile(labels.agrees, 2), weights, 0.0)[member], at), shape=shape)
    shared = np.bincount(whole.indices[whole.data > 0], minlength=count)
    with np.errstate(invalid="ignore"):
        mean = agreeing.sum(axis=0) / whole.sum(axis=0)
        typical = whole.sum(axis=0) / shared
        draws = _items_drawn(len(labels.weights), rng)
        more, less = rng.gamma(_JEFFREYS, size=(2, _DRAWS, count)) * typical
        share = (draws @ agreeing + more) / (draws @ whole + more + less)
    return Agreement(_around(mean, share, mass), shared)


def krippendorff_alpha(
    labels: SharedLabels, *, mass: float, rng: np.random.Generator
) -> tuple[float, float, float] | None:
    """Alpha of nominal labels, with the ends of its interval: lower end, alpha, upper end.

    It is 1 if all agree, and 0 if they agree as often as by chance. Any number of labels per item is allowed.
    The interval is from the Bayesian bootstrap of items, with half an item more that agrees and half a one
    that does not, as that of `agreement`. None if no item is shared, or all labels are one class.
    """
    first, _ = labels.pairs
    paired = np.flatnonzero((labels.counts > 1)[labels.items])
    weights = labels.weights[labels.items[paired]]
    known, classes = np.unique(labels.classes[paired], return_inverse=True)
    if not weights.any() or len(known) == 1:
        return None
    shape = (len(labels.weights), len(known))
    by_class = sparse.csr_array((weights, (labels.items[paired], classes)), shape=shape)
    apart = np.bincount(
        labels.items[first], 2 * labels.pair_weights * ~labels.agrees, minlength=len(labels.weights)
    )
    size = weights.sum() ** 2 / (weights**2).sum()
    correction = (size - 1) / size

    def alpha_of(items: Floats, more: Floats, less: Floats) -> Floats:
        totals = np.asarray(items @ by_class, np.float64)
        shares = totals / totals.sum(axis=1, keepdims=True)
        by_chance = 1 - (shares**2).sum(axis=1)
        observed = (items @ apart + less) / (totals.sum(axis=1) + more + less)
        return np.asarray(np.maximum(1 - correction * observed / by_chance, _LEAST_ALPHA), np.float64)

    nothing = np.zeros(1)
    value = float(alpha_of(np.ones((1, len(labels.weights))), nothing, nothing)[0])
    typical = weights.sum() / np.count_nonzero(labels.counts > 1)
    more, less = typical * rng.gamma(_JEFFREYS, size=(2, _DRAWS))
    draws = alpha_of(_items_drawn(len(labels.weights), rng), more, less)
    tail = (1 - mass) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail]).tolist()
    return min(lower, value), value, max(upper, value)


def _items_drawn(count: int, rng: np.random.Generator) -> Floats:
    """Weights of items in draws of the Bayesian bootstrap, not normalised [draws, count]."""
    return rng.standard_exponential((_DRAWS, count))


def _around(mean: Floats, draws: Floats, mass: float) -> Estimate:
    """An interval that contains the estimate, which is at its end if all agree, or nobody does."""
    found = Estimate.of(draws, mass)
    return Estimate(np.fmin(found.lower, mean), mean, np.fmax(found.upper, mean))
