"""The whole consumer, given bad records, against a real Redis; and everything that reads what it stored."""

from __future__ import annotations

import io
import json
import secrets
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import json_mutators as mutators
import pytest
from bad_records import messages_in, records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from rich.console import Console
from store_site import NOW, Record, Site, draws_of, issue, message, outcomes, record

from service.app.status_command import status_view
from service.config.settings import RedisSettings
from service.demo.servers import EmbeddedRedis
from service.domain.cells import escape_reserved
from service.domain.messages import LabelRequest
from service.monitoring.snapshot import ModelSnapshot
from service.serving.prometheus import SnapshotCollector
from service.serving.web.api import SnapshotView
from service.serving.web.pages import page_app
from service.serving.web.server import WebServer
from service.store.client import build_redis
from service.store.connection import Connection

MODELS = {
    "m": {
        "classes": ["cat", "dog", "owl"],
        "groupings": {
            "region": {"by": "attribute", "attribute": "region"},
            "class": {"by": "predicted_class"},
        },
        "assessments": {
            "ask": {"task": "identification", "grouping": "region", "budget": {"labels": 30}},
            "all": {"budget": {"labels": 30}},
        },
        "alerts": {"min_accuracy": 0.9},
    },
    "n": {"classes": ["cat", "dog"], "score_bins": 1},
}
BOUNDS = {"message_bytes": 20_000, "payload_bytes": 2_000, "attribute_values": 5}
NO_LIMIT = 10**9


@pytest.fixture
def site(connection: Connection) -> Site:
    return Site(connection, MODELS, bounds=BOUNDS, pause_window=NO_LIMIT)


def counted(site: Site) -> int:
    return sum(site.reader(model).traffic().traffic.predictions for model in MODELS)


def check_taken_in(site: Site, batch: Sequence[Record]) -> None:
    """Every message is counted once or is a dead letter once, and what was stored can be read."""
    before, letters = counted(site), len(site.letters.kept)
    step = site.prediction_step()
    start = step.assign(0, 0)
    left = [one for one in batch if one.offset >= start]
    step.process(0, left, NOW)
    step.flush(0, NOW)
    fresh = site.letters.kept[letters:]
    assert counted(site) - before + len(fresh) == messages_in(left, BOUNDS["message_bytes"])
    places = Counter(letter.place for letter in fresh)
    assert set(places.values()) <= {1}
    assert site.facts("m").offsets[0] == batch[-1].offset + 1
    assert site.prediction_step().assign(0, 0) == batch[-1].offset + 1
    for model in MODELS:
        for table in site.reader(model).traffic().traffic.tables.values():
            for block in table.blocks.values():
                assert (block.weights >= 0).all()
                assert (block.score_sums <= block.weights * (1 + 1e-9)).all()


