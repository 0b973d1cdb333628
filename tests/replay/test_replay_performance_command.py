"""`credence replay --task performance`: what it prints and draws, and what it refuses."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import recording

from service.domain.errors import RecordingError
from service.replay.command import replay
from service.replay.options import add_parser, completed
from service.replay.performance import AT_THRESHOLD, RECALLS, BinaryScores, PerformanceStudy, Run
from service.replay.performance_command import Found, _studies, draw_performance, performance_summary
from service.replay.recording import load_recording
from service.statistics.binary.performance import Target
from service.statistics.binary.semi_supervised import WAYS
from service.statistics.estimate import MedianEstimate

MANY = recording([90, 80, 70, 60])
TWO = recording([50, 30])
MARGINS = np.log(TWO.probabilities[:, 1] / TWO.probabilities[:, 0])


def parsed(*words: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["replay", *map(str, words), "--task", "performance"])


def run(*words: object) -> int:
    options = parsed(*words)
    code: int = replay(options)
    return code


def saved(folder: Path, made: Any = TWO, **more: Any) -> Path:
    path = folder / "model.npz"
    np.savez(path, **{"probabilities": made.probabilities, "labels": made.labels} | more)
    return path


def refusal(*words: object) -> str:
    with pytest.raises(RecordingError) as refused:
        run(*words)
    return str(refused.value)


def studies(made: Any, *words: object) -> list[PerformanceStudy]:
    return list(_studies(made, completed(parsed("model.npz", *words)), "random"))


BY_DESIGN = ("design_coverage", "design_width", "shown_coverage", "shown_width")


def areas(ours: float, label_only: float) -> dict[str, float]:
    both = {"area": ours, "label_only_area": label_only}
    return both | {f"{name}_if_positive": value for name, value in both.items()}


def made_up(number: int, area: float, label_only_area: float, **measures: float) -> Found:
    """What two runs found, the second of which was perfect."""
    rng = np.random.default_rng(number)
    scores = rng.random(40)
    study = PerformanceStudy(
        BinaryScores(number, scores, rng.random(40) < scores), (10,), 2, 0.5, Target(recall=0.9)
    )
    names = ("band_width", "positive_label", "separation", "misfit_p_value", "effective_draws", "walkers")
    names += tuple(f"{name}_coverage" for name in ("band", "prevalence", *AT_THRESHOLD))
    names += tuple(f"{name}_{of}" for name in AT_THRESHOLD for of in ("width", "squared_error"))
    names += tuple(f"{name}_{of}" for name in AT_THRESHOLD for of in BY_DESIGN)
    names += tuple(f"weight_{name}" for name in WAYS)
    names += ("f1_of_means_squared_error", "best_f1_error", "best_band_width")
    names += ("design_disagrees", "target_met", "target_promised", "target_possible")
    one: Mapping[str, float] = dict.fromkeys(names, 1.0) | measures
    band = MedianEstimate(*(np.full_like(RECALLS, each) for each in (0.4, 0.5, 0.6)))
    return Found(
        study,
        {
            10: [
                Run({**one, **areas(2 * area, 2 * label_only_area)}, band),
                Run({**one, **areas(0.0, 0.0)}, band),
            ]
        },
    )


def test_json_holds_a_row_for_every_number_of_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--runs", 1, "--labels", "60,8", "--target", "precision=0.5", "--json")
    assert run(saved(tmp_path), *words) == 0
    tables = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert len(tables) == 11
    for table in tables:
        assert table["title"].startswith("model, performance: ")
        assert [row["class, labels"] for row in table["rows"]] == ["class 1, 8", "class 1, 60"]
    few, most = tables[0]["rows"]
    assert most["width of 95% band"] < few["width of 95% band"]


def test_the_terminal_shows_decision_values_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, decision_values=MARGINS)
    assert run(path, "--runs", 1, "--labels", 8, "--decision-values") == 0
    printed = capsys.readouterr().out
    assert printed.count("│ class 1, 8") == 10
    assert "threshold 0." in " ".join(printed.split())
    assert "chosen" not in printed


def test_of_two_classes_the_second_is_positive() -> None:
    (only,) = studies(TWO)
    np.testing.assert_array_equal(only.scores.scores, TWO.probabilities[:, 1])
    np.testing.assert_array_equal(only.scores.positive, TWO.labels == 1)
    assert only.threshold == 0.5


def test_of_more_classes_each_is_held_against_the_rest() -> None:
    found = studies(MANY)
    assert [study.scores.positive_class for study in found] == [0, 1, 2, 3]
    np.testing.assert_array_equal(found[2].scores.scores, MANY.probabilities[:, 2])
    np.testing.assert_array_equal(found[2].scores.positive, MANY.labels == 2)


@pytest.mark.parametrize(
    ("made", "word", "classes"), [(TWO, "all", [0, 1]), (MANY, "3", [3]), (TWO, "0", [0])]
)
def test_the_positive_class_can_be_chosen(made: Any, word: str, classes: list[int]) -> None:
    found = studies(made, "--positive-class", word)
    assert [study.scores.positive_class for study in found] == classes


def test_a_class_without_items_is_left_out() -> None:
    without = type(MANY)("model", MANY.probabilities, np.where(MANY.labels == 2, 1, MANY.labels))
    assert [study.scores.positive_class for study in studies(without)] == [0, 1, 3]


def test_decision_values_are_turned_round_for_the_first_class(tmp_path: Path) -> None:
    made = load_recording(saved(tmp_path, decision_values=MARGINS), decision_values=True)
    for number, sign in ((0, -1), (1, 1)):
        (only,) = studies(made, "--decision-values", "--positive-class", number)
        np.testing.assert_array_equal(only.scores.scores, sign * MARGINS)
        assert not only.scores.unit
        assert only.threshold == 0


def test_options_say_how_much_and_where() -> None:
    words = ("--labels", "30,5", "--runs", 7, "--seed", 3, "--threshold", 0.3, "--interval", 0.9)
    (only,) = studies(TWO, *words, "--target", "precision=0.8,false_positive_rate=0.1")
    assert (only.labels, only.runs, only.seed, only.threshold, only.mass) == ((5, 30), 7, 3, 0.3, 0.9)
    assert only.target == Target(precision=0.8, false_positive_rate=0.1)


@pytest.mark.parametrize(("size", "labels"), [(80, (10, 20, 50)), (6, (6,))])
def test_of_a_small_pool_no_more_labels_are_asked_than_it_has(size: int, labels: tuple[int, ...]) -> None:
    small = type(TWO)("model", TWO.probabilities[:size], TWO.labels[:size])
    assert studies(small)[0].labels == labels


def test_figures_are_means_over_runs_and_then_over_classes() -> None:
    tables = performance_summary("model", {4: made_up(4, 0.1, 0.4), 7: made_up(7, 0.3, 0.4)})
    rows = dict(tables[0].rows)
    assert list(rows) == ["class 4, 10", "class 7, 10", "mean of 2 classes, 10"]
    assert rows["class 4, 10"][:3] == pytest.approx((40, 10, 0.25))
    assert rows["mean of 2 classes, 10"][:3] == pytest.approx((40, 20, 0.5))


def test_what_does_not_exist_is_left_out_of_means() -> None:
    nothing = made_up(4, 0.1, 0.0, precision_coverage=np.nan)
    tables = performance_summary("model", {4: nothing, 7: made_up(7, 0.1, 0.4)})
    assert dict(tables[0].rows)["class 4, 10"][2] is None
    coverage = dict(tables[2].rows)
    assert coverage["class 4, 10"][1] is None
    assert coverage["mean of 2 classes, 10"][1] == 100


def test_one_class_has_no_mean_of_classes() -> None:
    for table in performance_summary("model", {1: made_up(1, 0.1, 0.4)}):
        assert [row for row, _ in table.rows] == ["class 1, 10"]


def test_errors_and_the_curve_of_every_class_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_performance("model", {4: made_up(4, 0.1, 0.4), 7: made_up(7, 0.3, 0.4)}, tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {
        "model-performance-area",
        "model-performance-class-4",
        "model-performance-class-7",
    }
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--labels", "10,81"), "model: it has 80 items, the most labels are 81; lower --labels"),
        (("--positive-class", "2"), "--positive-class: model has classes 0 to 1, not 2; choose one of them"),
        (("--threshold", "1.5"), "--threshold: 1.5 is no probability; give one within 0 and 1"),
        (("--decision-values",), "model: it has no decision values; save them as the array"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    assert refusal(saved(tmp_path), *words).startswith(problem)


@pytest.mark.parametrize("number", [0, 1])
def test_a_class_of_all_items_or_of_none_is_refused(tmp_path: Path, number: int) -> None:
    path = saved(tmp_path, labels=np.zeros_like(TWO.labels))
    share = ("all items are", "no item is")[number]
    message = refusal(path, "--positive-class", number)
    assert message == f"model: {share} of class {number}; choose another --positive-class"


def test_items_of_one_class_alone_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, MANY, labels=np.ones_like(MANY.labels))
    assert refusal(path).startswith("model: all items are of one class; record others too")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (MARGINS[:-1], "decision_values must be [80], one of every item, but have the shape [79]"),
        (np.column_stack((MARGINS, MARGINS)), "but have the shape [80, 2]"),
        (np.where(np.arange(80) == 6, np.inf, MARGINS), "row 6 (counted from 0): decision_values hold a NaN"),
        (np.full(80, "high"), "decision_values are not numbers"),
        (np.full(80, None), "array 'decision_values' is damaged, or holds Python objects"),
    ],
)
def test_decision_values_that_cannot_be_used_are_refused_with_the_place(
    tmp_path: Path, values: np.ndarray, problem: str
) -> None:
    path = saved(tmp_path, decision_values=values)
    message = refusal(path, "--decision-values")
    assert message.startswith(f"{path}: ")
    assert problem in message


def test_decision_values_that_nobody_asks_for_are_not_looked_at(tmp_path: Path) -> None:
    assert load_recording(saved(tmp_path, decision_values=MARGINS[:-1])).decision_values is None


def test_decision_values_of_more_than_two_classes_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, MANY, decision_values=np.zeros(MANY.size))
    message = refusal(path, "--decision-values")
    assert message == "model: it has 4 classes, decision values are of two; leave --decision-values out"


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--labels", "10,many", "'many' is not a whole number of 1 or more"),
        ("--labels", "0", "'0' is not a whole number of 1 or more"),
        ("--threshold", "nan", "'nan' is not a number"),
        ("--positive-class", "dog", "'dog' is neither the number of a class nor 'all'"),
        ("--positive-class", "-1", "'-1' is neither the number of a class nor 'all'"),
        (
            "--target",
            "recal=0.9",
            "'recal=0.9' is no target; write NAME=SHARE, with one of precision, recall",
        ),
        ("--target", "recall=90", "'recall=90' is no target"),
        ("--target", "recall", "'recall' is no target"),
        ("--target", "recall=0.9,recall=0.8", "recall is given twice"),
    ],
)
def test_an_option_that_cannot_be_read_is_refused_with_its_name(
    capsys: pytest.CaptureFixture[str], option: str, value: str, problem: str
) -> None:
    with pytest.raises(SystemExit) as left:
        run("model.npz", f"{option}={value}")
    assert left.value.code == 2
    assert re.search(rf"argument {option}: {re.escape(problem)}", capsys.readouterr().err)


def test_policies_are_reported_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--runs", 1, "--labels", "8", "--policy", "adaptive", "--policy", "random", "--json")
    assert run(saved(tmp_path), *words) == 0
    tables = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [table["title"].startswith("model, adaptive,") for table in tables] == [True] * 10 + [False] * 10
    assert tables[0]["rows"][0]["labels alone"] is None
    assert tables[10]["rows"][0]["labels alone"] is not None


def test_performance_is_learned_by_no_other_policy(tmp_path: Path) -> None:
    assert refusal(saved(tmp_path), "--runs", 1, "--policy", "top_two").startswith(
        "--policy: performance is learned by random or adaptive, not top_two"
    )
