"""Tests that need a program are skipped where it is missing; the end of a run says how to install it.

A plugin of pytest: `tests/conftest.py` imports its hook.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import pytest

DEBIAN = "apt-get install {}"
PACKAGES = "pip install --editable '.[dev]'"
"""What installs every Python package that tests import."""


class Missing(NamedTuple):
    """What a test needs, and the command that installs it; no command for other reasons."""

    name: str
    install: str = ""

    @property
    def reason(self) -> str:
        """Why the test is skipped."""
        return f"{self.name} is missing: {self.install}"


def program(*names: str, package: str) -> str:
    """Path of the first program that is on the PATH; without one the test is skipped, and fails with CI=true.

    Args:
        names: of programs, any of which will do.
        package: of Debian, which contains one.
    """
    for name in names:
        if found := shutil.which(name):
            return found
    reason = Missing(names[0], DEBIAN.format(package)).reason
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def summary(reasons: Iterable[str]) -> str:
    """One line: how many tests were skipped, by what is missing, the most frequent first; empty if none was.

    Args:
        reasons: as pytest reports them, one for every test.
    """
    counts = Counter(map(_missing, reasons))
    if not counts:
        return ""
    parts = [
        f"{missing.name} ({'; '.join(filter(None, [str(count), missing.install]))})"
        for missing, count in counts.most_common()
    ]
    return f"{counts.total()} skipped: {', '.join(parts)}"


def _missing(reason: str) -> Missing:
    reason = reason.removeprefix("Skipped: ")
    if printed := re.fullmatch(r"(.+) is missing: (.+)", reason):
        return Missing(*printed.groups())
    if printed := re.match(r"could not import '([\w.]+)'", reason):
        return Missing(printed[1], PACKAGES)
    return Missing(reason)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """End the run with what was skipped, and with the commands that install what is missing."""
    skipped: list[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    if line := summary(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)):
        terminalreporter.write_line(line)
