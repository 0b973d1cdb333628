"""What `credence replay` concludes comes first, and long tables only when they are wished."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from replay_examples import recording

from service.replay.command import replay
from service.replay.options import add_parser

PAPERS = ("uniform+random", "informed+random", "informed+thompson")
FEW = ("--runs", "2", "--budget", "40")


def printed(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    made = recording([90, 80, 70, 60])
    path = folder / "model.npz"
    np.savez(path, probabilities=made.probabilities, labels=made.labels)
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    assert replay(parser.parse_args(["replay", str(path), *FEW, *words])) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "begin"),
    [
        ((), "model: with 40 labels learned+"),
        (("--metric", "confusion"), "model: with 40 labels learned+"),
        (("--metric", "calibration"), "model: with 40 labels learned+"),
        (("--task", "identification", "--budget", "300"), "model: learned+"),
        (
            ("--task", "identification", "--budget", "1", "--prior", "uniform", "--policy", "random"),
            "model: no method finds the least accurate group with ",
        ),
        (("--task", "comparison"), "model: learned+"),
    ],
)
def test_the_first_line_is_the_conclusion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], begin: str
) -> None:
    assert printed(tmp_path, capsys, *words).startswith(begin)


def test_without_paper_there_is_one_table_of_our_methods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(tmp_path, capsys, "--markdown")
    assert out.count("**model, ") == 1
    assert not any(method in out for method in PAPERS)


def test_with_paper_there_are_all_tables_and_methods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(tmp_path, capsys, "--markdown", "--paper")
    assert out.count("**model, ") == 4
    assert all(method in out for method in PAPERS)


def test_programs_get_all_methods_with_and_without_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = printed(tmp_path, capsys, "--json")
    assert printed(tmp_path, capsys, "--json", "--paper") == plain
    methods = {next(iter(row.values())) for table in json.loads(plain) for row in table["rows"]}
    assert set(PAPERS) < methods


def test_intervals_are_part_of_the_conclusion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "95% intervals contain the accuracy in " in printed(tmp_path, capsys)
