"""How votes are distributed among predictions that are alike in everything else (pure)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from service.domain.arrays import Floats
from service.domain.cells import CHALLENGE
from service.domain.traffic_tables import CHALLENGE_COLUMNS
from service.monitoring.group_index import GroupIndex

_TINY = np.finfo(float).tiny


def vote_shares(index: GroupIndex) -> Iterator[tuple[str, Floats]]:
    """Share of every vote in the traffic that a label cell has in common with cells of other votes.

    The voters' table tells it by predicted class and score bin. What a challenger says is counted by the
    values of attributes too: given its vote, these are taken to be independent of one another, of class and
    of score.

    Args:
        index: groups of the model.

    Yields:
        A vote that has traffic, in the order of its groups, and its share [cells]; shares of all votes sum
        to 1.
    """
    if index.space.voters is None:
        return
    attribute = index.space.voters[0]
    table, names = index.traffic.tables[attribute], index[attribute].names
    weights = table.block("class_bins").weights
    overall = weights.sum(axis=1)
    columns = index.cells.classes * index.space.bin_count + index.cells.bins
    total = weights.sum(axis=0)
    # Where there is no traffic of a class and bin, votes are taken to be distributed as in all traffic.
    weights = np.where(total > 0, weights, overall[:, None])
    shares = weights / np.maximum(weights.sum(axis=0), _TINY)
    if attribute != CHALLENGE:
        yield from ((name, shares[table.rows[name], columns]) for name in names)
        return
    plain = np.zeros((len(CHALLENGE_COLUMNS), len(columns)))
    for name in names:
        plain[CHALLENGE_COLUMNS.index(name)] = shares[table.rows[name], columns]
    likely = plain * _ratios(index)
    summed = likely.sum(axis=0)
    found = np.where(summed > 0, likely / np.maximum(summed, _TINY), plain)
    yield from ((name, found[CHALLENGE_COLUMNS.index(name)]) for name in names)


def _ratios(index: GroupIndex) -> Floats:
    """By how much attribute values make each of `CHALLENGE_COLUMNS` likelier [3, cells]."""
    ratios = np.ones((len(CHALLENGE_COLUMNS), len(index.cells)))
    by_value = {g.attribute: name for name, g in index.space.groupings.items() if g.kind == "attribute"}
    for grouping in by_value.values():
        said, groups = index.challenged(grouping), index[grouping]
        overall = said.sum(axis=0)
        expected = overall / max(float(overall.sum()), _TINY)
        own = said / np.maximum(said.sum(axis=1, keepdims=True), _TINY)
        found = np.divide(own, expected, out=np.zeros_like(own), where=expected > 0)
        found = np.vstack([found, np.ones((1, len(CHALLENGE_COLUMNS)))])
        ratios *= found[groups.numbers].T
    return ratios
