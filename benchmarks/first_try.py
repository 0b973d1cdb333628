"""A fault as a newcomer would try it: whether the README's configuration finds it, and when.

A classifier of six classes serves eight regions. Half-way, its accuracy in one of them falls from 96.3% to
82.5%, and its scores there fall by half as much. Labels are requested by the configuration of the README, and
answered within the hour. Everything goes through the service's own consumers, store and rounds, on a real
Redis, with a clock of its own.

For every run it prints when the region was named, in days after the fault: by drift, by its estimate, and by
confirmed evidence; how evenly labels were spent before; and what was left of the labels when the fault came.
"""

from __future__ import annotations

import argparse
import json
import secrets
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry

from benchmarks.flushes import NoLetters, Record
from service.app.consumer_wiring import prediction_step
from service.app.monitor_wiring import model_monitor
from service.app.wiring import label_store, request_store
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.monitoring.snapshot import ModelSnapshot
from service.statistics.detection_time import Fault, Labelling, Rules, days_to_detection
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.labels import LabelEvent
from service.telemetry.instruments import PipelineMetrics

MODEL = "sorter"
CLASSES = ["bird", "cat", "dog", "fish", "fox", "owl"]
REGIONS = 8
WEAK = "r3"
BEFORE, AFTER = 0.963, 0.825
THRESHOLD = 0.9
LABELS = 50
DAY = 86_400.0
HOURS = 24
BEGAN = 20_000 * DAY
"""Midnight, so that days of the simulation are periods of the budgets."""


@dataclass(frozen=True)
class Case:
    """What is tried.

    Attributes:
        predictions: a day, evenly.
        days_before: healthy ones, and half a day.
        days_after: with the fault, at most.
        hours: between two rounds.
    """

    predictions: int = 6_000
    days_before: int = 8
    days_after: int = 24
    hours: int = 1

    def settings(self, redis_url: str) -> Settings:
        """The configuration of the README, under a prefix of its own."""
        budget = {"labels": LABELS, "per_days": 1}
        model: dict[str, Any] = {
            "classes": CLASSES,
            "groupings": {
                "region": {"by": "attribute", "attribute": "region"},
                "class": {"by": "predicted_class"},
            },
            "assessments": {
                "weakest-region": {"task": "identification", "grouping": "region", "budget": budget},
                "every-class": {"task": "estimation", "grouping": "class", "budget": budget},
            },
            "alerts": {"min_accuracy": THRESHOLD},
        }
        redis = {"url": redis_url, "prefix": secrets.token_hex(6)}
        return Settings.model_validate({"redis": redis, "models": {MODEL: model}})


@dataclass(frozen=True)
class Result:
    """What came of one run; days are after the fault, None if never.

    Attributes:
        drift: days until the region has drifted.
        estimate: days until its estimate violates the threshold.
        confirmed: days until evidence confirms anything of it.
        gini: of the labels requested between rounds before the fault, from the second day on.
        left: share of the period's labels left when the fault came.
    """

    drift: float | None
    estimate: float | None
    confirmed: float | None
    gini: float
    left: float


class _Predictions:
    """Every prediction that was ever made, and whether it is right."""

    def __init__(self, case: Case, rng: np.random.Generator) -> None:
        self._case, self._rng = case, rng
        self.correct: list[bool] = []
        self.classes: list[str] = []

    def between_rounds(self, begin: float, *, faulty: bool) -> list[Record]:
        """The predictions from one round to the next."""
        rng, seconds = self._rng, 3_600.0 * self._case.hours
        count = self._case.predictions * self._case.hours // HOURS
        records = []
        for n, (region, one) in enumerate(
            zip(rng.integers(REGIONS, size=count), rng.integers(len(CLASSES), size=count), strict=True)
        ):
            is_weak = faulty and f"r{region}" == WEAK
            accuracy = AFTER if is_weak else BEFORE
            promised = (BEFORE + AFTER) / 2 if is_weak else BEFORE
            item = len(self.correct)
            self.correct.append(bool(rng.random() < accuracy))
            self.classes.append(CLASSES[one])
            message = {
                "model": MODEL,
                "item_id": str(item),
                "predicted_class": CLASSES[one],
                "score": float(np.clip(rng.beta(promised * 12, (1 - promised) * 12), 0.17, 1.0)),
                "attributes": {"region": f"r{region}"},
            }
            time = int(1_000 * (begin + seconds * n / count))
            records.append(Record(item, time, json.dumps(message).encode()))
        return records

    def answer(self, request: dict[str, Any], now: float) -> LabelEvent:
        """What a labeller says of an item."""
        item = int(request["item_id"])
        predicted = self.classes[item]
        true_class = predicted if self.correct[item] else CLASSES[CLASSES.index(predicted) - 1]
        return LabelEvent(
            request["request_id"], request["item_id"], "answer", true_class, f"{item:016x}", now, "ana"
        )


