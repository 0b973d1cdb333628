"""What small groups gain by the labels of all others: environments of one model, with few labels each.

A hundred groups with five labels each. Items have scores; how far scores tell of the groups, and how much
groups differ beyond them, is the world's affair. What is believed of every group is compared with its true
accuracy: by its own labels alone, by fixed priors, by an empirical-Bayes Beta-binomial, and by the service's
learned prior through the function that the service calls. docs/pooling.md explains what the figures mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy import optimize, special

from service.domain.arrays import Floats, Indices
from service.replay.tables import Table, print_tables
from service.statistics import beta as betas
from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.statistics.names import PriorName

GROUPS: Final = 100
LABELS: Final = 5
BINS: Final = 10
ITEMS: Final = 400
"""Per group: enough for their mean to be the group's accuracy."""

MASS: Final = 0.95
_LONGEST_STRENGTH: Final = 1e4
"""Groups that do not differ would have an endless one."""


@dataclass(frozen=True)
class World:
    """How groups come about, on the scale of logits.

    Attributes:
        offset: how far scores are off, in all groups.
        scored: deviation of the groups' mean scores, which are right but for the offset.
        unscored: deviation of the groups beyond that, which no score tells.
        broken: share of groups that are 3 worse than their scores say.
        uneven: whether labels per group vary as by a Poisson distribution.
    """

    offset: float = -1.0
    scored: float = 0.0
    unscored: float = 0.0
    broken: float = 0.0
    uneven: bool = False


WORLDS: Final[Mapping[str, World]] = {
    "groups are alike": World(),
    "a little unlike": World(unscored=0.3),
    "unlike": World(unscored=0.7),
    "very unlike": World(unscored=1.5),
    "unlike, and scores tell": World(scored=0.8, unscored=0.2),
    "unlike, and scores tell half": World(scored=0.5, unscored=0.5),
    "one in twenty is broken": World(unscored=0.2, broken=0.05),
    "unlike, scores are right": World(offset=0.0, unscored=0.7),
    "unlike, labels uneven": World(unscored=0.7, uneven=True),
}


class Drawn(NamedTuple):
    """One draw of a world: the truth, and what a service has of it. Arrays are [groups] or [labels]."""

    accuracy: Floats
    traffic: CellTraffic
    cell_groups: Indices
    cell_bins: Indices
    labels: Labels

    def counts(self) -> tuple[Floats, Floats]:
        """Labels of every group, and correct ones."""
        groups, size = self.cell_groups[self.labels.cells], len(self.accuracy)
        return (
            self.labels.counted(groups, size).astype(np.float64),
            self.labels.counted_correct(groups, size).astype(np.float64),
        )

    def believed(self, prior: PriorName) -> GroupingBeliefs:
        """What the service believes."""
        return assess_grouping(
            cell_groups=self.cell_groups,
            cell_bins=self.cell_bins,
            group_count=len(self.accuracy),
            bin_count=BINS,
            traffic=self.traffic,
            labels=self.labels,
            prior=prior,
        )


class Beliefs(NamedTuple):
    """What is believed of every group [groups]."""

    mean: Floats
    lower: Floats
    upper: Floats


def drawn(world: World, rng: np.random.Generator, *, groups: int = GROUPS, labels: int = LABELS) -> Drawn:
    """Draw a world's groups, their traffic and their labels."""
    logits = rng.normal(2.5, 1.0, (groups, ITEMS)) + world.scored * rng.normal(size=(groups, 1))
    beyond = world.unscored * rng.normal(size=groups) - 3.0 * (rng.random(groups) < world.broken)
    right = special.expit(logits + world.offset + beyond[:, None])
    scores = special.expit(logits)
    cells = np.arange(groups)[:, None] * BINS + np.minimum((scores * BINS).astype(np.intp), BINS - 1)
    size = groups * BINS
    asked = np.repeat(np.arange(groups), rng.poisson(labels, groups) if world.uneven else labels)
    items = rng.integers(ITEMS, size=len(asked))
    correct = (rng.random(len(asked)) < right[asked, items]).astype(np.float64)
    even = np.ones(len(asked))
    return Drawn(
        accuracy=right.mean(axis=1),
        traffic=CellTraffic(
            np.bincount(cells.ravel(), minlength=size).astype(np.float64),
            np.bincount(cells.ravel(), weights=scores.ravel(), minlength=size).astype(np.float64),
        ),
        cell_groups=np.repeat(np.arange(groups), BINS),
        cell_bins=np.tile(np.arange(BINS), groups),
        labels=Labels(cells[asked, items], correct, even, even, np.zeros(len(asked), np.intp)),
    )


