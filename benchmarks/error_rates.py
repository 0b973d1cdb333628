"""Labels until a gap between the false positive rates of two groups is confirmed, and false confirmations.

python -m benchmarks.error_rates

Two groups, of 3,000 and 2,500 items. Evidence is looked at after every label. `aimed` chooses group,
predicted class and score stratum of the next label. `random` draws any item, and its evidence uses the same
strata. `plain` draws any item, and its evidence uses nothing but the labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from benchmarks.arriving_traffic import confirmed as confirmed_of_traffic
from benchmarks.arriving_traffic import confirmed_limit, null_traffic
from service.domain.arrays import Floats
from service.replay.rate_runs import WAYS, RateItems, RateQuestion, Way, label_items, run_rates, true_rates
from service.replay.tables import Cell, Table, print_tables
from service.statistics.rates.evidence import LIMITS
from service.statistics.rates.measures import RATES
from service.statistics.rates.posterior import draw_rates, gap, joint_intervals
from service.statistics.rates.strata import RateStrata

SIZES = (3000, 2500)
ALPHA = 0.05
AT_ONCE = 50
"""Runs that advance together."""
RATE = RATES["false_positive_rate"]
FIRST, PER_LABEL = 300, 5
"""Predictions of a group whose traffic is counted: before the first label, and with every label."""


class World(NamedTuple):
    """Two groups: the share of positive items, and the rates, of each."""

    base: tuple[float, float]
    recall: tuple[float, float]
    false_positive: tuple[float, float]


WEAK = World((0.52, 0.39), (0.72, 0.52), (0.45, 0.25))
STRONG = World((0.5, 0.4), (0.9, 0.9), (0.45, 0.25))
DIFFERENT = {"weak scores": WEAK, "strong scores": STRONG}
NULLS = {
    "equal, weak scores": (World((0.52, 0.39), (0.65, 0.6), (0.35, 0.35)), 0.0),
    "equal, strong scores": (World((0.5, 0.4), (0.9, 0.9), (0.35, 0.35)), 0.0),
    "at the limit of 5 points": (World((0.52, 0.39), (0.72, 0.6), (0.40, 0.35)), 0.05),
}

COVERED = (
    ("weak scores", WEAK, 1.0),
    ("strong scores", STRONG, 1.0),
    ("strong scores, overconfident", STRONG, 3.0),
)
DRAWS = 1_000


def make_items(world: World, rng: np.random.Generator, *, bins: int = 3, honest: float = 1.0) -> RateItems:
    """Items with exactly these rates, whose scores are normal in both classes.

    In the binormal model the logit of a calibrated score is linear in the latent variable; `honest` is the
    factor of the logits that the model reports.
    """
    shape = len(SIZES), 2 * bins
    sizes, positives, scores = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for group, size in enumerate(SIZES):
        base, recall, false_positive = (each[group] for each in world)
        count = round(size * base)
        classes = np.repeat([1.0, 0.0], [count, size - count])
        latent = np.concatenate([_latent(count, recall, rng), _latent(size - count, false_positive, rng)])
        distance = special.ndtri(recall) - special.ndtri(false_positive)
        middle = (special.ndtri(recall) + special.ndtri(false_positive)) / 2
        logits = special.logit(base) + distance * (latent + middle)
        chances = special.expit(honest * logits)
        strata = np.zeros(size, np.intp)
        for selected in (False, True):
            which = (latent > 0) == selected
            edges = np.quantile(latent[which], np.arange(1, bins) / bins)
            strata[which] = bins * selected + np.searchsorted(edges, latent[which])
        for sums, weights in ((sizes, np.ones(size)), (positives, classes), (scores, chances)):
            sums[group] = np.bincount(strata, weights, minlength=2 * bins)
    return RateItems(RateStrata.of_items(sizes, scores, np.arange(2 * bins) >= bins), positives)


def _latent(count: int, selected: float, rng: np.random.Generator) -> Floats:
    """Normal numbers of variance 1, of which exactly this share is above 0."""
    above = round(count * selected)
    chances = rng.random(count)
    share = above / count
    chances[:above] = 1 - share * chances[:above]
    chances[above:] = (1 - share) * chances[above:]
    return np.asarray(special.ndtri(chances) - special.ndtri(1 - share), np.float64)


def confirmed(
    world: World,
    difference: float,
    way: Way,
    *,
    runs: int,
    budget: int = sum(SIZES),
    seed: int = 0,
    honest: float = 1.0,
) -> Floats:
    """After how many labels each run confirmed the gap; infinite if never [R]."""
    question = RateQuestion(RATE, difference=difference, alpha=ALPHA)
    found = []
    for first in range(0, runs, AT_ONCE):
        rng = np.random.default_rng((seed, first))
        items = make_items(world, rng, honest=honest)
        size = min(AT_ONCE, runs - first)
        found.append(run_rates(items, question, way, runs=size, budget=budget, rng=rng).confirmed)
    return np.concatenate(found)


def of_gaps(runs: int, seed: int) -> Table:
    """Labels until a gap is confirmed."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, world in DIFFERENT.items():
        for difference in (0.0, 0.05, 0.1):
            taken = {
                way: np.minimum(confirmed(world, difference, way, runs=runs, seed=seed), sum(SIZES))
                for way in WAYS
            }
            means = {way: float(each.mean()) for way, each in taken.items()}
            medians = {way: float(np.median(each)) for way, each in taken.items()}
            figures = (
                *(means[way] for way in WAYS),
                means["aimed"] / means["plain"],
                medians["aimed"] / medians["plain"],
            )
            rows.append((f"{name}, gap above {100 * difference:g} points", figures))
    columns = (*WAYS, "aimed / plain", "of medians")
    title = f"labels until a gap of .45 against .25 is confirmed: alpha {ALPHA}, mean of {runs} runs"
    return Table(title, "groups", columns, rows)


