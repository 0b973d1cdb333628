"""How often the intervals that the service shows of binary classifiers hold the truth.

Classifiers of seven kinds are watched with the default bounds. docs/binary-classifiers.md explains what the
figures mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.known_classifiers import KINDS, MEASURES, Classifier, Truth
from benchmarks.watched import Watched
from service.replay.tables import Cell, Table, print_tables

LABELS = (20, 50, 200)
COLUMNS = (*MEASURES, "curve")

_TRAFFIC_BEFORE, _TRAFFIC_BETWEEN = 3_000, 300
"""Predictions before the first label, and in every round."""

_LABELS_AT_ONCE = 20


def covered(
    kind: str, seed: int, labels: Sequence[int] = LABELS, *, regions: int = 1, at_once: int = _LABELS_AT_ONCE
) -> Iterator[tuple[int, dict[str, float]]]:
    """Numbers of labels, ascending, and which intervals of a classifier hold the truth then.

    Args:
        kind: of classifier.
        seed: of this one, its traffic and its labels.
        labels: numbers of labels at which to look.
        regions: that it has predictions from.
        at_once: labels in every round.
    """
    rng = np.random.default_rng([seed, KINDS.index(kind), regions])
    classifier = Classifier.of_kind(kind, rng, regions=regions)
    truth = Truth.of(classifier, rng)
    watched = Watched(classifier, truth.threshold, rng)
    watched.take_in(_TRAFFIC_BEFORE)
    asked = 0
    for count in labels:
        while asked < count:
            wanted = min(at_once, count - asked)
            watched.ask(wanted)
            watched.take_in(_TRAFFIC_BETWEEN)
            asked += wanted
        yield count, truth.held(watched.believed())


def table(runs: int, regions: int) -> Table:
    """Coverage by kind of classifier, all numbers of labels together; and by number of labels."""
    found = {
        (kind, seed): dict(covered(kind, seed, regions=regions)) for kind in KINDS for seed in range(runs)
    }

    def row(name: str, held: Sequence[dict[str, float]]) -> tuple[str, tuple[Cell, ...]]:
        return name, tuple(100 * float(np.mean([each[column] for each in held])) for column in COLUMNS)

    by_kind = [
        row(kind, [held for (of, _), each in found.items() if of == kind for held in each.values()])
        for kind in KINDS
    ]
    by_labels = [row(f"{count} labels", [each[count] for each in found.values()]) for count in LABELS]
    return Table(
        f"share of 95% intervals that hold the truth, %: {len(found)} classifiers, "
        + ("one group of traffic" if regions == 1 else f"{regions} regions, of which the weakest is sought"),
        "classifiers",
        COLUMNS,
        by_kind + by_labels,
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure how often shown intervals hold the truth.")
    parser.add_argument("--runs", type=int, default=8, help="classifiers of every kind")
    parser.add_argument("--regions", type=int, default=1, help="that their predictions come from")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    print_tables([table(options.runs, options.regions)], as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
