"""How long it takes to learn precision and recall from scores, and what a round feels of it.

Scores are made up: two classes that are separated, and two that overlap, of which 20 are labelled. A round
here is the snapshot of a thousand groups, taken with and without curves being learned in another thread, turn
by turn. What bins do to the curve is measured against the same posterior with a bin for every score.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np

from benchmarks.scrape import facts_of, settings_of, snapshot_of
from service.domain.arrays import Flags, Floats
from service.statistics.binary.performance import performance
from service.statistics.binary.score_bins import UNLABELLED, ScoreBins, bin_scores
from service.statistics.binary.semi_supervised import ScorePosterior, learn_scores
from service.statistics.estimate import Estimate

LABELS = 20
GROUPS = 1_000
RECALLS = np.linspace(0.05, 0.95, 19)


def separated(count: int, rng: np.random.Generator) -> tuple[Floats, Flags]:
    """Scores and which of them are positive, of two lumps."""
    positive = rng.random(count) < 0.2  # noqa: PLR2004 - the prevalence
    return np.where(positive, rng.beta(8, 2, count), rng.beta(2, 7, count)), positive


def overlapping(count: int, rng: np.random.Generator) -> tuple[Floats, Flags]:
    """The same of one lump."""
    scores = rng.beta(3, 3, count)
    return scores, rng.random(count) < scores


def binned(scores: Floats, positive: Flags, *, most: int = 256) -> ScoreBins:
    """In bins, the first of them labelled."""
    labels = np.where(np.arange(len(scores)) < LABELS, positive, UNLABELLED)
    return bin_scores(scores, labels.astype(np.int64), most=most)


def seconds_of(
    make: Callable[[int, np.random.Generator], tuple[Floats, Flags]], count: int, turns: int
) -> float:
    """Median time from scores to all curves."""
    taken = []
    for turn in range(turns):
        rng = np.random.default_rng(turn)
        scores, positive = make(count, rng)
        began = time.perf_counter()
        posterior = learn_scores(binned(scores, positive), rng)
        performance(posterior, rng).precision_at_recall(RECALLS)
        taken.append(time.perf_counter() - began)
    return median(taken)


def binning_error(count: int) -> float:
    """By how much bins move the mean precision at any recall, at the most."""
    scores, positive = separated(count, np.random.default_rng(0))
    coarse = learn_scores(binned(scores, positive), np.random.default_rng(1))
    fine = binned(scores, positive, most=count)
    mean = coarse.probabilities.mean(axis=0)
    interpolated = np.interp(fine.scores, coarse.bins.scores, mean)
    same = ScorePosterior(fine, np.tile(interpolated, (200, 1)), coarse.weights, coarse.mixture)
    curves = [
        Estimate.of(performance(each, np.random.default_rng(2)).precision_at_recall(RECALLS), 0.95).mean
        for each in (
            ScorePosterior(coarse.bins, np.tile(mean, (200, 1)), coarse.weights, coarse.mixture),
            same,
        )
    ]
    return float(np.abs(curves[0] - curves[1]).max())


def round_seconds(turns: int) -> tuple[float, float]:
    """Median time of a round while nothing is learned, and while curves are."""
    settings = settings_of(GROUPS)
    traffic, ledger = facts_of(settings)
    bins = binned(*separated(20_000, np.random.default_rng(0)))
    alone: list[float] = []
    beside: list[float] = []
    with ThreadPoolExecutor(1) as learner:
        for turn in range(turns):
            for taken, learning in ((alone, False), (beside, True)):
                running = (
                    learner.submit(learn_scores, bins, np.random.default_rng(turn)) if learning else None
                )
                began = time.perf_counter()
                snapshot_of(settings, traffic, ledger)
                taken.append(time.perf_counter() - began)
                if running is not None:
                    running.result()
    return median(alone), median(beside)


def measure(counts: list[int], turns: int) -> dict[str, float]:
    """All figures by name."""
    figures = {
        f"{make.__name__}, {count:,} scores, s": seconds_of(make, count, turns)
        for count in counts
        for make in (separated, overlapping)
    }
    figures["bins against a bin for every one of 20,000 scores, largest difference of precision"] = (
        binning_error(20_000)
    )
    alone, beside = round_seconds(turns)
    figures[f"a round of {GROUPS:,} groups, ms"] = 1e3 * alone
    figures["the same while curves are learned, ms"] = 1e3 * beside
    return figures


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scores", nargs="+", type=int, default=[2_000, 1_000_000], metavar="N")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = measure(options.scores, options.turns)
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:<90} {value:10.4g}")


if __name__ == "__main__":
    main()
