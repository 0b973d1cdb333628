"""A fault that is planted in one group of a recording: how soon it is found, and what to configure."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import recording

from service.app.cli import main
from service.config.loader import load_settings
from service.domain.cells import MISSING
from service.domain.errors import RecordingError
from service.replay.command import replay
from service.replay.fault_command import with_fault
from service.replay.grouping import Grouper
from service.replay.options import add_parser
from service.replay.recording import Recording, load_recording

REGIONS = np.array(["r0", "r1", "r2"])
SIZES = [400, 300, 300]
EASY = [
    "--fault",
    "region=r1",
    "--drop",
    "0.4",
    "--labels-per-day",
    "300",
    "--runs",
    "4",
    "--days-before",
    "5",
]


def example() -> tuple[Recording, np.ndarray]:
    made = recording(SIZES)
    return made, REGIONS[np.arange(made.size) % 3]


def saved(folder: Path, form: str, without: object = None) -> Path:
    """The example as a file of some form, with its regions; the first item's may be replaced."""
    made, regions = example()
    values = regions.tolist() if without is None else [without, *regions[1:].tolist()]
    path = folder / f"model.{form}"
    scores = {f"score_{place}": made.probabilities[:, place] for place in range(made.classes)}
    if form == "npz":
        np.savez(path, probabilities=made.probabilities, labels=made.labels, region=np.array(values))
    elif form == "csv":
        lines = [",".join(("label", "region", *scores))]
        columns = zip(made.labels.tolist(), values, *scores.values(), strict=True)
        path.write_text("\n".join([*lines, *(",".join(map(str, row)) for row in columns)]))
    else:
        pa = pytest.importorskip("pyarrow")
        table = pa.table({"label": made.labels, "region": [value or None for value in values]} | scores)
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


def parsed(*words: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["replay", *map(str, words)])