def empirical_bayes(labels: Floats, correct: Floats) -> tuple[float, float]:
    """Mean and strength of the Beta that all groups' accuracies are drawn from, of the highest likelihood.

    The marginal likelihood of each group's labels is beta-binomial (Efron and Morris, JASA 1975, for the
    idea; Gelman et al., Bayesian Data Analysis, 3rd edition, section 5.3, for this likelihood).
    """

    def lacking(parameters: Floats) -> float:
        mean, strength = special.expit(parameters[0]), np.exp(parameters[1])
        alpha, beta = strength * mean, strength * (1 - mean)
        likelihoods = special.betaln(alpha + correct, beta + labels - correct) - special.betaln(alpha, beta)
        return -float(likelihoods.sum())

    rate = (correct.sum() + 0.5) / (labels.sum() + 1)
    bounds = [(-10, 10), (np.log(0.1), np.log(_LONGEST_STRENGTH))]
    starts = [(special.logit(rate), np.log(strength)) for strength in (2.0, 20.0, 200.0)]
    found = min(
        (optimize.minimize(lacking, start, bounds=bounds, method="L-BFGS-B") for start in starts),
        key=lambda each: float(each.fun),
    )
    return float(special.expit(found.x[0])), float(np.exp(found.x[1]))


def _of_betas(alpha: Floats, beta: Floats) -> Beliefs:
    return Beliefs(betas.mean(alpha, beta), *betas.interval(alpha, beta, MASS))


def _jeffreys(world: Drawn) -> Beliefs:
    labels, correct = world.counts()
    return _of_betas(0.5 + correct, 0.5 + labels - correct)


def _by_empirical_bayes(world: Drawn) -> Beliefs:
    labels, correct = world.counts()
    mean, strength = empirical_bayes(labels, correct)
    return _of_betas(strength * mean + correct, strength * (1 - mean) + labels - correct)


def _by_service(prior: PriorName) -> Callable[[Drawn], Beliefs]:
    def believed(world: Drawn) -> Beliefs:
        accuracy = world.believed(prior).accuracy
        return Beliefs(accuracy.mean(), *accuracy.interval(MASS))

    return believed


INDEPENDENT: Final[Mapping[str, Callable[[Drawn], Beliefs]]] = {
    "Jeffreys": _jeffreys,
    "informed": _by_service("informed"),
    "informed, floor": _by_service("informed_jeffreys"),
}
"""Each group by its own labels and scores alone."""

POOLED: Final[Mapping[str, Callable[[Drawn], Beliefs]]] = {
    "empirical Bayes": _by_empirical_bayes,
    "learned": _by_service("learned"),
}

WAYS: Final = {**INDEPENDENT, **POOLED}


class Found(NamedTuple):
    """How good beliefs were."""

    rmse: float
    coverage: float


def measured(world: World, runs: int, *, seed: int = 0, labels: int = LABELS) -> dict[str, Found]:
    """Every way's error and coverage over the groups of so many draws of a world."""
    squares: dict[str, list[float]] = {name: [] for name in WAYS}
    held: dict[str, list[float]] = {name: [] for name in WAYS}
    for run in range(runs):
        draw = drawn(world, np.random.default_rng([seed, run]), labels=labels)
        for name, way in WAYS.items():
            estimate = way(draw)
            squares[name].append(float(((estimate.mean - draw.accuracy) ** 2).mean()))
            held[name].append(
                float(((estimate.lower <= draw.accuracy) & (draw.accuracy <= estimate.upper)).mean())
            )
    return {name: Found(float(np.mean(squares[name]) ** 0.5), float(np.mean(held[name]))) for name in WAYS}


def gain(found: Mapping[str, Found]) -> float:
    """Share by which the service's error is less than that of the best independent way."""
    return 1 - found["learned"].rmse / min(found[name].rmse for name in INDEPENDENT)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure what small groups gain by pooling.")
    parser.add_argument("--runs", type=int, default=100, help="draws of every world")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    found = {name: measured(world, options.runs) for name, world in WORLDS.items()}
    errors = [
        (name, (*(100 * each[way].rmse for way in WAYS), 100 * gain(each))) for name, each in found.items()
    ]
    held = [(name, tuple(100 * each[way].coverage for way in WAYS)) for name, each in found.items()]
    title = f"{GROUPS} groups, {LABELS} labels each, {options.runs} draws"
    tables = [
        Table(f"{title}: RMSE x 100", "world", (*WAYS, "learned below best independent, %"), list(errors)),
        Table(f"{title}: coverage of {MASS:.0%} intervals, %", "world", tuple(WAYS), list(held)),
    ]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
