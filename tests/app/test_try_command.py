"""`credence try` as a whole, against the bundled broker and Redis."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from samples import rows, write_csv

from service.app.cli import main

SECONDS = 240


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest) -> None:
    """Skips where the bundled servers cannot start."""
    request.getfixturevalue("bootstrap_servers")
    request.getfixturevalue("redis_server")


class Tried(NamedTuple):
    """What a run of the command leaves."""

    code: int
    output: str
    error: str
    folder: Path

    @property
    def page(self) -> str:
        """The HTML report."""
        return (self.folder / "credence-try.html").read_text(encoding="utf-8")


@contextmanager
def started(folder: Path, *arguments: str, columns: str | None = "160") -> Iterator[subprocess.Popen[str]]:
    """The command while it runs, as wide as COLUMNS says; it is killed if the test is done with it."""
    width = {} if columns is None else {"COLUMNS": columns}
    others = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        [sys.executable, "-m", "service.app.cli", "try", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**others, "NO_COLOR": "1", **width},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finished(process: subprocess.Popen[str], folder: Path, before: Sequence[str] = ()) -> Tried:
    output, error = process.communicate(timeout=SECONDS)
    return Tried(process.returncode, "".join(before) + output, error, folder)


def lines_until(process: subprocess.Popen[str], pattern: str) -> list[str]:
    """Lines of output up to the first that fits."""
    assert process.stdout is not None
    found = []
    for line in process.stdout:
        found.append(line)
        if re.search(pattern, line):
            return found
    raise AssertionError(f"no line has {pattern}: {''.join(found)}")


@pytest.fixture(scope="module")
def tried(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tried:
    """A small file with three bad rows, tried to its end."""
    request.getfixturevalue("servers")
    folder = tmp_path_factory.mktemp("trial")
    found = rows(1_500)
    found[10]["score"] = "1,5"
    found[20]["item_id"] = ""
    found[30]["predicted_class"] = ""
    write_csv(folder / "sorter.csv", found)
    with started(folder, "sorter.csv", "--labels", "40", "--cost", "0.25") as process:
        return finished(process, folder)


def test_a_file_is_tried_and_the_report_is_beside_the_configuration(tried: Tried) -> None:
    assert tried.code == 0, tried.output + tried.error
    assert {path.name for path in tried.folder.iterdir()} == {
        "sorter.csv",
        "credence-try.html",
        "credence-try.yaml",
    }


def test_the_status_page_is_announced_before_rows_are_streamed(tried: Tried) -> None:
    at = tried.output.index("Look at http://127.0.0.1:")
    assert at < tried.output.index("of 1,500 rows")


def test_all_labels_are_used_and_every_group_has_its_interval_and_truth(tried: Tried) -> None:
    assert "40 of a budget of 40, answered from the file's true classes" in tried.output
    assert "10.00 at 0.25 each" in tried.output
    # All traffic, three classes and three regions.
    assert re.search(r"\d of 7 intervals hold the truth", tried.output)
    assert re.search(r"\d of 7 intervals hold the truth", tried.page)


def test_the_true_accuracy_in_the_report_is_that_of_the_good_rows(tried: Tried) -> None:
    good = [row for number, row in enumerate(rows(1_500)) if number not in {10, 20, 30}]
    right = sum(row["predicted_class"] == row["true_class"] for row in good) / len(good)
    (line,) = [line for line in tried.output.splitlines() if line.startswith("all traffic")]
    assert line.split()[-2] == f"{right:.1%}"


def test_bad_rows_are_named_by_line_column_and_reason_and_the_rest_goes_on(tried: Tried) -> None:
    assert "line 12, column score: invalid_field: expected a number" in tried.error
    assert "line 22, column item_id: missing_field" in tried.error
    assert "line 32" in tried.error
    assert "1,497 in" in tried.output
    assert "3 left out" in tried.output
    assert "line 12, column score: invalid_field" in tried.page


def test_what_random_labels_would_have_cost_is_said_in_one_sentence(tried: Tried) -> None:
    assert len(re.findall(r"^labels drawn at random  ", tried.output, re.MULTILINE)) == 1


def test_the_configuration_is_a_proposal_for_production(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--config", str(tried.folder / "credence-try.yaml")]) == 0
    assert "in short" in capsys.readouterr().out
    assert "  credence run --config credence-try.yaml" in tried.output


@pytest.mark.usefixtures("servers")
def test_ctrl_c_ends_a_trial_with_the_report_so_far(tmp_path: Path) -> None:
    write_csv(tmp_path / "sorter.csv", rows(20_000))
    with started(tmp_path, "sorter.csv", "--rate", "50") as process:
        before = lines_until(process, r"accuracy \d")
        process.send_signal(signal.SIGINT)
        stopped = finished(process, tmp_path, before)
    assert stopped.code == 130, stopped.output + stopped.error
    assert "stopped before the end of the file" in stopped.output
    assert "stopped before the end of the file" in stopped.page


@pytest.mark.usefixtures("servers")
def test_a_file_that_is_changed_while_it_is_read_is_named_in_the_report(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "sorter.csv", rows(2_000))
    # Slow enough that rows are left when the first lines of progress come.
    with started(tmp_path, "sorter.csv", "--labels", "10", "--rate", "400") as process:
        before = lines_until(process, r"of 2,000 rows")
        write_csv(path, rows(200))
        tried = finished(process, tmp_path, before)
    assert tried.code == 0, tried.output + tried.error
    assert "sorter.csv was changed while it was read" in tried.output
    assert "sorter.csv was changed while it was read" in tried.page


@pytest.mark.usefixtures("servers")
def test_a_person_labels_a_file_without_true_classes(tmp_path: Path) -> None:
    found = [
        {("species" if name == "true_class" else name): cell for name, cell in row.items()}
        for row in rows(300)
    ]
    write_csv(tmp_path / "sorter.csv", found)
    with started(tmp_path, "sorter.csv", "--labels", "3") as process:
        before = lines_until(process, r"no true classes")
        assert "If species is the true class, stop, and name it: --truth species." in before[-1]
        before += lines_until(process, r"^  \S+$")
        page = re.search(r"http://127.0.0.1:\d+/label/", "".join(before))
        assert page is not None
        with urllib.request.urlopen(page.group()) as answer:
            assert answer.status == 200
        seen = _Desk(page.group().removesuffix("/label/"), before[-1].strip()).label(3)
        labelled = finished(process, tmp_path, before)
    assert labelled.code == 0, labelled.output + labelled.error
    assert "3 of a budget of 3, answered by you" in labelled.output
    assert [set(payload) for payload in seen] == [{"item_id", "region"}] * 3


class _Desk:
    """Labels through the calls that the labelling page makes."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = f"{address}/vendor/v1", token

    def label(self, count: int) -> list[dict[str, Any]]:
        """Answer so many requests; the payloads that were shown."""
        shown: list[dict[str, Any]] = []
        while len(shown) < count:
            for claim in self._call("/claims", {"most": 1, "wait_seconds": 10})["claims"]:
                answer = {"claim_id": claim["claim_id"], "true_class": "cat"}
                self._call(f"/models/{claim['model']}/requests/{claim['request_id']}/answer", answer)
                shown.append(claim["request"]["payload"])
        return shown

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        call = urllib.request.Request(
            f"{self._address}{path}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(call, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


def test_what_exists_is_never_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "sorter.csv", rows(100))
    for taken in ("trial.html", "trial.yaml"):
        (tmp_path / taken).write_text("mine", encoding="utf-8")
        assert main(["try", "sorter.csv", "--report", "trial.html"]) == 2
        assert f"{taken} exists" in capsys.readouterr().err
        (tmp_path / taken).unlink()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--report", "trial.pdf"], "must end in .html"),
        (["--report", "nowhere/trial.html"], "no file can be written in"),
        (["--score", "points"], "there is no column points"),
        (["--rate", "0"], "'0' is not a number above 0"),
        (["--noise", "1"], "'1' is not a share from 0 to below 1"),
        (["--delay", "-1"], "'-1' is not a number from 0 on"),
    ],
)
def test_what_is_wrong_is_said_before_a_server_starts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "sorter.csv", rows(100))
    try:
        code = main(["try", "sorter.csv", *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert problem in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"sorter.csv"}


@pytest.mark.usefixtures("servers")
def test_a_file_without_ids_is_tried_and_nothing_is_wrapped_in_a_pipe(tmp_path: Path) -> None:
    found = [{name: cell for name, cell in row.items() if name != "item_id"} for row in rows(300)]
    write_csv(tmp_path / "sorter.csv", found)
    with started(tmp_path, "sorter.csv", "--labels", "1", columns=None) as process:
        tried = finished(process, tmp_path)
    assert tried.code == 0, tried.output + tried.error
    assert "No command sends this file: no column names the item of each row" in tried.output
    assert "1 of a budget of 1" in tried.output
    assert "labels drawn at random  not compared" in tried.output
    heading = r"^group +share +labels +accuracy +95% interval +truth +inside$"
    assert re.search(heading, tried.output, re.MULTILINE)


def test_a_pipe_is_refused_as_the_file_is_read_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", "-", "--format", "csv"]) == 2
    assert "read twice" in capsys.readouterr().err


def test_a_file_of_bad_scores_alone_is_refused_with_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "sorter.csv", rows(100, score=["high"] * 100))
    assert main(["try", "sorter.csv"]) == 2
    assert "column score is not taken: line 2 is not a number" in capsys.readouterr().err
