"""`credence check` says what a configuration would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.cli import main

BUDGET = "budget: {labels: 50}"


def told(folder: Path, capsys: pytest.CaptureFixture[str], assessment: str) -> str:
    """What is said of an assessment of a binary classifier."""
    config = folder / "credence.yaml"
    config.write_text(
        f"models: {{mail: {{classes: [ham, spam], assessments: {{asked: {assessment}}}}}}}", encoding="utf-8"
    )
    assert main(["check", "--config", str(config)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "assessment asked" in line]
    return line.strip()


def test_what_is_asked_about_a_binary_classifier_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = told(tmp_path, capsys, f"{{task: performance, positive_class: spam, {BUDGET}}}")
    assert line.startswith(
        "assessment asked: What are precision and recall on class spam, at every threshold? "
        "Asks by positive_score (thompson); at most 50 labels in all"
    )


def test_labels_of_an_ensemble_are_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = told(tmp_path, capsys, f"{{task: ensemble, positive_class: spam, members: [a, b], {BUDGET}}}")
    assert "How precise are the ensemble and its members on class spam? Asks by __votes__ (planned)" in line


def test_an_identification_tells_which_end_it_looks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"{{task: identification, metric: calibration, grouping: score_bin, {BUDGET}}}"
    assert "Which score_bin is the least calibrated?" in told(tmp_path, capsys, asked)
