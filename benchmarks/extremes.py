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
from service.domain.arrays import Flags, Floats
from service.replay.tables import Cell, Table, print_tables
from service.statistics.policies import POLICIES
from service.statistics.weakest import weakest_lower_end

MASS: Final = 0.95
BESIDE: Final = 0.25
"""Labels for all traffic, for every label for the weakest group."""

_TASK: Final = ("identification", "accuracy")
_ITEMS: Final = 400  # of every group; their mean is the group's accuracy
_ENOUGH: Final = 0.9  # of the runs
_EVERY: Final = 250  # labels between two looks at which group is named
_OFTEN: Final = 10  # labels of a group


class Groups(NamedTuple):
    """Items of every group."""

    logits: Floats  # of the scores [groups, items]
    beyond: Floats  # by how much groups are more accurate than their scores say [groups]
    weak: int  # the group that is less accurate

    @property
    def is_weak(self) -> Flags:
        """Of every group [groups]."""
        return np.asarray(np.arange(len(self.beyond)) == self.weak, np.bool_)

    def probabilities(self, weaker: float | Floats) -> Floats:
        """That items are right, if groups are so much weaker [groups, items]."""
        return np.asarray(special.expit(self.logits + (self.beyond - weaker)[:, None]), np.float64)


@dataclass(frozen=True)
class Setting:
    """How groups come about, on the scale of logits, and how many labels there are."""

    groups: int
    labels: int
    weaker: float = 1.5  # by so much is one group less accurate than its scores say
    unscored: float = 0.3  # standard deviation of all groups beyond their scores

    def groups_of(self, rng: np.random.Generator) -> Groups:
        """One draw of the groups."""
        logits = rng.normal(2.5, 1.0, (self.groups, _ITEMS))
        return Groups(logits, self.unscored * rng.normal(size=self.groups), int(rng.integers(self.groups)))

    def world(self, rng: np.random.Generator) -> World:
        """The same as cells."""
        groups = self.groups_of(rng)
        right, scores = (
            groups.probabilities(np.where(groups.is_weak, self.weaker, 0.0)),
            special.expit(groups.logits),
        )
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


class Search(NamedTuple):
    """How far the search for the weakest group is, every so many labels [looks]: shares of runs."""

    named: Floats  # the lowest estimate is its
    asked: Floats  # it has at least `_OFTEN` labels


def search(setting: Setting, policy: str, runs: int, seed: int = 0) -> Search:
    """By a policy, on what labels tell."""
    budgets = range(_EVERY, setting.labels + 1, _EVERY)
    found = [list(_searched(setting, policy, budgets, (seed, run))) for run in range(runs)]
    named, asked = np.moveaxis(np.array(found, np.float64), -1, 0)
    return Search(named.mean(axis=0), asked.mean(axis=0))


def _searched(
    setting: Setting, policy: str, budgets: range, key: tuple[int, int]
) -> Iterator[tuple[bool, bool]]:
    rng = np.random.default_rng(key)
    world = setting.world(rng)
    weakest = world.group_accuracy().argmin()
    for look in watch(rng, world, _TASK, budgets, beside=BESIDE, policy=POLICIES[policy]()):
        named = look.groups.accuracy.mean().argmin()
        yield bool(named == weakest), bool(look.labelled[weakest] >= _OFTEN)


def bound(setting: Setting, runs: int, seed: int = 0) -> Floats:
    """The same by an oracle [looks]: share of the runs in which it names the weakest group.

    It knows how accurate every group is if it is the weak one and if it is not, and only has to find which
    one is. It always asks the group that is weak with the highest probability.
    """
    budgets = range(_EVERY, setting.labels + 1, _EVERY)
    return np.asarray(
        np.mean([list(_named_by_oracle(setting, budgets, (seed, run))) for run in range(runs)], axis=0),
        np.float64,
    )


def _named_by_oracle(setting: Setting, budgets: range, key: tuple[int, int]) -> Iterator[bool]:
    rng = np.random.default_rng(key)
    groups = setting.groups_of(rng)
    sound, weak = (groups.probabilities(by).mean(axis=1) for by in (0.0, setting.weaker))
    truth = np.where(groups.is_weak, weak, sound)
    if_right, if_wrong = np.log(weak / sound), np.log((1 - weak) / (1 - sound))
    odds = rng.uniform(0, 1e-9, setting.groups)  # log odds that a group is the weak one; ties at random
    for spent in range(1, setting.labels + 1):
        group = odds.argmax()
        odds[group] += if_right[group] if rng.random() < truth[group] else if_wrong[group]
        if spent in budgets:
            yield bool(odds.argmax() == groups.weak)


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
    """How many labels it takes until the weakest of 200 groups is named, by policy, and by an oracle."""
    setting, budgets = Setting(200, labels), range(_EVERY, labels + 1, _EVERY)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for policy in POLICIES:
        found = search(setting, policy, runs)
        rows.append((policy, (_first(found.asked), _first(found.named), *(100 * found.named).tolist())))
    oracle = bound(setting, runs)
    rows.append(("oracle", (None, _first(oracle), *(100 * oracle).tolist())))
    columns = (
        f"labels until {_OFTEN} are of it in {_ENOUGH:.0%}",
        f"until named in {_ENOUGH:.0%}",
        *(f"named after {budget:,}, %" for budget in budgets),
    )
    return Table(f"the search for the weakest of 200 groups; {runs} runs", "policy", columns, rows)


def _first(shares: Floats) -> float | None:
    """Labels at the first look at which the share of runs suffices."""
    enough = np.flatnonzero(shares >= _ENOUGH)
    return float(_EVERY * (enough[0] + 1)) if enough.size else None


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
