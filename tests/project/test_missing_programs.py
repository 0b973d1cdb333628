"""The last lines of a test run name what was skipped, and the commands that install what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from missing_programs import program, summary

NEEDY = """
import pytest
from missing_programs import program

@pytest.mark.parametrize("n", range(3))
def test_shows_a_page(n):
    program("no-such-browser", package="browser")

def test_draws():
    pytest.importorskip("no_such_plots")
"""


def test_reasons_are_grouped_by_what_is_missing_the_most_frequent_first() -> None:
    reasons = [
        "Skipped: could not import 'matplotlib': No module named 'matplotlib'",
        *["Skipped: chromium is missing: apt-get install chromium"] * 2,
        "the bundled broker is not installed",
    ]
    assert summary(reasons) == (
        "4 skipped: chromium (2; apt-get install chromium), "
        "matplotlib (1; pip install --editable '.[dev]'), the bundled broker is not installed (1)"
    )


def test_nothing_is_said_where_nothing_is_skipped() -> None:
    assert not summary([])


def test_a_program_that_is_on_the_path_is_found() -> None:
    assert Path(program("no-such-shell", "sh", package="dash")).name == "sh"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_ends_with_what_is_missing(tmp_path: Path, workers: int) -> None:
    done = run_needy(tmp_path, workers, ci=False)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2] == (
        "4 skipped: no-such-browser (3; apt-get install browser), "
        "no_such_plots (1; pip install --editable '.[dev]')"
    )


def test_in_ci_a_missing_program_fails_the_run(tmp_path: Path) -> None:
    done = run_needy(tmp_path, 0, ci=True)
    assert done.returncode == 1
    assert "no-such-browser is missing: apt-get install browser" in done.stdout


def run_needy(folder: Path, workers: int, *, ci: bool) -> subprocess.CompletedProcess[str]:
    """A run of tests with the hook of this suite, some of which need what no machine has."""
    (folder / "test_needy.py").write_text(NEEDY)
    options = ["-p", "missing_programs", "-p", "no:cacheprovider", "-p", "xdist.plugin", "-n", f"{workers}"]
    # Every process would import all plugins that are installed, which takes seconds.
    environment = {"CI": str(ci).lower(), "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", folder, *options, folder],
        cwd=folder,
        env=os.environ | environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
