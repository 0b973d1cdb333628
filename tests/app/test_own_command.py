"""Commands that are printed to be run next can be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.app.own_command import own_command


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An installed program in a folder of its own."""
    path = tmp_path / "bin" / "credence"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_on_the_path_is_called_by_its_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert own_command(str(program)) == "credence"


def test_a_program_that_is_not_on_the_path_is_called_as_it_was(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert own_command(str(program)) == str(program)


def test_a_program_is_not_taken_for_another_one_on_the_path(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other" / "credence"
    other.parent.mkdir()
    program.rename(other)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert own_command(str(other)) == str(other)


def test_a_module_is_called_by_the_name_of_the_program() -> None:
    assert own_command("/somewhere/service/app/cli.py") == "credence"
