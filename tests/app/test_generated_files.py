from __future__ import annotations

from pathlib import Path

import pytest

from service.app.docgen.generated_files import write_or_check

FILES = {"page.md": "new\n", "schemas/a.json": "{}\n"}


def test_files_are_written_with_their_folders_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert write_or_check(tmp_path / "docs", FILES, check=False) == 0
    assert {name: (tmp_path / "docs" / name).read_text() for name in FILES} == FILES
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "docs" / name) for name in FILES]


def test_a_check_of_current_files_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_or_check(tmp_path, FILES, check=False)
    capsys.readouterr()
    assert write_or_check(tmp_path, FILES, check=True) == 0
    assert capsys.readouterr() == ("", "")


def test_a_check_names_files_that_differ_or_are_missing_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.md").write_text("old\n")
    assert write_or_check(tmp_path, FILES, check=True) == 1
    assert (tmp_path / "page.md").read_text() == "old\n"
    assert not (tmp_path / "schemas").exists()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.split(" is not current")[0] for line in captured.err.splitlines()] == [
        str(tmp_path / name) for name in FILES
    ]


@pytest.mark.parametrize("check", [True, False])
def test_a_file_that_nothing_generates_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], check: bool
) -> None:
    write_or_check(tmp_path, FILES, check=False)
    assert write_or_check(tmp_path, FILES, check=check, others=["page.md", "stray.md"]) == 1
    assert capsys.readouterr().err.startswith(f"{tmp_path / 'stray.md'} is not current")


def test_paths_below_the_current_directory_are_shown_relative(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_or_check(tmp_path, {"page.md": ""}, check=False)
    write_or_check(Path("docs"), {"page.md": ""}, check=False)
    assert capsys.readouterr().out.splitlines() == ["page.md", "docs/page.md"]
