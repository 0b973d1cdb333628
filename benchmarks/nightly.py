"""Labels of nightly batches: whether they are an even sample of each group's traffic, and what they confirm.

A model is perfectly calibrated: its scores average .92, and a prediction is right with the probability of
its score. One batch of predictions comes every night; labels are asked for in rounds throughout the day, and
answered before the next round. Everything goes through the service's own consumers, store and rounds, on a
real Redis.

For every group of a run the labels' raw accuracy is compared with the accuracy of all of its predictions so
far, in standard errors. A healthy group is falsely confirmed if evidence ever confirms anything of it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks.flushes import Record
from benchmarks.site import DAY, MODEL, open_site, settings_of
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.domain.arrays import Flags, Indices
from service.monitoring.snapshot import ModelSnapshot
from service.statistics.policies import POLICIES
from service.store.labels import LabelEvent

CLASSES = ["no", "yes"]
BATCH = 5_000
ACCURACY = 0.92
TARGET = 0.88
BEGAN = 1_800_000_000.0
ROUNDS_A_DAY = 5


@dataclass(frozen=True)
class Case:
    """What is tried.

    Attributes:
        labels: a day.
        groups: of the attribute that is asked by; one is all traffic.
        partitions: of the topic.
        policy: who is labelled next.
        days: how long.
        batch: predictions a night.
    """

    labels: int
    groups: int
    partitions: int
    policy: str
    days: int = 7
    batch: int = BATCH

    @property
    def grouping(self) -> str:
        """The grouping that is asked by."""
        return "all" if self.groups == 1 else "region"

    def settings(self, redis_url: str) -> Settings:
        """The configuration, under a prefix of its own."""
        asked = {
            "grouping": self.grouping,
            "policy": self.policy,
            # All at once, if a round wants them: the harder case.
            "budget": {"labels": self.labels, "per_days": 1, "burst": 1.0, "reserve": 0.0},
            "max_in_flight": -(-self.labels // ROUNDS_A_DAY),
        }
        model: dict[str, Any] = {
            "classes": CLASSES,
            "assessments": {"ask": asked},
            "alerts": {"min_accuracy": TARGET},
        }
        if self.groups > 1:
            model["groupings"] = {"region": {"by": "attribute", "attribute": "region"}}
        return settings_of(model, redis_url)


@dataclass(frozen=True)
class Result:
    """What came of one run.

    Attributes:
        labels: that were given.
        errors: raw accuracy of every group's labels less that of its predictions, in standard errors.
        confirmed: whether anything was ever confirmed of a group.
    """

    labels: int
    errors: list[float]
    confirmed: bool


class _World:
    """Every prediction that was ever made: its group, and whether it is right."""

    def __init__(self, case: Case, rng: np.random.Generator) -> None:
        self._case, self._rng = case, rng
        self.groups: Indices = np.zeros(0, np.intp)
        self.correct: Flags = np.zeros(0, np.bool_)

    def night(self, began: float) -> list[list[Record]]:
        """A batch of predictions, by partition."""
        case, rng, first = self._case, self._rng, len(self.correct)
        shares = 0.5 ** np.arange(case.groups)
        groups = rng.choice(case.groups, size=case.batch, p=shares / shares.sum())
        scores = rng.beta(ACCURACY * 8, (1 - ACCURACY) * 8, size=case.batch)
        self.groups = np.append(self.groups, groups)
        self.correct = np.append(self.correct, rng.random(case.batch) < scores)
        records: list[list[Record]] = [[] for _ in range(case.partitions)]
        for n in range(case.batch):
            message = {
                "model": MODEL,
                "item_id": str(first + n),
                "predicted_class": "yes",
                "score": float(scores[n]),
                "attributes": {"region": f"r{groups[n]}"},
            }
            partition = n % case.partitions
            offset = (first + n) // case.partitions
            time = int(1_000 * (began + n / 100))
            records[partition].append(Record(offset, time, json.dumps(message).encode()))
        return records


def run(case: Case, redis_url: str, seed: int) -> Result:
    """One run of so many days.

    Args:
        case: what is tried.
        redis_url: of the Redis that is used.
        seed: of predictions, policies and the pools' hash key.
    """
    rng = np.random.default_rng(seed)
    asked: list[int] = []
    confirmed = False
    with open_site(case.settings(redis_url), rng, case.partitions) as site:
        world = _World(case, rng)
        for day in range(case.days):
            site.take_in(world.night(BEGAN + DAY * day), BEGAN + DAY * day + 60)
            for turn in range(ROUNDS_A_DAY):
                now = BEGAN + DAY * (day + (turn + 0.5) / ROUNDS_A_DAY)
                confirmed |= _confirms(site.refresh(now))
                requests = site.ask(now)
                asked += [int(one["item_id"]) for one in requests]
                site.answer([_answer(one, world, now) for one in requests], now)
    return Result(len(asked), list(_errors(world, np.array(asked, np.intp), case.groups)), confirmed)


def _answer(request: dict[str, Any], world: _World, now: float) -> LabelEvent:
    item = int(request["item_id"])
    true_class = "yes" if world.correct[item] else "no"
    return LabelEvent(request["request_id"], str(item), "answer", true_class, f"{item:016x}", now, "bench")


def _confirms(snapshot: ModelSnapshot) -> bool:
    groupings = snapshot.groupings.values()
    return any(bool(g.evidence.alarming.any()) for g in groupings if g.evidence is not None)


def _errors(world: _World, asked: Indices, groups: int) -> Iterator[float]:
    for group in range(groups):
        own = asked[world.groups[asked] == group]
        if len(own):
            accuracy = float(world.correct[world.groups == group].mean())
            error = float(world.correct[own].mean()) - accuracy
            yield error / np.sqrt(accuracy * (1 - accuracy) / len(own))


def summary(case: Case, results: list[Result]) -> dict[str, Any]:
    """What came of all runs of a case.

    `mean_error` is the mean of all errors over its own standard error: beyond 3 in absolute value, labels are
    no even sample.
    """
    errors = np.array([error for result in results for error in result.errors])
    return asdict(case) | {
        "runs": len(results),
        "labels_a_day": float(np.mean([result.labels for result in results])) / case.days,
        "mean_error": float(errors.mean() * np.sqrt(len(errors))),
        "errors_beyond_3": float((np.abs(errors) > 3).mean()),  # noqa: PLR2004 - three standard errors
        "confirmed": float(np.mean([result.confirmed for result in results])),
    }


def main() -> None:
    """Print a row a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of every case (3)")
    parser.add_argument("--labels", type=int, nargs="+", default=[50, 100, 500], help="a day")
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="rows as JSON")
    options = parser.parse_args()
    with EmbeddedRedis() as server:
        cases = product(options.labels, options.groups, options.partitions, options.policies)
        for labels, groups, partitions, policy in cases:
            case = Case(labels, groups, partitions, policy, days=options.days)
            row = summary(case, [run(case, server.url, seed) for seed in range(options.runs)])
            if options.json:
                print(json.dumps(row), flush=True)
                continue
            print(
                f"{labels:4} labels a day, {groups} groups, {partitions} partitions, {policy}: "
                f"{row['labels_a_day']:.0f} given, mean error {row['mean_error']:+.1f} s.e., "
                f"beyond 3 s.e. {row['errors_beyond_3']:.1%}, falsely confirmed {row['confirmed']:.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
