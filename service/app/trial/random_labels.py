"""What labels drawn at random would have cost, from random orders of the rows that a trial has streamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from service.app.trial.ledger import Ledger
from service.app.trial.results import RandomLabels, TrialGroup

_ORDERS: Final = 100

FEWEST_LABELS: Final = 10
"""Labels of the group from which on random ones are compared; with fewer, chance decides how many."""


def random_labels(ledger: Ledger, labelled: Sequence[str], lowest: TrialGroup | None) -> RandomLabels | None:
    """Labels drawn at random until the group with the lowest estimate has as many as it has from Credence.

    The same number of labels of the group gives about the same interval, whoever chose them. Rows with a true
    class are drawn without replacement.

    Args:
        ledger: of the rows.
        labelled: items that Credence requested and got a label of.
        lowest: the group.

    Returns:
        None if it has too few labels to compare.
    """
    if lowest is None:
        return None
    members = ledger.members(lowest.reading.grouping)
    if lowest.reading.group not in members.names:
        return None
    has_truth = ledger.has_truth
    chosen = ledger.rows_of(labelled)
    chosen = chosen[has_truth[chosen]]
    is_of_group = members.groups == members.names.index(lowest.reading.group)
    own = int(np.count_nonzero(is_of_group[chosen]))
    if own < FEWEST_LABELS:
        return None
    drawable = is_of_group[has_truth]
    needed = [
        int(np.flatnonzero(np.random.default_rng(seed).permutation(drawable))[own - 1]) + 1
        for seed in range(_ORDERS)
    ]
    return RandomLabels(lowest.name, own, len(chosen), needed)
