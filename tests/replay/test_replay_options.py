"""Options of `credence replay`: what a task would ignore is refused, and nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import pytest

from service.domain.errors import RecordingError
from service.replay.options import add_parser, completed

EXAMPLES: dict[str, tuple[str, ...]] = {
    # Some are defaults: they were given all the same.
    "--metric": ("accuracy",),
    "--grouping": ("predicted_class",),
    "--superclasses": ("classes.json",),
    "--score-bins": ("10",),
    "--binning": ("equal_size",),
    "--prior": ("learned",),
    "--policy": ("thompson",),
    "--budget": ("50",),
    "--interval": ("0.95",),
    "--region": ("0.05",),
    "--top-m": ("1",),
    "--extreme": ("lowest",),
    "--costs": ("costs.csv",),
    "--positive-class": ("all",),
    "--labels": ("10",),
    "--threshold": ("0",),
    "--target": ("precision=0.9",),
    "--decision-values": (),
    "--ensemble": ("ensemble.npz",),
    "--group-by": ("region",),
    "--paper": (),
    "--fault": ("region=r3",),
    "--drop": ("0.1",),
    "--labels-per-day": ("50",),
    "--half-life-days": ("7",),
    "--days-before": ("30",),
    "--aim": ("recall",),
    "--skipped": ("0.2",),
    "--expired": ("0.1",),
    "--rate": ("precision",),
}
FOR_ALL = {"--runs", "--seed", "--jobs", "--json", "--markdown", "--plots"}
OF_GROUPS = {
    *("--metric", "--grouping", "--superclasses", "--score-bins", "--binning"),
    *("--prior", "--policy", "--budget", "--interval", "--region", "--group-by", "--paper"),
}
OF_ONE_CLASS = {"--positive-class", "--labels", "--interval"}
TAKEN = {
    ("--task", "estimation"): OF_GROUPS,
    ("--task", "identification"): OF_GROUPS | {"--top-m", "--extreme", "--costs"},
    ("--task", "comparison"): OF_GROUPS,
    ("--task", "performance"): OF_ONE_CLASS
    | {"--threshold", "--target", "--decision-values", "--policy", "--aim"},
    ("--task", "ensemble"): OF_ONE_CLASS | {"--ensemble"},
    ("--task", "challenge"): {"--region", "--interval"},
    ("--task", "annotators"): {"--labels", "--interval", "--skipped", "--expired"},
    ("--task", "certificate"): {
        *("--grouping", "--group-by", "--superclasses", "--score-bins", "--binning"),
        *("--policy", "--budget", "--threshold", "--interval"),
    },
    ("--task", "rates"): {
        *("--grouping", "--group-by", "--superclasses", "--score-bins", "--binning", "--positive-class"),
        *("--rate", "--region", "--threshold", "--budget", "--interval"),
    },
    ("--task", "fault"): {
        "--fault",
        *("--drop", "--labels-per-day", "--half-life-days", "--days-before", "--threshold", "--interval"),
        *("--group-by", "--policy", "--score-bins", "--binning"),
    },
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_parser(commands := made.add_subparsers())
    found: argparse.ArgumentParser = commands.choices["replay"]
    return found


def parsed(words: Iterable[str]) -> argparse.Namespace:
    return parser().parse_args(["model.npz", *words])


def cases(*, taken: bool) -> list[tuple[tuple[str, ...], str]]:
    every = [(asked, option) for asked in TAKEN for option in EXAMPLES if (option in TAKEN[asked]) is taken]
    # Without another task, --fault chooses its own.
    return [each for each in every if each != (("--task", "estimation"), "--fault")]


def test_every_option_of_a_task_is_tried_here() -> None:
    shown = {word for action in parser()._actions for word in action.option_strings if word.startswith("--")}
    assert shown - FOR_ALL - {"--help", "--task"} == set(EXAMPLES)


@pytest.mark.parametrize(("asked", "option"), cases(taken=False))
def test_an_option_that_would_be_ignored_is_refused(asked: tuple[str, ...], option: str) -> None:
    with pytest.raises(RecordingError) as refused:
        completed(parsed((*asked, option, *EXAMPLES[option])))
    assert str(refused.value) == f"{option}: the task {asked[1]} does not take it; leave it out"


@pytest.mark.parametrize(("asked", "option"), cases(taken=True))
def test_an_option_that_a_task_takes_is_taken(asked: tuple[str, ...], option: str) -> None:
    completed(parsed((*asked, option, *EXAMPLES[option])))


def test_a_fault_chooses_its_task() -> None:
    assert completed(parsed(("--fault", "region=r3"))).task == "fault"


def test_runs_depend_on_the_task_unless_given() -> None:
    assert completed(parsed(())).runs == 100
    assert completed(parsed(("--fault", "region=r3"))).runs == 20
    assert completed(parsed(("--fault", "region=r3", "--runs", "7"))).runs == 7


def test_groups_are_by_one_thing() -> None:
    with pytest.raises(RecordingError, match=r"--group-by: --grouping says what tells groups apart"):
        completed(parsed(("--group-by", "region", "--grouping", "all")))


def test_help_tells_what_is_taken_unless_told() -> None:
    words = " ".join(parser().format_help().split())
    for shown in (
        "apart (default: predicted_class)",
        "--score-bins B default: 10",
        "default: equal_size",
        "find (default: 1)",
        "matter (default: 0.05; 0.01 of a challenge)",
        "intervals (default: 0.95)",
    ):
        assert shown in words