def run(case: Case, redis_url: str, seed: int) -> Result:
    """One run.

    Args:
        case: what is tried.
        redis_url: of the Redis that is used.
        seed: of predictions, policies and the pools' hash key.
    """
    rng = np.random.default_rng(seed)
    settings, hash_key, predictions = case.settings(redis_url), rng.bytes(16), _Predictions(case, rng)
    found: dict[str, float] = {}
    requested: list[int] = []
    left = 1.0
    with build_redis(settings.redis) as client:
        connection = Connection(client, settings.redis.prefix)
        requests = request_store(settings, connection, MODEL)
        labels = label_store(settings, connection, MODEL)
        metrics = PipelineMetrics(CollectorRegistry(), lambda: BEGAN)
        step = prediction_step(
            settings, connection, hash_key=hash_key, dead_letters=NoLetters(), metrics=metrics
        )
        monitor = model_monitor(settings, MODEL, connection, hash_key=hash_key, rng=rng.spawn(1)[0])
        step.assign(0, 0)
        fault = BEGAN + case.days_before * DAY + DAY / 2
        seconds = 3_600.0 * case.hours
        for turn in range(HOURS * (case.days_before + case.days_after) // case.hours):
            now = BEGAN + seconds * (turn + 1)
            step.process(0, predictions.between_rounds(now - seconds, faulty=now > fault), now)
            step.flush(0, now)
            snapshot = monitor.refresh(now)
            monitor.ask(epoch=1, now=now)
            outbox = requests.read_outbox()
            requests.remove_published(list(outbox))
            asked = [json.loads(text) for text in outbox.values()]
            if asked:
                labels.apply(0, [predictions.answer(one, now + 60) for one in asked], now=now + 60)
            if now <= fault:
                requested.append(len(asked))
                budgets = [state.budget for state in snapshot.assessments.values()]
                left = sum(one.remaining for one in budgets) / (LABELS * len(budgets))
                continue
            for kind in _named(snapshot):
                found.setdefault(kind, (now - fault) / DAY)
            if len(found) == len(KINDS):
                break
        for key in client.scan_iter(f"{settings.redis.prefix}:*", count=1_000):
            client.unlink(key)
    days = {kind: found.get(kind) for kind in KINDS}
    return Result(**days, gini=_gini(np.array(requested[HOURS // case.hours :])), left=left)


KINDS = ("drift", "estimate", "confirmed")


def _named(snapshot: ModelSnapshot) -> list[str]:
    """By what the weak region is named now."""
    grouping = snapshot.groupings["region"]
    weak = grouping.groups.index(WEAK)
    drift = snapshot.drift.groupings.get("region") if snapshot.drift else None
    by = {
        "drift": drift is not None and bool(drift.drifted[weak]),
        "estimate": bool(grouping.low[weak]),
        "confirmed": grouping.evidence is not None and bool(grouping.evidence.alarming[weak]),
    }
    return [kind for kind, is_named in by.items() if is_named]


def _gini(amounts: np.ndarray[Any, Any]) -> float:
    """How unevenly they are spread: 0 evenly, 1 all in one."""
    ordered = np.sort(amounts)
    ranks = 2 * np.arange(1, len(ordered) + 1) - len(ordered) - 1
    return float(ranks @ ordered / (len(ordered) * ordered.sum()))


def announced(case: Case) -> dict[str, float]:
    """Days within which `credence check` says that the fault is found."""
    detection = days_to_detection(
        Fault(BEFORE, BEFORE - AFTER),
        Labelling(
            np.full(REGIONS, 1 / REGIONS), LABELS, "adaptive", reserve=0.2, days_before=case.days_before + 0.5
        ),
        Rules(THRESHOLD),
    )
    return {"estimate": detection.alert.median, "confirmed": detection.confirmed.median}


def main() -> None:
    """Print a row a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="rows as JSON")
    options = parser.parse_args()
    case = Case()
    print(json.dumps({"announced": announced(case)}), flush=True)
    with EmbeddedRedis() as server:
        for seed in range(options.runs):
            print(json.dumps(asdict(run(case, server.url, seed))), flush=True)


if __name__ == "__main__":
    main()
