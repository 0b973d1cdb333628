"""The demo that a person labels; test_person_demo_run.py plays it."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from service.app.cli import main
from service.config.settings import Settings
from service.demo.configuration import WEAKEST_CAMERA, Places
from service.demo.desk import TEAM, Desk
from service.demo.journal import Journal, LabelGiven
from service.demo.metrics import GroupReading, Reading
from service.demo.person.answers import Answers
from service.demo.person.configuration import person_configuration
from service.demo.person.pictures import picture_uri
from service.demo.person.producer import PictureStream
from service.demo.person.report import print_person_report, summary_lines
from service.demo.person.run import is_pause, run_person_demo
from service.demo.person.witness import entry_of
from service.demo.producer import Classifier
from service.demo.report import GroupResult
from service.demo.stage import MISUSED
from service.demo.world import BRIGHTEST, World, item_id, load_split
from service.domain.messages import Label


def given(time: float, request: str, chosen: str | None = "3", **changes: str) -> LabelGiven:
    fields = {"kind": "answer", "truth": "3", "camera": "gate"} | changes
    return LabelGiven(time=time, request_id=request, true_class=chosen, **fields)


def test_the_last_label_of_a_request_counts() -> None:
    answers = Answers.of([given(1.0, "a", "8"), given(2.0, "b"), given(3.0, "a", "3", kind="correction")])
    assert (len(answers), answers.agreement(), answers.corrected) == (2, (2, 2), 1)


def test_a_label_that_was_taken_back_does_not_count() -> None:
    assert len(Answers.of([given(1.0, "a"), given(2.0, "a", None, kind="retraction")])) == 0


def test_a_skipped_item_is_no_label() -> None:
    answers = Answers.of([given(1.0, "a", None, kind="skip"), given(2.0, "b")])
    assert (len(answers), answers.skipped) == (1, 1)


def test_the_time_of_labels_is_that_of_first_answers() -> None:
    answers = Answers.of([given(10.0, "a"), given(14.0, "b"), given(20.0, "a", kind="correction")])
    assert (answers.newest_at, answers.seconds) == (14.0, 4.0)


def test_the_summary_says_how_often_you_chose_the_true_class() -> None:
    labels = [given(10.0, "a"), given(12.0, "b", "8", camera="dock"), given(16.0, "c", camera="dock")]
    labels.append(given(17.0, "d", None, kind="skip"))
    assert summary_lines(Answers.of(labels), 60) == [
        "You gave 3 of 60 labels, 3.0 s each; 1 skipped.",
        "You chose the true class of 2 of 3 items, 66.7%: gate 1 of 1, dock 1 of 2.",
    ]


def test_a_run_without_labels_says_so() -> None:
    assert summary_lines(Answers.of([]), 60) == [
        "You gave no label, so the estimates come from scores alone."
    ]


def test_the_report_has_each_interval_before_your_labels_and_now() -> None:
    def dock(lower: float, upper: float) -> GroupReading:
        return GroupReading("camera", "dock", lower, 0.7, upper, share=0.25, labels=20, below=0.9)

    console = Console(file=io.StringIO(), width=120)
    first = Reading(time=1.0, groups={("camera", "dock"): dock(0.5, 0.9)})
    digit = GroupResult(GroupReading("class", "3", 0.1, 0.2, 0.3, share=0.1, labels=2, below=0.0), 0.2)
    print_person_report(
        console, Answers.of([]), wanted=60, first=first, results=[GroupResult(dock(0.6, 0.8), 0.65), digit]
    )
    rows = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    assert rows[-1] == "camera dock 50.0% - 90.0% 60.0% - 80.0% 40 → 20 20 65.0%"


def test_a_picture_is_a_png_with_dark_ink_on_white() -> None:
    pixels = np.zeros((8, 8))
    pixels[2, 5] = BRIGHTEST
    kind, _, content = picture_uri(pixels).partition(",")
    shades = np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))
    assert kind == "data:image/png;base64"
    assert shades[2, 5] == 0
    assert (np.delete(shades.ravel(), 2 * 8 + 5) == 255).all()


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[PictureStream]:
    digits = load_split(1)
    with Journal(tmp_path / "journal") as journal:
        yield PictureStream(
            World(1, digits),
            Classifier(digits.training_images, digits.training_classes),
            journal,
            degrade_after_seconds=float("inf"),
            degrade_file=tmp_path / "degrade",
            pause_file=tmp_path / "pause",
        )


def test_people_see_the_digit_as_it_was_before_noise_and_blur(stream: PictureStream) -> None:
    stream.start(0.0)
    stream.degrade_file.touch()
    records = [msgspec.json.decode(value) for _, value, _ in stream.records(0.1, 30)]
    messages = [each for record in records for each in (record if isinstance(record, list) else [record])]
    clean = stream.world.pixels(range(30), degraded=False)
    assert [message["payload"] for message in messages] == [picture_uri(image) for image in clean]


def test_the_camera_degrades_once_it_is_asked_to(stream: PictureStream) -> None:
    stream.start(0.0)
    assert not stream.degrades(1e9)
    stream.degrade_file.touch()
    assert stream.degrades(0.1)


def test_the_stream_is_slow_while_a_person_takes_a_break(stream: PictureStream) -> None:
    stream.start(0.0)
    stream.pause_file.touch()
    assert len(list(stream.records(0.1, 30))) == 1
    assert stream.number == 1
    stream.pause_file.unlink()
    list(stream.records(0.2, 30))
    assert stream.number == 31


def test_a_break_begins_a_minute_after_the_last_label() -> None:
    assert not is_pause([], 100.0, 160.0)
    assert is_pause([], 100.0, 161.0)
    assert not is_pause([110.0, 120.0], 100.0, 180.0)
    assert is_pause([120.0, 110.0], 100.0, 181.0)


def test_the_witness_writes_the_truth_beside_a_label() -> None:
    world = World(1, load_split(1))
    label = Label(request_id="r", model="digits", item_id=item_id(17), kind="answer", true_class="0")
    entry = entry_of(label, world, 5.0)
    assert (entry.true_class, entry.truth) == ("0", world.true_class(17))
    assert entry.camera == world.cameras([17])[0]


@pytest.mark.parametrize("seconds", [30.0, 90.0, 600.0])
def test_the_configuration_has_a_team_on_the_page_and_one_assessment(seconds: float) -> None:
    places, desk = Places("127.0.0.1:1", "redis://127.0.0.1:2/0", 3, 4), Desk(port=5)
    document = person_configuration(places, desk, seconds=seconds, seed=1, labels=60)
    settings = Settings.model_validate(document)
    assert settings.vendors[TEAM].labelling_page
    assert settings.models["digits"].assessments.keys() == {WEAKEST_CAMERA}
    assert settings.models["digits"].assessments[WEAKEST_CAMERA].budget.labels >= 60


def test_secrets_differ_from_run_to_run_and_the_token_is_not_in_the_configuration() -> None:
    desk, other = Desk(port=5), Desk(port=5)
    assert desk.token != other.token
    places = Places("127.0.0.1:1", "redis://127.0.0.1:2/0", 3, 4)
    assert desk.token not in str(person_configuration(places, desk, seconds=90.0, seed=1, labels=60))


@pytest.mark.parametrize(("labels", "seconds"), [(9, 90.0), (60, 29.0), (60, float("nan"))])
def test_too_few_labels_and_impossible_lengths_are_refused(labels: int, seconds: float) -> None:
    output = io.StringIO()
    assert run_person_demo(labels=labels, seconds=seconds, console=Console(file=output)) == MISUSED
    assert "at least" in output.getvalue()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--labeller", "me", "--rare"], "--labeller me: you label the whole demo of digits"),
        (["producer", "--labeller", "me"], "--labeller me: you label the whole demo of digits"),
        (["--repair", "--rare"], "--repair: only the whole demo of digits"),
        (["--repair", "--labeller", "me"], "--repair: only the whole demo of digits"),
        (["--labels", "20"], "--labels: the number of your own labels; add --labeller me"),
    ],
)
def test_options_of_different_demos_are_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *arguments]) == 2
    assert problem in capsys.readouterr().err
