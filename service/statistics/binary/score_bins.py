"""Scores of a binary classifier in bins: a million of them are evaluated as fast as two thousand.

A score here is that of the *positive* class, whichever class was predicted. Bins follow the ranks: fine among
the highest scores, where a single item changes the precision, and of equal size further down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from service.domain.arrays import Floats, Ints

UNLABELLED, NEGATIVE, POSITIVE = -1, 0, 1

_TOP = 24  # this many of the highest ranks have bins of their own


@dataclass(frozen=True)
class ScoreBins:
    """Bins of scores, the lowest first; arrays are [B] except for the edges."""

    edges: Floats  # lowest score of every bin but the first [B - 1], ascending
    scores: Floats  # mean score
    counts: Floats  # items, labelled ones included; weighted ones count their weight
    positives: Floats  # positive labels
    negatives: Floats  # negative labels
    low: float = 0.0  # lowest possible score
    high: float = 1.0  # highest possible score
    lowest: float | None = None  # lowest observed score; `low` if None
    independent: float | None = None  # effective number of scores (Kish); all of them if None

    @cached_property
    def unlabelled(self) -> Floats:
        """Items without a label, by bin."""
        return np.maximum(self.counts - self.positives - self.negatives, 0.0)

    @property
    def lower_ends(self) -> Floats:
        """Lowest score of every bin."""
        return np.append(self.low if self.lowest is None else self.lowest, self.edges)

    @property
    def total(self) -> float:
        """All items."""
        return float(self.counts.sum())

    @cached_property
    def positions(self) -> Floats:
        """Mean scores, scaled from the range of possible scores to [0, 1]."""
        return (self.scores - self.low) / (self.high - self.low)

    @cached_property
    def edge_positions(self) -> Floats:
        """Edges on the same scale [B - 1]."""
        return (self.edges - self.low) / (self.high - self.low)

    @cached_property
    def ranks(self) -> Floats:
        """Share of the items below the middle of every bin, in (0, 1)."""
        return (np.cumsum(self.counts) - self.counts / 2) / self.total

    @property
    def effective(self) -> float:
        """Effective number of scores."""
        return self.total if self.independent is None else min(self.independent, self.total)

    def merged(self, most: int) -> ScoreBins:
        """The same in at most this many bins: half of equal size, half finer and finer towards the top."""
        if len(self.counts) <= most:
            return self
        half = most // 2
        even = np.linspace(0, 1, most - half, endpoint=False)
        top = 1 - np.geomspace(self.counts[-1] / self.total, 1, half, endpoint=False)
        below = (np.cumsum(self.counts) - self.counts) / self.total
        starts = np.searchsorted(below, np.concatenate((even, top)) - 1e-12)
        return self._merge(np.unique(np.append(starts[starts < len(self.counts)], 0)))

    def resolved(self, least: float) -> ScoreBins:
        """The same without bins whose edge positions are nearer than this to each other or the ends."""
        edges = np.clip(self.edge_positions, least, 1 - least)
        separate = (edges > least) & (edges < 1 - least) & (np.diff(edges, prepend=0.0) > 0)
        return self._merge(np.append(0, np.flatnonzero(separate) + 1))

    def _merge(self, starts: Ints) -> ScoreBins:
        def sums(values: Floats) -> Floats:
            return np.add.reduceat(values, starts)

        counts = sums(self.counts)
        return replace(
            self,
            edges=self.edges[starts[1:] - 1],
            scores=sums(self.counts * self.scores) / counts,
            counts=counts,
            positives=sums(self.positives),
            negatives=sums(self.negatives),
        )


def bin_scores(
    scores: Floats,
    labels: Ints | None = None,
    *,
    weights: Floats | None = None,
    label_weights: Floats | None = None,
    thresholds: Sequence[float] = (),
    most: int = 256,
    unit: bool = True,
) -> ScoreBins:
    """Put scores of the positive class in bins, so that precision and recall at each edge are exact.

    Between two edges they are interpolated, so no curve is off by more than what one bin holds.

    Args:
        scores: of every item [N].
        labels: `POSITIVE`, `NEGATIVE` or `UNLABELLED` of every item [N]; none if None.
        weights: how many items of the traffic every item represents [N], more than 0; 1 if None.
        label_weights: how many labels that of an item counts as [N], 0 or more; 1 if None.
        thresholds: scores that get an edge of their own, if any item is on either side.
        most: bins at most, the thresholds' excepted.
        unit: whether scores are probabilities; else any real numbers, such as the margin of a linear machine.

    Raises:
        ValueError: there are no scores, or one is out of range.
    """
    if not len(scores) or not np.all(np.isfinite(scores)):
        raise ValueError("scores must be finite, and there must be some")
    if unit and (scores.min() < 0 or scores.max() > 1):
        raise ValueError("scores must be probabilities, in [0, 1]")
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    mass = np.ones(len(scores)) if weights is None else weights[order]
    starts = _bin_starts(ordered, mass, thresholds, most)

    def sums(values: Floats) -> Floats:
        return np.add.reduceat(values, starts)[::-1]

    counts = sums(mass)
    outcomes = np.full(len(scores), UNLABELLED) if labels is None else labels[order]
    worth = np.ones(len(scores)) if label_weights is None else label_weights[order]
    low, high = (0.0, 1.0) if unit else _range(ordered)
    return ScoreBins(
        # The lowest score of a bin is that of its last item, as they fall.
        edges=ordered[np.append(starts[1:], len(scores)) - 1][::-1][1:],
        scores=sums(mass * ordered) / counts,
        counts=counts,
        positives=sums(np.where(outcomes == POSITIVE, worth, 0.0)),
        negatives=sums(np.where(outcomes == NEGATIVE, worth, 0.0)),
        low=low,
        high=high,
        lowest=float(ordered[-1]),
        independent=float(mass.sum() ** 2 / (mass**2).sum()),
    )


def _bin_starts(ordered: Floats, mass: Floats, thresholds: Sequence[float], most: int) -> Ints:
    """Where bins start among the items, the highest score first."""
    count = len(ordered)
    distinct = np.flatnonzero(np.diff(ordered, prepend=np.inf))
    if len(distinct) <= most:
        return distinct.astype(np.int64)
    half = max(most // 2, 1)
    reached = np.cumsum(mass)
    shares = np.concatenate(
        (
            np.arange(min(_TOP, half)) * reached[-1] / count,
            np.geomspace(min(_TOP, count) / count, 1, max(half - _TOP, 1), endpoint=False) * reached[-1],
            np.linspace(0, reached[-1], most - half, endpoint=False),
        )
    )
    wanted = np.searchsorted(reached, shares * (1 + 1e-12), side="right")
    first = np.searchsorted(-ordered, -ordered[np.minimum(wanted, count - 1)], side="left")
    below = np.searchsorted(-ordered, -np.asarray(thresholds, np.float64), side="right")
    starts = np.unique(np.concatenate((first, below)))
    return starts[starts < count].astype(np.int64)


def _range(ordered: Floats) -> tuple[float, float]:
    """A little more than the range of the scores, so that none is at an end."""
    high, low = float(ordered[0]), float(ordered[-1])
    margin = max((high - low) / 20, np.finfo(float).eps * max(abs(low), abs(high), 1.0))
    return low - margin, high + margin
