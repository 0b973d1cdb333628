"""The patch of kafka-python in docs/kafka-python applies, and its own tests pass with and without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import kafka
import pytest

PATCH = Path(__file__).parents[2] / "docs" / "kafka-python" / "fast-fetch.patch"
TESTS = "test/record/test_read_batches.py"


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source tree of the client with the patch, its tests in it."""
    folder = tmp_path_factory.mktemp("client")
    shutil.copytree(
        Path(kafka.__file__).parent, folder / "kafka", ignore=shutil.ignore_patterns("__pycache__")
    )
    subprocess.run(["git", "apply", str(PATCH)], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("is_patched", [False, True])
def test_tests_of_the_patch_pass_with_and_without_it(patched: Path, tmp_path: Path, is_patched: bool) -> None:
    sources = patched if is_patched else Path(kafka.__file__).parents[1]
    shutil.copy(patched / TESTS, tmp_path)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(sources)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "118 passed" in run.stdout
