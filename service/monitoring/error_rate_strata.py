"""Strata of error rates: the traffic of every group by prediction and score, and its labels (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Floats, Indices
from service.domain.groupings import MOST_SCORE_STRATA, score_strata
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.outcome_aggregates import NO_CLASS
from service.statistics.balance_heuristic import effective_counts
from service.statistics.groups import Labels
from service.statistics.rates.strata import RateLabels, RateStrata
from service.statistics.ratios import ratio

_GROUP_STRATA: Final = 2_000  # in all groups together, about
_HALF: Final = 0.5  # a prediction of either kind, by Jeffreys' prior


@dataclass(frozen=True)
class CountedStrata:
    """Traffic of every group by stratum, counted; arrays are [G, K / 2] but for those of `strata`."""

    strata: RateStrata
    whole: Floats  # share of a group's traffic, both predictions together
    size: Floats  # predictions of a group, ever [G]
    others: Floats  # predictions of other classes, since these are counted by prediction
    positive: Floats  # of the positive class

    def draw(self, rng: np.random.Generator, draws: int) -> Floats:
        """Shares that the strata may have in the traffic that this is a sample of [S, G, K].

        A prediction of either kind is expected in all strata with traffic together (Jeffreys): where few are
        counted by prediction, as after an assessment was added, little is known.
        """
        size = (draws, *self.whole.shape)
        parts = rng.standard_gamma(self.whole * self.size[:, None], size)
        parts = ratio(parts, parts.sum(axis=2, keepdims=True))
        there = np.maximum(np.count_nonzero(self.others + self.positive > 0, axis=1), 1)
        prior = (_HALF / there)[:, None]
        selected = rng.beta(self.positive + prior, self.others + prior, size)
        found = np.concatenate([parts * (1 - selected), parts * selected], axis=2)
        return np.where(np.isnan(self.strata.shares), np.nan, found)


def counted_strata(index: GroupIndex, grouping: str, groups: Groups) -> CountedStrata | None:
    """Strata of every group: first those of other predictions, then of positive ones, by score bin."""
    if not groups.names:
        return None
    bins, classes = index.space.bin_count, len(index.space.classes)
    of_bins = score_strata(bins, _most_strata(len(groups.names)))
    table = index.traffic.tables[index.space.groupings[grouping].attribute]
    block = table.block("selected_bins").part([table.rows[name] for name in groups.names])
    weights = block.weights.reshape(len(groups.names), 2, bins)
    # Of what is counted by score bin, and weighted as all estimates are, the share of positive predictions.
    share = ratio(weights, weights.sum(axis=1, keepdims=True), 0.0)
    now = share * groups.weights[:, None, :]
    middles = (np.arange(bins) + 0.5) / bins
    scores = ratio(block.score_sums.reshape(weights.shape), weights, middles)
    # Without class probabilities, the rest is spread evenly over the classes that are not predicted.
    scores[:, 0] = (1 - scores[:, 0]) / (classes - 1)
    starts = np.flatnonzero(np.diff(of_bins, prepend=-1))
    traffic = np.add.reduceat(now, starts, axis=2)
    means = ratio(np.add.reduceat(now * scores, starts, axis=2), traffic, 0.5)
    flat = traffic.reshape(len(groups.names), -1)
    # NaN where nothing is counted yet by prediction: then no rate is known.
    shares = ratio(flat, flat.sum(axis=1, keepdims=True))
    strata = RateStrata(shares, np.repeat((False, True), len(starts)), means.reshape(flat.shape))
    counts = np.add.reduceat(block.counts.reshape(weights.shape).astype(np.float64), starts, axis=2)
    # Counts, spread as weights are, which favour what is new.
    by_prediction = counts.sum(axis=1, keepdims=True) * ratio(
        traffic, traffic.sum(axis=1, keepdims=True), 0.0
    )
    whole = np.add.reduceat(groups.weights, starts, axis=1)
    return CountedStrata(
        strata,
        ratio(whole, whole.sum(axis=1, keepdims=True)),
        groups.counts.sum(axis=1).astype(np.float64),
        by_prediction[:, 0],
        by_prediction[:, 1],
    )


def _most_strata(groups: int) -> int:
    """Strata by score, of each prediction; fewer where groups are very many."""
    return max(1, min(MOST_SCORE_STRATA, _GROUP_STRATA // groups))


def stratum_labels(
    index: GroupIndex,
    groups: Groups,
    labels: Labels,
    strata: RateStrata,
    *,
    of: Indices | None = None,
    open_is_positive: bool = False,
) -> RateLabels:
    """Effective labels of every group and stratum, of one run.

    `of` has the stratum of every class and score bin [classes, B], if it is not as `counted_strata` has it.
    Items without a label that may have any true class are positive with `open_is_positive`, where they are
    not selected, and not right either.
    """
    inside = groups.labels_of(labels)
    cells, positive_class = index.cells, index.space.classes.index(_positive(index))
    selected = cells.classes[inside.cells] == positive_class
    number, width = groups.cells[inside.cells], strata.shares.shape[1]
    if of is None:
        of_bins = score_strata(index.space.bin_count, _most_strata(len(groups.names)))
        of = np.tile(of_bins, (len(index.space.classes), 1))
        of[positive_class] += width // 2
    place = number * width + of[cells.classes[inside.cells], cells.bins[inside.cells]]
    positive = np.where(selected, inside.correct > 0, inside.true_classes == positive_class)
    if open_is_positive:
        positive |= ~selected & (inside.correct == 0) & (inside.true_classes == NO_CLASS)
    if len(index.space.classes) == 2:  # noqa: PLR2004 - then whoever is not right means the other class
        positive = selected == (inside.correct > 0)
    total, ones = effective_counts(
        groups=place,
        group_count=strata.shares.size,
        weights=inside.weights,
        freshness=inside.freshness,
        correct=positive.astype(np.float64),
    )
    shape = (1, len(groups.names), width)
    return RateLabels(strata, total.reshape(shape), ones.reshape(shape))


def _positive(index: GroupIndex) -> str:
    if index.space.selections is None:
        raise ValueError("no assessment of this model estimates error rates")
    return index.space.selections.positive
