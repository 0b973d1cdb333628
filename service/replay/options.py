"""The options of `credence replay`, and which task takes which. Light: it imports no library."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import fields
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final, Literal, get_args

from service.domain.assessments import METRICS, Policy
from service.domain.errors import RecordingError
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
Methods are PRIOR+POLICY. Without --prior and --policy these are compared: UPrior (uniform+random), IPrior
(informed+random) and IPrior+TS (informed+thompson) of the paper behind the method, and Credence's own
(learned+random, learned+thompson). Otherwise all combinations of the priors and policies given.

examples:
  credence replay digits                                   groupwise accuracy, by number of labels
  credence replay digits --task identification --runs 50   labels until the least accurate class is found
  credence replay FILE --task identification --metric calibration --top-m 3 --plots figures
  credence replay FILE --task performance --jobs 4         precision-recall curves from few labels
  credence replay A.npz B.npz C.npz --task ensemble        members of an ensemble, with labels that they share
  credence replay OLD.npz NEW.npz --task challenge         labels until it is known which is better
"""

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
}
"""Of options that some task refuses, so that argparse must not fill them in."""

MARGIN: Final = 0.01
"""Region of a challenge."""

LABELS: Final[Mapping[str, tuple[int, ...]]] = {
    "performance": (10, 20, 50, 100),
    "ensemble": (20, 50, 100),
}
"""How many are asked for by the tasks that hold one class against all others."""

_OF_GROUPS = (
    *("metric", "grouping", "superclasses", "score_bins", "binning"),
    *("prior", "policy", "budget", "interval", "region"),
)
_OF_ONE_CLASS = ("positive_class", "labels", "interval")

_TAKEN: Final[Mapping[str, tuple[str, ...]]] = {
    "estimation": _OF_GROUPS,
    "identification": (*_OF_GROUPS, "top_m", "extreme", "costs"),
    "comparison": _OF_GROUPS,
    "performance": (*_OF_ONE_CLASS, "threshold", "target", "decision_values"),
    "ensemble": (*_OF_ONE_CLASS, "ensemble"),
    "challenge": ("region", "interval"),
}
"""By task, beside those that all take, such as --runs."""


def completed(options: argparse.Namespace) -> argparse.Namespace:
    """The options that were given, and the defaults of others.

    Raises:
        RecordingError: the task does not take one of them, which would seem to change something.
    """
    given = {name: value for name, value in vars(options).items() if value is not None}
    for name in dict.fromkeys(name for names in _TAKEN.values() for name in names):
        if name not in _TAKEN[options.task] and given.get(name, False) is not False:
            raise RecordingError(
                f"--{name.replace('_', '-')}", f"the task {options.task} does not take it; leave it out"
            )
    margin = {"region": MARGIN} if options.task == "challenge" else {}
    return argparse.Namespace(**{**vars(options), **DEFAULTS, **margin, **given})


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
    question.add_argument("--task", default="estimation", choices=sorted(METRICS))
    # The ensemble has but one metric, and takes no --metric.
    metrics = {metric for task, names in METRICS.items() if task != "ensemble" for metric in names}
    question.add_argument("--metric", choices=sorted(metrics))
    add_grouping(question)
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
    _add_one_class(parser)
    methods = parser.add_argument_group("who answers")
    methods.add_argument("--prior", action="append", choices=get_args(PriorName), help="repeatable")
    methods.add_argument("--policy", action="append", choices=get_args(Policy), help="repeatable")
    size = parser.add_argument_group("how much")
    size.add_argument("--budget", type=positive, help="labels of a run (default: by task)")
    size.add_argument(
        "--interval", type=share, help=f"probability inside intervals (default: {DEFAULTS['interval']})"
    )
    add_size(size)
    add_output(parser.add_argument_group("output"))
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


def add_size(group: Any) -> None:
    """Add the options that say how much is computed."""
    group.add_argument("--runs", type=positive, default=100, help="independent runs (default: 100)")
    group.add_argument("--seed", type=natural, default=0, help="the same seed gives the same figures")
    group.add_argument("--jobs", type=positive, default=1, help="processes (default: 1)")


def add_output(group: Any) -> None:
    """Add the options that say what is printed and drawn."""
    group.add_argument("--json", action="store_true", help="print JSON instead of tables")
    group.add_argument("--markdown", action="store_true", help="print Markdown instead of tables")
    group.add_argument("--plots", type=Path, metavar="DIR", help="draw figures (needs credence[replay])")


def _add_one_class(parser: argparse.ArgumentParser) -> None:
    """Add the options of the tasks that hold one class against all others."""
    group = parser.add_argument_group(f"of the tasks {' and '.join(LABELS)}")
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
        help=f"how many to ask for, with ensemble for each member (default: {defaults})",
    )
    group = parser.add_argument_group(
        "of the task performance",
        "Precision, recall and F1 of one class against all others: from few random labels and all scores,\n"
        "and from the labels alone; both are held against all labels of the pool.",
    )
    group.add_argument(
        "--threshold", type=real, help="operating threshold (default: 0.5; of decision values 0)"
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


def positive(text: str, least: int = 1) -> int:
    """A whole number of 1 or more."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
    return number


def natural(text: str) -> int:
    """A whole number of 0 or more."""
    return positive(text, least=0)


def share(text: str) -> float:
    """A number between 0 and 1."""
    number = _number(text)
    if not 0 < number < 1:
        raise ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return number


def real(text: str) -> float:
    """Any number."""
    number = _number(text)
    if not isfinite(number):
        raise ArgumentTypeError(f"'{text}' is not a number")
    return number


def counts(text: str) -> tuple[int, ...]:
    """Whole numbers of 1 or more, in rising order."""
    return tuple(sorted({positive(part) for part in text.split(",")}))


def class_or_all(text: str) -> int | str:
    """The number of a class, or `all`."""
    if text == "all":
        return text
    try:
        return natural(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"'{text}' is neither the number of a class nor 'all'") from error


def target(text: str) -> Any:
    """What a threshold has to reach, as in `precision=0.8,recall=0.9`."""
    # With numpy, which other options do not need.
    from service.statistics.binary.performance import Target  # noqa: PLC0415

    names = [field.name for field in fields(Target)]
    wanted: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        number = _number(value)
        if name not in names or not 0 <= number <= 1:
            raise ArgumentTypeError(
                f"'{part}' is no target; write NAME=SHARE, with one of {', '.join(names)}"
            )
        if name in wanted:
            raise ArgumentTypeError(f"{name} is given twice")
        wanted[name] = number
    return Target(**wanted)


def _number(text: str) -> float:
    """Not a number (NaN), which is within no bounds, where the text is none."""
    try:
        return float(text)
    except ValueError:
        return nan
