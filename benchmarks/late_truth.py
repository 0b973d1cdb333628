"""True classes that nobody requested: late, or of some items only, beside a few requested labels.

A stream of loans: a model predicts whether a loan will be repaid, and a prediction has the applicant's salary range.
In the last quarter one range becomes less accurate. Everything goes through the service's own consumers, store and
rounds, on a real Redis, with a clock of its own. `--file` streams a recording instead: a CSV file with the columns
`timestamp`, `y_pred`, `y_pred_proba`, `repaid` and `salary_range`.

- Late: all true classes arrive 30 days late, and no label is requested. Which ranges are confirmed as below target?
- Some: only accepted loans ever get their true class. Is the accuracy of these labels the accuracy of all? What do
  requested labels beside them give, and how wide are intervals from requested labels alone?
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.flushes import Record
from benchmarks.site import DAY, MODEL, Site, open_site, settings_of
from service.demo.servers import EmbeddedRedis
from service.domain.arrays import Flags, Floats, Indices
from service.domain.groupings import ALL
from service.monitoring.snapshot import ModelSnapshot

CLASSES = ["defaulted", "repaid"]
RANGE = "salary_range"
RANGES = ["0 - 20K", "20K - 40K", "40K - 60K", "60K+"]
SHARES = [0.41, 0.31, 0.20, 0.08]
BEGAN = 1_800_000_000.0
DAYS = 240
A_DAY = 165
SETTLED_DAYS = 30.0
"""From a prediction to its true class."""
TARGET = 0.91
RUN_LENGTH = 20_000
"""Labels of a group between two changes: a census has more of them in the same time."""


@dataclass(frozen=True)
class Loans:
    """Predictions in the order of their times, as columns [n].

    Attributes:
        times: seconds since the epoch.
        predicted: index of the predicted class.
        scores: of the predicted class.
        ranges: index of the salary range.
        correct: whether the prediction is right.
        names: of the ranges.
    """

    times: Floats
    predicted: Indices
    scores: Floats
    ranges: Indices
    correct: Flags
    names: Sequence[str]

    @classmethod
    def made_up(cls, rng: np.random.Generator) -> Loans:
        """A stream whose first range falls by 5 points in the last quarter."""
        n = DAYS * A_DAY
        times = BEGAN + np.sort(rng.random(n)) * DAYS * DAY
        ranges = rng.choice(len(RANGES), size=n, p=SHARES)
        odds = rng.choice([-1, 1], size=n) * rng.gamma(4.0, 1.0, size=n)
        repaid = 1 / (1 + np.exp(-odds))
        predicted = (repaid >= 0.5).astype(np.intp)
        scores = np.maximum(repaid, 1 - repaid)
        fallen = (ranges == 0) & (times >= BEGAN + 0.75 * DAYS * DAY)
        accuracy = scores + 0.02 * (predicted == 1) * (1 - scores) - 0.055 * fallen
        return cls(times, predicted, scores, ranges, rng.random(n) < accuracy, RANGES)

    @classmethod
    def recorded(cls, path: Path) -> Loans:
        """A recording; scores are of class 1."""
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        names = sorted({row[RANGE] for row in rows})
        stamps = [datetime.fromisoformat(row["timestamp"]).timestamp() for row in rows]
        predicted = np.array([int(row["y_pred"]) for row in rows])
        probability = np.array([float(row["y_pred_proba"]) for row in rows])
        true = np.array([int(float(row["repaid"])) for row in rows])
        return cls(
            np.array(stamps) - stamps[0] + BEGAN,
            predicted,
            np.where(predicted == 1, probability, 1 - probability),
            np.array([names.index(row[RANGE]) for row in rows]),
            predicted == true,
            names,
        )

    def until(self, days: float) -> Loans:
        """Those of the first days."""
        kept = self.times < BEGAN + days * DAY
        columns = (self.times, self.predicted, self.scores, self.ranges, self.correct)
        return Loans(*(column[kept] for column in columns), self.names)  # type: ignore[arg-type]

    def true_class(self, item: int) -> str:
        """The true class of an item."""
        predicted = self.predicted[item]
        return CLASSES[predicted if self.correct[item] else 1 - predicted]

    def messages(self, first: int, end: int) -> list[Record]:
        """Predictions as records of one partition."""
        return [
            Record(
                item,
                int(1_000 * self.times[item]),
                json.dumps(
                    {
                        "model": MODEL,
                        "item_id": str(item),
                        "predicted_class": CLASSES[self.predicted[item]],
                        "score": float(self.scores[item]),
                        "attributes": {RANGE: self.names[self.ranges[item]]},
                    }
                ).encode(),
            )
            for item in range(first, end)
        ]


@dataclass(frozen=True)
class Case:
    """What is tried.

    Attributes:
        arrive: whose true classes arrive without a request: "all", "accepted" loans, or "none".
        requests: labels that are requested in all, evenly over time.
        grouping: that requests them.
        days: how much of the stream.
    """

    arrive: str
    requests: int
    grouping: str = ALL
    days: float = DAYS

    def settings(self, redis_url: str) -> dict[str, Any]:
        """The configuration, under a prefix of its own."""
        model: dict[str, Any] = {
            "classes": CLASSES,
            "groupings": {
                RANGE: {"by": "attribute", "attribute": RANGE},
                "predicted_class": {"by": "predicted_class"},
            },
            "alerts": {"min_accuracy": TARGET},
            "forgetting": {"run_length": RUN_LENGTH},
        }
        if self.arrive != "none":
            items = "census" if self.arrive == "all" else "unknown"
            model["unrequested_labels"] = {"items": items}
            if items == "unknown":
                model["unrequested_labels"]["wait_days"] = SETTLED_DAYS + 2
        if self.requests:
            pace = {"per_days": self.days, "burst": 1 / self.requests, "reserve": 0.0}
            budget = {"labels": self.requests, **pace}
            asked = {"grouping": self.grouping, "task": "estimation", "budget": budget}
            model["assessments"] = {"ask": asked}
        return model


@dataclass(frozen=True)
class Found:
    """What one run showed.

    Attributes:
        truth: accuracy of the predictions of the last 30 days, by range; that of all comes last.
        mean: the estimate of each.
        lower: lower end of its interval.
        upper: upper end.
        requested: labels that were requested.
        arrived: labels that arrived without a request.
        arrived_accuracy: share of these that say that the prediction is right.
        confirmed_after: days from when a range was first confirmed as below target, since the last quarter began;
            negative before it; None where it never was.
    """

    truth: list[float]
    mean: list[float]
    lower: list[float]
    upper: list[float]
    requested: int
    arrived: int
    arrived_accuracy: float
    confirmed_after: list[float | None]


def run(case: Case, loans: Loans, redis_url: str, seed: int) -> Found:
    """Stream the loans, with a round a day."""
    rng = np.random.default_rng(seed)
    settings = settings_of(case.settings(redis_url), redis_url)
    fall = BEGAN + 0.75 * case.days * DAY
    confirmed: list[float | None] = [None] * len(loans.names)
    requested, arrived = 0, np.zeros(0, np.intp)
    comes = {"all": loans.predicted >= 0, "accepted": loans.predicted == 1, "none": loans.predicted < 0}
    snapshot = None
    with open_site(settings, rng) as site:
        for day in range(int(case.days)):
            now = BEGAN + (day + 1) * DAY
            first, end = np.searchsorted(loans.times, [now - DAY, now]).tolist()
            site.take_in([loans.messages(first, end)], now)
            settled = np.searchsorted(loans.times, [now - (SETTLED_DAYS + 1) * DAY, now - SETTLED_DAYS * DAY])
            due = np.arange(*settled)
            due = due[comes[case.arrive][due]]
            arrived = np.append(arrived, due)
            site.receive([_label(loans, int(item), now) for item in due], now)
            snapshot = site.refresh(now)
            _note_confirmed(snapshot, loans.names, confirmed, (now - fall) / DAY)
            requests = site.ask(now)
            requested += len(requests)
            site.receive([_label(loans, int(one["item_id"]), now, one["request_id"]) for one in requests], now)
    assert snapshot is not None
    return Found(
        *_estimates(snapshot, loans, now),
        requested,
        len(arrived),
        float(loans.correct[arrived].mean()) if len(arrived) else float("nan"),
        confirmed,
    )


def _label(loans: Loans, item: int, now: float, request_id: str | None = None) -> dict[str, Any]:
    label = {"model": MODEL, "item_id": str(item), "true_class": loans.true_class(item)}
    label["time"] = datetime.fromtimestamp(now, UTC).isoformat()
    return label if request_id is None else label | {"request_id": request_id}


def _note_confirmed(
    snapshot: ModelSnapshot, names: Sequence[str], confirmed: list[float | None], day: float
) -> None:
    found = snapshot.groupings.get(RANGE)
    if found is None or found.evidence is None:
        return
    for name, alarming in zip(found.groups, found.evidence.alarming.tolist(), strict=True):
        if alarming and name in names and confirmed[names.index(name)] is None:
            confirmed[names.index(name)] = day


def _estimates(
    snapshot: ModelSnapshot, loans: Loans, now: float
) -> Iterator[list[float]]:
    """Truths, means, lower and upper ends."""
    recent = (loans.times >= now - 30 * DAY) & (loans.times < now)
    truths = [float(loans.correct[recent & (loans.ranges == number)].mean()) for number in range(len(loans.names))]
    yield [*truths, float(loans.correct[recent].mean())]
    ranges, all_traffic = snapshot.groupings[RANGE], snapshot.groupings[ALL]
    order = [ranges.groups.index(name) for name in loans.names]
    for column in ("mean", "lower", "upper"):
        of_ranges, of_all = (getattr(found.accuracy, column) for found in (ranges, all_traffic))
        yield [*of_ranges[order].tolist(), float(of_all[0])]


def late(loans: Loans, redis_url: str, seed: int) -> dict[str, Any]:
    """All true classes arrive late, and nothing is requested."""
    days = (loans.times[-1] - BEGAN) / DAY
    found = run(Case("all", 0, days=days), loans, redis_url, seed)
    return {"case": "all classes late, no requests", **asdict(found)}


def some(loans: Loans, redis_url: str, seed: int, requests: int) -> list[dict[str, Any]]:
    """Only accepted loans get a true class, before anything changes; beside it, requests alone."""
    days = 0.7 * (loans.times[-1] - BEGAN) / DAY
    cases = {
        f"requests alone, {requests}": Case("none", requests, days=days),
        f"accepted loans and {requests} requests": Case("accepted", requests, days=days),
        f"accepted loans and {requests // 2} requests": Case("accepted", requests // 2, days=days),
        f"accepted loans and {requests // 2} requests by class": Case(
            "accepted", requests // 2, "predicted_class", days=days
        ),
    }
    early = loans.until(days)
    return [
        {"case": name, **asdict(run(case, early, redis_url, seed))} for name, case in cases.items()
    ]


def main() -> None:
    """Print a row a case and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="(default: 3)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--requests", type=int, default=300, help="labels that are requested (default: 300)")
    parser.add_argument("--file", type=Path, help="a recording, instead of a stream that is made up")
    options = parser.parse_args()
    with EmbeddedRedis() as redis:
        for seed in range(options.first, options.first + options.runs):
            rng = np.random.default_rng(seed)
            loans = Loans.recorded(options.file) if options.file else Loans.made_up(rng)
            for row in [late(loans, redis.url, seed), *some(loans, redis.url, seed, options.requests)]:
                print(json.dumps({"seed": seed, **row}), flush=True)


if __name__ == "__main__":
    main()
