"""Figures of a study, drawn from its results and from what the whole pool tells."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from service.domain.arrays import Floats
from service.replay import plots
from service.replay.grouping import Grouper
from service.replay.measures import IDENTIFIED
from service.replay.pool import Pool
from service.replay.study import Study
from service.replay.summary import Results
from service.statistics import beta as betas
from service.statistics.balance_heuristic import sums
from service.statistics.calibration import calibration_error
from service.statistics.comparison import rope_probabilities
from service.statistics.curves import LearnedCurve
from service.statistics.difference import difference_density
from service.statistics.mixture import BetaMixture
from service.statistics.prior_posterior import single
from service.statistics.ranking import mean_rank, ranks

_DRAWS = 10_000
_RELIABILITY_BINS = 10
_RELIABILITY_MASS = 0.95
"""Probability inside intervals that the diagram itself names."""

_FEW_LABELS = 100
"""Labels of the reliability diagram that shows how much is known with few."""


def draw_results(study: Study, results: Results, directory: Path, name: str = "") -> None:
    """Write what methods reach with how many labels, as PNG files.

    Args:
        study: the question.
        results: of every method.
        directory: where files go.
        name: of the experiment, where there are several; part of the titles and of the files' names.

    Raises:
        RecordingError: matplotlib is missing.
    """
    if study.task == "identification":
        labels, measure, unit = np.arange(study.budget + 1), "Mean reciprocal rank", ""
        series = {
            str(method): result.totals["reciprocal_rank"] / result.totals["runs"]
            for method, result in results.items()
        }
    elif study.task == "comparison":
        labels, measure, unit = np.arange(study.budget + 1), "Comparisons that are settled", "%"
        series = {
            str(method): _settled(result.per_run["first"], result.per_run["never"], study.budget)
            for method, result in results.items()
        }
    else:
        labels, measure, unit = np.array(study.at), "RMSE", "%"
        series = {str(method): result.per_run["rmse"].mean(axis=0) for method, result in results.items()}
    figure = plots.curves(
        labels.astype(np.float64),
        series,
        measure,
        unit,
        reference=IDENTIFIED if study.task == "identification" else None,
        title=f"{name}. {_asked(study)}" if name else _asked(study),
    )
    words = [study.pool.recording.name, _slug(name), study.task, study.metric.replace("_", "-")]
    words += [f"top{study.top_m}"] if study.task == "identification" else []
    plots.save(figure, directory / f"{'-'.join(word for word in words if word)}.png")


def draw_pool(study: Study, directory: Path) -> None:
    """Write what all labels of the pool tell, as PNG files.

    Reliability diagrams, also with few labels; of groups the paper's figure 1, their ranks and how the two
    least accurate differ; of a study of confusion or cost the confusion matrix.

    Args:
        study: its groups, score bins, region, probability inside intervals and seed are taken.
        directory: where files go.

    Raises:
        RecordingError: matplotlib is missing.
    """
    pool, name = study.pool, study.pool.recording.name
    binwise = (study.task, study.metric) == ("estimation", "calibration")
    _draw_reliability(pool, study.seed, directory)
    if binwise:
        # Its groups are score bins, which the diagram shows.
        return
    items, correct = pool.bin_counts
    fit = LearnedCurve().fit(pool.cells, items[None], correct[None])
    accuracy = single(fit.groups())
    lower, upper = accuracy.interval(study.mass)
    means, every = accuracy.mean(), _all_labels(pool)
    if pool.grouped.bin_count > 1:
        ece = calibration_error(
            beliefs=single(fit.bins()), scores=pool.cells.scores, shares=pool.cells.shares
        )
        ece_lower, ece_upper = ece.interval(study.mass)
        figure = plots.accuracy_against_calibration(
            pool.names,
            (lower, means, upper),
            (ece_lower, ece.mean, ece_upper),
            title=f"{name}: accuracy and calibration, {every}",
        )
        plots.save(figure, directory / f"{name}-accuracy-against-calibration.png")
    rng = np.random.default_rng(study.seed)
    mean, low, high = mean_rank(ranks(accuracy.sample(rng, _DRAWS)), study.mass)
    worst = accuracy.extreme_probabilities(rng, top_m=1, draws=_DRAWS)
    figure = plots.ranks_and_extremes(pool.names, (low, mean, high), worst, title=f"{name}: ranks, {every}")
    plots.save(figure, directory / f"{name}-ranks.png")
    if len(pool.names) > 1:
        _draw_comparison(pool, accuracy, study.region, directory)
    if study.metric in {"confusion", "cost"}:
        _draw_confusion(pool, directory)


def _draw_reliability(pool: Pool, seed: int, directory: Path) -> None:
    """Score bins of all items, with all labels and with a random sample of few.

    Bins are equally wide: of an overconfident model nearly all of equally many items would be drawn at 1.
    """
    recording = pool.recording
    whole = Pool(recording, Grouper(_RELIABILITY_BINS).all(recording))
    bins = whole.grouped.bins
    few = min(_FEW_LABELS, recording.size)
    sample = np.random.default_rng(seed).choice(recording.size, few, replace=False)
    of_sample = sums(bins[sample], np.ones(few), _RELIABILITY_BINS)
    right = sums(bins[sample], recording.correct[sample].astype(np.float64), _RELIABILITY_BINS)
    for items, correct, words, name in (
        (*whole.bin_counts, f"reliability, {_all_labels(pool)}", "reliability"),
        (of_sample[None], right[None], f"reliability, {few} random labels", "reliability-few-labels"),
    ):
        beliefs = single(LearnedCurve().fit(whole.cells, items[None], correct[None]).bins())
        lower, upper = beliefs.interval(_RELIABILITY_MASS)
        ece = calibration_error(beliefs=beliefs, scores=whole.cells.scores, shares=whole.cells.shares)
        ece_lower, ece_upper = ece.interval(_RELIABILITY_MASS)
        figure = plots.reliability_diagram(
            whole.cells.scores[0],
            whole.cells.shares[0],
            (lower, beliefs.mean(), upper),
            (float(ece_lower[0]), float(ece.mean[0]), float(ece_upper[0])),
            title=f"{recording.name}: {words}",
        )
        plots.save(figure, directory / f"{recording.name}-{name}.png")


def _draw_comparison(pool: Pool, accuracy: BetaMixture, region: float, directory: Path) -> None:
    """The difference between the least accurate group and the next."""
    order = np.argsort(accuracy.mean())[:2]
    alpha, beta = betas.matching(accuracy.mean()[order], accuracy.variance()[order])
    first, second = (alpha[0], beta[0]), (alpha[1], beta[1])
    one, other = (pool.names[group] for group in order)
    probabilities = rope_probabilities(first, second, region=region)
    verdict = (
        f"{one} is worse than {other}",
        f"{one} and {other} are alike within {100 * region:g} points",
        f"{one} is better than {other}",
    )[int(probabilities.argmax())]
    # Wide enough for any two groups, and fine enough for those that are known to a hundredth of a point.
    deviation = float(np.sqrt(accuracy.variance()[order].sum()))
    centre = float(accuracy.mean()[order[0]] - accuracy.mean()[order[1]])
    points = np.union1d(np.linspace(-1, 1, 401), np.clip(centre + deviation * np.linspace(-8, 8, 801), -1, 1))
    figure = plots.difference_density(
        points,
        difference_density(first, second, points),
        region,
        probabilities,
        (one, other),
        truth=float(pool.accuracy[order[0]] - pool.accuracy[order[1]]),
        title=f"{pool.recording.name}: {verdict}, most likely",
    )
    plots.save(figure, directory / f"{pool.recording.name}-difference.png")


def _draw_confusion(pool: Pool, directory: Path) -> None:
    """All classes; of one that is never predicted nothing is known."""
    classes = pool.recording.classes
    matrix, names = np.full((classes, classes), np.nan), [str(number) for number in range(classes)]
    matrix[pool.predicted] = pool.confusion
    for number, name in zip(pool.predicted.tolist(), pool.names, strict=True):
        names[number] = name
    title = f"{pool.recording.name}: confusion matrix (%), {_all_labels(pool)}"
    figure = plots.confusion(names, matrix, title=title)
    for text in figure.axes[0].texts:
        if text.get_text() == "nan":
            text.set_text("-")
    plots.save(figure, directory / f"{pool.recording.name}-confusion.png")


def _settled(first: Floats, never: Floats, budget: int) -> Floats:
    """Share of comparisons that are settled by then, after every number of labels [budget + 1]."""
    counts = np.bincount(first[never == 0].astype(np.intp), minlength=budget + 1)
    return np.cumsum(counts) / len(first)


def _all_labels(pool: Pool) -> str:
    return f"all {pool.recording.size:,} labels"


def _asked(study: Study) -> str:
    top = f", top {study.top_m}" if study.task == "identification" else ""
    return f"{study.pool.recording.name}: {study.task} of {study.metric.replace('_', ' ')}{top}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