quickly = settings(
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@quickly
@given(script=st.binary(min_size=50, max_size=2_000))
def test_every_message_is_counted_once_or_dead_lettered_once(connection: Connection, script: bytes) -> None:
    connection.client.delete(*(connection.client.keys(f"{connection.prefix}:*") or ["none"]))
    site = Site(connection, MODELS, bounds=BOUNDS, pause_window=NO_LIMIT)
    check_taken_in(site, records(mutators.Scripted(script), 10))


@pytest.mark.parametrize("seed", range(6))
def test_a_long_stream_of_bad_records_is_taken_in_batch_by_batch(site: Site, seed: int) -> None:
    chooser = mutators.Seeded(seed)
    stream = records(chooser, 300)
    for first in range(0, len(stream), 60):
        check_taken_in(site, stream[first : first + 60])
    again = site.prediction_step()
    assert again.assign(0, 0) == stream[-1].offset + 1


@pytest.mark.parametrize("seed", range(4))
def test_labels_that_are_garbled_are_dead_letters_and_change_nothing_else(site: Site, seed: int) -> None:
    site.take_in([record(i, message(item)) for i, item in enumerate("abc")])
    issue(site, draws_of(site))
    chooser = mutators.Seeded(seed)
    batch = records(chooser, 200)
    step = site.label_step()
    step.assign(0, 0)
    step.process(0, batch, NOW)
    assert step.flush(0, NOW) == batch[-1].offset + 1
    letters = [letter.place for letter in site.letters.kept]
    taken = site.registry.get_sample_value("credence_labels_consumed_total", {"result": "applied"}) or 0
    duplicates = (
        site.registry.get_sample_value("credence_labels_consumed_total", {"result": "duplicate"}) or 0
    )
    assert len(set(letters)) == len(letters)
    assert len(letters) + taken + duplicates == len(batch)
    for entry in outcomes(site):
        assert entry.label.true_class in {"cat", "dog", "owl", ""}
        assert entry.label.time <= NOW


@pytest.fixture(scope="module")
def poisoned(redis_server: EmbeddedRedis) -> Iterator[tuple[Site, list[ModelSnapshot], list[bytes]]]:
    """A deployment whose producers choose names that readers stumble over: its snapshots and requests.

    The names stand in every place that a producer fills, and go all the way to requests, labels and outcomes.
    """
    client = build_redis(RedisSettings(url=SecretStr(redis_server.url)))
    site = Site(
        Connection(client, f"test-{secrets.token_hex(6)}"),
        MODELS,
        bounds={"attribute_values": 100, "attribute_length": 20_000, "payload_bytes": 50_000},
        pause_window=NO_LIMIT,
    )
    names = [name for name in mutators.NAMES if name]
    stream = [
        record(
            number,
            message(
                f"{name[:200]}{number}",
                attributes={"region": name, name[:128]: name, "__other__": "__missing__"},
                votes={name[:128]: "dog"},
                payload={name: [name]},
            ),
        )
        for number, name in enumerate(names * 3)
    ]
    site.take_in(stream)
    assert site.letters.kept == []
    monitor = site.monitor("m")
    requests: list[bytes] = []
    for tick in range(20):
        monitor.refresh(NOW + tick)
        monitor.ask(epoch=1, now=NOW + tick)
        requests += site.requests("m").read_outbox().values()
        site.requests("m").remove_published(list(site.requests("m").read_outbox()))
        answer(site, requests, NOW + tick)
    monitor.refresh(NOW + 20)
    monitor.recall(NOW + 20)
    yield site, [monitor.refresh(NOW + 21), site.monitor("n").refresh(NOW + 21)], requests
    client.close()


def answer(site: Site, requests: Sequence[bytes], now: float) -> None:
    """Answer all requests once more; those that were answered are recognised."""
    step = site.label_step()
    start = step.assign(0, 0)
    labels = [
        {
            "request_id": asked["request_id"],
            "model": asked["model"],
            "item_id": asked["item_id"],
            "true_class": "dog",
            "annotator": mutators.NAMES[6],
            "time": "2026-01-31T12:00:00Z",
        }
        for asked in map(json.loads, requests)
    ]
    if labels:
        step.process(0, [record(start + i, label) for i, label in enumerate(labels)], now)
        step.flush(0, now)


Poisoned = tuple[Site, list[ModelSnapshot], list[bytes]]


def test_requests_of_items_with_such_names_keep_the_contract(poisoned: Poisoned) -> None:
    _, _, requests = poisoned
    assert len(requests) > 10
    names = {LabelRequest.model_validate_json(asked).item_id for asked in requests}
    assert len(names) == len(requests)


def test_labels_of_items_with_such_names_become_outcomes(poisoned: Poisoned) -> None:
    site, _, requests = poisoned
    assert {entry.fact.item_id for entry in outcomes(site)} == {
        json.loads(asked)["item_id"] for asked in requests
    }
    assert site.letters.kept == []


def test_metrics_with_such_names_are_read_back_by_prometheus_parsers(poisoned: Poisoned) -> None:
    _, snapshots, _ = poisoned
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: snapshots, group_limit=200, clock=lambda: NOW))
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    groups = {sample.labels.get("group") for family in families for sample in family.samples}
    assert {escape_reserved(name) for name in mutators.NAMES if name} <= groups
    assert "evil" not in {family.name for family in families}


def test_the_api_tells_such_names_as_they_are(poisoned: Poisoned) -> None:
    _, snapshots, _ = poisoned
    view = SnapshotView(["m", "n"], {one.model: one for one in snapshots}, 5.0, lambda: NOW + 21)
    server = WebServer(page_app(view), name="page", host="127.0.0.1", port=0)
    try:
        base = f"http://127.0.0.1:{server.port}/api/v1/models"
        found = read(f"{base}/m/groups?grouping=region&limit=500")
        names = [escape_reserved(name) for name in mutators.NAMES if name]
        assert set(names) <= {row["group"] for row in found["groups"]}
        for name in names:
            if len(name) < 1_000:
                chosen = urllib.parse.quote(name, safe="")
                read(f"{base}/m/reliability?grouping=region&group={chosen}")
                read(f"{base}/m/timeline?grouping=region&group={chosen}")
        for path in ("", "/m", "/n", "/m/confusion", "/m/activity"):
            read(base + path)
    finally:
        server.stop()


