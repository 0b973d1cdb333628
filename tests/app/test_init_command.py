"""`credence init` proposes a configuration that `credence check` accepts, and says why."""

from __future__ import annotations

import io
import random
import sys

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet
from samples import CLASSES, Init, Proposed, renamed, rows, uncommented, write_csv, write_jsonl

from service.app.cli import main
from service.replay.digits import by_region, digits_recordings


def test_a_file_becomes_a_configuration_that_check_accepts(init: Init) -> None:
    proposed = init.of(rows())
    code, said = init.check(proposed)
    assert code == 0
    assert "warning" not in said
    assert proposed.model["classes"] == list(CLASSES)
    assert proposed.model["groupings"] == {
        "class": {"by": "predicted_class"},
        "region": {"by": "attribute", "attribute": "region"},
    }


def test_every_key_has_a_comment(init: Init) -> None:
    assert uncommented(init.of(rows()).text) == []


def test_the_same_predictions_give_the_same_configuration_in_every_format(init: Init) -> None:
    found = rows()
    columns = {name: [row[name] for row in found] for name in found[0]}
    parquet.write_table(pa.table(columns), init.folder / "sorter.parquet")
    np.savez(init.folder / "sorter.npz", **{name: np.array(values) for name, values in columns.items()})
    write_csv(init.folder / "sorter.csv", found)
    write_jsonl(init.folder / "sorter.jsonl", found)
    documents = [
        yaml.safe_load(init(init.folder / f"sorter.{kind}").text)
        for kind in ("csv", "jsonl", "parquet", "npz")
    ]
    assert documents[0]["models"]["sorter"]["assessments"]
    assert documents == [documents[0]] * 4


def test_native_messages_are_a_sample(init: Init) -> None:
    found = [
        {key: value for key, value in row.items() if key != "region"}
        | {"model": "animals", "attributes": {"region": row["region"]}}
        for row in rows()
    ]
    proposed = init(write_jsonl(init.folder / "messages.jsonl", found))
    assert [*yaml.safe_load(proposed.text)["models"]] == ["animals"]
    assert proposed.model["groupings"]["region"] == {"by": "attribute", "attribute": "region"}


def test_the_recording_of_digits_is_a_sample(init: Init) -> None:
    recording = by_region(digits_recordings()[0], "region")
    path = init.folder / "digits.npz"
    np.savez(path, probabilities=recording.probabilities, labels=recording.labels, region=recording.values)
    proposed = init(path)
    code, said = init.check(proposed)
    assert (code, "warning" in said) == (0, False)
    assert proposed.model["classes"] == [str(number) for number in range(10)]
    accuracy = recording.correct.mean()
    assert proposed.model["alerts"]["min_accuracy"] == pytest.approx(accuracy - 0.05, abs=0.001)


def eight_attributes(init: Init) -> Proposed:
    """Of a table with attributes of all kinds, and other names than those of the contract."""
    rng = random.Random(2)
    count = 12_000
    found = rows(
        count,
        device=[rng.choice(["phone", "tablet", ""]) for _ in range(count)],
        city=[f"city {number % 5_000}" for number in range(count)],
        version=["v1"] * count,
        order=[f"{number:08x}" for number in range(count)],
        amount=[round(rng.uniform(1, 900), 2) for _ in range(count)],
        floor=[rng.randrange(4) for _ in range(count)],
        remark=[rng.choice(["", "", "", "so " * 40]) for _ in range(count)],
        time=[f"2026-01-{1 + number // 1_000:02d}T12:00:00Z" for number in range(count)],
    )
    names = {"predicted_class": "prediction", "score": "confidence", "true_class": "label", "item_id": "id"}
    return init.of(renamed(found, **names))


def test_attributes_of_all_kinds_are_chosen_or_left_out_with_the_reason(init: Init) -> None:
    proposed = eight_attributes(init)
    assert init.check(proposed)[0] == 0
    assert [*proposed.model["groupings"]] == ["class", "region", "device", "floor"]
    said = proposed.comments
    for reason in (
        "city: 5,000 values; only 1,000 have groups of their own (bounds.attribute_values)",
        "version: constant: every row has v1",
        "order: every value is different, as of an id",
        "amount: a number with more than 10,000 values",
        "remark: 100% of its values are longer than 64 characters, as of free text",
        "missing in 3",
        "true_class: label (its name is usual for it)",
        "about 1,091 predictions a day",
    ):
        assert reason in said


def test_the_command_that_sends_the_file_reads_it_with_the_proposal(
    init: Init, capsys: pytest.CaptureFixture[str]
) -> None:
    proposed = eight_attributes(init)
    (command,) = [line for line in proposed.text.splitlines() if "credence predictions send" in line]
    init.check(proposed)
    arguments = command.removeprefix("#").split()[1:]
    arguments[arguments.index("credence.yaml")] = str(init.folder / "credence.yaml")
    assert main([*arguments, "--dry-run"]) == 0
    assert "12,000 rows read, 12,000 would be sent" in capsys.readouterr().out


def test_an_output_file_is_written_and_never_overwritten(init: Init) -> None:
    path = write_csv(init.folder / "sorter.csv", rows())
    output = init.folder / "out.yaml"
    assert init(path, "--output", output).code == 0
    written = output.read_text()
    assert f"--config {output}" in written
    assert written.replace(str(output), "credence.yaml") == init(path).text
    again = init(path, "--output", output)
    assert (again.code, output.read_text()) == (2, written)
    assert "exists; name another file, or remove it" in again.error


def test_standard_input_is_a_sample(init: Init, monkeypatch: pytest.MonkeyPatch) -> None:
    text = write_jsonl(init.folder / "a.jsonl", rows()).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text))))
    assert init("-", "--format", "jsonl", "--model", "sorter").code == 0


def test_the_first_rows_are_said_to_be_a_part_of_the_file(init: Init) -> None:
    assert "the whole file" in init.of(rows()).comments
    assert "whole" not in init.of(rows(), "--records", "300").comments
    assert (
        "the first 300 rows; the others were not read (--records)"
        in init.of(rows(), "--records", "300").comments
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a file, or a topic with --topic"),
        (["predictions.bin"], "its name says no format; add --format"),
        (["absent.csv"], "absent.csv"),
    ],
)
def test_a_missing_sample_is_an_error(init: Init, arguments: list[str], said: str) -> None:
    proposed = init(*arguments)
    assert proposed.code in (1, 2)
    assert said in proposed.error


def test_a_pipe_of_arrays_is_refused(init: Init) -> None:
    assert "npz need a regular file" in init("-", "--format", "npz").error


def test_rows_that_cannot_be_read_are_counted_with_the_place_of_the_first(init: Init) -> None:
    path = write_csv(init.folder / "sorter.csv", rows())
    lines = path.read_text().splitlines()
    lines[3] += ",surplus"
    path.write_text("\n".join(lines))
    assert "1 cannot be read and were left out, the first at line 4: 6 cells" in init(path).comments


def test_a_file_without_a_usable_row_is_an_error(init: Init) -> None:
    path = init.folder / "a.jsonl"
    path.write_text("[]\n")
    assert "no row can be used: line 1" in init(path).error
    path.write_text("")
    assert "there are no rows" in init(path).error
