"""What labels drawn at random would have cost, from replays of the rows that a trial has streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from service.app.trial.ledger import Ledger
from service.app.trial.results import RandomLabels, TrialGroup
from service.demo.random_sampling import MOST_TIMES_AS_MANY, Population, fewest_labels
from service.domain.arrays import Indices

_ORDERS: Final = 10

FEWEST_LABELS: Final = 10
"""Labels of the group from which on random ones are compared; with fewer, the prior makes its interval."""


def random_labels(ledger: Ledger, labelled: Sequence[str], lowest: TrialGroup | None) -> RandomLabels | None:
    """Random labels with which the interval of the group with the lowest estimate is no wider.

    Both intervals are made by the same statistics, in which each label counts once and none is forgotten,
    from true classes without noise: that of the items which Credence chose, and those of items drawn from all
    rows with a true class, without replacement.

    Args:
        ledger: of the rows.
        labelled: items that Credence requested and got a label of.
        lowest: the group.

    Returns:
        None if it has too few labels to compare.
    """
    if lowest is None:
        return None
    known = np.flatnonzero(ledger.has_truth)
    chosen = _positions(known, ledger.rows_of(labelled))
    members = ledger.members(lowest.reading.grouping)
    if lowest.reading.group not in members.names:
        return None
    group = members.names.index(lowest.reading.group)
    if np.count_nonzero(members.groups[known][chosen] == group) < FEWEST_LABELS:
        return None
    population = Population.of(
        members.groups[known],
        ledger.scores[known],
        ledger.correct[known],
        weights=np.ones(len(known)),
        group_count=len(members.names),
    )
    width = population.width(chosen, group)
    most = min(MOST_TIMES_AS_MANY * len(chosen), len(known))
    needed = list(_replays(population, group, width=width, most=most))
    return RandomLabels(lowest.name, width, len(chosen), needed, most)


def _replays(population: Population, group: int, *, width: float, most: int) -> Iterator[int | None]:
    everything = np.ones(most, dtype=np.bool_)
    for seed in range(_ORDERS):
        rng = np.random.default_rng(seed)
        drawn = rng.choice(len(population.cells), size=most, replace=False)
        yield fewest_labels(population, drawn, everything, group=group, width=width)


def _positions(known: Indices, rows: Indices) -> Indices:
    """Positions among the ascending `known` of those rows that are known."""
    at = np.searchsorted(known, rows)
    is_known = (at < len(known)) & (known[np.minimum(at, len(known) - 1)] == rows) if len(known) else at < 0
    found: Indices = at[is_known]
    return found
