"""`credence replay --task challenge`: who is better, with how many labels, and what it refuses."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import recording

from service.domain.errors import RecordingError
from service.replay.challenge_command import Contest
from service.replay.command import replay
from service.replay.options import add_parser
from service.replay.recording import Recording

CHAMPION = recording([300, 300, 200], name="champion")


def better(name: str = "challenger") -> Recording:
    """A classifier that is right on a third of the champion's mistakes, and else says the same."""
    wrong = CHAMPION.predicted != CHAMPION.labels
    mended = wrong & (np.random.default_rng(1).random(CHAMPION.size) < 1 / 3)
    probabilities = np.where(
        mended[:, None], np.eye(CHAMPION.classes)[CHAMPION.labels], CHAMPION.probabilities
    )
    return replace(CHAMPION, name=name, probabilities=probabilities)


def run(folder: Path, made: list[Recording], *words: object) -> int:
    for each in made:
        np.savez(folder / f"{each.name}.npz", probabilities=each.probabilities, labels=each.labels)
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    files = [str(folder / f"{each.name}.npz") for each in made]
    options = parser.parse_args(["replay", *files, "--task", "challenge", *map(str, words)])
    code: int = replay(options)
    return code


def printed_rows(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    (table,) = json.loads(capsys.readouterr().out)
    return {row["items"]: row for row in table["rows"]}


def test_the_better_one_is_named_with_fewer_labels_where_they_disagree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, [CHAMPION, better()], "--runs", 20, "--json") == 0
    rows = printed_rows(capsys)
    for rule in ("posterior", "evidence"):
        assert rows["aimed"][f"decided %, by {rule}"] == 100
        assert rows["aimed"][f"wrong %, by {rule}"] == 0
        assert rows["aimed"][f"labels, by {rule}"] < rows["random"][f"labels, by {rule}"] / 2


def test_whoever_is_named_second_challenges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [better(), CHAMPION], "--runs", 3, "--markdown") == 0
    shown = capsys.readouterr().out
    assert "champion challenges challenger" in shown
    assert "The champion is better: by -" in shown


def test_within_the_margin_nobody_is_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [CHAMPION, better()], "--runs", 2, "--region", 0.5, "--json") == 0
    rows = printed_rows(capsys)
    assert {row["decided %, by posterior"] for row in rows.values()} == {0}


def test_the_same_seed_gives_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (
        (run(tmp_path, [CHAMPION, better()], "--runs", 3, "--seed", seed, "--json"), printed_rows(capsys))[1]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_random_items_are_labelled_in_their_order() -> None:
    rng = np.random.default_rng(0)
    differ = np.arange(100) % 4 == 0
    contest = Contest(~differ, np.ones(100, np.bool_), differ, margin=0.0, confidence=0.95)
    by_posterior, by_evidence = contest.run("random", rng)
    # Of 25 disagreements the challenger is right throughout: some are enough.
    assert by_posterior.named == by_evidence.named == 1
    assert by_posterior.labels < by_evidence.labels <= 100


@pytest.mark.parametrize(
    ("made", "words", "said"),
    [
        ([CHAMPION], [], "two recordings"),
        ([CHAMPION, better(), better("third")], [], "two recordings"),
        ([CHAMPION, replace(CHAMPION, name="same")], [], "what champion does, throughout"),
        ([CHAMPION, recording([10, 10, 10], name="short")], [], "same items"),
        ([CHAMPION, better()], ["--plots", "figures"], "draws nothing"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[Recording], words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordingError, match=said):
        run(tmp_path, made, *words)
