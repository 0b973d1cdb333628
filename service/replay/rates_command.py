"""`credence replay --task rates`: labels until groups are shown to differ in a rate, or to miss its limit."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats
from service.domain.errors import RecordingError
from service.replay.grouping import score_bins
from service.replay.one_class import positive_classes
from service.replay.options import Binning
from service.replay.pool import Pool
from service.replay.rate_runs import WAYS, RateEnds, RateItems, RateQuestion, Way, run_rates, true_rates
from service.replay.tables import Cell, Report, Table
from service.replay.workers import Workers, batches
from service.statistics.rates.measures import CRITERIA, RATES
from service.statistics.rates.strata import RateStrata
from service.statistics.ratios import ratio

_RUNS_AT_ONCE: Final = 50
_MOST_GROUPS: Final = 200
_MOST_NAMES: Final = 5
_NOTES: Final = (
    "aimed: Credence chooses group, predicted class and score stratum of every label.",
    "random: any item; its evidence uses the strata, too. plain: any item, and the labels alone.",
)


@dataclass(frozen=True)
class RateStudy:
    """What is to be confirmed of the items of a recording."""

    items: RateItems
    question: RateQuestion
    runs: int
    budget: int
    seed: int

    def run(self, way: Way, workers: Workers) -> RateEnds:
        """All runs that choose labels in one way."""
        parts = batches(self.runs, _RUNS_AT_ONCE)
        found = workers.each(
            run_batch, [(self, way, *part) for part in parts], way, [runs for _, runs in parts]
        )
        return RateEnds(*map(np.concatenate, zip(*found, strict=True)))


def run_batch(study: RateStudy, way: Way, first: int, runs: int) -> RateEnds:
    """One batch of runs: a function of its arguments alone, whoever runs it."""
    rng = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(first,)))
    return run_rates(study.items, study.question, way, runs=runs, budget=study.budget, rng=rng)


def rate_items(pool: Pool, positive_class: int, count: int, binning: Binning) -> RateItems:
    """The items of a recording by group and stratum, with `count` score bins of each prediction."""
    recording = pool.recording
    selected, scores = recording.predicted == positive_class, recording.probabilities[:, positive_class]
    strata = count * selected.astype(np.intp)
    for part in (selected, ~selected):
        if part.any():
            strata[part] += score_bins(scores[part], count, binning)
    shape = len(pool.names), 2 * count
    places = pool.groups * shape[1] + strata

    def sums(values: Floats | Flags) -> Floats:
        return (
            np.bincount(places, values.astype(np.float64), shape[0] * shape[1])
            .astype(np.float64)
            .reshape(shape)
        )

    sizes = sums(np.ones(recording.size))
    made = RateStrata.of_items(sizes, sums(scores), np.arange(shape[1]) >= count)
    return RateItems(made, sums(recording.labels == positive_class))


def rates_report(pool: Pool, options: argparse.Namespace, crew: Workers) -> Report:
    """The rates of every group of a recording, and the labels that show how they differ.

    Raises:
        RecordingError: an option or the recording cannot be used for this.
    """
    name, size = pool.recording.name, pool.recording.size
    _check(pool, options)
    conclusion: list[str] = []
    tables: list[Table] = []
    for number in positive_classes(pool.recording, options):
        items = rate_items(pool, number, options.score_bins, options.binning)
        study = RateStudy(
            items=items,
            question=RateQuestion(
                RATES[options.rate],
                difference=options.region,
                limit=options.threshold,
                alpha=1 - options.interval,
            ),
            runs=options.runs,
            budget=options.budget or size,
            seed=options.seed,
        )
        title = f"{name}, class {number}"
        conclusion += _conclusion(title, pool, study)
        tables += [_true_table(title, pool, items), _labels_table(title, pool, study, crew)]
    return Report(conclusion, tables)


def _check(pool: Pool, options: argparse.Namespace) -> None:
    name, size, groups = pool.recording.name, pool.recording.size, len(pool.names)
    if options.plots:
        raise RecordingError("--plots", "the task rates draws nothing; leave it out")
    if options.threshold is not None and not 0 < options.threshold < 1:
        raise RecordingError("--threshold", "the limit of a rate is within 0 and 1, such as 0.3")
    if options.threshold is None and groups < 2:  # noqa: PLR2004 - a pair
        raise RecordingError(name, "it has one group with items; a difference needs two")
    if groups > _MOST_GROUPS:
        raise RecordingError(name, f"it has {groups} groups, and this task takes {_MOST_GROUPS} at most")
    if (options.budget or 0) > size:
        raise RecordingError(
            name, f"it has {size} items, the budget is {options.budget} labels; lower --budget"
        )


def _true_table(title: str, pool: Pool, items: RateItems) -> Table:
    """The rates of every group by all labels, and how far groups are apart."""
    columns = tuple(RATES)
    found = np.stack([true_rates(items, RATES[name]) for name in columns])
    rows = [(name, _shares(found[:, group])) for group, name in enumerate(pool.names)]
    if len(pool.names) > 1 and not np.isnan(found).all(axis=1).any():
        high, low = np.nanmax(found, axis=1), np.nanmin(found, axis=1)
        rows += [
            ("difference", _shares(high - low)),
            ("ratio", _shares(ratio(low, high))),
        ]
    criteria = "; ".join(f"{name}: {' and '.join(rates)}" for name, rates in CRITERIA.items())
    return Table(
        f"{title}: rates by all labels, %",
        "group",
        tuple(name.replace("_", " ") for name in columns),
        rows,
        notes=[f"Differences and ratios: {criteria}.".replace("_", " ")],
    )


def _labels_table(title: str, pool: Pool, study: RateStudy, crew: Workers) -> Table:
    question, rate = study.question, study.question.rate.name.replace("_", " ")
    ends = {way: study.run(way, crew) for way in WAYS}
    notes = [*_NOTES, f"{study.runs} runs of at most {study.budget:,} labels, seed {study.seed}."]
    if question.limit is None:
        points = 100 * (question.difference or 0.0)
        rows: list[tuple[str, tuple[Cell, ...]]] = [(way, _end(ends[way].confirmed)) for way in WAYS]
        heading = f"{title}: labels until a difference above {points:g} points in the {rate} is confirmed"
        return Table(heading, "labels", ("confirmed, %", "labels, mean", "labels, median"), rows, notes=notes)
    side = "below" if question.rate.is_good else "above"
    heading = f"{title}: labels until a {rate} {side} {100 * question.limit:g}% is confirmed"
    columns = tuple(f"{way}, {what}" for way in WAYS for what in ("confirmed, %", "labels"))
    by_group = [
        (name, tuple(cell for way in WAYS for cell in _end(ends[way].groups[:, group])[:2]))
        for group, name in enumerate(pool.names)
    ]
    return Table(heading, "group", columns, by_group, notes=notes)


def _conclusion(title: str, pool: Pool, study: RateStudy) -> list[str]:
    """What all labels of the recording say."""
    question = study.question
    found, rate = true_rates(study.items, question.rate), question.rate.name.replace("_", " ")
    if np.isnan(found).all():
        return [f"{title}: no group has items that the {rate} counts."]
    if question.limit is None:
        high, low = int(np.nanargmax(found)), int(np.nanargmin(found))
        highest, lowest = (f"{found[group]:.1%} in {pool.names[group]}" for group in (high, low))
        return [f"{title}: by all of its labels, the {rate} is {highest} and {lowest}."]
    beyond = found < question.limit if question.rate.is_good else found > question.limit
    if not beyond.any():
        return [f"{title}: by all of its labels, no group misses the limit."]
    missing = [name for name, one in zip(pool.names, beyond, strict=True) if one]
    named = ", ".join(missing[:_MOST_NAMES]) + (", …" if len(missing) > _MOST_NAMES else "")
    return [f"{title}: by all of its labels, {len(missing)} of {len(found)} groups miss the limit: {named}."]


def _end(confirmed: Floats) -> tuple[Cell, Cell, Cell]:
    """Share of runs that confirmed it in percent, and their mean and median number of labels."""
    some = confirmed[np.isfinite(confirmed)]
    share = 100 * len(some) / len(confirmed)
    return (share, float(some.mean()), float(np.median(some))) if len(some) else (share, None, None)


def _shares(values: Floats) -> tuple[Cell, ...]:
    return tuple(None if np.isnan(value) else 100 * value for value in values.tolist())
