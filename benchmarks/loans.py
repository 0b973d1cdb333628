"""A stream of predictions whether loans are repaid, made up or recorded."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from benchmarks.flushes import Record
from benchmarks.site import DAY, MODEL
from service.domain.arrays import Flags, Floats, Indices

CLASSES = ["defaulted", "repaid"]
RANGE = "salary_range"
RANGES = ["0 - 20K", "20K - 40K", "40K - 60K", "60K+"]
SHARES = [0.41, 0.31, 0.20, 0.08]
BEGAN = 1_800_000_000.0
DAYS = 240
A_DAY = 165


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
        predicted = (odds >= 0).astype(np.intp)
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

    def between(self, begin: float, end: float) -> tuple[int, int]:
        """The first one from a time on, and the first one from another time on."""
        first, last = np.searchsorted(self.times, [begin, end]).tolist()
        return first, last

    def accuracies(self, begin: float, end: float) -> list[float]:
        """Of every range between two times, and last of all traffic."""
        part = slice(*self.between(begin, end))
        correct, ranges = self.correct[part], self.ranges[part]
        of_ranges = [float(correct[ranges == number].mean()) for number in range(len(self.names))]
        return [*of_ranges, float(correct.mean())]

    def true_class(self, item: int) -> str:
        """The true class of an item."""
        predicted = self.predicted[item]
        name: str = CLASSES[predicted if self.correct[item] else 1 - predicted]
        return name

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
