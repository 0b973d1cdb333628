"""Traffic by epochs: current shares, and how densely labels were drawn from the traffic of their time.

Epochs are stretches of time, the newest first. An interval is about the predictions that come now, so shares
are those of the newest traffic. A label that was drawn for a group is an even sample of the group's traffic
*of its epoch*. So a cell c was labelled with the density

    D(c) = sum over groupings a that asked, and epochs e, of  n_ae f_e(c) r_e(c) / s_ae,

with n_ae the labels of the epoch that were requested for the group of c in a, s_ae that group's share of the
epoch's traffic, f_e(c) the factor that forgetting leaves of the epoch's labels in c, and r_e(c) the ratio of
c's share of the traffic then and now. Labels have weight 1 / D(c): the balance heuristic (Veach and Guibas,
SIGGRAPH 1995) over all groupings and epochs. While traffic moves only between the groups of the grouping that
asks, this is n / (share now).

Traffic is counted by group and score bin of every grouping, not by cell; so r_e is the ratio of least
relative entropy that has these counts: iterative proportional fitting (Deming and Stephan, 1940).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.ratios import ratio

_ENOUGH = 1_000.0  # predictions of a group that determine its score bins
_ROUNDS = 4  # of proportional fitting; the remaining error is below what labels can show
_MOST = 50.0  # largest factor by which a cell's share may have changed, as small counts are noisy
_PSEUDO = 20.0  # predictions per epoch with the overall shares, so that rare groups have a positive share


def recent_weights(epochs: Floats) -> Floats:
    """Current traffic, in predictions of the newest epochs that determine it [G, B].

    A group's score bins come from the newest epochs that have `_ENOUGH` of its predictions, the shares of
    groups from those that have as many for every group. `epochs` are predictions by epoch, group and score
    bin, newest first [E, G, B].
    """
    counts = np.cumsum(epochs, axis=0, dtype=np.float64)
    of_groups = counts.sum(axis=2)
    groups = np.arange(of_groups.shape[1])
    own = counts[_first(of_groups >= _ENOUGH), groups]
    total = of_groups.sum(axis=1)
    shares = of_groups[_first(total[:, None] >= _ENOUGH * min(len(groups), 10))[0]]
    sizes = own.sum(axis=1)
    # A group without recent predictions may still get some.
    shares = np.where((shares == 0) & (sizes > 0), 0.5, shares)
    return own * ratio(shares, sizes, 0.0)[:, None]


def _first(found: Flags) -> Indices:
    """The first epoch that has enough of every column, or else the last one."""
    return np.where(found.any(axis=0), found.argmax(axis=0), len(found) - 1)


def epoch_shares(counts: Floats, now: Floats) -> Floats:
    """Shares of the traffic of every epoch, all positive [E, M].

    `counts` are predictions by epoch [E, M], `now` the current shares, which become those of the newest epoch
    [M].
    """
    whole = counts.sum(axis=0) + 1e-9
    smooth = counts + _PSEUDO * whole / whole.sum()
    shares = smooth / smooth.sum(axis=1, keepdims=True)
    shares[0] = np.maximum(now, 1e-12) / np.maximum(now, 1e-12).sum()
    return np.asarray(shares, np.float64)


@dataclass(frozen=True)
class Margin:
    """A table of traffic."""

    entries: Indices  # entry of the table for every cell; their number for a cell in none [cells]
    shares: Floats  # of every epoch's traffic, by entry [E, M]


def share_ratios(mass: Floats, margins: Sequence[Margin]) -> Floats:
    """Each cell's share of every epoch's traffic over its share now [E, cells].

    `mass` is each cell's share of traffic now, by the labels, on any scale [cells]; `margins` are all tables.
    """
    epochs = len(margins[0].shares)
    now = _rake(np.repeat(mass[None] / max(mass.sum(), 1e-300), 1, axis=0), margins, slice(0, 1))
    then = _rake(np.repeat(now, epochs, axis=0), margins, slice(None))
    return np.clip(ratio(then, now, 1.0), 1 / _MOST, _MOST)


def _rake(mass: Floats, margins: Sequence[Margin], which: slice) -> Floats:
    """Shares of cells with the margins of some epochs [E, cells]."""
    for _ in range(_ROUNDS):
        for margin in margins:
            shares = margin.shares[which]
            size = shares.shape[1] + 1
            entries = margin.entries + size * np.arange(len(shares))[:, None]
            sums = np.bincount(entries.ravel(), weights=mass.ravel(), minlength=size * len(shares))
            wanted = np.append(shares, np.zeros((len(shares), 1)), axis=1).ravel()
            factors = np.divide(wanted, sums, out=np.ones(len(sums)), where=(sums > 0) & (wanted > 0))
            mass = mass * factors[entries]
    return mass


@dataclass(frozen=True)
class Draws:
    """Labels drawn for one grouping."""

    groups: Indices  # group of every cell; the number of groups for a cell in none [cells]
    labels: Floats  # drawn by group and epoch, before forgetting [G + 1, E]
    shares: Floats  # of every epoch's traffic, by group [E, G]


def epoch_label_densities(draws: Sequence[Draws], left: Floats, ratios: Floats) -> Floats:
    """Labels per share of traffic, of every cell [cells].

    A group that has any labels counts at least one: else a few stale ones would represent their group's whole
    traffic, with enormous weights. `left` is the factor that forgetting leaves of an epoch's labels in every
    cell [cells, E], `ratios` comes from `share_ratios` [E, cells].
    """
    density = np.zeros(len(left))
    then = left * ratios.T
    for drawn in draws:
        rates = drawn.labels[:-1] / np.maximum(drawn.shares.T, 1e-12)
        own = (np.append(rates, np.zeros((1, rates.shape[1])), axis=0)[drawn.groups] * then).sum(axis=1)
        least = np.where(drawn.labels.sum(axis=1) > 0, 1.0, 0.0) / np.append(
            np.maximum(drawn.shares[0], 1e-12), 1
        )
        least[-1] = 0.0
        density += np.maximum(own, least[drawn.groups])
    return density


def retention_by_region(regions: Indices, whole: Floats, left: Floats) -> Floats:
    """Factor that forgetting leaves of an epoch's labels, over cells that changed together [cells, E].

    `whole` are the labels of every cell and epoch, `left` what forgetting leaves of them [cells, E]. Where an
    epoch has no labels, the factor is that of the next newer one that has.
    """
    count = int(regions.max(initial=-1)) + 1
    labels, remaining = (np.zeros((count, whole.shape[1])) for _ in range(2))
    np.add.at(labels, regions, whole)
    np.add.at(remaining, regions, left)
    share = ratio(remaining, labels)
    before = np.ones(count)
    for epoch in range(share.shape[1]):
        share[:, epoch] = before = np.where(np.isnan(share[:, epoch]), before, share[:, epoch])
    return np.asarray(share[regions], np.float64)
