"""`credence replay --task annotators`: the accuracy from answers of people who err."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.app.cli import main
from service.domain.errors import RecordingError
from service.replay.annotators_command import Missing, measured
from service.replay.crowd import NOBODY, Crowd, load_crowd


def write(path: Path, **arrays: Any) -> Path:
    np.savez(path, **{name: np.array(values) for name, values in arrays.items()})
    return path


def crowd_of(items: int, people: int = 6, wrong: float = 0.05) -> Crowd:
    """A model of accuracy .8 and people who err in some of the items, in two classes."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, items)
    predicted = np.where(rng.random(items) < 0.8, truth, 1 - truth)
    answers = np.where(rng.random((items, people)) < wrong, 1 - truth[:, None], truth[:, None])
    return Crowd("made", predicted, answers, truth)


def test_without_labels_the_truth_is_what_most_people_answered(tmp_path: Path) -> None:
    answers = [[1, 1, 0], [0, 1, NOBODY], [2, 2, 2], [NOBODY] * 3]
    found = load_crowd(write(tmp_path / "a.npz", predicted=[1, 0, 0, 1], answers=answers))
    # People disagree about the second item, and nobody answered the fourth.
    assert found.truth.tolist() == [1, 2]
    assert found.predicted.tolist() == [1, 0]


def test_labels_are_the_truth_where_there_are_some(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz", predicted=[1, 0], answers=[[1, 1], [1, 1]], labels=[0, 0])
    assert load_crowd(path).correct.tolist() == [False, True]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"predicted": [1]}, "there is no array 'answers'"),
        ({"predicted": [1, 0], "answers": [[1]]}, "they have the shapes"),
        ({"predicted": [1], "answers": [[1.0]]}, "answers must be whole numbers"),
        ({"predicted": [-1], "answers": [[1]]}, "a class is below 0"),
        ({"predicted": [1], "answers": [[1]], "labels": [1, 1]}, "labels must be"),
        ({"predicted": [1], "answers": [[0, 1]]}, "no item has both"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordingError, match=message):
        load_crowd(write(tmp_path / "a.npz", **arrays))


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"none\.npz: it cannot be read"):
        load_crowd(tmp_path / "none.npz")


def test_further_answers_are_asked_more_often_where_the_first_contradicts_the_model() -> None:
    crowd = crowd_of(400, wrong=0.0)
    contradicted = Crowd("made", 1 - crowd.truth, crowd.answers, crowd.truth)
    agreed = Crowd("made", crowd.truth, crowd.answers, crowd.truth)
    counts = [measured(each, 400, 0.95, np.random.default_rng(1)).answers for each in (contradicted, agreed)]
    # A second answer about all items, and about 15% of them.
    assert counts == pytest.approx([2.0, 1.15], abs=0.05)


def test_wrong_answers_do_not_lower_the_accuracy() -> None:
    crowd = crowd_of(600, wrong=0.15)
    found = measured(crowd, 600, 0.95, np.random.default_rng(1))
    assert found.first.upper < crowd.correct.mean() < found.people.upper
    assert found.people.lower < crowd.correct.mean()


def hard_crowd(items: int) -> Crowd:
    """People and model err about the same items: a third, of which the model gets half wrong."""
    rng = np.random.default_rng(7)
    truth, is_hard = rng.integers(0, 2, items), rng.random(items) < 1 / 3
    predicted = np.where(rng.random(items) < np.where(is_hard, 0.5, 0.95), truth, 1 - truth)
    wrong = rng.random((items, 6)) < np.where(is_hard, 0.2, 0.02)[:, None]
    return Crowd("hard", predicted, np.where(wrong, 1 - truth[:, None], truth[:, None]), truth)


def test_if_hard_items_are_skipped_the_interval_that_allows_for_it_alone_holds_the_accuracy() -> None:
    crowd = hard_crowd(900)
    found = measured(crowd, 600, 0.95, np.random.default_rng(1), Missing(skipped=0.25))
    truth = float(crowd.correct.mean())
    assert found.unanswered == 0.25
    assert not found.people.holds(truth)
    assert found.allowed.holds(truth)


def test_what_is_skipped_widens_the_interval_by_its_share() -> None:
    crowd = crowd_of(600)
    found = measured(crowd, 600, 0.95, np.random.default_rng(1), Missing(skipped=0.2))
    # The ends are those of the worst case, each with half of the posterior.
    assert found.allowed.width - 0.8 * found.people.width == pytest.approx(0.2, abs=0.02)


def test_requests_that_expire_at_random_do_not_widen_the_interval() -> None:
    crowd = crowd_of(600)
    found = [measured(crowd, 600, 0.95, np.random.default_rng(run), Missing(expired=0.2)) for run in range(5)]
    assert found[0].unanswered == pytest.approx(0.2, abs=0.05)
    # Chance tells later attempts from first ones now and then.
    assert np.median([each.allowed.width / each.people.width for each in found]) == 1.0


def test_without_any_answer_the_accuracy_may_be_anything() -> None:
    found = measured(crowd_of(20), 1, 0.95, np.random.default_rng(1), Missing(skipped=0.9))
    assert (found.allowed, found.people) == ((0.0, 1.0), (0.0, 1.0))


def test_the_command_says_how_missing_answers_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd = crowd_of(60)
    path = write(tmp_path / "made.npz", predicted=crowd.predicted, answers=crowd.answers)
    command = ["replay", str(path), "--task", "annotators", "--labels", "40", "--runs", "2", "--json"]
    assert main([*command, "--skipped", "0.25"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    assert table["rows"][0]["items without an answer, %"] == 25.0
    assert table["rows"][0]["if answers are missing, too, hold, %"] == 100.0


def test_other_tasks_refuse_missing_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "digits", "--skipped", "0.2"]) != 0
    assert "--skipped: the task estimation does not take it" in capsys.readouterr().err


def test_the_command_prints_a_row_for_every_number_of_items(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd = crowd_of(60)
    path = write(tmp_path / "made.npz", predicted=crowd.predicted, answers=crowd.answers)
    command = ["replay", str(path), "--task", "annotators", "--labels", "20,40", "--runs", "2", "--json"]
    assert main(command) == 0
    (table,) = json.loads(capsys.readouterr().out)
    assert [row["items"] for row in table["rows"]] == ["20", "40"]
    assert all(len(row) == 7 for row in table["rows"])


def test_more_items_than_there_are_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "made.npz", predicted=[1, 0], answers=[[1], [0]])
    assert main(["replay", str(path), "--task", "annotators", "--labels", "20"]) != 0
    assert "--labels: made has 2 items" in capsys.readouterr().err
