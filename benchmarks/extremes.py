"""How well the weakest group is known, and found: intervals of groups chosen because they are extreme.

Groups with Zipf's traffic, of which one is far weaker than its scores say and the others are not. Labels are
requested for the weakest group, and some for all traffic. docs/coverage.md explains the figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from benchmarks.cell_worlds import BINS, Look, World, watch
from service.domain.arrays import Floats
from service.replay.tables import Cell, Table, print_tables
from service.statistics.policies import POLICIES
from service.statistics.weakest import weakest_lower_end

MASS: Final = 0.95
BESIDE: Final = 0.25
"""Labels for all traffic, for every label for the weakest group."""

_TASK: Final = ("identification", "accuracy")
_ITEMS: Final = 400  # of every group; their mean is the group's accuracy
_FOUND: Final = 0.9  # of the runs in which the lowest estimate is that of the weakest group
_EVERY: Final = 250  # labels between two looks at which group is named


@dataclass(frozen=True)
class Setting:
    """How groups come about, on the scale of logits, and how many labels there are."""

    groups: int
    labels: int
    weaker: float = 1.5  # by so much is one group less accurate than its scores say
    unscored: float = 0.3  # standard deviation of all groups beyond their scores

    def world(self, rng: np.random.Generator) -> World:
        """One draw of the groups."""
        logits = rng.normal(2.5, 1.0, (self.groups, _ITEMS))
        beyond = self.unscored * rng.normal(size=self.groups)
        beyond[rng.integers(self.groups)] -= self.weaker
        right, scores = special.expit(logits + beyond[:, None]), special.expit(logits)
        bins = np.minimum((scores * BINS).astype(np.intp), BINS - 1)
        cells = (np.arange(self.groups)[:, None] * BINS + bins).ravel()
        shape, size = (self.groups, BINS), self.groups * BINS
        items = np.bincount(cells, minlength=size)
        sums = (np.bincount(cells, weights=each.ravel(), minlength=size) for each in (scores, right))
        means = [
            np.divide(each, items, out=np.full(size, 0.5), where=items > 0).reshape(shape) for each in sums
        ]
        traffic = items.reshape(shape) / np.arange(1, self.groups + 1)[:, None]
        return World(traffic / traffic.sum(), *means)


SETTINGS: Final[Mapping[str, Setting]] = {
    "20 groups, 200 labels": Setting(20, 200),
    "200 groups, 400 labels": Setting(200, 400),
    "20 groups alike, 200 labels": Setting(20, 200, weaker=0.0, unscored=0.0),
    "200 groups, none weak, 400 labels": Setting(200, 400, weaker=0.0),
}


class Held(NamedTuple):
    """Which intervals hold the truth in one run, and how wide they are."""

    groups: float  # share of the ordinary intervals of all groups
    weakest: bool  # the ordinary interval of the truly weakest group
    adjusted: bool  # its adjusted interval
    named: bool  # the adjusted interval of the group with the lowest estimate
    whichever: bool  # the interval of the accuracy of the weakest group, whichever it is
    adjusted_width: float  # of the adjusted interval of the lowest estimate
    whichever_width: float


def held(look: Look, world: World) -> Held:
    """At one number of labels."""
    truth, beliefs = world.group_accuracy(), look.groups
    lower, upper = beliefs.accuracy_interval(MASS)
    low, high = beliefs.accuracy_interval(1 - (1 - MASS) / len(truth))
    weakest, named = int(truth.argmin()), int(beliefs.accuracy.mean().argmin())
    least, most = weakest_lower_end(beliefs.accuracy, (1 - MASS) / 2), float(high.min())
    inside, adjusted = (lower <= truth) & (truth <= upper), (low <= truth) & (truth <= high)
    return Held(
        float(inside.mean()),
        bool(inside[weakest]),
        bool(adjusted[weakest]),
        bool(adjusted[named]),
        least <= truth[weakest] <= most,
        float(high[named] - low[named]),
        most - least,
    )


def coverage(setting: Setting, runs: int, seed: int = 0) -> Floats:
    """What `Held` says of every run, as numbers [runs, fields]."""
    return np.array([_one(setting, (seed, run)) for run in range(runs)], np.float64)


def _one(setting: Setting, key: tuple[int, int]) -> Held:
    rng = np.random.default_rng(key)
    world = setting.world(rng)
    (look,) = watch(rng, world, _TASK, [setting.labels], beside=BESIDE)
    return held(look, world)


def named(setting: Setting, policy: str, runs: int, seed: int = 0) -> Floats:
    """Share of the runs in which the weakest group has the lowest estimate, every so many labels [looks]."""
    budgets = range(_EVERY, setting.labels + 1, _EVERY)
    found = [list(_named(setting, policy, budgets, (seed, run))) for run in range(runs)]
    return np.asarray(np.mean(found, axis=0), np.float64)


def _named(setting: Setting, policy: str, budgets: range, key: tuple[int, int]) -> Iterator[bool]:
    rng = np.random.default_rng(key)
    world = setting.world(rng)
    weakest = world.group_accuracy().argmin()
    for look in watch(rng, world, _TASK, budgets, beside=BESIDE, policy=POLICIES[policy]()):
        yield bool(look.groups.accuracy.mean().argmin() == weakest)


def coverage_table(runs: int) -> Table:
    """Coverage and widths, with standard errors of the coverages."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, setting in SETTINGS.items():
        found = coverage(setting, runs)
        rows.append((name, tuple((100 * found.mean(axis=0)).tolist())))
        rows.append(("standard error", tuple((100 * found.std(axis=0) / runs**0.5).tolist())))
    columns = (
        *("all groups", "truly weakest", "truly weakest, adjusted", "lowest estimate, adjusted"),
        *("weakest, whichever it is", "width of adjusted, points", "width of whichever, points"),
    )
    return Table(f"coverage of {MASS:.0%} intervals, %; {runs} runs", "groups", columns, rows)


def search_table(labels: int, runs: int) -> Table:
    """How many labels it takes until the weakest of 200 groups is named, by policy."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    budgets = range(_EVERY, labels + 1, _EVERY)
    for policy in POLICIES:
        shares = named(Setting(200, labels), policy, runs)
        enough = np.flatnonzero(shares >= _FOUND)
        first = float(budgets[enough[0]]) if enough.size else None
        rows.append((policy, (first, *(100 * shares).tolist())))
    columns = (f"labels until named in {_FOUND:.0%}", *(f"named after {budget:,}, %" for budget in budgets))
    return Table(f"labels until the weakest of 200 groups is named; {runs} runs", "policy", columns, rows)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description="Measure intervals of extreme groups, and the search for them."
    )
    parser.add_argument("--runs", type=int, default=100, help="of every coverage")
    parser.add_argument("--search", type=int, default=0, metavar="RUNS", help="of the search for the weakest")
    parser.add_argument("--labels", type=int, default=3_000, help="of the search")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    tables = [coverage_table(options.runs)]
    if options.search:
        tables.append(search_table(options.labels, options.search))
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