def of_nulls(runs: int, budget: int, seed: int) -> Table:
    """False confirmations."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, (world, difference) in NULLS.items():
        false = np.isfinite(confirmed(world, difference, "aimed", runs=runs, budget=budget, seed=seed))
        rows.append((name, (float(false.sum()), 100 * float(false.mean()))))
    title = f"runs with a false confirmation within {budget:,} labels: alpha {ALPHA}, {runs} runs"
    return Table(title, "false positive rates", ("runs", "%"), rows)


def of_traffic(runs: int, budget: int, seed: int) -> Table:
    """False confirmations about traffic that arrives while labels are drawn."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, (world, difference) in NULLS.items():
        for moves in (False, True):
            rng = np.random.default_rng((seed, moves))
            traffic = null_traffic(
                make_items(world, rng), RATE, first=FIRST, per_label=PER_LABEL, moves=moves, rng=rng
            )
            false = 0
            for first in range(0, runs, AT_ONCE):
                found = confirmed_of_traffic(
                    *(traffic, RATE, difference),
                    runs=min(AT_ONCE, runs - first),
                    budget=budget,
                    alpha=ALPHA,
                    rng=rng,
                )
                false += int(np.isfinite(found).sum())
            how = "shares that move" if moves else "shares that stay"
            rows.append((f"{name}, {how}", (float(false), 100 * false / runs)))
    title = (
        f"runs with a false confirmation within {budget:,} labels, of {FIRST} predictions of each group, and "
        f"{PER_LABEL} with every label: alpha {ALPHA}, {runs} runs"
    )
    return Table(title, "false positive rates", ("runs", "%"), rows)


def of_limits(runs: int, budget: int, seed: int) -> Table:
    """False confirmations of limits that were set in advance, and of those chosen after looking."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name in ("equal, weak scores", "equal, strong scores"):
        true = NULLS[name][0].false_positive[0]
        chosen = {"limit at the rate": np.array([true]), "any limit from the rate on": LIMITS[true <= LIMITS]}
        for how, limits in chosen.items():
            rng = np.random.default_rng((seed, 2))
            items = make_items(NULLS[name][0], rng)
            traffic = null_traffic(items, RATE, first=FIRST, per_label=PER_LABEL, moves=False, rng=rng)
            found = confirmed_limit(traffic, RATE, limits, runs=runs, budget=budget, alpha=ALPHA, rng=rng)
            false = np.isfinite(found)
            rows.append((f"{name}, {how}", (float(false.sum()), 100 * float(false.mean()))))
    title = f"runs with a falsely confirmed limit within {budget:,} labels: alpha {ALPHA}, {runs} runs"
    return Table(title, "false positive rates", ("runs", "%"), rows)


def of_coverage(runs: int, seed: int) -> Table:
    """How often the intervals of both groups hold at once, and that of their difference."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, world, honest in COVERED:
        for budget in (50, 200, 800):
            found = np.array(
                [coverage(world, honest, budget, np.random.default_rng((seed, run))) for run in range(runs)]
            )
            shares = (100 * found[:, :-1].mean(axis=0)).tolist()
            rows.append((f"{name}, {budget} labels", (*shares, 100 * float(found[:, -1].mean()))))
    columns = ("FPR", "TPR", "precision", "FPR difference", "width of the difference, points")
    title = f"95% intervals that hold, of both groups at once, %: labels aimed at the gap, {runs} runs"
    return Table(title, "groups", columns, rows)


def coverage(world: World, honest: float, budget: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Whether the intervals of each rate hold, and that of the difference; and the width of the latter."""
    items = make_items(world, rng, honest=honest)
    question = RateQuestion(RATE, difference=0.0)
    labels = label_items(items, question, "aimed", runs=1, budget=budget, rng=rng)
    drawn = draw_rates(labels, rng, draws=DRAWS)
    holds = []
    for name in ("false_positive_rate", "true_positive_rate", "precision"):
        lower, upper = joint_intervals(drawn[name], 0.95)
        true = true_rates(items, RATES[name])
        holds.append(float(((lower <= true) & (true <= upper)).all()))
    low, _, high = gap([drawn[RATE.name]], 0.95).difference
    apart = float(np.ptp(true_rates(items, RATE)))
    return *holds, float(low <= apart <= high), high - low


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description="Measure labels until a gap of rates is confirmed, false confirmations, and coverage."
    )
    parser.add_argument("--runs", type=int, default=100, help="of figures of labels")
    parser.add_argument("--false-runs", type=int, default=600, help="of false confirmations")
    parser.add_argument("--most", type=int, default=1_000, help="labels of a run without a gap")
    parser.add_argument("--coverage-runs", type=int, default=60, help="of coverage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", choices=list(TABLES), action="append", help="repeatable (default: all)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    tables = [TABLES[name](options) for name in options.table or TABLES]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


TABLES: dict[str, Callable[[argparse.Namespace], Table]] = {
    "gaps": lambda options: of_gaps(options.runs, options.seed),
    "nulls": lambda options: of_nulls(options.false_runs, options.most, options.seed),
    "traffic": lambda options: of_traffic(options.false_runs, options.most, options.seed),
    "limits": lambda options: of_limits(options.false_runs, options.most, options.seed),
    "coverage": lambda options: of_coverage(options.coverage_runs, options.seed),
}


if __name__ == "__main__":
    main()
