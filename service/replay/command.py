"""`credence replay`: assess recorded predictions whose labels are known, as if they were asked one by one."""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from service.domain.arrays import Floats
from service.domain.errors import RecordingError
from service.replay.annotators_command import annotator_tables
from service.replay.certificate_command import certificate_report
from service.replay.challenge_command import challenge_tables
from service.replay.conclusions import conclusions
from service.replay.crowd import load_crowd
from service.replay.digits import by_region, digits_recordings, digits_voters
from service.replay.engine import OURS, PAPERS, Method
from service.replay.ensemble_command import ensemble_tables
from service.replay.fault_command import PREDICTED_CLASS, fault_group, fault_report
from service.replay.figures import draw_pool, draw_results
from service.replay.grouping import Grouper, load_superclasses
from service.replay.options import ANNOTATORS, CERTIFICATE, DIGITS, FAULT, RATES, completed
from service.replay.performance_command import performance_tables
from service.replay.pool import Pool
from service.replay.rates_command import rates_report
from service.replay.recording import Recording, load_recording
from service.replay.study import Study
from service.replay.summary import summary
from service.replay.tables import Report, print_reports, print_tables
from service.replay.workers import Workers, workers
from service.statistics.tasks import TASKS

_LABELS = (50, 100, 200, 500)
"""Numbers of labels after which estimates are looked at, beside 2, 5 and 10 per group."""


def replay(options: argparse.Namespace) -> int:
    """Run the command."""
    options = completed(options)
    make_directory(options.plots)
    with workers(options.jobs, for_programs=options.json) as crew:
        if options.task == ANNOTATORS:
            crowds = [load_crowd(Path(name)) for name in options.files]
            reports = [Report([], annotator_tables(crowd, options, crew)) for crowd in crowds]
        else:
            recordings = [recording for name in options.files for recording in _recordings(name, options)]
            reports = _reports(recordings, options, crew)
    if options.json and options.task != FAULT:
        tables = [table for report in reports for table in report.tables]
        print_tables(tables, as_json=True, as_markdown=False)
    else:
        print_reports(reports, as_json=options.json, as_markdown=options.markdown)
    return 0


def make_directory(directory: Path | None) -> None:
    """Make the directory of --plots, if there is one, before anything is computed for it.

    Raises:
        RecordingError: it cannot be made.
    """
    try:
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(
            "--plots", f"{directory} cannot be made ({error.strerror}); name another"
        ) from error


def _recordings(name: str, options: argparse.Namespace) -> list[Recording]:
    attribute = options.group_by
    if options.task == FAULT:
        attribute = fault_group(options)[0]
        attribute = None if attribute == PREDICTED_CLASS else attribute
    if name == DIGITS:
        recordings = digits_voters() if options.task == "ensemble" else digits_recordings()
        return recordings if attribute is None else [by_region(each, attribute) for each in recordings]
    return [load_recording(Path(name), decision_values=options.decision_values, attribute=attribute)]


def _reports(recordings: list[Recording], options: argparse.Namespace, crew: Workers) -> list[Report]:
    if options.task == "ensemble":
        return [Report([], ensemble_tables(recordings, options, crew))]
    if options.task == "challenge":
        return [Report([], challenge_tables(recordings, options, crew))]
    if options.task == FAULT:
        return [fault_report(recording, options, crew) for recording in recordings]
    if options.task in {CERTIFICATE, RATES}:
        report = certificate_report if options.task == CERTIFICATE else rates_report
        pools = (grouped_pool(recording, options, options.grouping) for recording in recordings)
        return [report(pool, options, crew) for pool in pools]
    if options.task == "performance":
        return [Report([], performance_tables(each, options, crew)) for each in recordings]
    return [_study_report(recording, options, crew) for recording in recordings]


def _study_report(recording: Recording, options: argparse.Namespace, crew: Workers) -> Report:
    """Replay a recording by every method, and tell what was found: the first table, unless all are wished."""
    study = _study(recording, options)
    results = {method: study.run(method, crew, f"{recording.name} {method}") for method in _methods(options)}
    if options.plots:
        draw_results(study, results, options.plots)
        draw_pool(study, options.plots)
    tables = summary(study, results)
    return Report(conclusions(study, results), tables if options.paper or options.json else tables[:1])


def _methods(options: argparse.Namespace) -> list[Method]:
    if not options.prior and not options.policy:
        return [*PAPERS.values(), *OURS] if options.paper or options.json else list(OURS)
    return [
        Method(prior, policy)
        for prior, policy in product(options.prior or ["learned"], options.policy or ["thompson"])
    ]