def read(url: str) -> Any:
    """The JSON at an address."""
    with urllib.request.urlopen(url, timeout=60) as reply:
        assert reply.headers["content-type"] == "application/json"
        return json.loads(reply.read())


def test_the_terminal_shows_such_names_and_obeys_none(poisoned: Poisoned) -> None:
    _, snapshots, _ = poisoned
    console = Console(width=200, file=io.StringIO(), force_terminal=False)
    console.print(status_view(snapshots, now=NOW, tick_seconds=5.0))
    shown = console.file.getvalue()
    assert "<script>" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("fields", "timestamp"),
    [
        ({"time": "0001-01-01T00:00:00+14:00"}, int(NOW * 1_000)),
        ({"time": "9999-12-31T23:59:59-14:00"}, int(NOW * 1_000)),
        *[({}, timestamp) for timestamp in mutators.TIMESTAMPS_MS],
    ],
)
def test_times_of_any_kind_break_no_reader(connection: Connection, fields: Any, timestamp: int) -> None:
    site = Site(connection, MODELS, pause_window=NO_LIMIT)
    site.take_in([record(i, message(i, **fields), timestamp=timestamp) for i in range(40)])
    monitor = site.monitor("m")
    for tick in range(3):
        monitor.refresh(NOW + tick)
        monitor.ask(epoch=1, now=NOW + tick)
        asked = [json.loads(one) for one in site.requests("m").read_outbox().values()]
        site.requests("m").remove_published(list(site.requests("m").read_outbox()))
        step = site.label_step()
        start = step.assign(0, 0)
        labels = [
            {key: one[key] for key in ("request_id", "model", "item_id")} | {"true_class": "dog"} | fields
            for one in asked
        ]
        if labels:
            batch = [record(start + i, one, timestamp=timestamp) for i, one in enumerate(labels)]
            step.process(0, batch, NOW + tick)
            step.flush(0, NOW + tick)
    assert site.letters.kept == []
    monitor.refresh(NOW + 3)
    monitor.recall(NOW + 3)
    taken = [monitor.refresh(NOW + 4)]
    assert len(outcomes(site)) > 10
    Console(width=200, file=io.StringIO()).print(status_view(taken, now=NOW, tick_seconds=5.0))
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: taken, group_limit=200, clock=lambda: NOW))
    list(text_string_to_metric_families(generate_latest(registry).decode()))
    view = SnapshotView(["m"], {"m": taken[0]}, 5.0, lambda: NOW + 4)
    server = WebServer(page_app(view), name="page", host="127.0.0.1", port=0)
    try:
        base = f"http://127.0.0.1:{server.port}/api/v1/models"
        for path in (
            "",
            "/m",
            "/m/activity",
            "/m/confusion",
            "/m/groups?grouping=region",
            "/m/timeline?grouping=all&group=all",
            "/m/reliability?grouping=all&group=all",
        ):
            read(base + path)
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("fields", "timestamp", "given"),
    [
        ({}, -1, NOW),
        ({}, -(2**63), NOW),
        ({}, 2**63 - 1, NOW),
        ({}, 5_000, 5.0),
        ({"time": "0001-01-01T00:00:00+14:00"}, -1, 0.0),
        ({"time": "1970-01-01T00:00:07Z"}, -1, 7.0),
    ],
)
def test_a_label_without_a_time_that_can_be_is_given_now(
    site: Site, fields: dict[str, Any], timestamp: int, given: float
) -> None:
    site.take_in([record(0, message("a"))])
    issue(site, draws_of(site))
    step = site.label_step()
    step.assign(0, 0)
    label = {"request_id": "r-a", "model": "m", "item_id": "a", "true_class": "dog"} | fields
    step.process(0, [record(0, label, timestamp=timestamp)], NOW)
    (outcome,) = outcomes(site)
    assert outcome.label.time == given
