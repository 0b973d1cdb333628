"""What sharing samples among an ensemble and its members saves, and what it does to the estimates.

Three tables: by how much members overlap, over single items; for classifiers of handwritten digits; and for
vote patterns with their posteriors. Every RMSE stands beside that of random samples of the same size, one
for every member, in closed form. docs/ensembles.md explains what the figures mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import get_args

import numpy as np

from benchmarks.ensembles import Items, Stream, digits, majority, mean_outcomes, overlapping
from benchmarks.post_stratified import post_stratified
from service.domain.arrays import Floats
from service.replay.tables import Table, print_tables
from service.statistics import beta
from service.statistics.sample_sharing import Mixing, plan_sharing
from service.statistics.vote_patterns import VotePatterns, allocate, member_beliefs

MIXINGS: tuple[Mixing, ...] = get_args(Mixing)
OVERLAPS = tuple(step / 10 for step in range(11))
WANTED = 50
STREAMS = 30
MASS = 0.95


def share_items(items: Items, mixing: Mixing, runs: int) -> tuple[float, Floats]:
    """The mean saving in % of so many plans, and the errors of their estimates [runs, 1 + M]."""
    plans = [
        plan_sharing(items.votes, WANTED, np.random.default_rng(run), mixing=mixing) for run in range(runs)
    ]
    errors = np.array([mean_outcomes(plan, items.positive) for plan in plans]) - items.precision()
    return 100 * float(np.mean([saving(items, plan.cost) for plan in plans])), errors


def saving(items: Items, cost: int) -> float:
    """Share of the labels that separate samples would cost; these are all positives where there are fewer."""
    return 1 - cost / int(np.minimum(items.votes.sum(axis=0), WANTED).sum())


def counted_saving(items: Items) -> float:
    """The saving in % of a plan by counts of vote patterns."""
    allocation = allocate(VotePatterns.of_items(items.votes), WANTED)
    more = allocation.plan(np.zeros(len(allocation.needed)), np.random.default_rng(0))
    return 100 * saving(items, int(more.sum()))


def savings(items: Sequence[Items], runs: int) -> tuple[float, ...]:
    """Savings of every mixing and of counts; then each mixing's RMSE of children over random sampling's."""
    saved, closeness = [], []
    random = np.mean([ensemble.random_sampling(WANTED)[1:].mean() for ensemble in items])
    for mixing in MIXINGS:
        found = [share_items(ensemble, mixing, runs) for ensemble in items]
        saved.append(float(np.mean([share for share, _ in found])))
        squares = np.mean([(errors[:, 1:] ** 2).mean() for _, errors in found])
        closeness.append(float((squares / random) ** 0.5))
    return (*saved, float(np.mean([counted_saving(ensemble) for ensemble in items])), *closeness)


SAVINGS = (*(f"{mixing}, %" for mixing in MIXINGS), "by counts, %", *(f"RMSE {mixing}" for mixing in MIXINGS))


def by_overlap(runs: int) -> Table:
    """Three children of which a part of the positives is the parent's."""
    rows = [(f"{overlap:.1f}", savings([overlapping(overlap)], runs)) for overlap in OVERLAPS]
    means = np.mean([figures for _, figures in rows], axis=0)
    rows.append(("mean", tuple(means.tolist())))
    title = f"three children, {WANTED} labels each: labels saved, and children's RMSE over random sampling's"
    return Table(title, "overlap", SAVINGS, list(rows))


def of_digits(runs: int) -> Table:
    """Real majority votes, the mean over ten digits."""
    rows = [("three classifiers", savings(digits(), runs)), ("15 bagged", savings(digits(15), runs))]
    title = f"votes on digits, {WANTED} labels each: labels saved, and children's RMSE over random sampling's"
    return Table(title, "members", SAVINGS, list(rows))


def believed(stream: Stream, wanted: int, runs: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Figures of one stream: see `of_posteriors`."""
    allocation = allocate(stream.patterns, wanted)
    none = np.zeros(len(stream.accuracy))
    labels = np.array([allocation.plan(none, rng) for _ in range(runs)], np.float64)
    positive = rng.binomial(labels.astype(np.int64), stream.accuracy).astype(np.float64)
    truth = stream.precision()
    deviation = np.sqrt(truth * (1 - truth) / wanted)
    errors = post_stratified(allocation, labels, positive) - truth
    beliefs = member_beliefs(allocation, labels, positive, mass=MASS)
    held = (beliefs.lower <= truth) & (truth <= beliefs.upper)
    within = stream.patterns.within()
    return (
        100 * float(1 - labels.sum(axis=1).mean() / (wanted * len(truth))),
        float(((errors**2).mean() / (deviation**2).mean()) ** 0.5),
        float((beliefs.upper - beliefs.lower).mean() / _random_width(truth, wanted)),
        100 * float(held.mean()),
        _coverage_of(np.full(within.shape, 0.5), stream, labels, positive),
        _coverage_of(np.where(within > 0, within, 1.0) / 2, stream, labels, positive),
    )


def _random_width(truth: Floats, wanted: int) -> float:
    lower, upper = beta.interval(truth * wanted + 0.5, (1 - truth) * wanted + 0.5, MASS)
    return float((upper - lower).mean())


def _coverage_of(prior: Floats, stream: Stream, labels: Floats, positive: Floats) -> float:
    """How often intervals hold the truth in % where each pattern has such a Beta prior by itself.

    Args:
        prior: of every member and pattern, alpha and beta alike [members, P].
        stream: the truth.
        labels: of every pattern [runs, P].
        positive: sum of their outcomes [runs, P].
    """
    within, truth = stream.patterns.within(), stream.precision()
    alpha, other = (prior + counts[:, None, :] for counts in (positive, labels - positive))
    mean = (within * beta.mean(alpha, other)).sum(axis=-1)
    variance = (within**2 * beta.variance(alpha, other)).sum(axis=-1)
    lower, upper = beta.interval(*beta.matching(mean, variance), MASS)
    return 100 * float(((lower <= truth) & (truth <= upper)).mean())


def of_posteriors(runs: int) -> Table:
    """Majority votes of children that err alike or each by itself, known by counts of their patterns."""
    rows = []
    for children in (3, 5, 7):
        for wanted in (20, 50, 100):
            rng = np.random.default_rng(1_000 * children + wanted)
            streams = [majority(rng, children=children, alike=turn % 2 == 0) for turn in range(STREAMS)]
            figures = np.mean([believed(stream, wanted, runs, rng) for stream in streams], axis=0)
            rows.append((f"{children} children, {wanted} labels each", tuple(figures.tolist())))
    columns = ("saved, %", "RMSE", "width", "coverage, %", "Jeffreys' for each, %", "shared out, %")
    title = "vote patterns: labels saved; RMSE and width of intervals over random sampling's; coverage"
    return Table(title, "ensemble", columns, list(rows))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure what sharing samples among members saves.")
    parser.add_argument("--runs", type=int, default=500, help="plans of every figure")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    # Digits are ten ensembles, streams are thirty: fewer plans of each do.
    tables = [by_overlap(options.runs), of_digits(options.runs // 10), of_posteriors(options.runs // 4)]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
