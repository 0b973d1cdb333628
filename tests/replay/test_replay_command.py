"""The command: what it prints, what it draws, and the one thing it says of input that cannot be used."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import recording

from service.domain.errors import RecordingError
from service.replay.command import _study, replay
from service.replay.options import add_parser, completed
from service.replay.study import true_metric

EXAMPLE = recording([90, 80, 70, 60])
FEW = ["--runs", "2"]


def parsed(*words: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["replay", *map(str, words)])


def run(*words: object) -> int:
    options = parsed(*words)
    code: int = replay(options)
    return code


def refusal(*words: object) -> str:
    """The one line that is said; argparse would exit instead."""
    with pytest.raises(RecordingError) as refused:
        run(*words)
    message = str(refused.value)
    assert "\n" not in message
    assert re.match(r"[^:]+: .+", message)
    return message


def saved(folder: Path, name: str = "model", **changes: Any) -> Path:
    path = folder / f"{name}.npz"
    arrays = {"probabilities": EXAMPLE.probabilities, "labels": EXAMPLE.labels} | changes
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    return path


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def cell(row: int, column: int, value: float) -> np.ndarray:
    probabilities = EXAMPLE.probabilities.copy()
    probabilities[row, column] = value
    return probabilities


def documents(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, Any]]:
    assert run(*words, "--json") == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    return found


def rows_of(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.npz"
    assert refusal(path) == f"{path}: there is no such file; check the path"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"probabilities": EXAMPLE.probabilities[:, 0]}, "probabilities must be [N, K]"),
        ({"labels": EXAMPLE.labels[:-1]}, "labels must be [300]"),
        ({"labels": None}, "no array 'labels'"),
        ({"probabilities": cell(7, 1, np.nan)}, "row 7 (counted from 0): probabilities hold a NaN"),
        (
            {"labels": np.where(np.arange(300) == 5, 4, EXAMPLE.labels)},
            "row 5 (counted from 0): labels must be",
        ),
        (
            {"labels": np.where(np.arange(300) == 5, -1, EXAMPLE.labels)},
            "row 5 (counted from 0): labels must be",
        ),
        (
            {"probabilities": 0.5 * EXAMPLE.probabilities},
            "row 0 (counted from 0): the probabilities sum to 0.5",
        ),
        ({"probabilities": cell(3, 0, 1.2)}, "row 3 (counted from 0): a probability is not within 0 and 1"),
    ],
)
def test_a_recording_that_cannot_be_used_is_refused_with_the_place(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    path = saved(tmp_path, **changes)
    message = refusal(path)
    assert message.startswith(f"{path}: ")
    assert problem in message


def test_of_several_files_the_bad_one_is_named(tmp_path: Path) -> None:
    good, bad = saved(tmp_path), tmp_path / "bad.npz"
    assert str(bad) in refusal(good, bad)


def test_fewer_items_than_the_budget_are_refused(tmp_path: Path) -> None:
    message = refusal(saved(tmp_path), "--budget", 301)
    assert message == "model: it has 300 items, the budget is 301 labels; lower --budget"


@pytest.mark.parametrize("top_m", [4, 9])
def test_as_many_groups_as_there_are_cannot_be_looked_for(tmp_path: Path, top_m: int) -> None:
    message = refusal(saved(tmp_path), "--task", "identification", "--top-m", top_m)
    assert message.startswith("--top-m: there are 4 groups with items; look for fewer")


@pytest.mark.parametrize(
    ("task", "metric", "known"),
    [
        ("estimation", "cost", "accuracy, calibration, confusion, overall_accuracy"),
        ("identification", "confusion", "accuracy, calibration, cost"),
        ("comparison", "calibration", "accuracy"),
    ],
)
def test_a_metric_that_the_task_does_not_know_is_refused(
    tmp_path: Path, task: str, metric: str, known: str
) -> None:
    message = refusal(saved(tmp_path), "--task", task, "--metric", metric)
    assert message == f"--metric: {task} knows {known}; choose one of them"


COSTLY = ("--task", "identification", "--metric", "cost")


def test_cost_needs_a_matrix(tmp_path: Path) -> None:
    assert refusal(saved(tmp_path), *COSTLY).startswith("--costs: the metric cost needs a cost matrix")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 1\n1 0\n", "it has the shape (2, 2); 4 classes need 4 by 4 costs"),
        ("", "4 classes need 4 by 4 costs"),
        ("0 1\n1\n", "not a square of numbers"),
        ("0 1 1 x\n" * 4, "not a square of numbers"),
        ("0 1 1 nan\n" * 4, "not a finite number"),
    ],
)
def test_a_cost_matrix_that_cannot_be_used_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    costs = written(tmp_path, "costs.csv", text)
    message = refusal(saved(tmp_path), *COSTLY, "--costs", costs)
    assert message.startswith(f"{costs}: ")
    assert problem in message


def test_a_cost_matrix_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = refusal(saved(tmp_path), *COSTLY, "--costs", tmp_path / "none.csv")
    assert message.startswith(f"{tmp_path / 'none.csv'}: it cannot be read")


def test_costs_are_by_true_and_then_by_predicted_class(tmp_path: Path) -> None:
    # All mistakes among predictions of class 3 are dear, as its column says.
    costs = written(tmp_path, "costs.csv", "0,1,1,50\n1,0,1,50\n1,1,0,50\n1,1,1,0\n")
    study = _study(EXAMPLE, completed(parsed("model.npz", *COSTLY, "--costs", costs)))
    wrong = 1 - study.pool.accuracy
    np.testing.assert_allclose(true_metric(study), wrong * [1, 1, 1, 50])
    assert study.extreme == "highest"


def test_a_superclass_without_a_file_is_refused(tmp_path: Path) -> None:
    message = refusal(saved(tmp_path), "--grouping", "superclass")
    assert message == "--superclasses: the grouping by superclass needs a file; name it"


def test_a_superclass_of_an_unknown_class_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "super.json", json.dumps({"low": [0, 1], "high": [2, 3, 4]}))
    message = refusal(saved(tmp_path), "--grouping", "superclass", "--superclasses", path)
    assert message.startswith(f"{path}: superclass 'high': item 2 (counted from 0) is no class")


def test_confusion_of_other_groups_than_predicted_classes_is_refused(tmp_path: Path) -> None:
    message = refusal(saved(tmp_path), "--metric", "confusion", "--grouping", "all")
    assert message.startswith("--grouping: confusion is known by predicted_class alone")


def test_a_comparison_needs_two_groups(tmp_path: Path) -> None:
    message = refusal(saved(tmp_path), "--task", "comparison", "--grouping", "all")
    assert message == "model: it has one group with items; a comparison needs two"


def test_a_directory_for_figures_that_cannot_be_made_is_told_before_anything_is_computed(
    tmp_path: Path,
) -> None:
    path = saved(tmp_path)
    message = refusal(tmp_path / "none.npz", "--plots", path)
    assert message == f"--plots: {path} cannot be made (File exists); name another"


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--region", "0", "'0' is not a number between 0 and 1"),
        ("--region", "nan", "'nan' is not a number between 0 and 1"),
        ("--interval", "95", "'95' is not a number between 0 and 1"),
        ("--seed", "-1", "'-1' is not a whole number of 0 or more"),
        ("--runs", "0", "'0' is not a whole number of 1 or more"),
        ("--budget", "many", "'many' is not a whole number of 1 or more"),
        ("--task", "guess", "invalid choice"),
    ],
)
def test_a_number_that_cannot_be_is_refused_with_its_option(
    capsys: pytest.CaptureFixture[str], option: str, value: str, problem: str
) -> None:
    with pytest.raises(SystemExit) as left:
        run("model.npz", f"{option}={value}")
    assert left.value.code == 2
    assert f"argument {option}: {problem}" in capsys.readouterr().err


def test_a_class_that_is_never_predicted_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = EXAMPLE.predicted != 2
    path = saved(tmp_path, probabilities=EXAMPLE.probabilities[kept], labels=EXAMPLE.labels[kept])
    assert "there are 3 groups with items" in refusal(path, "--task", "identification", "--top-m", 3)
    for words in (
        ("--metric", "accuracy"),
        ("--metric", "confusion"),
        ("--task", "identification", "--top-m", 2),
        ("--task", "identification", "--metric", "calibration"),
        ("--task", "comparison"),
    ):
        for table in documents(capsys, path, *words, *FEW, "--budget", 20):
            assert len(table["rows"]) == 5


def test_very_few_items_are_all_labelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, probabilities=EXAMPLE.probabilities[:3], labels=EXAMPLE.labels[:3])
    assert list(documents(capsys, path, *FEW)[0]["rows"][0]) == ["method \\ labels", "3"]


def test_what_has_no_share_is_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certain = np.eye(3)[np.arange(60) % 3]
    path = saved(tmp_path, probabilities=certain, labels=np.arange(60) % 3)
    tables = documents(capsys, path, "--metric", "calibration", *FEW)
    assert any(value is None for table in tables for value in table["rows"][0].values())


@pytest.mark.parametrize(
    "words",
    [
        ("--metric", "accuracy"),
        ("--metric", "overall_accuracy", "--grouping", "score_bin"),
        ("--metric", "calibration"),
        ("--metric", "confusion"),
        ("--task", "identification", "--metric", "calibration", "--extreme", "lowest"),
        ("--task", "identification", "--policy", "multiple_play", "--top-m", "2"),
        ("--task", "comparison", "--prior", "uniform", "--prior", "informed", "--policy", "random"),
    ],
)
def test_json_and_markdown_hold_the_same_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    shared = (saved(tmp_path), *words, *FEW, "--budget", "25")
    tables = documents(capsys, *shared)
    assert run(*shared, "--markdown", "--paper") == 0
    markdown = capsys.readouterr().out
    printed = iter(row for row in rows_of(markdown) if not row[0].startswith("---"))
    for table in tables:
        assert f"**{table['title']}**" in markdown
        assert next(printed) == list(table["rows"][0])
        for row in table["rows"]:
            name, *figures = row.values()
            shown = next(printed)
            assert shown[0] == name
            for figure, text in zip(figures, shown[1:], strict=True):
                # Three digits are shown, or two decimals.
                assert (
                    text == "-"
                    if figure is None
                    else float(text) == pytest.approx(figure, rel=0.01, abs=0.006)
                )
    assert next(printed, None) is None


def test_the_terminal_shows_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = (saved(tmp_path), *FEW, "--budget", "25")
    run(*shared, "--markdown")
    markdown = rows_of(capsys.readouterr().out)
    run(*shared)
    terminal = capsys.readouterr().out
    for row in markdown:
        if row[0] == "uniform+random":
            assert re.search(r"\s*│\s*".join(re.escape(text) for text in row), terminal)


def test_methods_are_all_combinations_of_priors_and_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for prior in ("uniform", "vague") for word in ("--prior", prior)]
    words += [word for policy in ("random", "top_two") for word in ("--policy", policy)]
    rows = documents(capsys, saved(tmp_path), *words, *FEW, "--budget", 8)[0]["rows"]
    names = [row["method \\ labels"] for row in rows]
    assert names == ["uniform+random", "uniform+top_two", "vague+random", "vague+top_two"]


def test_several_jobs_print_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = (saved(tmp_path), "--prior", "informed", "--runs", 120, "--budget", 10)
    assert documents(capsys, *shared, "--jobs", 2) == documents(capsys, *shared)


def test_the_seed_decides_all_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = (saved(tmp_path), "--prior", "informed", *FEW, "--budget", 10)
    first, second, other = (documents(capsys, *shared, "--seed", seed)[0]["rows"] for seed in (1, 1, 2))
    assert first == second
    assert first != other


def test_superclasses_are_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "super.json", json.dumps({"low": [0, 1], "high": [2, 3]}))
    shared = (saved(tmp_path), "--grouping", "superclass", "--superclasses", path)
    assert "there are 2 groups" in refusal(*shared, "--task", "identification", "--top-m", 2)
    assert documents(capsys, *shared, *FEW, "--budget", 8)


DRAWN = {
    ("estimation", "accuracy"): {"estimation-accuracy", "difference"},
    ("estimation", "calibration"): {"estimation-calibration"},
    ("estimation", "confusion"): {"estimation-confusion", "confusion", "difference"},
    ("identification", "accuracy"): {"identification-accuracy-top2", "difference"},
    ("comparison", "accuracy"): {"comparison-accuracy", "difference"},
}


@pytest.mark.parametrize(("asked", "own"), DRAWN.items())
def test_figures_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: tuple[str, str], own: set[str]
) -> None:
    pytest.importorskip("matplotlib")
    task, metric = asked
    folder = tmp_path / "new" / "figures"
    words = ("--task", task, "--metric", metric, "--prior", "uniform", "--budget", "20")
    top = ("--top-m", "2") if task == "identification" else ()
    assert run(saved(tmp_path), *words, *top, *FEW, "--plots", folder) == 0
    capsys.readouterr()
    always = {"accuracy-against-calibration", "ranks", "reliability", "reliability-few-labels"}
    if metric == "calibration":
        always -= {"accuracy-against-calibration", "ranks"}
    assert {path.stem for path in folder.iterdir()} == {f"model-{name}" for name in always | own}
    for path in folder.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