def refusal(*words: object) -> str:
    with pytest.raises(RecordingError) as refused:
        replay(parsed(*words))
    return str(refused.value)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is printed for programs."""
    path = saved(tmp_path_factory.mktemp("recording"), "npz")
    with pytest.MonkeyPatch.context() as patched:
        written: list[str] = []
        patched.setattr("sys.stdout.write", written.append)
        assert replay(parsed(path, *EASY, "--json")) == 0
    (found,) = json.loads("".join(written))
    return dict(found)


@pytest.mark.parametrize("form", ["npz", "csv", "parquet"])
def test_attributes_are_read_from_every_format(tmp_path: Path, form: str) -> None:
    made, regions = example()
    found = load_recording(saved(tmp_path, form), attribute="region")
    assert found.values is not None
    np.testing.assert_array_equal(found.values, regions)
    np.testing.assert_array_equal(found.labels, made.labels)
    np.testing.assert_allclose(found.probabilities, made.probabilities)


@pytest.mark.parametrize("form", ["npz", "csv", "parquet"])
def test_an_item_without_a_value_is_in_the_group_of_missing_values(tmp_path: Path, form: str) -> None:
    found = load_recording(saved(tmp_path, form, without=""), attribute="region")
    assert found.values is not None
    assert found.values[:2].tolist() == [MISSING, example()[1][1]]


@pytest.mark.parametrize("form", ["npz", "csv", "parquet"])
def test_an_attribute_that_is_not_recorded_is_named_with_those_that_are(tmp_path: Path, form: str) -> None:
    path = saved(tmp_path, form)
    message = refusal(path, "--group-by", "device")
    assert message.startswith(f"{path}: there is no ")
    assert "'device'; choose one of " in message
    assert "region" in message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("label,region,score_0,score_1\n0,r0,0.9\n", "line 2 has 3 columns, the header has 4"),
        ("label,region,score_0,score_1\n0,r0,0.9,x\n", "line 2: column 'score_1' is not a number"),
        ("label,region,score_0,score_1\n", "there are no rows"),
        ("", "there are no rows"),
        ("label,region,score_0,score_2\n0,r0,0.9,0.1\n", "there is no column 'score_1'"),
        ('label,region,a,b\n0,"r\n0",0.9,0.1\n', "a quoted value goes over several lines"),
    ],
)
def test_a_text_with_attributes_that_cannot_be_used_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "model.csv"
    path.write_text(text)
    assert problem in refusal(path, "--group-by", "region")


def test_groups_are_the_values_of_the_attribute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--group-by", "region", "--runs", "2", "--budget", "20")
    assert replay(parsed(saved(tmp_path, "csv"), *words)) == 0
    assert "estimates accuracy of 3 groups" in capsys.readouterr().out


def test_the_planted_fault_has_the_drop_that_was_asked_for_and_is_in_one_group() -> None:
    made, regions = example()
    pool = Grouper().by_value(Recording("model", made.probabilities, made.labels, values=regions))
    items = with_fault(pool, 1, 0.2, seed=0)
    faulty = items.groups == 1
    drop = items.correct[faulty].mean() - items.correct_after[faulty].mean()
    assert drop == pytest.approx(0.2, abs=0.002)
    np.testing.assert_array_equal(items.correct[~faulty], items.correct_after[~faulty])


def test_the_conclusion_says_in_how_many_days_the_fault_is_found(report: dict[str, Any]) -> None:
    first, *others = report["conclusion"]
    assert first.startswith(
        "model: with 300 labels a day, a drop of 40 points in r1, one of 3 groups by region, is found in "
    )
    assert "(90% of runs: " in first
    assert any(each.startswith("Announced without a simulation: found in ") for each in others)


def test_announced_days_stand_beside_simulated_ones(report: dict[str, Any]) -> None:
    rows = {row["policy"]: row for row in report["tables"][0]["rows"]}
    assert set(rows) == {
        f"{policy}, {how}" for policy in ("thompson", "random") for how in ("simulated", "announced")
    }
    for policy in ("thompson", "random"):
        said, found = (rows[f"{policy}, {how}"]["alert, median"] for how in ("announced", "simulated"))
        # Four runs of a recording, where groups differ.
        assert 1 / 2.5 <= said / found <= 2.5


def test_the_configuration_is_accepted_by_check(
    report: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "credence.yaml"
    path.write_text(report["configuration"])
    assert main(["check", "--config", str(path)]) == 0
    assert "at most 300 labels" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "attribute", "grouping"),
    [
        ("my region: x", "my-region-x", "my-region-x"),
        ("é", "attribute", "attribute"),
        ("all", "all", "by-all"),
        ("a" * 130, "a" * 100, "a" * 100),
    ],
)
def test_the_configuration_is_accepted_whatever_the_attribute_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, attribute: str, grouping: str
) -> None:
    path = saved(tmp_path, "csv")
    path.write_text(path.read_text().replace("region", name, 1))
    words = ("--fault", f"{name}=r1", *EASY[2:], "--policy", "random", "--runs", 1)
    assert replay(parsed(path, *words, "--json")) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert any(f"attribute as {attribute}:" in one for one in found["conclusion"]) == (attribute != name)
    config = tmp_path / "credence.yaml"
    config.write_text(found["configuration"])
    assert load_settings(config, {}).models["your-model"].groupings[grouping].attribute == attribute


def test_the_same_seed_finds_it_in_the_same_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (saved(tmp_path, "npz"), *EASY, "--policy", "random", "--runs", "2", "--json")
    assert replay(parsed(*words)) == 0
    first = capsys.readouterr().out
    assert replay(parsed(*words, "--jobs", "2")) == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--fault", "region"), "--fault: write NAME=VALUE"),
        (("--fault", "region=r9"), "--fault: no prediction has region r9; choose one of r0, r1, r2"),
        (("--fault", "region=r1", "--group-by", "device"), "--group-by: the fault is in a group by region"),
        (("--fault", "region=r1", "--drop", "0.99"), "--drop: 0.99 of "),
        (("--fault", "region=r1", "--threshold", "0.1"), "--threshold: 0.1 is not above "),
        (("--fault", "region=r1", "--threshold", "0.999"), "--threshold: 0.999 is not below "),
        (("--fault", "region=r1", "--interval", "0.4"), "--interval: 0.4 is not between 0.5 and 1"),
        (("--fault", "region=r1", "--policy", "top_two"), "--policy: a fault is looked for by thompson or"),
        (("--fault", "region=r1", "--plots", "figures"), "--plots: the task fault draws nothing"),
        (("--fault", "region=r1", "--labels-per-day", "1000000"), "--days-before: 30 days of 1000000 labels"),
    ],
)
def test_a_fault_that_cannot_be_planted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(saved(tmp_path, "npz"), *words).startswith(message)


def test_a_fault_that_is_not_found_is_said_to_be_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A half-life of a tenth of a day keeps too few labels of a group for an alert.
    words = (*EASY[:4], "--labels-per-day", "60", "--half-life-days", "0.1", "--policy", "random")
    assert replay(parsed(saved(tmp_path, "npz"), *words, "--runs", "2", "--days-before", "5")) == 0
    printed = capsys.readouterr().out
    assert "one of 3 groups by region, is not found in half of the runs." in printed
    assert "Request more labels a day, use fewer groups or a longer half-life" in printed
    assert "label_half_life_days: 0.1" in printed


def test_a_predicted_class_may_have_the_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--fault", "predicted_class=1", *EASY[2:], "--policy", "random", "--runs", "2")
    assert replay(parsed(saved(tmp_path, "npz"), *words)) == 0
    printed = capsys.readouterr().out
    assert "a drop of 40 points in 1, one of 3 groups by predicted_class" in printed
    assert "by: predicted_class" in printed
