"""Figures of a study, drawn from its results and from what the whole pool tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from service.assessment import beta as betas
from service.assessment.calibration import calibration_error
from service.assessment.comparison import difference_density, rope_probabilities
from service.assessment.curves import LearnedCurve
from service.assessment.mixture import BetaMixture
from service.assessment.ranking import mean_rank
from service.replay import plots
from service.replay.pool import Pool
from service.replay.study import Study
from service.replay.summary import Results

Floats = npt.NDArray[np.float64]

_DRAWS = 10_000


def draw_figures(study: Study, results: Results, directory: Path) -> None:
    """Write the figures of one study as PNG files.

    Args:
        study: the question.
        results: of every method.
        directory: made if it is not there.

    Raises:
        RecordingError: matplotlib is missing.
    """
    directory.mkdir(parents=True, exist_ok=True)
    name = study.pool.recording.name
    stem = f"{name}-{study.task}-{study.metric}"
    if study.task == "identification":
        series = {
            str(method): result.totals["reciprocal_rank"] / result.totals["runs"]
            for method, result in results.items()
        }
        labels = np.arange(study.budget + 1, dtype=np.float64)
        figure = plots.curves(labels, series, "mean reciprocal rank", reference=0.99, title=_title(study))
        plots.save(figure, directory / f"{stem}-top{study.top_m}.png")
    elif study.task == "estimation":
        errors = {str(method): result.per_run["rmse"].mean(axis=0) for method, result in results.items()}
        figure = plots.curves(np.array(study.at, dtype=np.float64), errors, "RMSE", title=_title(study))
        plots.save(figure, directory / f"{stem}.png")
    _draw_pool(study.pool, study, directory)


def _title(study: Study) -> str:
    return f"{study.pool.recording.name}: {study.task} of {study.metric.replace('_', ' ')}"


def _draw_pool(pool: Pool, study: Study, directory: Path) -> None:
    """What all labels of the pool tell: the paper's Figure 1, reliability, ranks and a comparison."""
    name = pool.recording.name
    items, correct = pool.bin_counts
    fit = LearnedCurve().fit(pool.cells, items[None], correct[None])
    accuracy = _single(fit.groups())
    lower, upper = accuracy.interval(study.mass)
    ece = calibration_error(beliefs=_single(fit.bins()), scores=pool.cells.scores, shares=pool.cells.shares)
    ece_lower, ece_upper = ece.interval(study.mass)
    means = accuracy.mean()
    plots.save(
        plots.accuracy_against_calibration(
            pool.names, (lower, means, upper), (ece_lower, ece.mean, ece_upper), title=name
        ),
        directory / f"{name}-accuracy-against-calibration.png",
    )
    rng = np.random.default_rng(study.seed)
    draws = accuracy.sample(rng, _DRAWS)
    mean, low, high = mean_rank(draws, study.mass)
    worst = accuracy.extreme_probabilities(rng, top_m=1, draws=_DRAWS)
    plots.save(
        plots.ranks_and_extremes(pool.names, (low, mean, high), worst, title=name),
        directory / f"{name}-ranks.png",
    )
    if len(pool.names) > 1:
        _draw_comparison(pool, accuracy, study.region, directory)


def _draw_comparison(pool: Pool, accuracy: BetaMixture, region: float, directory: Path) -> None:
    """The difference between the least accurate group and the next."""
    order = np.argsort(accuracy.mean())[:2]
    alpha, beta = betas.matching(accuracy.mean()[order], accuracy.variance()[order])
    first, second = (alpha[0], beta[0]), (alpha[1], beta[1])
    points = np.linspace(-1, 1, 2001)
    figure = plots.difference_density(
        points,
        difference_density(first, second, points),
        region,
        rope_probabilities(first, second, region=region),
        (pool.names[order[0]], pool.names[order[1]]),
        truth=float(pool.accuracy[order[0]] - pool.accuracy[order[1]]),
        title=pool.recording.name,
    )
    plots.save(figure, directory / f"{pool.recording.name}-difference.png")


def _single(mixture: BetaMixture) -> BetaMixture:
    """The only run of a mixture."""
    return BetaMixture(mixture.weights[0], mixture.alpha[0], mixture.beta[0])
