"""The experiments of the paper, made with one recording: Tables 3 to 7, and 1 to 4 of the supplement.

`python -m benchmarks.studies.paper digits --runs 200` makes the tables of docs/reproduction.md. Source: Ji,
Logan, Smyth, Steyvers, Active Bayesian Assessment of Black-Box Classifiers (AAAI 2021).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from pathlib import Path

import numpy as np

from benchmarks.studies import running
from service.domain.arrays import Flags, Floats
from service.replay import plots
from service.replay.engine import OURS, PAPERS, Method
from service.replay.figures import draw_pool, results_figure
from service.replay.grouping import Grouper, load_superclasses
from service.replay.measures import Result
from service.replay.option_types import positive
from service.replay.pool import Pool
from service.replay.recording import Recording
from service.replay.study import Study
from service.replay.summary import comparison, estimation, identification
from service.replay.tables import Table
from service.replay.workers import Workers

VAGUE = Method("vague", "random")
"""What the paper's tables call UPrior was made with pseudo-counts of 1e-6 instead of 1."""

LABELS_PER_GROUP = (2, 5, 10)
BINS = 10
DEAR = (1, 2, 5, 10)
"""How much dearer the dear mistakes are than others."""

_FEWER = 10
"""By this the costly experiments have fewer runs, as in the paper."""


@dataclass(frozen=True)
class Experiment:
    """One table of the paper.

    Attributes:
        name: as the paper names it.
        study: the question.
        methods: who answers it.
    """

    name: str
    study: Study
    methods: tuple[Method, ...]

    def table(self, results: dict[Method, Result]) -> Table:
        """As a table."""
        study = self.study
        if study.task == "identification":
            made = identification(study, results)
        elif study.task == "comparison":
            made = comparison(study, results)
        else:
            made = estimation(study, results, _MEASURES[study.metric, self.name.startswith("Supplement")])
        return replace(made, title=f"{self.name}. {made.title}")

    def draw(self, results: dict[Method, Result], directory: Path) -> None:
        """Write what methods reach with how many labels, as a PNG file."""
        study = self.study
        words = [
            study.pool.recording.name,
            re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-"),
            study.task,
            study.metric,
            *([f"top{study.top_m}"] if study.task == "identification" else []),
        ]
        figure = results_figure(study, results, f"{self.name}. ")
        plots.save(figure, directory / f"{'-'.join(words)}.png")


_MEASURES = {
    ("accuracy", False): "rmse",
    ("confusion", False): "relative_rmse",
    ("calibration", False): "ece_error_percent",
    ("calibration", True): "rmse",
}


