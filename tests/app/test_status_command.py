"""`credence status` looks, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
import yaml

from service.app.cli import main
from service.demo.servers import EmbeddedRedis


def test_a_look_at_a_redis_that_was_emptied_leaves_it_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A hash key of its own would stop every process that runs with the lost one.
    config = tmp_path / "credence.yaml"
    with EmbeddedRedis() as server, redis.Redis.from_url(server.url) as client:
        models = {"animals": {"classes": ["cat", "dog"]}}
        config.write_text(yaml.safe_dump({"redis": {"url": server.url}, "models": models}), encoding="utf-8")
        assert main(["status", "--config", str(config)]) == 0
        assert "No consumer reads predictions" in capsys.readouterr().out
        assert client.keys() == []
