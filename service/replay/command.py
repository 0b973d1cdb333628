"""`credence replay`: assess recorded predictions whose labels are known, as if they were asked one by one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from service.domain.arrays import Floats
from service.domain.errors import RecordingError
from service.replay import (
    challenge_command,
    drift_command,
    ensemble_command,
    inputs_command,
    one_class,
    performance_command,
)
from service.replay.arguments import INTERVAL, natural, positive, share
from service.replay.costs import load_costs
from service.replay.digits import DIGITS, digits_recordings, digits_voters
from service.replay.engine import Method
from service.replay.figures import draw_pool, draw_results
from service.replay.grouping import Grouper
from service.replay.paper import OURS, PAPERS, experiments
from service.replay.pool import Pool
from service.replay.progress import Advance, progress
from service.replay.recording import Recording, load_recording
from service.replay.study import Study, Workers, workers
from service.replay.summary import Results, summary
from service.replay.superclasses import load_superclasses
from service.replay.tables import Table, print_tables
from service.replay.taken import ESTIMATION, refuse_what_is_not_taken
from service.statistics.policies import POLICIES
from service.statistics.priors import FIXED_PRIORS
from service.statistics.tasks import TASKS

DESCRIPTION = """\
Assess recorded predictions offline: label them one by one as a policy wishes, in many independent runs, and
measure how well the method knows the truth after so many labels. Nothing is needed but the file.

FILE is .npz (probabilities [N, K], labels [N]), .csv or .txt (true_class score_0 ... score_K-1 a row), or
.parquet; or the word `digits`: two classifiers of the handwritten digits that scikit-learn brings along, with
--task ensemble three. With --task ensemble all files are members of one ensemble, with --task challenge there
are two, the champion first; else each is by itself.
"""

EPILOG = """\
Methods are PRIOR+POLICY. Without --prior and --policy these are compared: the paper's UPrior
(uniform+random), IPrior (informed+random) and IPrior+TS (informed+thompson), and Credence's own
(learned+random, learned+thompson). Otherwise all combinations of the priors and policies given.

examples:
  credence replay digits                                   groupwise accuracy, by number of labels
  credence replay digits --task identification --runs 50   labels until the least accurate class is found
  credence replay FILE --task identification --metric calibration --top-m 3 --plots figures
  credence replay FILE --task performance --jobs 4         precision-recall curves from few labels
  credence replay digits --task drift --runs 10            how well beliefs follow an accuracy that falls
  credence replay digits --task drift --after noise        how soon changed inputs show, with few labels
  credence replay A.npz B.npz C.npz --task ensemble        members of an ensemble, with labels that they share
  credence replay OLD.npz NEW.npz --task challenge         labels until it is known which is better
  credence replay --paper FILE                             the paper's tables, with your predictions
