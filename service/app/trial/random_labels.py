"""What labels drawn at random would have cost, from replays of the rows that a trial has streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from service.app.trial.ledger import Ledger
from service.app.trial.results import RandomLabels, TrialGroup
from service.demo.random_sampling import MOST_TIMES_AS_MANY, Population, fewest_labels
from service.domain.arrays import Indices

_REPLAYS: Final = 10


def random_labels(
    ledger: Ledger,
    labelled: Sequence[str],
    groups: Sequence[TrialGroup],
    grouping: str,
) -> RandomLabels | None:
    """Random labels with which the interval of the group with the lowest estimate is no wider.

    Both intervals are made by the same statistics, in which each label counts once and none is forgotten,
    from true classes without noise: that of the items which Credence chose, and those of items drawn from all
    rows with a true class, without replacement.

    Args:
        ledger: of the rows.
        labelled: items that Credence requested and got a label of.
        groups: of the grouping.
        grouping: that an assessment requests labels for.

    Returns:
        None if nothing can be compared.
    """
    known = np.flatnonzero(ledger.has_truth)
    chosen = _positions(known, ledger.rows_of(labelled))
    if not len(chosen) or not groups:
        return None
    weakest = min(groups, key=lambda each: each.reading.mean).reading.group
    members = ledger.members(grouping)
    if weakest not in members.names:
        return None
    population = Population.of(
        members.groups[known],
        ledger.scores[known],
        ledger.correct[known],
        weights=np.ones(len(known)),
        group_count=len(members.names),
    )
    group = members.names.index(weakest)
    width = population.width(chosen, group)
    most = min(MOST_TIMES_AS_MANY * len(chosen), len(known))
    needed = list(_replays(population, group, width=width, most=most))
    return RandomLabels(grouping, weakest, width, len(chosen), needed, most)


def _replays(population: Population, group: int, *, width: float, most: int) -> Iterator[int | None]:
    everything = np.ones(most, dtype=np.bool_)
    for seed in range(_REPLAYS):
        rng = np.random.default_rng(seed)
        drawn = rng.choice(len(population.cells), size=most, replace=False)
        yield fewest_labels(population, drawn, everything, group=group, width=width)


def _positions(known: Indices, rows: Indices) -> Indices:
    """Positions among the ascending `known` of those rows that are known."""
    at = np.searchsorted(known, rows)
    is_known = (at < len(known)) & (known[np.minimum(at, len(known) - 1)] == rows) if len(known) else at < 0
    found: Indices = at[is_known]
    return found
