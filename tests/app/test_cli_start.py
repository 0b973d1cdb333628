"""The command line imports what a command needs, and nothing for help."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import get_args

import pytest

from service.app.cli import build_parser, main
from service.app.docgen.generated_files import PAGES
from service.statistics.names import PriorName
from service.statistics.priors import FIXED_PRIORS

LIBRARIES = {
    "numpy",
    "scipy",
    "sklearn",
    "kafka",
    "redis",
    "fastapi",
    "pydantic",
    "rich",
    "prometheus_client",
}

IMPORTED_BY = """
import sys
from contextlib import suppress

from service.app.cli import main

with suppress(SystemExit):
    main(sys.argv[1:])
print("\\nimported:", *sys.modules)
"""


STARTED_PROCESS = """
import sys
from pathlib import Path

from service.app.process import Application
from service.config.loader import load_settings

Application(load_settings(Path(sys.argv[1]), {}), {sys.argv[2]})
print("\\nimported:", *sys.modules)
"""


def imported_by(*arguments: str) -> set[str]:
    """Modules of a process that runs a command."""
    return printed_by(IMPORTED_BY, *arguments)


def printed_by(program: str, *arguments: str) -> set[str]:
    """Modules that a process prints in the end."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    _, marked, names = done.stdout.rpartition("\nimported: ")
    assert marked
    return set(names.split())


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from parsers(sub)


COMMANDS = sorted(
    {str(command) for each in parsers(build_parser()) if (command := each.get_default("command"))}
)


@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "run --help", "replay --help", "reference set --help"]
)
def test_help_and_version_import_no_library(arguments: str) -> None:
    assert not imported_by(*arguments.split()) & LIBRARIES


def test_a_mistake_on_the_command_line_imports_no_library() -> None:
    assert not imported_by("replay", "digits", "--task", "none") & LIBRARIES


def test_options_of_a_replay_are_parsed_without_any_library() -> None:
    given = (
        "--policy",
        "thompson",
        "--prior",
        "learned",
        "--labels",
        "5,10",
        "--jobs",
        "0",
    )
    assert not imported_by("replay", "digits", *given) & LIBRARIES


def test_check_imports_neither_servers_nor_clients_nor_statistics(tmp_path: Path) -> None:
    config = tmp_path / "credence.yaml"
    asked = "{asked: {grouping: score_bin, budget: {labels: 50}}}"
    config.write_text(f"models: {{mail: {{classes: [ham, spam], assessments: {asked}}}}}", encoding="utf-8")
    imported = imported_by("check", "--config", str(config))
    assert not imported & {
        "scipy",
        "sklearn",
        "fastapi",
        "uvicorn",
        "kafka",
        "redis",
        "rich",
        "prometheus_client",
    }


@pytest.mark.parametrize("role", ["predictions", "labels"])
def test_a_consumer_imports_neither_statistics_nor_the_page(role: str, tmp_path: Path) -> None:
    config = tmp_path / "credence.yaml"
    config.write_text("models: {mail: {classes: [ham, spam]}}", encoding="utf-8")
    imported = printed_by(STARTED_PROCESS, str(config), role)
    assert not imported & {
        "scipy",
        "sklearn",
        "fastapi",
        "rich",
        "service.monitoring",
        "service.statistics.beta",
    }


def test_the_scheduler_imports_only_the_parts_of_scipy_that_every_round_needs(tmp_path: Path) -> None:
    config = tmp_path / "credence.yaml"
    config.write_text("models: {mail: {classes: [ham, spam]}}", encoding="utf-8")
    imported = printed_by(STARTED_PROCESS, str(config), "schedule")
    assert "scipy.special" in imported
    assert not imported & {"scipy.stats", "scipy.optimize"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_function(command: str) -> None:
    assert callable(resolve_name(command))


@pytest.mark.parametrize("name", PAGES.values())
def test_every_page_has_its_function(name: str) -> None:
    assert callable(resolve_name(name))


def test_names_of_priors_are_those_there_are() -> None:
    assert get_args(PriorName) == ("learned", *FIXED_PRIORS)


def test_a_variable_of_the_demo_that_is_no_number_is_an_error_of_the_demo_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEMO_SECONDS", "soon")
    assert main(["contract", "--check"]) == 0
    with pytest.raises(SystemExit, match="2"):
        main(["demo"])
    assert "argument --seconds: invalid float value: 'soon'" in capsys.readouterr().err
