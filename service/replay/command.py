"""`credence replay`: assess recorded predictions whose labels are known, as if they were asked one by one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from service.domain.arrays import Floats
from service.domain.errors import RecordingError
from service.replay import (
    challenge_command,
    drift_command,
    ensemble_command,
    inputs_command,
    performance_command,
)
from service.replay.costs import load_costs
from service.replay.digits import digits_recordings, digits_voters
from service.replay.engine import Method
from service.replay.figures import draw_pool, draw_results
from service.replay.grouping import Grouper
from service.replay.options import challenge, drift, ensemble, performance
from service.replay.options.arguments import INTERVAL
from service.replay.options.parser import BINNING, BINS, ESTIMATION, GROUPING, REGION, TOP_M, TOP_M_OF_PAPER
from service.replay.options.recordings import DIGITS
from service.replay.paper import OURS, PAPERS, experiments
from service.replay.pool import Pool
from service.replay.progress import Advance, progress
from service.replay.recording import Recording, load_recording
from service.replay.study import Study, Workers, workers
from service.replay.summary import Results, summary
from service.replay.superclasses import load_superclasses
from service.replay.tables import Table, print_tables
from service.replay.taken import refuse_what_is_not_taken
from service.statistics.tasks import TASKS

_LABELS = (50, 100, 200, 500)
"""Numbers of labels after which estimates are looked at, beside 2, 5 and 10 per group."""


def replay(options: argparse.Namespace) -> int:
    """Run the command."""
    refuse_what_is_not_taken(options)
    if options.plots:
        _make(options.plots)
    recordings = [recording for name in options.files for recording in _recordings(name, options)]
    tables: list[Table] = []
    with workers(options.jobs) as crew, progress(for_programs=options.json) as advance:
        if options.task == ensemble.TASK:
            tables += ensemble_command.ensemble_tables(recordings, options, crew, advance)
            recordings = []
        if options.task == challenge.TASK:
            tables += challenge_command.challenge_tables(recordings, options, advance)
            recordings = []
        if options.after:
            tables += inputs_command.inputs_tables(recordings, options, crew, advance)
            recordings = []
        for recording in recordings:
            if options.paper:
                tables += _paper(recording, options, crew, advance)
            elif options.task == performance.TASK:
                tables += performance_command.performance_tables(recording, options, crew, advance)
            elif options.task == drift.TASK:
                pool = _pool(recording, options, "accuracy")
                tables += drift_command.drift_tables(pool, options, crew, advance)
            else:
                study = _study(recording, options)
                results = _results(study, _methods(options), crew, advance)
                tables += summary(study, results)
                if options.plots:
                    draw_results(study, results, options.plots)
                    draw_pool(study, options.plots)
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)
    return 0


def _make(directory: Path) -> None:
    """Make a directory before anything is computed for it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(
            "--plots", f"{directory} cannot be made ({error.strerror}); name another"
        ) from error


def _recordings(name: str, options: argparse.Namespace) -> list[Recording]:
    if name == DIGITS:
        return digits_voters() if options.task == ensemble.TASK else digits_recordings()
    return [load_recording(Path(name), decision_values=options.decision_values)]


def _methods(options: argparse.Namespace) -> list[Method]:
    if not options.prior and not options.policy:
        return [*PAPERS.values(), *OURS]
    priors, policies = options.prior or ["learned"], options.policy or ["thompson"]
    return [Method(prior, policy) for prior, policy in product(priors, policies)]


