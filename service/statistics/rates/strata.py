"""Strata of a group's items, and the labels of each: predicted class by score bin.

The traffic of every stratum is counted exactly, so only the share of positive items within a stratum is
uncertain. That is what labels are for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.rates.measures import Rate
from service.statistics.ratios import ratio

_STRENGTH = 8.0  # pseudo-labels of the model's score, in expectations
_FIRST = 1.0  # pseudo-labels of either class, where odds are corrected
_MARGIN = 0.001
"""Scores and expectations are clipped to be this far from 0 and 1.

Evidence is valid whatever is expected. With a wider margin, strata with next to no positive items would get
most of the labels where the class is rare.
"""


@dataclass(frozen=True)
class RateStrata:
    """What is known of G groups with K strata each, without labels."""

    shares: Floats  # of a group's traffic, by stratum [G, K]; each row sums to 1
    selected: Flags  # whether the items of a stratum are predicted positive [K]
    scores: Floats  # mean probability of the positive class, by the model [G, K]
    sizes: Floats | None = None  # items, if these are all there are, such as a recording [G, K]; else None

    @classmethod
    def of_items(cls, sizes: Floats, score_sums: Floats, selected: Flags) -> RateStrata:
        """Of all items there are, by their number and the sum of their scores in every stratum [G, K]."""
        shares = sizes / sizes.sum(axis=1, keepdims=True)
        return cls(shares, selected, ratio(score_sums, sizes, 0.5), sizes)

    @property
    def predictions(self) -> Indices:
        """1 for strata of selected items, and 0 for others [K]."""
        return self.selected.astype(np.intp)

    def left(self, groups: Indices, labels: Floats) -> Floats:
        """Share of a group's items without a label, by stratum [n, K]; all of them in unbounded traffic.

        `labels` are those of every stratum [n, K].
        """
        if self.sizes is None:
            return self.shares[groups]
        return self.shares[groups] * (1 - ratio(labels, self.sizes[groups], 1.0))


@dataclass
class RateLabels:
    """Labels of R runs, by group and stratum [R, G, K]; they are changed by `add`."""

    strata: RateStrata
    labels: Floats
    positives: Floats

    @classmethod
    def none(cls, strata: RateStrata, runs: int) -> RateLabels:
        """No labels in any run."""
        shape = (runs, *strata.shares.shape)
        return cls(strata, np.zeros(shape), np.zeros(shape))

    def add(self, runs: Indices, groups: Indices, strata: Indices, positive: Flags) -> None:
        """Add one label to each of some distinct runs [n]."""
        self.labels[runs, groups, strata] += 1
        self.positives[runs, groups, strata] += positive

    def corrected_scores(self, runs: Indices, groups: Indices) -> Floats:
        """Scores of every stratum of a group [n, K], corrected by its labels; strictly within 0 and 1.

        The odds of selected items, and of others, are multiplied by those that labels have, over those that
        scores gave them.
        """
        scores = np.clip(self.strata.scores[groups], _MARGIN, 1 - _MARGIN)
        labels, positives = self.labels[runs, groups], self.positives[runs, groups]
        for selected in (False, True):
            part = self.strata.selected == selected
            all_ = labels[:, part].sum(axis=1)
            promised = _odds((labels * scores)[:, part].sum(axis=1), all_)
            correction = _odds(positives[:, part].sum(axis=1), all_) / promised
            odds = scores[:, part] / (1 - scores[:, part]) * correction[:, None]
            scores[:, part] = odds / (1 + odds)
        return np.clip(scores, _MARGIN, 1 - _MARGIN)

    def expected(self, runs: Indices, groups: Indices) -> Floats:
        """Expected share of positive items in every stratum of a group [n, K], strictly within 0 and 1."""
        found = self.positives[runs, groups] + _STRENGTH * self.corrected_scores(runs, groups)
        mean: Floats = found / (self.labels[runs, groups] + _STRENGTH)
        return np.clip(mean, _MARGIN, 1 - _MARGIN)

    def part(self, runs: Indices) -> RateLabels:
        """Of some runs."""
        return RateLabels(self.strata, self.labels[runs], self.positives[runs])


def rates_of(rate: Rate, shares: Floats, predictions: Indices, positive: Floats) -> Floats:
    """A rate of groups [...], from shares and positive shares of strata [..., K]; NaN if nothing is counted.

    `predictions` are 1 for strata of selected items, and 0 for others [K].
    """

    def counted(by: Floats) -> Floats:
        within = by[0][predictions] + (by[1] - by[0])[predictions] * positive
        return np.asarray((shares * within).sum(axis=-1), np.float64)

    return ratio(counted(rate.numerator), counted(rate.denominator))


def _odds(positives: Floats, labels: Floats) -> Floats:
    return (positives + _FIRST) / (labels - positives + _FIRST)