def experiments(
    recording: Recording,
    *,
    runs: int,
    seed: int,
    top_m: int,
    superclasses: Sequence[Sequence[int]],
) -> Iterator[Experiment]:
    """All experiments that this recording can serve.

    Args:
        recording: the predictions, with all labels.
        runs: runs of every experiment; of costs and comparisons a tenth.
        seed: of all chance.
        top_m: groups looked for, beside the single one.
        superclasses: classes of every superclass; without any, consecutive ones.
    """
    classes = recording.classes
    strata = Grouper(BINS, "equal_size").by_predicted_class(recording)
    widths = Grouper(BINS, "equal_width").by_predicted_class(recording)
    bins = Grouper(BINS, "equal_size").bins_alone(recording)
    size, groups = recording.size, len(strata.names)
    few = max(1, runs // _FEWER)
    three = uniform, informed, thompson = tuple(PAPERS.values())

    def labels(per: int) -> tuple[int, ...]:
        return tuple(sorted({min(n * per, size) for n in LABELS_PER_GROUP}))

    def estimate(pool: Pool, metric: str, at: tuple[int, ...]) -> Study:
        return Study(pool, "estimation", metric, runs=runs, budget=max(at), at=at, seed=seed)

    def find(metric: str, wanted: int, count: int, costs: Floats | None = None) -> Study:
        extreme = "lowest" if metric == "accuracy" else "highest"
        return Study(
            widths,
            "identification",
            metric,
            runs=count,
            budget=size,
            top_m=wanted,
            extreme=extreme,  # type: ignore[arg-type] # a conditional of two literals
            costs=costs,
            seed=seed,
        )

    yield Experiment(
        "Table 3", estimate(strata, "accuracy", labels(classes)), (uniform, VAGUE, informed, thompson, *OURS)
    )
    yield Experiment("Table 4", estimate(strata, "confusion", labels(classes)), (*three, *OURS))
    binwise = estimate(bins, "calibration", labels(BINS))
    yield Experiment("Table 5", binwise, (uniform, VAGUE, informed, thompson, *OURS))
    yield Experiment("Supplement, Table 1", binwise, (*three, *OURS))
    for wanted in sorted({1, min(top_m, groups - 1)} - {0}):
        policy = "thompson" if wanted == 1 else "multiple_play"
        active = (Method("informed", policy), Method("learned", policy))
        yield Experiment("Table 6", find("accuracy", wanted, runs), (uniform, informed, *active))
        yield Experiment("Supplement, Table 2", find("calibration", wanted, few), (informed, *active))
        for name, dear in (
            ("Supplement, Table 3 (one class)", _dear_class(recording)),
            ("Supplement, Table 4 (superclasses)", _across(recording, superclasses)),
        ):
            for times in DEAR if dear.any() else ():
                costs = (1 + (times - 1) * dear) * ~np.eye(classes, dtype=np.bool_)
                yield Experiment(
                    f"{name}, cost {times}",
                    find("cost", wanted, few, np.asarray(costs.T[widths.predicted], np.float64)),
                    (uniform, informed, *active),
                )
    if groups > 1:
        pairs = Study(
            widths,
            "comparison",
            "accuracy",
            runs=few,
            budget=int(np.sort(widths.sizes)[-2:].sum()),
            seed=seed,
        )
        yield Experiment("Table 7", pairs, (*three, OURS[1]))


def _dear_class(recording: Recording) -> Flags:
    """Whether a mistake is dear [true, predicted]: of an item that truly is of class 0."""
    dear = np.zeros((recording.classes, recording.classes), dtype=np.bool_)
    dear[0] = True
    return dear


def _across(recording: Recording, superclasses: Sequence[Sequence[int]]) -> Flags:
    """Whether a mistake is dear [true, predicted]: across superclasses."""
    classes = recording.classes
    of_class = np.arange(classes) // ceil(sqrt(classes))
    for number, members in enumerate(superclasses):
        of_class[list(members)] = number
    return np.asarray(of_class[:, None] != of_class[None, :], np.bool_)


def parser() -> argparse.ArgumentParser:
    """The parser of the options."""
    parser = running.study_parser("The paper's Tables 3 to 7 and the supplement's 1 to 4 of recordings.")
    parser.add_argument("--superclasses", type=Path, metavar="JSON", help="classes of every superclass")
    parser.add_argument(
        "--top-m", type=positive, default=3, metavar="M", help="groups to find (default: %(default)s)"
    )
    return parser


def paper_tables(
    recordings: Sequence[Recording], options: argparse.Namespace, crew: Workers
) -> Iterator[Table]:
    """All tables that every recording can serve."""
    for recording in recordings:
        superclasses: list[list[int]] = []
        if options.superclasses is not None:
            superclasses = list(load_superclasses(options.superclasses, recording).values())
        for experiment in experiments(
            recording, runs=options.runs, seed=options.seed, top_m=options.top_m, superclasses=superclasses
        ):
            study = experiment.study
            results = {
                method: study.run(method, crew, f"{experiment.name}: {method}")
                for method in experiment.methods
            }
            if options.plots:
                experiment.draw(results, options.plots)
                if experiment.name == "Table 3":
                    draw_pool(study, options.plots)
            yield experiment.table(results)


if __name__ == "__main__":
    running.main(paper_tables, parser().parse_args())
