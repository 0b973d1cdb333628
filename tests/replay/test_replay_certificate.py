"""`credence replay --task certificate`: with how many labels all groups are shown to meet a threshold."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import plain_pool

from service.domain.errors import RecordingError
from service.replay.command import replay
from service.replay.options import add_parser
from service.replay.pool import Pool

MEETING = plain_pool([960, 950, 980], [40, 50, 20])
MISSING = plain_pool([960, 600, 980], [40, 400, 20])


def run(folder: Path, pool: Pool, *words: object, task: str = "certificate") -> int:
    made = pool.recording
    file = folder / "made.npz"
    np.savez(file, probabilities=made.probabilities, labels=made.labels)
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    options = parser.parse_args(["replay", str(file), "--task", task, *map(str, words)])
    code: int = replay(options)
    return code


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    (table,) = json.loads(capsys.readouterr().out)
    return {row["policy"]: row for row in table["rows"]}


def test_groups_that_meet_the_threshold_are_shown_to_with_fewer_labels_by_certify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, MEETING, "--threshold", 0.85, "--runs", 20, "--json") == 0
    found = rows(capsys)
    # A run in twenty may have a group whose labels come in a bad order.
    assert found["certify"]["shown, %"] >= 90
    assert found["certify"]["labels"] < found["random"]["labels"]
    assert found["certify"]["labels"] < 2 * found["certify"]["least"]


def test_a_group_that_misses_the_threshold_is_found_with_fewer_labels_by_certify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, MISSING, "--threshold", 0.85, "--runs", 20, "--json") == 0
    found = rows(capsys)
    assert found["certify"]["missed, %"] == 100
    assert found["certify"]["labels until missed"] < found["random"]["labels until missed"]
    assert found["certify"]["least"] is None


def test_a_budget_may_leave_it_undecided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, MEETING, "--threshold", 0.85, "--runs", 3, "--budget", 30, "--json") == 0
    assert {row["undecided, %"] for row in rows(capsys).values()} == {100}


def test_what_the_recording_itself_says_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for pool, said in ((MEETING, "all 3 groups"), (MISSING, "1 of 3 groups of made miss the threshold: 1")):
        run(tmp_path, pool, "--threshold", 0.85, "--runs", 1, "--budget", 5, "--policy", "certify")
        assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "task", "said"),
    [
        ([], "certificate", "accuracy that every group"),
        (["--threshold", 1], "certificate", "accuracy that every group"),
        (["--threshold", 0.9, "--budget", 10_000], "certificate", "lower --budget"),
        (["--threshold", 0.9, "--plots", "figures"], "certificate", "draws nothing"),
        (["--policy", "certify"], "estimation", "--task certificate"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[object], task: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordingError, match=said):
        run(tmp_path, MEETING, *words, task=task)
