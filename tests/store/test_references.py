"""The reference: a fact that the command line sets and every process reads."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
from redis_cluster import EmbeddedRedisCluster, redis_settings
from store_site import NOW, Site

from service.app.cli import main
from service.demo.servers import EmbeddedRedis
from service.store.connection import Connection
from service.store.references import ReferenceStore, ReferenceWindow

MODELS = {"m": {"classes": ["cat", "dog"]}, "other": {"classes": ["a", "b"], "reference": {"labels": 30}}}


@pytest.fixture
def site(connection: Connection) -> Site:
    return Site(connection, MODELS)


class Desk:
    """The command, on the Redis of the tests."""

    def __init__(self, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._config = config
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        assert main(["reference", *arguments, "--config", str(self._config)]) == code
        found = self._capsys.readouterr()
        return found.err if code else found.out


@pytest.fixture
def desk(
    tmp_path: Path,
    connection: Connection,
    redis_server: EmbeddedRedis | EmbeddedRedisCluster,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    config = tmp_path / "credence.yaml"
    redis = redis_settings(redis_server, connection.prefix)
    config.write_text(json.dumps({"redis": redis, "models": MODELS}), encoding="utf-8")
    return Desk(config, capsys)


def store(site: Site, model: str = "m") -> ReferenceStore:
    return ReferenceStore(site.connection, site.keys(model))


def test_no_window_is_set_at_first(site: Site) -> None:
    assert site.reader("m").reference() is None


@pytest.mark.parametrize("since", [-math.inf, NOW - 86_400.123456789])
def test_a_window_that_is_set_is_read_to_the_last_digit(site: Site, since: float) -> None:
    window = ReferenceWindow(since, NOW - 3_600.1, NOW + 0.2)
    store(site).set(window)
    assert site.reader("m").reference() == window


def test_the_window_that_is_set_last_is_right(site: Site) -> None:
    for end in (NOW, NOW - 10):
        store(site).set(ReferenceWindow(-math.inf, end, NOW))
    assert site.reader("m").reference() == ReferenceWindow(-math.inf, NOW - 10, NOW)


def test_a_window_that_is_cleared_is_gone_and_may_be_cleared_again(site: Site) -> None:
    store(site).set(ReferenceWindow(-math.inf, NOW, NOW))
    for _ in range(2):
        store(site).clear()
        assert site.reader("m").reference() is None


def test_a_window_is_of_one_model(site: Site) -> None:
    store(site).set(ReferenceWindow(-math.inf, NOW, NOW))
    assert site.reader("other").reference() is None


def test_a_window_survives_a_change_of_groupings(site: Site, connection: Connection) -> None:
    window = ReferenceWindow(-math.inf, NOW, NOW)
    store(site).set(window)
    regions = {"region": {"by": "attribute", "attribute": "region"}}
    changed = Site(connection, {"m": {"classes": ["cat", "dog"], "groupings": regions}})
    assert changed.reader("m").reference() == window


def test_a_snapshot_shows_the_window_that_was_set(site: Site) -> None:
    monitor = site.monitor("m")
    assert monitor.refresh(NOW).reference is None
    window = ReferenceWindow(-math.inf, NOW - 10, NOW)
    store(site).set(window)
    assert monitor.refresh(NOW).reference == window


def test_without_a_window_the_command_shows_how_many_labels_are_the_reference(desk: Desk) -> None:
    assert desk("show") == ("m: first 100 labels of every group\nother: first 30 labels of every group\n")


def test_the_command_sets_a_window_and_shows_it(desk: Desk, site: Site) -> None:
    found = desk("set", "m", "--since", "2026-01-01", "--until", "2026-02-01T12:00:00+01:00")
    assert found.startswith("m: predictions from 2026-01-01T00:00:00Z until 2026-02-01T11:00:00Z; set at 20")
    window = site.reader("m").reference()
    assert window is not None
    assert (window.since, window.until) == (1_767_225_600, 1_769_943_600)
    assert desk("show", "m") == found


def test_without_times_the_window_is_all_until_now(desk: Desk, site: Site) -> None:
    before = time.time()
    assert desk("set", "m").startswith("m: predictions until ")
    window = site.reader("m").reference()
    assert window is not None
    assert window.since == -math.inf
    assert before <= window.until == window.set_at <= time.time()


def test_the_command_takes_a_window_back(desk: Desk, site: Site) -> None:
    desk("set", "m")
    assert desk("clear", "m") == "m: first 100 labels of every group\n"
    assert site.reader("m").reference() is None


def test_a_window_that_ends_before_it_begins_is_refused(desk: Desk, site: Site) -> None:
    found = desk("set", "m", "--since", "2026-02-01", "--until", "2026-01-01", code=2)
    assert "--since: must be earlier than --until" in found
    assert site.reader("m").reference() is None


@pytest.mark.parametrize("action", ["set", "show", "clear"])
def test_a_model_that_is_not_configured_is_named_with_those_that_are(desk: Desk, action: str) -> None:
    assert "nobody: unknown model; configured: m, other" in desk(action, "nobody", code=2)
