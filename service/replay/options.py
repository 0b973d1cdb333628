"""The options of `credence replay`, and which task takes which. Light: it imports no library."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from service.domain.assessments import METRICS, Aim, Policy
from service.domain.errors import RecordingError
from service.replay.option_texts import DESCRIPTION, EPILOG
from service.replay.option_types import (
    class_or_all,
    counts,
    natural,
    positive,
    positive_number,
    real,
    share,
    target,
)
from service.statistics.names import LABELLED_RATES, PriorName

Binning = Literal["equal_width", "equal_size"]

DIGITS: Final = "digits"
"""Stands for recordings of handwritten digits where a file would be named."""

DEFAULTS: Final[Mapping[str, Any]] = {
    "metric": "accuracy",
    "grouping": "predicted_class",
    "score_bins": 10,
    "binning": "equal_size",
    "top_m": 1,
    "region": 0.05,
    "interval": 0.95,
    "aim": "f1",
    "runs": 100,
}
"""Of options that some task refuses, so that argparse must not fill them in."""

FAULT: Final = "fault"
"""The task that `--fault` chooses: how soon a fault of one group is found."""

OF_FAULT: Final[Mapping[str, Any]] = {"drop": 0.1, "labels_per_day": 50, "days_before": 30, "runs": 20}
"""Defaults of the options of this task."""

ANNOTATORS: Final = "annotators"
"""The task for a file of the answers of several people."""

CERTIFICATE: Final = "certificate"
"""The task that tells how many labels it takes to show that every group meets a threshold."""

RATES: Final = "rates"
"""The task that measures how many labels it takes to show that groups differ in a rate, or miss its limit."""

OF_RATES: Final[Mapping[str, Any]] = {"score_bins": 3, "rate": "false_positive_rate"}
"""Defaults of this task's options; score bins are those of each predicted class."""

MARGIN: Final = 0.01
"""Region of a challenge."""

LABELS: Final[Mapping[str, tuple[int, ...]]] = {
    "performance": (10, 20, 50, 100),
    "ensemble": (20, 50, 100),
    ANNOTATORS: (100, 300, 900),
}
"""How many are asked for by the tasks that are not of groups."""

_OF_GROUPS = (
    *("metric", "grouping", "group_by", "superclasses", "score_bins", "binning"),
    *("prior", "policy", "budget", "interval", "region", "paper"),
)
_OF_ONE_CLASS = ("positive_class", "labels", "interval")

_TAKEN: Final[Mapping[str, tuple[str, ...]]] = {
    "estimation": _OF_GROUPS,
    "identification": (*_OF_GROUPS, "top_m", "extreme", "costs"),
    "comparison": _OF_GROUPS,
    "performance": (*_OF_ONE_CLASS, "threshold", "target", "decision_values", "policy", "aim"),
    "ensemble": (*_OF_ONE_CLASS, "ensemble"),
    "challenge": ("region", "interval"),
    ANNOTATORS: ("labels", "interval", "skipped", "expired"),
    CERTIFICATE: (
        *("grouping", "group_by", "superclasses", "score_bins", "binning"),
        *("policy", "budget", "threshold", "interval"),
    ),
    RATES: (
        *("grouping", "group_by", "superclasses", "score_bins", "binning", "positive_class"),
        *("rate", "region", "threshold", "budget", "interval"),
    ),
    FAULT: (
        *("fault", "drop", "labels_per_day", "half_life_days", "days_before", "threshold", "interval"),
        *("group_by", "policy", "score_bins", "binning"),
    ),
}
"""By task, beside those that all take, such as --runs."""


