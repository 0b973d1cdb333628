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
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.flushes import Record
from benchmarks.site import DAY, MODEL, open_site, settings_of
from service.app.detection_forecast import detection
from service.config.assessments import IdentificationSettings
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.monitoring.snapshot import ModelSnapshot
from service.replay.tables import Cell, Table, print_tables
from service.statistics.detection_time import Delay, Fault
from service.store.labels import LabelEvent

CLASSES = ["bird", "cat", "dog", "fish", "fox", "owl"]
REGIONS = 8
WEAK = "r3"
BEFORE, AFTER = 0.963, 0.825
THRESHOLD = 0.9
LABELS = 50
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
        return settings_of(model, redis_url)


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
    found: dict[str, float] = {}
    requested: list[int] = []
    left = 1.0
    with open_site(case.settings(redis_url), rng) as site:
        predictions = _Predictions(case, rng)
        fault = BEGAN + case.days_before * DAY + DAY / 2
        seconds = 3_600.0 * case.hours
        for turn in range(HOURS * (case.days_before + case.days_after) // case.hours):
            now = BEGAN + seconds * (turn + 1)
            site.take_in([predictions.between_rounds(now - seconds, faulty=now > fault)], now)
            snapshot = site.refresh(now)
            asked = site.ask(now)
            site.answer([predictions.answer(one, now + 60) for one in asked], now + 60)
            if now <= fault:
                requested.append(len(asked))
                budgets = [state.budget for state in snapshot.assessments.values()]
                left = sum(one.remaining for one in budgets) / (LABELS * len(budgets))
                continue
            for kind in _named(snapshot):
                found.setdefault(kind, (now - fault) / DAY)
            if len(found) == len(KINDS):
                break
    days = {kind: found.get(kind) for kind in KINDS}
    return Result(**days, gini=_gini(np.array(requested[HOURS // case.hours :])), left=left)


KINDS = ("drift", "estimate", "confirmed")
FACTOR = 1.5


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


def announced(case: Case) -> dict[str, Delay]:
    """Days within which the forecast of `credence check` says that the fault is found."""
    model = case.settings("redis://localhost").models[MODEL]
    asked = model.assessments_of(IdentificationSettings)["weakest-region"]
    fault = Fault(BEFORE, BEFORE - AFTER)
    days_before = case.days_before + 0.5
    found = detection(model, asked, fault, THRESHOLD, groups=REGIONS, days_before=days_before)
    return {"estimate": found.alert, "confirmed": found.confirmed}


def table(case: Case, results: Sequence[Result]) -> Table:
    """When the region was named, beside what was announced."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    said = announced(case)
    for kind in KINDS:
        days = np.array([np.inf if (day := getattr(one, kind)) is None else day for one in results])
        quantiles = (float(np.quantile(days, share, method="higher")) for share in (0.5, 0.9, 1.0))
        found: list[Cell] = [day if np.isfinite(day) else None for day in quantiles]
        if (delay := said.get(kind)) is None:
            rows.append((kind, (*found, None, None, None)))
            continue
        within = int((days <= FACTOR * delay.late).sum())
        rows.append((kind, (*found, delay.median, delay.late, within)))
    columns = (
        "median",
        "9 of 10",
        "slowest",
        "announced",
        "9 of 10, announced",
        f"runs within {FACTOR}x that",
    )
    gini, left = max(one.gini for one in results), min(one.left for one in results)
    return Table(
        "days from the fault until the region is named",
        "by",
        columns,
        rows,
        notes=(f"{len(results)} runs; highest Gini coefficient {gini:.2f}, fewest labels left {left:.0%}.",),
    )


def main() -> None:
    """Print a row a run, and a table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="(default: 20)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first run (default: 0)")
    parser.add_argument("--markdown", action="store_true", help="print a table for the documentation")
    options = parser.parse_args()
    case, results = Case(), []
    with EmbeddedRedis() as server:
        for seed in range(options.first, options.first + options.runs):
            results.append(run(case, server.url, seed))
            print(json.dumps({"seed": seed} | asdict(results[-1])), file=sys.stderr, flush=True)
    print_tables([table(case, results)], as_json=False, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
