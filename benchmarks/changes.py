"""Coverage of a group's intervals by the labels since a drop in accuracy, and what any method can hold.

python -m benchmarks.changes --runs 400
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from scipy import special, stats

from service.statistics.change_points import change_point_weights

ACCURACY = 0.92
DROPS = (0.05, 0.1, 0.2, 0.3)
SINCE = (25, 50, 100, 200, 400)
RUN_LENGTHS = (100, 250, 500, 1_000, 10_000)
TAILS = (0.025, 0.975)


def intervals(labels: np.ndarray, run_length: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends of 95% intervals under Jeffreys' prior, and effective labels, of every row of outcomes."""
    sizes = np.full(len(labels), labels.shape[1])
    factors = change_point_weights(correct=labels.ravel(), sizes=sizes, run_length=run_length).factors
    weights = factors.reshape(labels.shape)
    right, total = (weights * labels).sum(axis=1), weights.sum(axis=1)
    lower, upper = (special.betaincinv(right + 0.5, total - right + 0.5, tail) for tail in TAILS)
    return lower, upper, total


def least_reach(accuracy: float, drop: float, since: int) -> float:
    """Least probability with which an interval must hold the dropped accuracy while nothing has changed.

    For any interval that holds it in 93% of cases `since` labels after the drop: total variation between the
    labels that have come since bounds how far the two probabilities lie apart (Le Cam's two-point method).
    """
    right = np.arange(since + 1)
    one, other = (stats.binom.pmf(right, since, now) for now in (accuracy, accuracy - drop))
    return max(0.0, 0.93 - float(np.abs(one - other).sum()) / 2)


def coverage(
    runs: int, run_length: float, accuracy: float, drop: float, *, before: int, ahead: Sequence[int]
) -> tuple[list[float], float, float]:
    """Coverage by labels since the drop (`ahead`); width of intervals and effective labels before it."""
    accuracies = np.where(np.arange(before + ahead[-1]) < before, accuracy, accuracy - drop)
    labels = np.random.default_rng(0).random((runs, len(accuracies))) < accuracies
    held, width, effective = [], 0.0, 0.0
    for since in (0, *ahead):
        lower, upper, left = intervals(labels[:, : before + since], run_length)
        truth = accuracies[before + since - 1]
        held.append(float(((lower <= truth) & (truth <= upper)).mean()))
        if since == 0:
            width, effective = float((upper - lower).mean()), float(left.mean())
    return held, width, effective


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--accuracy", type=float, default=ACCURACY)
    parser.add_argument("--before", type=int, default=600, help="labels before the drop (600)")
    parser.add_argument("--run-lengths", type=int, nargs="+", default=RUN_LENGTHS)
    parser.add_argument(
        "--since", type=int, nargs="+", default=SINCE, help="labels since the drop, ascending"
    )
    options = parser.parse_args()
    ahead = " | ".join(f"after {since}" for since in options.since)
    before = f"width before, points | effective labels of {options.before}"
    print(f"| run length | {before} | drop, points | {ahead} |")
    print("| ---: " * (4 + len(options.since)) + "|")
    for run_length in options.run_lengths:
        for drop in DROPS:
            held, width, effective = coverage(
                options.runs,
                run_length,
                options.accuracy,
                drop,
                before=options.before,
                ahead=options.since,
            )
            row = " | ".join(f"{100 * share:.0f}%" for share in held[1:])
            print(f"| {run_length:,} | {100 * width:.1f} | {effective:.0f} | {100 * drop:.0f} | {row} |")
    print()
    print(f"| drop, points | {ahead} |")
    print("| ---: " * (1 + len(options.since)) + "|")
    for drop in DROPS:
        row = " | ".join(
            f"{100 * least_reach(options.accuracy, drop, since):.0f}%" for since in options.since
        )
        print(f"| {100 * drop:.0f} | {row} |")


if __name__ == "__main__":
    main()
