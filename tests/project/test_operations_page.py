"""What docs/operations.md tells is what the rules, the benchmarks and the tests say."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import yaml
from procedures import PAGE

from benchmarks.page import RESULTS, UTILISATION, _most_labels, _pooled_item_bytes
from service.domain.cells import CellSpace
from service.domain.groupings import ByAttribute, ByClass
from service.domain.traffic_tables import most_table_bytes

ROOT = Path(__file__).parents[2]

RATE, PARTITIONS, MODELS, ITEMS, LABELS = 50_000, 12, 3, 50_000, 1_000_000
"""Of the example."""

SPACE = CellSpace(
    classes=tuple(f"class {number}" for number in range(10)),
    score_edges=tuple(number / 10 for number in range(1, 10)),
    groupings={
        "class": ByClass("class"),
        "region": ByAttribute("region", "region"),
        "camera": ByAttribute("camera", "camera"),
    },
)
"""A model of the example."""


def measured(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def needs(what: str) -> str:
    """What the example says that something needs."""
    (found,) = re.findall(rf"^\| {re.escape(what)} \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE)
    return str(found)


def test_every_alert_links_to_its_runbook() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/credence.rules.yaml").read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    linked = re.findall(r"\[(\w+)\]\(runbooks/(\w+)\.md\)", PAGE)
    assert {name for name, page in linked if name == page} >= alerts


def test_consumers_of_the_example_are_those_of_the_measured_rate() -> None:
    (stream,) = (each for each in measured("ingest") if each["stream"] == "one in a record")
    cpu_us = stream["readers"]["credence"]["cpu_us"]
    assert f"{RATE:,} /s x {cpu_us:.2f} us / {UTILISATION * 100:.0f}%" in PAGE
    cores = RATE * cpu_us / 1e6 / UTILISATION
    assert (
        needs("predictions consumers")
        == f"{cores:.2f} cores: {math.ceil(cores)} process, and 1 more to take over"
    )


def test_redis_of_the_example_is_that_of_the_measured_bytes() -> None:
    item = _pooled_item_bytes(measured("flushes"))
    most = _most_labels(measured("rounds"))
    traffic = MODELS * PARTITIONS * most_table_bytes(SPACE) / 1e6
    pool = MODELS * ITEMS * PARTITIONS * round(item) / 1e6
    labels = MODELS * LABELS * most["redis_bytes"] / 1e6
    assert most["outcomes"] == LABELS
    assert (needs("traffic"), needs("pool"), needs("labels")) == (
        f"{traffic:.0f} MB",
        f"{pool:.0f} MB",
        f"{labels:.0f} MB",
    )
    limit = 1.25 * (traffic + pool + labels) / 1e3
    assert needs("Redis") == f"{limit:.1f} GB, of {2 * limit:.1f} GB"
    assert f"{item:.0f} bytes, and\n  its payload" in PAGE
    assert f"**Per label**: {most['redis_bytes']:.0f} bytes" in PAGE


def test_a_scheduler_of_the_example_is_as_large_as_was_measured() -> None:
    mib = {row["outcomes"]: row["process_mib"] for row in measured("rounds") if row["groups"] == 1_000}
    base, more = min(mib.values()), max(mib.values()) - min(mib.values())
    assert f"{base:.0f} MiB, and {more:.0f} MiB per {LABELS:,} labels" in PAGE
    assert needs("scheduler, page") == f"{10 * math.ceil((base + MODELS * more) / 10):.0f} MiB each"
    assert (
        f"in Redis, {_most_labels(measured('rounds'))['process_bytes']:.0f} in every scheduler and page"
        in PAGE
    )


def test_rates_of_a_core_are_those_measured() -> None:
    rates = {each["stream"]: each["readers"] for each in measured("ingest")}
    single, packed = rates["one in a record"], rates["100 in a record"]
    for reader in (single["credence"], single["credence, fast fetch"], packed["credence"]):
        assert f"{reader['rate'] // 1_000 * 1_000:,.0f}" in PAGE