def completed(options: argparse.Namespace) -> argparse.Namespace:
    """The options that were given, and the defaults of others.

    Raises:
        RecordingError: the task does not take one of them, which would seem to change something.
    """
    given = {name: value for name, value in vars(options).items() if value is not None}
    if options.fault is not None and options.task in {"estimation", FAULT}:
        options = argparse.Namespace(**{**vars(options), "task": FAULT})
        given["task"] = FAULT
    for name in dict.fromkeys(name for names in _TAKEN.values() for name in names):
        if name not in _TAKEN[options.task] and given.get(name, False) is not False:
            raise RecordingError(
                f"--{name.replace('_', '-')}", f"the task {options.task} does not take it; leave it out"
            )
    if options.task != CERTIFICATE and "certify" in given.get("policy", ()):
        raise RecordingError("--policy", f"certify asks for a certificate; add --task {CERTIFICATE}")
    if options.task != "performance" and "adaptive" in given.get("policy", ()):
        raise RecordingError("--policy", "adaptive asks for precision and recall; add --task performance")
    more = {"challenge": {"region": MARGIN}, FAULT: OF_FAULT, RATES: OF_RATES}.get(options.task, {})
    if "group_by" in given and "grouping" in given:
        raise RecordingError("--group-by", "--grouping says what tells groups apart; leave one of them out")
    return argparse.Namespace(**{**vars(options), **DEFAULTS, **more, **given})


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
    question = parser.add_argument_group("what is asked")
    question.add_argument(
        "--task", default="estimation", choices=sorted([*METRICS, FAULT, ANNOTATORS, CERTIFICATE, RATES])
    )
    # The ensemble has but one metric, and takes no --metric.
    metrics = {metric for task, names in METRICS.items() if task != "ensemble" for metric in names}
    question.add_argument("--metric", choices=sorted(metrics))
    add_grouping(question)
    question.add_argument(
        "--group-by", metavar="NAME", help="group by an attribute: an array or column of the file"
    )
    question.add_argument(
        "--rate", choices=LABELLED_RATES, help=f"of the task rates (default: {OF_RATES['rate']})"
    )
    question.add_argument(
        "--top-m", type=positive, metavar="M", help=f"groups to find (default: {DEFAULTS['top_m']})"
    )
    question.add_argument("--extreme", choices=["lowest", "highest"], help="default: the worse end")
    question.add_argument(
        "--costs", type=Path, metavar="CSV", help="K rows: cost by true and predicted class"
    )
    question.add_argument(
        "--region",
        type=share,
        help=f"difference that does not matter (default: {DEFAULTS['region']}; {MARGIN} of a challenge)",
    )
    _add_fault(parser)
    _add_one_class(parser)
    methods = parser.add_argument_group("who answers")
    methods.add_argument("--prior", action="append", choices=get_args(PriorName), help="repeatable")
    methods.add_argument("--policy", action="append", choices=get_args(Policy), help="repeatable")
    size = parser.add_argument_group("how much")
    size.add_argument("--budget", type=positive, help="labels of a run (default: by task)")
    size.add_argument(
        "--interval", type=share, help=f"probability inside intervals (default: {DEFAULTS['interval']})"
    )
    add_size(size, runs=None)
    output = parser.add_argument_group("output")
    add_output(output)
    output.add_argument(
        "--paper", action="store_true", help="compare the paper's methods too, and print all tables"
    )
    parser.set_defaults(command="service.replay.command:replay")


def add_grouping(group: Any) -> None:
    """Add the options that say what groups and score bins are."""
    group.add_argument(
        "--grouping",
        choices=["predicted_class", "superclass", "score_bin", "all"],
        help=f"what tells groups apart (default: {DEFAULTS['grouping']})",
    )
    group.add_argument("--superclasses", type=Path, metavar="JSON", help="classes of every superclass")
    group.add_argument("--score-bins", type=positive, metavar="B", help=f"default: {DEFAULTS['score_bins']}")
    group.add_argument("--binning", choices=get_args(Binning), help=f"default: {DEFAULTS['binning']}")


