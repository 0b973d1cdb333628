"""Fixtures of the tests of commands that propose a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import Init, Topic


@pytest.fixture
def init(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Init:
    """`credence init` in a folder of its own."""
    return Init(tmp_path, capsys)


@pytest.fixture
def topic(bootstrap_servers: str) -> Topic:
    """A topic of its own on the tests' broker."""
    return Topic(bootstrap_servers)
