"""How long a scrape takes, and how large it is, with very many groups; and what a round costs then.

The model has 10,000 classes, one grouping by predicted class and ten labels a class. Its facts are made up;
the snapshot, the collector, the HTTP server and the wire are the real ones. Scrapes are asked for over HTTP,
as Prometheus does, with the default bound on groups exported one by one and with none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import urllib.request
from statistics import median

import numpy as np
from prometheus_client import CollectorRegistry

from service.config.bounds import Bounds
from service.config.settings import Settings
from service.domain.traffic import Traffic
from service.domain.traffic_tables import ALL_TRAFFIC, tables
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.snapshot import Facts, ModelSnapshot, take_snapshot
from service.monitoring.unanswered_requests import unanswered_requests
from service.serving.prometheus import SnapshotCollector
from service.serving.web.monitoring import monitoring_app
from service.serving.web.server import WebServer
from service.store.facts import RequestFacts, TrafficFacts
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact
from service.telemetry.health import Health
from service.telemetry.instruments import PipelineMetrics

LABELS_PER_CLASS = 10
BUDGET = {"labels": 1_000, "per_days": 1}
UNBOUNDED = 1_000_000


def settings_of(classes: int) -> Settings:
    """A model with so many classes."""
    return Settings.model_validate(
        {
            "models": {
                "m": {
                    "classes": [f"class-{i:05d}" for i in range(classes)],
                    "groupings": {"class": {"by": "predicted_class"}},
                    "assessments": {
                        "worst": {"task": "identification", "grouping": "class", "budget": BUDGET},
                        "every": {"grouping": "class", "budget": BUDGET},
                    },
                    "alerts": {"min_accuracy": 0.8, "max_ece": 0.2},
                }
            },
        }
    )


def facts_of(settings: Settings) -> tuple[TrafficFacts, OutcomeLedger]:
    """Made-up traffic in the upper half of the score bins, and labels."""
    rng = np.random.default_rng(1)
    space, classes = settings.cell_space("m"), settings.models["m"].classes
    weights = np.tile(np.repeat([0.0, 1.0], 5), len(classes)) * np.repeat(
        rng.gamma(2.0, size=len(classes)), 10
    )
    scores = np.tile((np.arange(10) + 0.5) / 10, len(classes))
    now = time.time()
    counted = Traffic(tables(space))
    counted.landmark = now
    whole = counted.tables[ALL_TRAFFIC].blocks["class_bins"]
    whole.counts[0], whole.weights[0] = np.ceil(weights), weights
    whole.score_sums[0] = weights * scores
    traffic = TrafficFacts(
        partitions=[0],
        traffic=counted,
        pool_sizes={0: 0},
        pool_times={0: np.zeros(0)},
        offsets={0: 0},
        probability_sums={},
    )
    ledger = OutcomeLedger(space)
    entries = []
    for number, name in enumerate(name for name in classes for _ in range(LABELS_PER_CLASS)):
        score = rng.uniform(0.5, 1.0)
        true = name if rng.random() < score else classes[0]
        fact = Fact(f"r{number}", f"i{number}", "class", name, name, score, {}, now - 60, now - 30)
        entries.append(OutcomeEntry((1, number), (1, number), "every", fact, LabelFact(true, now - 10, "")))
    ledger.fold(entries)
    ledger.place()
    return traffic, ledger


def snapshot_of(settings: Settings, traffic: TrafficFacts, ledger: OutcomeLedger) -> ModelSnapshot:
    """A round's snapshot."""
    return take_snapshot(
        model="m",
        settings=settings.models["m"],
        facts=Facts(
            traffic=traffic,
            requests=RequestFacts({}, 0, {}, {}, {}),
            ledger=ledger,
            unanswered=unanswered_requests(settings.models["m"], ledger),
            index=GroupIndex(settings.cell_space("m"), traffic.traffic, ledger.cells),
        ),
        performances={},
        history_seconds=3_600,
        now=time.time(),
        rng=np.random.default_rng(2),
    )


def scrapes(snapshot: ModelSnapshot, group_limit: int, turns: int) -> tuple[float, float, int, int]:
    """Median and longest scrape in milliseconds, bytes, and bytes gzipped."""
    registry = CollectorRegistry()
    registry.register(
        SnapshotCollector(lambda: [snapshot], group_limit=group_limit, clock=lambda: snapshot.taken_at)
    )
    PipelineMetrics(registry, time.time)
    server = WebServer(monitoring_app(registry, Health()), name="monitoring", host="127.0.0.1", port=0)
    taken, body = [], b""
    for _ in range(turns):
        began = time.perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=60) as reply:
            body = reply.read()
        taken.append(1e3 * (time.perf_counter() - began))
    server.stop()
    return median(taken), max(taken), len(body), len(gzip.compress(body))


def measure(classes: int, turns: int) -> dict[str, float]:
    """All figures by name."""
    settings = settings_of(classes)
    traffic, ledger = facts_of(settings)
    figures: dict[str, float] = {}
    for bound, group_limit in (("default bound", Bounds().metric_groups), ("no bound", UNBOUNDED)):
        began = time.perf_counter()
        snapshot = snapshot_of(settings, traffic, ledger)
        figures[f"{bound}: a snapshot of {classes:,} groups, ms"] = 1e3 * (time.perf_counter() - began)
        middle, longest, size, zipped = scrapes(snapshot, group_limit, turns)
        figures[f"{bound}: a scrape, median, ms"] = middle
        figures[f"{bound}: a scrape, longest, ms"] = longest
        figures[f"{bound}: size of a scrape, MB"] = size / 1e6
        figures[f"{bound}: gzipped, MB"] = zipped / 1e6
    return figures


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classes", type=int, default=10_000, help="groups (default: 10000)")
    parser.add_argument("--turns", type=int, default=10, help="scrapes (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = measure(options.classes, options.turns)
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{figure:10.3f}  {name}")


if __name__ == "__main__":
    main()