"""

_LABELS = (50, 100, 200, 500)
"""Numbers of labels after which estimates are looked at, beside 2, 5 and 10 per group."""

# Of options that some task refuses, so that argparse must not fill them in.
_GROUPING = "predicted_class"
_BINS = 10
_BINNING: Literal["equal_width", "equal_size"] = "equal_size"
_TOP_M, _TOP_M_OF_PAPER = 1, 3
_REGION = 0.05


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "replay",
        help="assess recorded predictions offline, and compare methods",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="recorded predictions, or `digits`")
    parser.add_argument(
        "--paper", action="store_true", help="make the paper's Tables 3 to 7 and the supplement's 1 to 4"
    )
    question = parser.add_argument_group("what is asked")
    question.add_argument(
        "--task",
        default=ESTIMATION,
        choices=sorted(
            {
                *(task for task, _ in TASKS),
                *(performance_command.TASK, ensemble_command.TASK, drift_command.TASK),
                challenge_command.TASK,
            }
        ),
    )
    question.add_argument("--metric", default=None, choices=sorted({metric for _, metric in TASKS}))
    question.add_argument(
        "--grouping",
        choices=["predicted_class", "superclass", "score_bin", "all"],
        help=f"what tells groups apart (default: {_GROUPING})",
    )
    question.add_argument("--superclasses", type=Path, metavar="JSON", help="classes of every superclass")
    question.add_argument("--score-bins", type=positive, metavar="B", help=f"default: {_BINS}")
    question.add_argument(
        "--binning",
        choices=["equal_width", "equal_size"],
        help=f"default: {_BINNING}; with --after {inputs_command.BINNING}, as in the service",
    )
    question.add_argument(
        "--top-m",
        type=positive,
        metavar="M",
        help=f"groups to find (default: {_TOP_M}; with --paper {_TOP_M_OF_PAPER})",
    )
    question.add_argument("--extreme", choices=["lowest", "highest"], help="default: the worse end")
    question.add_argument(
        "--costs", type=Path, metavar="CSV", help="K rows: cost by true and predicted class"
    )
    question.add_argument(
        "--region",
        type=share,
        help=f"difference that does not matter (default: {_REGION}; "
        f"{challenge_command.MARGIN} of a challenge)",
    )
    one_class.add_arguments(
        parser,
        {
            performance_command.TASK: performance_command.LABELS,
            ensemble_command.TASK: ensemble_command.LABELS,
        },
    )
    performance_command.add_arguments(parser)
    ensemble_command.add_arguments(parser)
    drift_command.add_arguments(parser)
    inputs_command.add_arguments(parser)
    methods = parser.add_argument_group("who answers")
    methods.add_argument("--prior", action="append", choices=["learned", *FIXED_PRIORS], help="repeatable")
    methods.add_argument("--policy", action="append", choices=list(POLICIES), help="repeatable")
    size = parser.add_argument_group("how much")
    size.add_argument("--runs", type=positive, default=100, help="independent runs (default: 100)")
    size.add_argument("--budget", type=positive, help="labels of a run (default: by task)")
    size.add_argument("--interval", type=share, help=f"probability inside intervals (default: {INTERVAL})")
    size.add_argument("--seed", type=natural, default=0, help="the same seed gives the same figures")
    size.add_argument("--jobs", type=positive, default=1, help="processes (default: 1)")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print JSON instead of tables")
    output.add_argument("--markdown", action="store_true", help="print Markdown instead of tables")
    output.add_argument("--plots", type=Path, metavar="DIR", help="draw figures (needs credence[replay])")
    parser.set_defaults(command=replay)


def replay(options: argparse.Namespace) -> int:
    """Run the command."""
    refuse_what_is_not_taken(options)
    if options.plots:
        _make(options.plots)
    recordings = [recording for name in options.files for recording in _recordings(name, options)]
    tables: list[Table] = []
    with workers(options.jobs) as crew, progress(for_programs=options.json) as advance:
        if options.task == ensemble_command.TASK:
            tables += ensemble_command.ensemble_tables(recordings, options, crew, advance)
            recordings = []
        if options.task == challenge_command.TASK:
            tables += challenge_command.challenge_tables(recordings, options, advance)
            recordings = []
        if options.after:
            tables += inputs_command.inputs_tables(recordings, options, crew, advance)
            recordings = []
        for recording in recordings:
            if options.paper:
                tables += _paper(recording, options, crew, advance)
            elif options.task == performance_command.TASK:
                tables += performance_command.performance_tables(recording, options, crew, advance)
            elif options.task == drift_command.TASK:
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
        return digits_voters() if options.task == ensemble_command.TASK else digits_recordings()
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
    top_m = options.top_m or _TOP_M
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
        region=options.region or _REGION,
        mass=options.interval or INTERVAL,
        seed=options.seed,
    )


def _whole(pool: Pool, task: str) -> int:
    """Labels that leave nothing open."""
    return int(np.sort(pool.sizes)[-2:].sum()) if task == "comparison" else pool.recording.size


def _pool(recording: Recording, options: argparse.Namespace, metric: str) -> Pool:
    grouper = Grouper(options.score_bins or _BINS, options.binning or _BINNING)
    grouping = options.grouping or _GROUPING
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
    top_m = options.top_m or _TOP_M_OF_PAPER
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