def _study(recording: Recording, options: argparse.Namespace) -> Study:
    metric = options.metric or "accuracy"
    if (options.task, metric) not in TASKS:
        known = ", ".join(sorted(other for task, other in TASKS if task == options.task))
        raise RecordingError("--metric", f"{options.task} knows {known}; choose one of them")
    pool = _pool(recording, options, metric)
    groups = len(pool.names)
    top_m = options.top_m or TOP_M
    if options.task == "identification" and top_m >= groups:
        raise RecordingError(
            "--top-m", f"there are {groups} groups with items; look for fewer than that, or group otherwise"
        )
    if options.task == "comparison" and groups < 2:  # noqa: PLR2004 - a pair
        raise RecordingError(recording.name, "it has one group with items; a comparison needs two")
    estimating = options.task == ESTIMATION
    per_group = [count * groups for count in (2, 5, 10)]
    at = sorted({*per_group, *_LABELS}) if estimating else []
    if options.budget is not None:
        at = sorted({*(used for used in at if used < options.budget), options.budget}) if estimating else []
    elif estimating:
        at = [used for used in at if used <= recording.size] or [recording.size]
    budget = options.budget or (max(at) if estimating else _whole(pool, options.task))
    if budget > recording.size:
        raise RecordingError(
            recording.name, f"it has {recording.size} items, the budget is {budget} labels; lower --budget"
        )
    return Study(
        pool=pool,
        task=options.task,
        metric=metric,
        runs=options.runs,
        budget=budget,
        at=tuple(at),
        top_m=top_m,
        extreme=options.extreme or ("lowest" if metric == "accuracy" else "highest"),
        costs=_costs(pool, options) if metric == "cost" else None,
        region=options.region or REGION,
        mass=options.interval or INTERVAL,
        seed=options.seed,
    )


def _whole(pool: Pool, task: str) -> int:
    """Labels that leave nothing open."""
    return int(np.sort(pool.sizes)[-2:].sum()) if task == "comparison" else pool.recording.size


def _pool(recording: Recording, options: argparse.Namespace, metric: str) -> Pool:
    grouper = Grouper(options.score_bins or BINS, options.binning or BINNING)
    grouping = options.grouping or GROUPING
    if metric == "calibration" and options.task == ESTIMATION:
        return Pool(recording, grouper.bins_alone(recording))
    if metric in {"confusion", "cost"} and grouping != "predicted_class":
        raise RecordingError("--grouping", f"{metric} is known by predicted_class alone; leave it out")
    if grouping == "superclass":
        if options.superclasses is None:
            raise RecordingError("--superclasses", "the grouping by superclass needs a file; name it")
        return Pool(
            recording, grouper.by_superclass(recording, load_superclasses(options.superclasses, recording))
        )
    grouped: dict[str, Callable[[Recording], Any]] = {
        "predicted_class": grouper.by_predicted_class,
        "score_bin": grouper.bins_alone,
        "all": grouper.all,
    }
    return Pool(recording, grouped[grouping](recording))


def _costs(pool: Pool, options: argparse.Namespace) -> Floats:
    if options.costs is None:
        raise RecordingError("--costs", "the metric cost needs a cost matrix; name its file")
    matrix = load_costs(options.costs, pool.recording.classes)
    return np.asarray(matrix.T[pool.predicted], np.float64)


def _results(study: Study, methods: Sequence[Method], crew: Workers, advance: Advance) -> Results:
    return {
        method: study.run(method, crew, advance(f"{study.pool.recording.name} {method}", study.runs))
        for method in methods
    }


def _paper(
    recording: Recording, options: argparse.Namespace, crew: Workers, advance: Advance
) -> Iterator[Table]:
    superclasses = None
    if options.superclasses is not None:
        superclasses = list(load_superclasses(options.superclasses, recording).values())
    top_m = options.top_m or TOP_M_OF_PAPER
    for experiment in experiments(
        recording, runs=options.runs, seed=options.seed, top_m=top_m, superclasses=superclasses
    ):
        results = {
            method: experiment.study.run(
                method, crew, advance(f"{experiment.name}: {method}", experiment.study.runs)
            )
            for method in experiment.methods
        }
        if options.plots:
            draw_results(experiment.study, results, options.plots, experiment.name)
            if experiment.name == "Table 3":
                draw_pool(experiment.study, options.plots)
        yield experiment.table(results)
