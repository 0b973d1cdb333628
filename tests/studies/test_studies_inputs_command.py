"""`python -m benchmarks.studies.inputs`: what it asks, prints and draws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import plain_pool, recording

from benchmarks.studies.inputs import changes, inputs_tables, parser
from benchmarks.studies.inputs_items import NO_CHANGE, Change, Items
from benchmarks.studies.inputs_labelled import WAYS, Labelled
from benchmarks.studies.inputs_study import InputsStudy, Seen
from benchmarks.studies.inputs_summary import inputs_summary
from benchmarks.studies.inputs_watched import CHANGED, CHANGING, HEALTHY, ROUND, Watched
from benchmarks.studies.running import run_study
from service.domain.errors import RecordingError
from service.replay.recording import Recording

ACCURACY = "accuracy of the group, and what shows it"
UNTIL_DRIFTED = "predictions until the group has drifted, mean"
DRIFTED = "streams in which the group has drifted, %"
UNTIL_CONFIRMED = "labels until it is confirmed that the group got worse, median"
CONFIRMED = "streams in which it is confirmed, %"
GIVEN = "labels that the group gets, % of all since the change"
DISAGREE = "streams in which labels disagree with scores, %"
FALSE = "streams in which something false is reported, %"


def saved(folder: Path, made: Recording, name: str) -> Path:
    path = folder / f"{name}.npz"
    np.savez(path, probabilities=made.probabilities, labels=made.labels)
    return path


def run(*words: object) -> None:
    run_study(inputs_tables, parser().parse_args([*map(str, words), "--runs", "1"]))


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return saved(tmp_path, recording([60, 50, 40]), "model")


@pytest.fixture
def after(tmp_path: Path) -> Path:
    return saved(tmp_path, recording([10, 20, 90], seed=1), "camera")


def test_all_that_was_asked_for_is_told(
    before: Path, after: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--after", after, "--after", "hard", "--mixed", "0.8", "--groups", "3", "--per-label", "5000")
    run(before, *asked, "--alpha", "0.1", "--json", "--plots", tmp_path / "figures")
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert tables[0]["title"] == f"model, inputs: {ACCURACY}"
    shown = [row["change"] for row in tables[0]["rows"]]
    assert shown == ["no change", "camera, 80%", "hard, 80%", "classes shift", "labels alone"]
    notes = [note for table in tables for note in table["notes"]]
    assert "1 runs of 3 groups, seed 0." in notes
    assert any("every 5,000 predictions" in note and "alpha 0.1" in note for note in notes)
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"model-inputs-camera-80.png", "model-inputs-labels-alone.png"} <= drawn
    assert not any("classes" in name or "no-change" in name for name in drawn)


@pytest.mark.parametrize("mixed", ["0.01", "1"])
def test_some_or_all_of_the_items_may_be_mixed_in(mixed: str) -> None:
    assert parser().parse_args(["model.npz", "--after", "hard", "--mixed", mixed]).mixed == float(mixed)


@pytest.mark.parametrize("mixed", ["0", "1.1", "half"])
def test_neither_none_of_the_items_nor_more_than_all_can_be(mixed: str) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["model.npz", "--after", "hard", "--mixed", mixed])


def test_both_classifiers_of_digits_see_corrupted_images(capsys: pytest.CaptureFixture[str]) -> None:
    run("digits", "--after", "blur", "--per-label", "20000", "--markdown")
    printed = capsys.readouterr().out
    for name in ("digits_logistic", "digits_naive_bayes"):
        assert f"**{name}, inputs: {ACCURACY}**" in printed
    assert printed.count("| blur |") > 2


def test_what_is_of_digits_alone_is_refused_for_files(before: Path) -> None:
    with pytest.raises(RecordingError, match="--after: noise is of digits alone"):
        run(before, "--after", "noise")


def test_what_digits_do_not_know_is_refused_with_what_they_know(after: Path) -> None:
    with pytest.raises(RecordingError, match="--after: of digits noise, blur, shift, hard are known"):
        run("digits", "--after", after)


def test_a_change_is_of_one_recording(before: Path, after: Path) -> None:
    with pytest.raises(RecordingError, match="--after: it is of one recording, and there are 2"):
        run(before, after, "--after", "hard")


def test_a_recording_that_cannot_be_used_is_refused(before: Path, tmp_path: Path) -> None:
    other = saved(tmp_path, recording([30, 30]), "other")
    with pytest.raises(RecordingError, match="other: it has 2 classes, but model has 3"):
        run(before, "--after", other)
    with pytest.raises(RecordingError, match="there is no such file"):
        run(before, "--after", tmp_path / "missing.npz")


POOL = plain_pool([90, 80, 70], [10, 20, 30])
BETTER = plain_pool([10, 10, 10], [0, 0, 0])
ITEMS = Items.of(POOL.recording, [BETTER.recording], bin_count=10, binning="equal_width")


def test_labels_turn_as_far_as_the_first_inputs_that_harm() -> None:
    worse, worst = (plain_pool(right, [5, 5, 5]).recording for right in ([9, 9, 9], [5, 5, 5]))
    after = [BETTER.recording, worse, worst]
    items = Items.of(POOL.recording, after, bin_count=10, binning="equal_width")
    found = {change.name: change for change in changes(items, ["better", "worse", "worst"], 1.0)}
    assert items.accuracy(found["labels alone"]) == pytest.approx(worse.correct.mean())


def test_where_no_inputs_harm_no_labels_turn() -> None:
    assert [change.name for change in changes(ITEMS, ["better"], 1.0)] == [
        "no change",
        "better",
        "classes shift",
    ]


def test_files_of_the_same_name_are_told_apart() -> None:
    items = Items.of(POOL.recording, [BETTER.recording] * 4, bin_count=10, binning="equal_width")
    names = ["fog/3.npz", "snow/3.npz", "no change.npz", "rain.npz"]
    found = [change.name for change in changes(items, names, 1.0)]
    assert found == ["no change", *names[:3], "rain", "classes shift"]


ROUNDS, GROUPS = HEALTHY + CHANGED, 2
STUDY = InputsStudy(ITEMS, groups=GROUPS, predictions=ROUND, alpha=0.05, runs=2, seed=0)
WORSE = Change("worse", ITEMS.healthy.weights, 0.5)


def from_round(number: int, group: int) -> np.ndarray:
    """Told of a group from so many rounds after the change on [T, G]."""
    flags = np.zeros((ROUNDS, GROUPS), np.bool_)
    flags[HEALTHY + number - 1 :, group] = True
    return flags


def made(*, drifted: np.ndarray, confirmed: np.ndarray, below: np.ndarray) -> Seen:
    """Two streams: these are reported of the first one, nothing of the second one."""
    never = np.zeros((ROUNDS, GROUPS))
    watched = [
        Watched(dict.fromkeys(("scores", "classes", "any"), excess), excess[:, CHANGING], never)
        for excess in (drifted.astype(np.float64), never)
    ]
    labels = np.zeros((ROUNDS, 2, GROUPS))
    labels[HEALTHY:] = 1.0
    labels[HEALTHY:, :, CHANGING] = 3.0
    two = [np.stack([each, np.zeros_like(each)], axis=1) for each in (confirmed, below.astype(np.float64))]
    return Seen(watched, dict.fromkeys(WAYS, Labelled(two[0], two[1], labels)))


def rows(seen: Seen, change: Change = WORSE) -> dict[str, dict[str, tuple[float | None, ...]]]:
    """Figures by title and name of the row."""
    tables = inputs_summary(STUDY, [(ITEMS.healthy, seen), (change, seen)])
    return {table.title.split(": ")[1]: dict(table.rows) for table in tables}


def test_delays_count_from_the_change_to_the_look_that_tells() -> None:
    found = rows(
        made(
            drifted=from_round(4, CHANGING), confirmed=from_round(6, CHANGING), below=from_round(9, CHANGING)
        )
    )
    assert found[UNTIL_DRIFTED]["worse"] == (4 * ROUND,) * 4
    assert found[DRIFTED]["worse"] == (50.0,) * 4
    assert found[UNTIL_CONFIRMED]["worse"] == (6.0,) * len(WAYS)
    assert found[CONFIRMED]["worse"] == (50.0,) * len(WAYS)
    assert found[DISAGREE]["worse"] == (50.0,) * len(WAYS)
    assert found[GIVEN]["worse"] == (75.0,) * len(WAYS)
    assert set(found[UNTIL_CONFIRMED]) == {"worse"}


def test_what_is_never_told_has_no_delay() -> None:
    nothing = np.zeros((ROUNDS, GROUPS), np.bool_)
    found = rows(made(drifted=nothing, confirmed=nothing, below=nothing))
    assert found[UNTIL_DRIFTED]["worse"] == (None,) * 4
    assert found[UNTIL_CONFIRMED]["worse"] == (None,) * len(WAYS)
    assert found[CONFIRMED]["worse"] == (0.0,) * len(WAYS)


def outcomes(group: int, number: int = 1) -> Iterator[tuple[float | None, ...]]:
    """What is reported falsely of no change, and of a worse group whose inputs stay."""
    flags = from_round(number, group)
    yield from rows(made(drifted=flags, confirmed=flags, below=flags))[FALSE].values()


def test_drift_of_inputs_that_stay_is_false_and_so_is_a_fall_of_accuracy_that_stays() -> None:
    drifted, *confirmed = outcomes(CHANGING)
    assert drifted == (50.0, 50.0)
    assert confirmed == [(50.0, 0.0)] * len(WAYS)


def test_of_other_groups_whatever_is_told_is_false() -> None:
    assert list(outcomes(CHANGING + 1)) == [(50.0, 50.0)] * (1 + len(WAYS))


def test_before_the_change_whatever_is_told_is_false() -> None:
    assert list(outcomes(CHANGING, number=0)) == [(50.0, 50.0)] * (1 + len(WAYS))


def test_accuracy_and_promise_are_those_of_the_items() -> None:
    nothing = np.zeros((ROUNDS, GROUPS), np.bool_)
    found = rows(made(drifted=nothing, confirmed=nothing, below=nothing))[ACCURACY]
    right = 100 * POOL.recording.correct.mean()
    assert found[NO_CHANGE] == pytest.approx((right, right, 0, 0, 0))
    assert found["worse"] == pytest.approx((right / 2, right, 0, 0, 0))
