"""`python -m benchmarks.studies.drift`: what it prints and draws."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import plain_pool, recording

from benchmarks.studies.drift import drift_tables, parser
from benchmarks.studies.drift_alarms import RULES
from benchmarks.studies.drift_streams import (
    CHANGE,
    DRIFTING,
    EVERY,
    HEALTHY,
    LOOKS,
    NO_DRIFT,
    DriftStudy,
    Followed,
    Scenario,
)
from benchmarks.studies.drift_summary import drift_summary
from benchmarks.studies.running import run_study
from service.config.forgetting import ForgettingSettings
from service.domain.errors import RecordingError

TOLD = "model, drift: labels until a decline is reported, mean"
POOL = plain_pool([9, 9], [1, 1])


def run(folder: Path, *words: object) -> None:
    made = recording([60, 50])
    path = folder / "model.npz"
    np.savez(path, probabilities=made.probabilities, labels=made.labels)
    run_study(drift_tables, parser().parse_args([str(path), "--runs", "1", *map(str, words)]))


def test_drifts_that_are_asked_for_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = (
        "--drift",
        "abrupt",
        "--points",
        "30",
        "--window",
        "80",
        "--half-life",
        "40",
        "--run-length",
        "500",
    )
    run(tmp_path, *asked, "--json")
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    errors = tables[0]
    assert errors["title"] == "model, drift: RMSE of group accuracy, x 100"
    assert [row["drift"] for row in errors["rows"]] == ["no drift", "abrupt, 30 points"]
    assert set(errors["rows"][0]) == {"drift", "none", "last 80", "half-life 40", "change"}
    assert errors["rows"][1]["change"] < errors["rows"][1]["none"]
    assert "1 runs of 2 groups, seed 0." in errors["notes"]


def test_rules_are_tried_as_they_are_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--drift", "abrupt", "--points", "30", "--alpha", "0.01", "--run-length", "500")
    run(tmp_path, *asked, "--reference", "250", "--json")
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    delays = next(table for table in tables if table["title"] == TOLD)
    assert [set(row) for row in delays["rows"]] == [{"drift", *RULES}]
    assert delays["notes"][0].startswith("Alpha 0.01, reference 250 labels.")


def test_forgetting_is_tried_with_the_run_length_of_the_service() -> None:
    assert parser().parse_args(["model.npz"]).run_length == ForgettingSettings().run_length


def test_a_reference_that_the_drift_would_reach_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=f"--reference: .* {HEALTHY} labels"):
        run(tmp_path, "--reference", HEALTHY + 1)


def test_figures_are_drawn_of_every_drift(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, "--drift", "ramp", "--points", "10", "--markdown", "--plots", tmp_path / "figures")
    assert re.search(r"\| ramp, 10 points \|", capsys.readouterr().out)
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert drawn == {"model-drift-no-drift.png", "model-drift-ramp-10-points.png"}


def two_streams(upper: float, before: int) -> Followed:
    """Two streams: of one the interval falls to `upper` 100 labels after the drift began, of the other never.

    There a change is dated, too.
    """
    shape = 2, len(LOOKS)
    late = np.zeros(shape, np.bool_)
    late[0] = LOOKS >= HEALTHY + 100
    return Followed(
        truth=np.full(shape, 0.9),
        healthy=np.full(2, 0.9),
        step=np.zeros(2),
        mean=np.full(shape, 0.8),
        lower=np.full(shape, 0.1),
        upper=np.where(late, upper, 1.0),
        labels=np.full(shape, 7.0),
        before=np.where(late, before, 0).astype(np.float64),
    )


def rows(upper: float, before: int) -> dict[str, dict[str, tuple[float | None, ...]]]:
    """Figures by title and name of the row."""
    study = DriftStudy(POOL, runs=2, window=200, half_life=100, run_length=10_000, mass=0.95, seed=0)
    found = {
        Scenario(NO_DRIFT): dict.fromkeys(study.methods, two_streams(upper, before)),
        Scenario("abrupt", 5.0): dict.fromkeys(study.methods, two_streams(upper, before)),
    }
    return {table.title.split(": ")[1]: dict(table.rows) for table in drift_summary(study, found)}


def test_delays_are_those_of_streams_that_notice() -> None:
    seen = rows(0.5, HEALTHY + 20)
    assert seen["labels until the drift is noticed, mean"]["abrupt, 5 points"] == (100.0,) * 4
    assert seen["streams in which the drift is noticed, %"]["abrupt, 5 points"] == (50.0,) * 4
    assert seen["reported changes"]["abrupt, 5 points"] == (50.0, 100.0, 20.0)


def test_what_is_never_noticed_has_no_delay() -> None:
    seen = rows(1.0, 0)
    assert seen["labels until the drift is noticed, mean"]["abrupt, 5 points"] == (None,) * 4
    assert seen["reported changes"]["abrupt, 5 points"] == (0.0, None, None)


def test_false_alarms_are_told_by_the_labels_that_it_took() -> None:
    per_label = 1 / (2 * (HEALTHY + DRIFTING))
    quiet = rows(0.5, HEALTHY)["what forgetting costs"]
    assert quiet[CHANGE] == (7.0, pytest.approx(10_000 * per_label))
    assert rows(1.0, 0)["what forgetting costs"]["none"] == (7.0, 0.0)


def test_looks_end_with_the_stream() -> None:
    assert LOOKS[-1] == HEALTHY + DRIFTING
    assert (np.diff(LOOKS) == EVERY).all()