def add_size(group: Any, runs: int | None = 100) -> None:
    """Add the options that say how much is computed; without a number of runs it depends on the task."""
    default = f"{DEFAULTS['runs']}" + ("" if runs else f"; {OF_FAULT['runs']} of a fault")
    group.add_argument("--runs", type=positive, default=runs, help=f"independent runs (default: {default})")
    group.add_argument("--seed", type=natural, default=0, help="the same seed gives the same figures")
    group.add_argument("--jobs", type=positive, default=1, help="processes (default: 1)")


def add_output(group: Any) -> None:
    """Add the options that say what is printed and drawn."""
    group.add_argument("--json", action="store_true", help="print JSON instead of tables")
    group.add_argument("--markdown", action="store_true", help="print Markdown instead of tables")
    group.add_argument("--plots", type=Path, metavar="DIR", help="draw figures (needs credence[replay])")


def _add_fault(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task that finds a fault."""
    group = parser.add_argument_group(
        "how soon a fault is found",
        "One group becomes less accurate, after some days of labels without a fault: as many of its correct\n"
        "predictions as the drop needs become wrong.",
    )
    group.add_argument(
        "--fault", metavar="NAME=VALUE", help="the group: an attribute's value, or predicted_class=K"
    )
    defaults = OF_FAULT
    group.add_argument("--drop", type=share, help=f"of its accuracy (default: {defaults['drop']})")
    group.add_argument(
        "--labels-per-day", type=positive, metavar="N", help=f"default: {defaults['labels_per_day']}"
    )
    group.add_argument("--half-life-days", type=positive_number, metavar="D", help="of labels; default: none")
    group.add_argument(
        "--days-before",
        type=positive,
        metavar="D",
        help=f"without a fault (default: {defaults['days_before']})",
    )


def _add_one_class(parser: argparse.ArgumentParser) -> None:
    """Add the options of the tasks that hold one class against all others."""
    group = parser.add_argument_group(f"of the tasks {', '.join(LABELS)}")
    group.add_argument(
        "--positive-class",
        type=class_or_all,
        metavar="K|all",
        help="default: the second of two classes; of more, all in turn",
    )
    defaults = "; ".join(f"{task} {','.join(map(str, numbers))}" for task, numbers in LABELS.items())
    group.add_argument(
        "--labels",
        type=counts,
        metavar="N,...",
        help=f"how many to ask for, of each member or about how many items (default: {defaults})",
    )
    group = parser.add_argument_group(
        "of the task performance",
        "Precision, recall and F1 of one class against all others, from few labels and all scores, held\n"
        "against all labels of the pool. Labels are random, or with --policy adaptive of the items that\n"
        "narrow a measure most.",
    )
    group.add_argument(
        "--aim",
        choices=get_args(Aim),
        help=f"measure at the threshold, or the curve, that labels narrow (default: {DEFAULTS['aim']})",
    )
    group.add_argument(
        "--threshold",
        type=real,
        help="operating threshold (default: 0.5; of decision values 0); of a fault the least accuracy "
        "allowed (default: half-way down the drop), of a certificate that of every group "
        "(required); of rates their limit",
    )
    group.add_argument(
        "--target",
        type=target,
        metavar="NAME=SHARE,...",
        help="choose a threshold, as precision=0.8,recall=0.9",
    )
    group.add_argument(
        "--decision-values", action="store_true", help="take decision_values of an .npz for the scores"
    )
    parser.add_argument_group(
        "of the task ensemble",
        "Precision of an ensemble and its members on one class, with labels that they share. Each FILE is a\n"
        "member, recorded on the same items in the same order; `digits` are three.",
    ).add_argument(
        "--ensemble",
        type=Path,
        metavar="FILE",
        help="recording of the ensemble's own decision (default: positive is what more than half of the "
        "members call so)",
    )
    group = parser.add_argument_group(
        "of the task annotators",
        "Answers that are missing: estimates that ignore this, and those that allow for it.",
    )
    group.add_argument("--skipped", type=share, metavar="SHARE", help="of the items: the hardest, for people")
    group.add_argument("--expired", type=share, metavar="SHARE", help="of the items: any, at random")
