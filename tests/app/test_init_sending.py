"""What a proposal says of sending the file of its sample, and that it is true."""

from __future__ import annotations

import shlex

import pytest
from samples import Init, Proposed, rows, write_csv

from service.app.cli import main


def sent(init: Init, proposed: Proposed, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command of the heading prints in a dry run."""
    (command,) = [line for line in proposed.text.splitlines() if "credence predictions send" in line]
    init.check(proposed)
    arguments = shlex.split(command.removeprefix("#"))[1:]
    arguments[arguments.index("credence.yaml")] = str(init.folder / "credence.yaml")
    main([*arguments, "--dry-run"])
    return capsys.readouterr().out


def test_the_command_that_sends_the_file_reads_it_as_the_sample_was_read(
    init: Init, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_csv(init.folder / "sorter.csv", rows())
    other = path.with_suffix(".txt")
    other.write_text(path.read_text().replace(",", ";"))
    proposed = init(other, "--format", "csv", "--delimiter", ";")
    assert "--format csv --delimiter ';'" in proposed.text
    assert "400 rows read, 400 would be sent" in sent(init, proposed, capsys)


def test_rows_that_are_refused_when_the_file_is_sent_are_counted(
    init: Init, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [row | {"model": "new" if place % 4 else "old"} for place, row in enumerate(rows())]
    for row in found[1:4]:
        row["score"] = ""
    found[5]["item_id"] = ""
    proposed = init.of(found, "--model", "new")
    why = (
        "100 are of models that are not in this configuration, "
        "4 lack an item id, a predicted class or a score"
    )
    assert f"WARNING: it refuses 104 of the rows that were read: {why}." in proposed.comments
    assert "are of 297 rows with a predicted class and a score, of 300 drawn evenly" in proposed.comments
    assert "400 rows read, 296 would be sent" in sent(init, proposed, capsys)
