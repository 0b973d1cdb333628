"""How well ways of forgetting follow an accuracy that falls, and how soon rules detect it.

`python -m benchmarks.studies.drift digits --runs 20 --markdown` makes the tables of docs/forgetting.md, and
those of docs/evidence.md about streams of labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from benchmarks.studies import running
from benchmarks.studies.drift_alarms import AlarmStudy, alarm_summary
from benchmarks.studies.drift_streams import HEALTHY, NO_DRIFT, SHAPES, DriftStudy, Scenario
from benchmarks.studies.drift_summary import draw_drift, drift_summary
from service.config.forgetting import ForgettingSettings
from service.domain.errors import RecordingError
from service.replay.command import grouped_pool
from service.replay.option_types import counts, positive, share
from service.replay.options import DEFAULTS, add_grouping
from service.replay.recording import Recording
from service.replay.tables import Table
from service.replay.workers import Workers

POINTS: Final = (5, 10, 20)


def parser() -> argparse.ArgumentParser:
    """The parser of the options."""
    parser = running.study_parser(
        f"Streams of labels of every group, whose accuracy falls after {HEALTHY} of them: how well beliefs\n"
        "follow, without forgetting, with a window or a half-life, and with forgetting after changes; and\n"
        "how soon the posterior and evidence tell a decline, and how often they tell one that is none."
    )
    add_grouping(parser)
    parser.add_argument(
        "--interval", type=share, help=f"probability inside intervals (default: {DEFAULTS['interval']})"
    )
    parser.set_defaults(
        **{name: DEFAULTS[name] for name in ("grouping", "score_bins", "binning", "interval")}
    )
    parser.add_argument(
        "--drift", action="append", choices=SHAPES, help="repeatable (default: all of them, in turn)"
    )
    parser.add_argument(
        "--points",
        type=counts,
        default=POINTS,
        metavar="N,...",
        help=f"by how much the accuracy falls (default: {','.join(map(str, POINTS))})",
    )
    parser.add_argument(
        "--window",
        type=positive,
        default=200,
        metavar="N",
        help="labels that the window holds (default: %(default)s)",
    )
    parser.add_argument(
        "--half-life", type=positive, default=100, metavar="N", help="in labels (default: %(default)s)"
    )
    parser.add_argument(
        "--run-length",
        type=positive,
        default=ForgettingSettings().run_length,
        metavar="N",
        help="labels from one change to the next, of forgetting; and until a false one is announced "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--alpha",
        type=share,
        default=0.05,
        metavar="SHARE",
        help="of groups that have not declined, those that evidence may ever tell of; the posterior has to "
        "be as sure as 1 less this (default: %(default)s)",
    )
    parser.add_argument(
        "--reference",
        type=positive,
        default=100,
        metavar="N",
        help=f"first labels that a decline is measured from, up to {HEALTHY} (default: %(default)s)",
    )
    return parser


def drift_tables(
    recordings: Sequence[Recording], options: argparse.Namespace, crew: Workers
) -> Iterator[Table]:
    """Tables of every recording.

    Raises:
        RecordingError: the reference is longer than the time before a drift, or a run is of one label.
    """
    if options.run_length == 1:
        raise RecordingError("--run-length", "a run of one label leaves none between changes; give more")
    if options.reference > HEALTHY:
        raise RecordingError("--reference", f"a drift begins after {HEALTHY} labels; choose no more")
    shapes = dict.fromkeys(options.drift or SHAPES)
    drifts = [Scenario(shape, points) for shape, points in product(shapes, options.points)]
    for recording in recordings:
        study = DriftStudy(
            pool=grouped_pool(recording, options, options.grouping),
            runs=options.runs,
            window=options.window,
            half_life=options.half_life,
            run_length=options.run_length,
            mass=options.interval,
            seed=options.seed,
        )
        found = {
            scenario: study.run(scenario, crew, f"{recording.name} {scenario}")
            for scenario in (Scenario(NO_DRIFT), *drifts)
        }
        if options.plots:
            draw_drift(recording.name, found, options.plots)
        alarms = AlarmStudy(study, options.alpha, options.reference)
        results = {
            scenario: alarms.run(scenario, crew, f"{recording.name} {scenario}, alarms") for scenario in found
        }
        yield from drift_summary(study, found)
        yield from alarm_summary(alarms, results)


if __name__ == "__main__":
    running.main(drift_tables, parser().parse_args())
