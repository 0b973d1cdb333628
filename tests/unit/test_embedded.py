"""Servers that are started as child processes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from service.embedded import EmbeddedRedis
from service.errors import EmbeddedServerError


def test_a_redis_that_does_not_start_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EmbeddedServerError):
        EmbeddedRedis(options={"no-such-option": "1"})
    assert not list(tmp_path.iterdir())
