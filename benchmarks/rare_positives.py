"""How soon the recall of a rare class gets known, by adaptive labels and by labels at random.

One item in 500 is positive. A classifier is watched as the service does it, without Kafka and Redis. Labels
are requested by the policy `adaptive` with the aim `recall`, or at random.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from benchmarks.known_classifiers import Classifier, Truth
from benchmarks.watched import Watched
from service.replay.tables import Table, print_tables

LABELS = (20, 50, 100, 200)
POLICIES = ("adaptive", "random")

_PREVALENCE, _DISTANCE = 0.002, 4.5
_TRAFFIC_BEFORE, _TRAFFIC_BETWEEN = 50_000, 500
_LABELS_AT_ONCE = 10
_ROOM = 200
"""Items of a score bin that are pooled; a quarter of the traffic called positive."""


def watched(policy: str, seed: int, labels: Sequence[int]) -> Iterator[tuple[float, ...]]:
    """Width of the interval of the recall, whether it holds, and that of F1, at each number of labels.

    Then whether labels contradict the score model, and of the design-based interval of the recall its width
    and whether it holds.
    """
    rng = np.random.default_rng([seed, POLICIES.index(policy)])
    slope = float(np.exp(rng.normal(0, 0.3)))
    classifier = Classifier(_PREVALENCE, _DISTANCE, (1.0, 1.0), float(rng.normal(0, 0.5)), slope, np.zeros(1))
    truth = Truth.of(classifier, rng)
    site = Watched(classifier, truth.threshold, rng, room=_ROOM, policy=policy, aim="recall")
    site.take_in(_TRAFFIC_BEFORE)
    asked = 0
    for count in labels:
        while asked < count:
            site.ask(min(_LABELS_AT_ONCE, count - asked))
            site.take_in(_TRAFFIC_BETWEEN)
            asked += _LABELS_AT_ONCE
        snapshot = site.believed()
        recall = snapshot.measures["recall"]
        held = truth.held(snapshot)
        design = snapshot.design.estimate.measures["recall"]
        yield (
            float(recall.upper - recall.lower),
            held["recall"],
            held["f1"],
            float(snapshot.design.disagrees),
            float(design.upper - design.lower),
            float(design.lower <= truth.measures["recall"] <= design.upper),
        )


def _all(policy: str, labels: Sequence[int], seed: int) -> list[tuple[float, ...]]:
    return list(watched(policy, seed, labels))


def table(runs: int, jobs: int, labels: Sequence[int]) -> Table:
    """Mean width of intervals, and the share that holds the truth, by policy and number of labels."""
    rows = []
    with ProcessPoolExecutor(jobs) as pool:
        for policy in POLICIES:
            found = np.array(list(pool.map(partial(_all, policy, labels), range(runs))))
            for at, count in enumerate(labels):
                rows.append((f"{policy}, {count}", tuple(100 * found[:, at].mean(axis=0))))
    return Table(
        f"one item in 500 is positive, %: {runs} classifiers",
        "policy, labels",
        ("width, recall", "recall holds", "F1 holds", "labels contradict", "width, design", "design holds"),
        rows,
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure how soon the recall of a rare class gets known.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS, help="numbers of labels to look at")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    found = table(options.runs, options.jobs, options.labels)
    print_tables([found], as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
