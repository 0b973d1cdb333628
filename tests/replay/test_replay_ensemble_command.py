"""`credence replay --task ensemble`: what it prints and draws, and what it refuses."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import recording
from rich.console import Console

from service.domain.errors import RecordingError
from service.replay.command import replay
from service.replay.digits import digits_voters
from service.replay.ensemble import METHODS, SEPARATE, SHARED, EnsembleStudy, Estimates, VotedItems
from service.replay.ensemble_command import Found, _studies, draw_ensemble, ensemble_summary
from service.replay.options import add_parser, completed
from service.replay.recording import Recording


def members(sizes: list[int], count: int = 3) -> list[Recording]:
    """Classifiers of the same items, of which each takes other fifths for something else."""
    first = recording(sizes, name="m0")
    made = [first]
    for m in range(1, count):
        rng = np.random.default_rng(m)
        moved = rng.random(first.size) < 0.2
        probabilities = np.where(moved[:, None], np.roll(first.probabilities, 1, axis=1), first.probabilities)
        made.append(replace(first, name=f"m{m}", probabilities=probabilities))
    return made


TWO = members([90, 60])
MANY = members([90, 80, 70])


def parsed(*words: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["replay", *map(str, words), "--task", "ensemble"])


def run(*words: object) -> int:
    options = parsed(*words)
    code: int = replay(options)
    return code


def saved(folder: Path, made: list[Recording] = TWO) -> list[Path]:
    for each in made:
        np.savez(folder / f"{each.name}.npz", probabilities=each.probabilities, labels=each.labels)
    return [folder / f"{each.name}.npz" for each in made]


def refusal(*words: object) -> str:
    with pytest.raises(RecordingError) as refused:
        run(*words)
    message = str(refused.value)
    assert "\n" not in message
    return message


def studies(made: list[Recording], *words: object) -> list[EnsembleStudy]:
    return _studies(made, completed(parsed("m0.npz", *words)))


def documents(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, Any]]:
    assert run(*words, "--json") == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    return found


def estimates_of(cost: int, mean: float) -> Estimates:
    """Of an ensemble and its only member; the interval of the second one alone is wide."""
    return Estimates(cost, np.array([mean, mean]), np.array([mean, 0.0]), np.array([mean, 1.0]))


def made_up(number: int, shared: int = 10, error: float = 0.1) -> Found:
    """What two runs found: one erred in this way, and the other not at all."""
    items = VotedItems.of(number, {"only": np.ones(40, np.bool_)}, np.arange(40) < 20)
    run = {method: estimates_of(shared, 0.5 + error) for method in METHODS} | {
        SEPARATE: estimates_of(20, 0.7)
    }
    right = {method: estimates_of(shared, 0.5) for method in METHODS} | {SEPARATE: estimates_of(20, 0.5)}
    return Found(EnsembleStudy(items, (10,), 2), {10: [run, right]})


def test_of_digits_three_fifths_of_the_labels_are_saved(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    costs, closeness, *_ = documents(capsys, "digits", "--labels", 50, "--runs", 20)
    assert costs["title"] == "ensemble of 3 members: labels to ask for"
    assert [row["class, labels each"] for row in costs["rows"]] == [
        *(f"class {digit}, 50" for digit in range(10)),
        "mean of all, 50",
    ]
    assert all(row["saved, %"] >= 60 for row in costs["rows"])
    mean = closeness["rows"][-1]
    # Fewer than separate samples take, and yet closer; intervals hold it as often as docs/ensembles.md tells.
    assert mean["ratio"] < 0.8
    assert mean["held shared"] >= 93


def test_digits_have_three_voters() -> None:
    pytest.importorskip("sklearn")
    voters = digits_voters()
    assert [voter.name for voter in voters] == ["digits_logistic", "digits_naive_bayes", "digits_neighbours"]
    assert all(np.array_equal(voter.labels, voters[0].labels) for voter in voters)
    assert [voter.correct.mean() > 0.8 for voter in voters] == [True] * 3


def test_json_holds_a_row_for_every_number_of_labels_and_for_every_member(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = documents(capsys, *saved(tmp_path), "--labels", "30,8", "--runs", 2)
    assert len(tables) == 8
    for table in tables[:4]:
        assert [row["class, labels each"] for row in table["rows"]] == ["class 1, 8", "class 1, 30"]
    for table, labels in zip(tables[4:], (8, 8, 30, 30), strict=True):
        assert f"{labels} labels each" in table["title"]
        assert [row["class, member"] for row in table["rows"]] == [
            f"class 1, {name}" for name in ("ensemble", "m0", "m1", "m2")
        ]


def test_the_same_seed_gives_the_same_figures_with_any_number_of_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*saved(tmp_path), "--labels", 8, "--runs", 3, "--seed", 4)
    alone = documents(capsys, *words)
    assert documents(capsys, *words, "--jobs", 2) == alone
    assert documents(capsys, *words, "--seed", 5) != alone


def test_tables_are_for_the_terminal_or_for_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = saved(tmp_path)
    assert run(*paths, "--runs", 1, "--labels", 8) == 0
    assert "│ class 1, 8         │" in capsys.readouterr().out
    assert run(*paths, "--runs", 1, "--labels", 8, "--markdown") == 0
    assert capsys.readouterr().out.count("| class 1, 8 |") == 4


def test_tables_break_no_word_on_a_terminal_of_80_columns() -> None:
    # Many labels, and a member with the longest name of those of the digits.
    items = VotedItems.of(4, {"digits_naive_bayes": np.ones(200, np.bool_)}, np.arange(200) < 20)
    run = {method: estimates_of(1_000, 0.5) for method in METHODS}
    found = [Found(EnsembleStudy(items, (100,), 100), {100: [run]})] * 2
    wide = Console(width=200)
    for table in ensemble_summary(found):
        assert wide.measure(table.rich()).maximum <= 80, table.title


def test_help_tells_of_ensembles(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--help")
    words = " ".join(capsys.readouterr().out.split())
    assert "A.npz B.npz C.npz --task ensemble" in words
    assert "--ensemble FILE" in words
    assert "ensemble 20,50,100" in words


def test_members_are_known_by_their_recordings() -> None:
    (only,) = studies(TWO)
    assert only.items.members == ("ensemble", "m0", "m1", "m2")
    for m, made in enumerate(TWO, 1):
        np.testing.assert_array_equal(only.items.votes[:, m], made.predicted == 1)
    np.testing.assert_array_equal(only.items.positive, TWO[0].labels == 1)


def test_the_ensemble_can_have_a_recording_of_its_own(tmp_path: Path) -> None:
    (path,) = saved(tmp_path, TWO[2:])
    (only,) = studies(TWO[:2], "--ensemble", path)
    assert only.items.members == ("ensemble", "m0", "m1")
    np.testing.assert_array_equal(only.items.votes[:, 0], TWO[2].predicted == 1)


def test_each_of_more_classes_is_held_against_the_rest() -> None:
    assert [study.items.positive_class for study in studies(MANY)] == [0, 1, 2]
    assert [study.items.positive_class for study in studies(MANY, "--positive-class", 2)] == [2]


def test_a_class_that_a_member_never_predicts_is_left_out_of_all() -> None:
    never = replace(MANY[1], own_predicted=np.where(MANY[1].predicted == 0, 1, MANY[1].predicted))
    assert [study.items.positive_class for study in studies([MANY[0], never])] == [1, 2]


def test_no_more_labels_are_asked_than_a_member_has_items_unless_told() -> None:
    fewest = int(studies(TWO)[0].items.called.min())
    assert 50 <= fewest < 100
    assert studies(TWO)[0].labels == (20, 50)
    rare = replace(TWO[0], own_predicted=(np.arange(TWO[0].size) < 7).astype(np.int64))
    assert studies([rare])[0].labels == (7,)


def test_options_say_how_much_and_where() -> None:
    (only,) = studies(TWO, "--labels", "12,5", "--runs", 7, "--seed", 3, "--interval", 0.9)
    assert (only.labels, only.runs, only.seed, only.mass) == ((5, 12), 7, 3, 0.9)


def test_figures_are_means_over_runs_and_then_over_classes() -> None:
    costs, closeness, saved, errors, precision, widths = ensemble_summary(
        [made_up(4, 10, 0.1), made_up(7, 20, 0.2)]
    )
    assert dict(costs.rows) == {
        "class 4, 10": pytest.approx((20, 10, 50)),
        "class 7, 10": pytest.approx((20, 20, 0)),
        "mean of all, 10": pytest.approx((20, 15, 25)),
    }
    # The second run errs by nothing, so squares are halved.
    separate, one, both = 20 * 0.5**0.5, 10 * 0.5**0.5, (50 * (0.1**2 + 0.2**2) * 50) ** 0.5
    assert dict(closeness.rows)["class 4, 10"] == pytest.approx((separate, one, 0.5, 75, 75))
    assert dict(closeness.rows)["mean of all, 10"][1] == pytest.approx(both)
    assert dict(saved.rows)["class 4, 10"] == pytest.approx((50, 50, 50))
    assert dict(errors.rows)["class 4, 10"] == pytest.approx((0.5, 0.5, 0.5))
    assert dict(precision.rows)["class 4, only"] == pytest.approx((50, 60, 55))
    assert dict(widths.rows)["class 4, only"] == pytest.approx((100, 100))


def test_an_error_is_compared_with_no_error_of_none() -> None:
    right = made_up(4)
    _, closeness, _, errors, *_ = ensemble_summary([Found(right.study, {10: right.runs[10][1:]})])
    assert dict(closeness.rows)["class 4, 10"][2] is None
    assert dict(errors.rows)["class 4, 10"] == (None, None, None)


def test_what_is_saved_and_how_often_intervals_are_right_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_ensemble([made_up(4), made_up(7)], tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {"ensemble-saving", "ensemble-coverage"}
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--labels", "10,81"), "m0: it calls 60 items class 1, the most labels are 81; lower --labels"),
        (("--positive-class", "2"), "--positive-class: m0 has classes 0 to 1, not 2; choose one of them"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    assert refusal(*saved(tmp_path), *words).startswith(problem)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"labels": np.where(np.arange(150) == 6, 1 - TWO[0].labels, TWO[0].labels)},
            "m1: its labels are not those of m0: row 6 (counted from 0) is of class",
        ),
        (
            {"labels": TWO[0].labels[:-1], "probabilities": TWO[0].probabilities[:-1]},
            "m1: it has 149 items, m0 has 150; members are recorded on the same items",
        ),
        (
            {"probabilities": np.column_stack((TWO[0].probabilities, np.zeros(150)))},
            "m1: it has 3 classes, m0 has 2; members are recorded on the same items",
        ),
        ({"own_predicted": np.zeros(150, np.int64)}, "m1: it calls no item class 1, so it has no precision"),
        ({"name": "m0"}, "m0: the ensemble or another member is called so too; rename the file"),
        ({"name": "ensemble"}, "ensemble: the ensemble or another member is called so too; rename the file"),
    ],
)
def test_recordings_that_are_not_of_one_ensemble_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(RecordingError) as refused:
        studies([TWO[0], replace(TWO[1], **changes)])
    assert str(refused.value).startswith(problem)


def test_the_recording_of_the_ensemble_has_the_same_items_too(tmp_path: Path) -> None:
    other = replace(TWO[1], name="other", labels=1 - TWO[1].labels)
    paths = saved(tmp_path, [TWO[0], other])
    assert refusal(paths[0], "--ensemble", paths[1]).startswith(
        "other: its labels are not those of m0: row 0"
    )


def test_too_many_members_are_refused() -> None:
    many = [replace(TWO[0], name=str(m)) for m in range(63)]
    with pytest.raises(RecordingError, match="there are 63 members; judge 62 of them at the most"):
        studies(many)


def test_shared_and_separate_are_methods_beside_all_mixings() -> None:
    assert METHODS == (SEPARATE, SHARED, "reshuffle", "resample", "patterns")
