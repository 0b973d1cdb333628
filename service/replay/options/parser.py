"""The options of `credence replay`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final, get_args

from service.domain.assessments import METRICS, Policy
from service.replay.options import challenge, drift, ensemble, inputs, one_class, performance
from service.replay.options.arguments import INTERVAL, natural, positive, share
from service.replay.options.recordings import Binning
from service.statistics.names import PriorName

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

ESTIMATION: Final = "estimation"

# Of options that some task refuses, so that argparse must not fill them in.
GROUPING: Final = "predicted_class"
BINS: Final = 10
BINNING: Final[Binning] = "equal_size"
TOP_M: Final = 1
TOP_M_OF_PAPER: Final = 3
REGION: Final = 0.05


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
        choices=sorted({*METRICS, drift.TASK}),
    )
    question.add_argument("--metric", default=None, choices=_metrics())
    question.add_argument(
        "--grouping",
        choices=["predicted_class", "superclass", "score_bin", "all"],
        help=f"what tells groups apart (default: {GROUPING})",
    )
    question.add_argument("--superclasses", type=Path, metavar="JSON", help="classes of every superclass")
    question.add_argument("--score-bins", type=positive, metavar="B", help=f"default: {BINS}")
    question.add_argument(
        "--binning",
        choices=["equal_width", "equal_size"],
        help=f"default: {BINNING}; with --after {inputs.BINNING}, as in the service",
    )
    question.add_argument(
        "--top-m",
        type=positive,
        metavar="M",
        help=f"groups to find (default: {TOP_M}; with --paper {TOP_M_OF_PAPER})",
    )
    question.add_argument("--extreme", choices=["lowest", "highest"], help="default: the worse end")
    question.add_argument(
        "--costs", type=Path, metavar="CSV", help="K rows: cost by true and predicted class"
    )
    question.add_argument(
        "--region",
        type=share,
        help=f"difference that does not matter (default: {REGION}; {challenge.MARGIN} of a challenge)",
    )
    one_class.add_arguments(
        parser,
        {
            performance.TASK: performance.LABELS,
            ensemble.TASK: ensemble.LABELS,
        },
    )
    performance.add_arguments(parser)
    ensemble.add_arguments(parser)
    drift.add_arguments(parser)
    inputs.add_arguments(parser)
    methods = parser.add_argument_group("who answers")
    methods.add_argument("--prior", action="append", choices=get_args(PriorName), help="repeatable")
    methods.add_argument("--policy", action="append", choices=get_args(Policy), help="repeatable")
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
    parser.set_defaults(command="service.replay.command:replay")


def _metrics() -> list[str]:
    """Metrics of all tasks but the ensemble's, which has but one and takes no --metric."""
    return sorted(
        {metric for task, metrics in METRICS.items() if task != ensemble.TASK for metric in metrics}
    )
