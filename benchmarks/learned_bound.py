"""How many labels does a detection take with a bound on wrong labels that is learned from gold items?

The accuracy of a group is 82%, and its target 88%. Of first labels, a share is wrong, and says that a correct
prediction is wrong; about an incorrect prediction a wrong label is the predicted class in one of K - 1 cases.
The model is right about 92% of the gold items. docs/annotators.md explains the figures.
"""

from __future__ import annotations

import argparse
from typing import Final

import numpy as np

from service.domain.arrays import Flags
from service.replay.tables import Table, print_tables
from service.statistics.e_processes import log_e_below
from service.statistics.label_errors import NEVER_WRONG, GoldCounts, WrongLabels, learned, stated

ACCURACY: Final = 0.82
TARGET: Final = 0.88
OF_GOLD: Final = 0.92
ALPHA: Final = 0.05
LABELS: Final = 3_000
GOLD: Final = (100, 400, 1_000, 4_000)
WORLDS: Final = tuple((classes, wrong) for classes in (2, 5) for wrong in (0.01, 0.02, 0.05))


def labels_to_detection(agrees: Flags, allowed: WrongLabels) -> float | None:
    """Labels until half of the groups are confirmed to be below the target; None if that takes more labels.

    The highest bound has the least evidence wherever there is any, so that the others are not looked at.
    """
    if allowed.most_of_correct is None:
        return None
    counts = np.arange(1, agrees.shape[1] + 1)
    correct = np.cumsum(agrees, axis=1).astype(np.float64)
    target = np.full(agrees.shape, TARGET * (1 - allowed.most_of_correct))
    confirmed = log_e_below(correct, counts - correct, target) >= -np.log(allowed.left_of(ALPHA))
    first = np.where(confirmed.any(axis=1), confirmed.argmax(axis=1) + 1.0, np.inf)
    median = float(np.median(first))
    return median if np.isfinite(median) else None


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=200)
    groups: int = parser.parse_args().groups
    after, bounds = [], []
    for classes, wrong in WORLDS:
        rng = np.random.default_rng(0)
        shape = (groups, LABELS)
        correct, is_wrong = rng.random(shape) < ACCURACY, rng.random(shape) < wrong
        agrees = np.where(is_wrong, ~correct & (rng.random(shape) < 1 / (classes - 1)), correct)
        of_gold = [round(OF_GOLD * count) for count in GOLD]
        learnt = [learned(GoldCounts(right, round(wrong * right)), ALPHA) for right in of_gold]
        name = f"{classes} classes, {wrong:.0%} wrong"
        clean = labels_to_detection(correct, NEVER_WRONG)
        others = (labels_to_detection(agrees, allowed) for allowed in (stated(wrong), *learnt))
        after.append((name, (clean, *others)))
        known = (allowed.most_of_correct for allowed in learnt)
        bounds.append((name, tuple(None if bound is None else 100 * bound for bound in known)))
    gold = tuple(f"{count:,} gold labels" for count in GOLD)
    tables = [
        Table("labels to detection", "labels", ("all right", "stated bound", *gold), after),
        Table("learned bound, %", "labels", gold, bounds),
    ]
    print_tables(tables, as_json=False, as_markdown=True)


if __name__ == "__main__":
    main()