def _study(recording: Recording, options: argparse.Namespace) -> Study:
    task, metric = options.task, options.metric
    if (task, metric) not in TASKS:
        known = ", ".join(sorted(other for each, other in TASKS if each == task))
        raise RecordingError("--metric", f"{task} knows {known}; choose one of them")
    by_class = options.grouping == "predicted_class" and options.group_by is None
    if metric in {"confusion", "cost"} and not by_class:
        raise RecordingError("--grouping", f"{metric} is known by predicted_class alone; leave it out")
    binwise = (task, metric) == ("estimation", "calibration")
    pool = grouped_pool(recording, options, "score_bin" if binwise else options.grouping)
    groups = len(pool.names)
    if task == "identification" and options.top_m >= groups:
        raise RecordingError(
            "--top-m", f"there are {groups} groups with items; look for fewer than that, or group otherwise"
        )
    if task == "comparison" and groups < 2:  # noqa: PLR2004 - a pair
        raise RecordingError(recording.name, "it has one group with items; a comparison needs two")
    budget, at = _budget(pool, options)
    if budget > recording.size:
        raise RecordingError(
            recording.name, f"it has {recording.size} items, the budget is {budget} labels; lower --budget"
        )
    costs = None
    if metric == "cost":
        if options.costs is None:
            raise RecordingError("--costs", "the metric cost needs a cost matrix; name its file")
        costs = np.ascontiguousarray(_load_costs(options.costs, recording.classes).T[pool.predicted])
    return Study(
        pool=pool,
        task=task,
        metric=metric,
        runs=options.runs,
        budget=budget,
        at=at,
        top_m=options.top_m,
        extreme=options.extreme or ("lowest" if metric == "accuracy" else "highest"),
        costs=costs,
        region=options.region,
        mass=options.interval,
        seed=options.seed,
    )


def _budget(pool: Pool, options: argparse.Namespace) -> tuple[int, tuple[int, ...]]:
    """Labels of a run, and numbers of labels after which an estimation is looked at."""
    size, budget = pool.recording.size, options.budget
    if options.task == "comparison":
        # Labels that leave nothing open of any two groups.
        return budget or int(np.sort(pool.sizes)[-2:].sum()), ()
    if options.task == "identification":
        return budget or size, ()
    at = sorted({*(count * len(pool.names) for count in (2, 5, 10)), *_LABELS})
    if budget is not None:
        return budget, (*(used for used in at if used < budget), budget)
    at = [used for used in at if used <= size] or [size]
    return at[-1], tuple(at)


def grouped_pool(recording: Recording, options: argparse.Namespace, grouping: str) -> Pool:
    """The items of a recording in groups of a kind, and in score bins as the options say.

    Raises:
        RecordingError: superclasses are to be the groups, and their file is missing or cannot be used.
    """
    grouper = Grouper(options.score_bins, options.binning)
    if recording.values is not None and grouping != "score_bin":
        return grouper.by_value(recording)
    if grouping == "superclass":
        if options.superclasses is None:
            raise RecordingError("--superclasses", "the grouping by superclass needs a file; name it")
        superclasses = load_superclasses(options.superclasses, recording)
        return grouper.by_superclass(recording, superclasses)
    if grouping == "score_bin":
        return grouper.bins_alone(recording)
    if grouping == "all":
        return grouper.all(recording)
    return grouper.by_predicted_class(recording)


def _load_costs(path: Path, classes: int) -> Floats:
    """Costs [K, K] by true class, in rows, and predicted class, in columns, of any unit.

    The file is text: K lines of K numbers, separated by commas or blanks.

    Raises:
        RecordingError: the file cannot be used.
    """
    try:
        lines = path.read_text(encoding="utf-8").replace(",", " ").splitlines()
        matrix = np.array([[float(word) for word in line.split()] for line in lines if line.strip()])
    except OSError as error:
        raise RecordingError(str(path), f"it cannot be read ({error.strerror}); name another file") from error
    except ValueError as error:
        raise RecordingError(
            str(path), "it is not a square of numbers; write a line of costs for every true class"
        ) from error
    if matrix.shape != (classes, classes):
        raise RecordingError(
            str(path), f"it has the shape {matrix.shape}; {classes} classes need {classes} by {classes} costs"
        )
    if not np.isfinite(matrix).all():
        raise RecordingError(str(path), "a cost is not a finite number; correct it")
    return matrix
