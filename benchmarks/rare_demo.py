"""Does the demo of a rare class show the same with other seeds, and do its intervals contain the truth?

Each run watches the demo's transactions as the service does, without Kafka and Redis, for every policy.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count

import numpy as np

from benchmarks.known_classifiers import Items
from benchmarks.watched import Watched
from service.demo.rare.configuration import LABELS
from service.demo.rare.producer import BACKLOG
from service.demo.rare.transactions import THRESHOLD, Transactions, true_performance
from service.replay.tables import Table, print_tables

POLICIES = ("adaptive", "random")

_LABELS_AT_ONCE = 10
_TRAFFIC_BETWEEN = 1_000
_NARROW_POINTS, _WIDE_POINTS = 20.0, 80.0


class Stream:
    """The demo's transactions as a classifier's items, one after the other."""

    shifts = np.zeros(1)

    def __init__(self, seed: int) -> None:
        self._transactions, self._numbers = Transactions(seed), count()

    def items(self, count: int, _rng: np.random.Generator) -> Items:
        """The next items."""
        numbers = [next(self._numbers) for _ in range(count)]
        transactions = self._transactions
        return Items(transactions.scores(numbers), transactions.frauds(numbers), np.zeros(count, np.intp))


def one_run(policy: str, seed: int) -> tuple[float, bool]:
    """Width of the interval of recall after all labels, in points, and whether it contains the truth."""
    rng = np.random.default_rng([seed, POLICIES.index(policy)])
    # Twice the budget, as the service pools.
    site = Watched(Stream(seed), THRESHOLD, rng, room=2 * LABELS, policy=policy, aim="recall")
    site.take_in(BACKLOG)
    for _ in range(LABELS // _LABELS_AT_ONCE):
        site.ask(_LABELS_AT_ONCE)
        site.take_in(_TRAFFIC_BETWEEN)
    recall = site.believed().measures["recall"]
    return 100 * float(recall.upper - recall.lower), bool(
        recall.lower <= true_performance().recall <= recall.upper
    )


def table(runs: int, jobs: int) -> Table:
    """Widths and coverage, by policy."""
    rows: list[tuple[str, tuple[float | None, ...]]] = []
    with ProcessPoolExecutor(jobs) as pool:
        for policy in POLICIES:
            found = list(pool.map(partial(one_run, policy), range(1, runs + 1)))
            widths, inside = (np.array(each) for each in zip(*found, strict=True))
            rows.append(
                (
                    policy,
                    (
                        float(np.mean(widths)),
                        float(np.max(widths)),
                        100 * float(np.mean(widths <= _NARROW_POINTS)),
                        100 * float(np.mean(widths > _WIDE_POINTS)),
                        100 * float(np.mean(inside)),
                    ),
                )
            )
    return Table(
        f"the demo of a rare class, {LABELS} labels: {runs} seeds",
        "policy",
        (
            "width, points",
            "widest",
            f"at most {_NARROW_POINTS:g} points, %",
            f"above {_WIDE_POINTS:g} points, %",
            "recall holds, %",
        ),
        rows,
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Repeat the demo of a rare class, without Kafka and Redis.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    found = table(options.runs, options.jobs)
    print_tables([found], as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
