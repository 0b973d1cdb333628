"""How often intervals hold the accuracies of networks whose scores promise too much, from a few labels on.

Simulated networks resemble recorded ones: most scores are at the very end of the scale. Recordings may be
given as files, as of `credence replay`. Groups are predicted classes. docs/coverage.md explains the figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from benchmarks.cell_worlds import BINS, World, watch
from service.domain.arrays import Floats
from service.replay.grouping import Grouper
from service.replay.recording import load_recording
from service.replay.tables import Cell, Table, print_tables

BUDGETS: Final = (4, 10, 20, 50, 200)
MASS: Final = 0.95
TASKS: Final = {"random": None, "Thompson sampling": ("identification", "accuracy")}

_SCORES: Final = (np.arange(BINS) + 0.5) / BINS
_TOP_SCORE: Final = 0.995  # mean score of the last bin, where most traffic is


class Network(NamedTuple):
    """How scores and accuracy of a kind of network are related, on the scale of logits."""

    shares: tuple[float, ...]  # traffic of the predicted classes
    top: float  # share of the traffic that is in the last score bin
    slope: float  # of the accuracy by the score, around 1/2
    offsets: tuple[float, ...]  # of the predicted classes; means, if `spread` is not 0
    spread: float = 0.0  # standard deviation of the offsets

    def world(self, rng: np.random.Generator) -> World:
        """One network of the kind."""
        below = np.arange(1, BINS) / np.arange(1, BINS).sum()
        of_bins = np.append((1 - self.top) * below, self.top)
        scores = np.append(_SCORES[:-1], _TOP_SCORE)
        offsets = np.array(self.offsets) + self.spread * rng.normal(size=len(self.offsets))
        accuracy = special.expit(self.slope * special.logit(scores) + offsets[:, None])
        return World(np.outer(self.shares, of_bins), np.tile(scores, (len(offsets), 1)), accuracy)


def _alike(classes: int, offset: float, slope: float, spread: float, top: float) -> Network:
    return Network((1 / classes,) * classes, top, slope, (offset,) * classes, spread)


NETWORKS: Final[Mapping[str, Network]] = {
    "calibrated, 10 classes": _alike(10, 0.0, 1.0, 0.3, 0.6),
    "underconfident, 20 classes": _alike(20, 1.5, 1.5, 0.4, 0.2),
    "overconfident, 10 classes": _alike(10, -0.5, 0.65, 0.5, 0.9),
    "badly overconfident, 10 classes": _alike(10, 0.0, 0.3, 0.7, 0.95),
    "badly overconfident, 2 unlike classes": Network((0.83, 0.17), 0.95, 0.65, (0.0, -3.4)),
}


def recorded(path: Path) -> World:
    """The items of a recording, by predicted class."""
    pool = Grouper(BINS, "equal_width").by_predicted_class(load_recording(path))
    items, correct = pool.bin_counts
    accuracy = np.divide(correct, items, out=np.zeros_like(items), where=items > 0)
    return World(items / items.sum(), pool.cells.scores, accuracy)


class Coverage(NamedTuple):
    """Shares of intervals that hold the truth, and how good those of classes are, by labels [budgets]."""

    classes: Floats
    overall: Floats  # by the posteriors of the classes
    everything: Floats  # by all traffic as one group
    widths: Floats  # mean width of the intervals of classes
    errors: Floats  # RMSE of the means of classes


def measured(
    worlds: Callable[[np.random.Generator], World], task: tuple[str, str] | None, runs: int, seed: int = 0
) -> Coverage:
    """Of many runs, each with a network of its own."""
    found = np.zeros((5, len(BUDGETS)))
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        world = worlds(rng)
        truth, overall = world.group_accuracy(), world.overall_accuracy()
        for at, look in enumerate(watch(rng, world, task, BUDGETS)):
            lower, upper = look.groups.accuracy_interval(MASS)
            inside = (lower <= truth) & (truth <= upper)
            both = look.groups.overall.interval(MASS), look.everything.accuracy_interval(MASS)
            squares = (look.groups.accuracy.mean() - truth) ** 2
            found[:, at] += [
                inside.mean(),
                *(float(low[0] <= overall <= high[0]) for low, high in both),
                (upper - lower).mean(),
                squares.mean(),
            ]
    found /= runs
    found[-1] **= 0.5
    return Coverage(*found)


def table(name: str, worlds: Callable[[np.random.Generator], World], runs: int) -> Table:
    """Figures of one kind of network, by number of labels."""
    by_policy = {policy: measured(worlds, task, runs) for policy, task in TASKS.items()}
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (str(labels), tuple(100 * float(each[at]) for found in by_policy.values() for each in found))
        for at, labels in enumerate(BUDGETS)
    ]
    parts = ("classes", "overall", "all as one group", "width, points", "RMSE, points")
    columns = tuple(f"{policy}: {part}" for policy in by_policy for part in parts)
    return Table(f"{name}: coverage of {MASS:.0%} intervals, %; {runs} runs", "labels", columns, rows)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure coverage for overconfident networks.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="recordings beside the simulated")
    parser.add_argument("--runs", type=int, default=100, help="of every figure")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    tables = [table(name, network.world, options.runs) for name, network in NETWORKS.items()]
    for path in options.files:
        world = recorded(path)
        tables.append(table(path.stem, lambda _, world=world: world, options.runs))  # type: ignore[misc]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
