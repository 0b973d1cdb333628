"""Figures of a study, drawn from its results and from what the whole pool tells."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from service.domain.arrays import Floats
from service.replay import plots
from service.replay.grouping import Grouper
from service.replay.measures import IDENTIFIED
from service.replay.plots.drawing import Intervals
from service.replay.pool import Pool
from service.replay.study import Study
from service.replay.summary import Results, question
from service.statistics import beta as betas
from service.statistics.balance_heuristic import sums
from service.statistics.calibration import calibration_error
from service.statistics.comparison import difference_density, rope_probabilities
from service.statistics.curves import LearnedCurve
from service.statistics.laplace import Cells
from service.statistics.mixture import BetaMixture
from service.statistics.prior_posterior import single
from service.statistics.ranking import extreme_probabilities, mean_rank, ranks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWS = 10_000
_RELIABILITY_BINS = 10
_RELIABILITY_MASS = 0.95
"""Probability inside intervals that the diagram itself names."""

_FEW_LABELS = 100
"""Labels of the reliability diagram that shows how much is known with few."""


def draw_results(study: Study, results: Results, directory: Path) -> None:
    """Write what methods reach with how many labels, as a PNG file."""
    words = [study.pool.recording.name, study.task, study.metric.replace("_", "-")]
    words += [f"top{study.top_m}"] if study.task == "identification" else []
    plots.save(results_figure(study, results), directory / f"{'-'.join(words)}.png")


def results_figure(study: Study, results: Results, prefix: str = "") -> Figure:
    """What methods reach with how many labels; the prefix is of the title."""
    labels, reference = np.arange(study.budget + 1), None
    if study.task == "identification":
        measure, unit, reference = "Mean reciprocal rank", "", IDENTIFIED
        series = {
            str(method): result.totals["reciprocal_rank"] / result.totals["runs"]
            for method, result in results.items()
        }
    elif study.task == "comparison":
        measure, unit = "Comparisons that are settled", "%"
        series = {
            str(method): _settled(result.per_run["first"], result.per_run["never"], study.budget)
            for method, result in results.items()
        }
    else:
        labels, measure, unit = np.array(study.at), "RMSE", "%"
        series = {str(method): result.per_run["rmse"].mean(axis=0) for method, result in results.items()}
    title = f"{prefix}{question(study)}"
    return plots.curves(labels.astype(np.float64), series, measure, unit, reference=reference, title=title)


def draw_pool(study: Study, directory: Path) -> None:
    """Write what all labels of the pool tell, as PNG files.

    Reliability diagrams, also with few labels; of groups the paper's figure 1, their ranks and how the two
    least accurate differ; of a study of confusion or cost the confusion matrix.
    """
    figures = _reliability(study.pool, study.seed)
    # Groups that are score bins are shown by the diagrams alone.
    if (study.task, study.metric) != ("estimation", "calibration"):
        figures = chain(figures, _of_groups(study))
    for name, figure in figures:
        plots.save(figure, directory / f"{study.pool.recording.name}-{name}.png")


def _of_groups(study: Study) -> Iterator[tuple[str, Figure]]:
    pool, name = study.pool, study.pool.recording.name
    items, correct = pool.bin_counts
    fit = LearnedCurve().fit(pool.cells, items[None], correct[None])
    accuracy = single(fit.groups())
    every = f"all {pool.recording.size:,} labels"
    if pool.bin_count > 1:
        ece = _ece(single(fit.bins()), pool.cells, study.mass)
        title = f"{name}: accuracy and calibration, {every}"
        figure = plots.accuracy_against_calibration(
            pool.names, _intervals(accuracy, study.mass), ece, title=title
        )
        yield "accuracy-against-calibration", figure
    rng = np.random.default_rng(study.seed)
    mean, low, high = mean_rank(ranks(accuracy.sample(rng, _DRAWS)), study.mass)
    worst = extreme_probabilities(ranks(accuracy.sample(rng, _DRAWS)), 1)
    title = f"{name}: ranks, {every}"
    yield "ranks", plots.ranks_and_extremes(pool.names, (low, mean, high), worst, title=title)
    if len(pool.names) > 1:
        yield "difference", _difference(pool, accuracy, study.region)
    if study.metric in {"confusion", "cost"}:
        # Of a class that is never predicted nothing is known.
        classes = pool.recording.classes
        matrix = np.full((classes, classes), np.nan)
        matrix[pool.predicted] = pool.confusion
        names = [str(number) for number in range(classes)]
        yield "confusion", plots.confusion(names, matrix, title=f"{name}: confusion matrix (%), {every}")


def _reliability(pool: Pool, seed: int) -> Iterator[tuple[str, Figure]]:
    """Score bins of all items, with all labels and with a random sample of few.

    Bins are equally wide: of an overconfident model nearly all of equally many items would be drawn at 1.
    """
    recording = pool.recording
    whole = Grouper(_RELIABILITY_BINS).all(recording)
    bins, cells = whole.bins, whole.cells
    few = min(_FEW_LABELS, recording.size)
    sample = np.random.default_rng(seed).choice(recording.size, few, replace=False)
    of_sample = sums(bins[sample], np.ones(few), _RELIABILITY_BINS)
    right = sums(bins[sample], recording.correct[sample].astype(np.float64), _RELIABILITY_BINS)
    for items, correct, words, name in (
        (*whole.bin_counts, f"all {recording.size:,} labels", "reliability"),
        (of_sample[None], right[None], f"{few} random labels", "reliability-few-labels"),
    ):
        beliefs = single(LearnedCurve().fit(cells, items[None], correct[None]).bins())
        ece = _ece(beliefs, cells, _RELIABILITY_MASS)
        figure = plots.reliability_diagram(
            cells.scores[0],
            cells.shares[0],
            _intervals(beliefs, _RELIABILITY_MASS),
            (float(ece[0][0]), float(ece[1][0]), float(ece[2][0])),
            title=f"{recording.name}: reliability, {words}",
        )
        yield name, figure


def _intervals(beliefs: BetaMixture, mass: float) -> Intervals:
    lower, upper = beliefs.interval(mass)
    return lower, beliefs.mean(), upper


def _ece(beliefs: BetaMixture, cells: Cells, mass: float) -> Intervals:
    """Calibration error of every group, from the accuracies of its bins."""
    ece = calibration_error(beliefs=beliefs, scores=cells.scores, shares=cells.shares)
    lower, upper = ece.interval(mass)
    return lower, ece.mean, upper


def _difference(pool: Pool, accuracy: BetaMixture, region: float) -> Figure:
    """The difference between the least accurate group and the next."""
    order = np.argsort(accuracy.mean())[:2]
    means, variances = accuracy.mean()[order], accuracy.variance()[order]
    first, second = zip(*betas.matching(means, variances), strict=True)
    one, other = (pool.names[group] for group in order)
    probabilities = rope_probabilities(first, second, region=region)
    verdict = (
        f"{one} is worse than {other}",
        f"{one} and {other} are alike within {100 * region:g} points",
        f"{one} is better than {other}",
    )[int(probabilities.argmax())]
    # Wide enough for any two groups, and fine enough for those that are known to a hundredth of a point.
    near = means[0] - means[1] + np.sqrt(variances.sum()) * np.linspace(-8, 8, 801)
    edges = np.union1d(np.linspace(-1, 1, 401), np.clip(near, -1, 1))
    return plots.difference_density(
        (edges[1:] + edges[:-1]) / 2,
        difference_density(first, second, edges),
        region,
        probabilities,
        (one, other),
        truth=float(pool.accuracy[order[0]] - pool.accuracy[order[1]]),
        title=f"{pool.recording.name}: {verdict}, most likely",
    )


def _settled(first: Floats, never: Floats, budget: int) -> Floats:
    """Share of comparisons that are settled by then, after every number of labels [budget + 1]."""
    counts = np.bincount(first[never == 0].astype(np.intp), minlength=budget + 1)
    return np.cumsum(counts) / len(first)
