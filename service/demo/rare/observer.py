"""Looks at the demo of a rare class from outside: journals, and Credence's metrics.

This is the one place of it that knows the metrics' names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from service.demo.journal import (
    LABELLER_FILE,
    LABELLER_READY,
    PRODUCER_FILE,
    PRODUCER_READY,
    Entry,
    JournalReader,
    LabelSent,
    Mark,
    TransactionsSent,
)
from service.demo.metrics import Samples, fetch, samples_of
from service.demo.rare.configuration import LABELS, MODELS
from service.demo.rare.transactions import FRAUD, Transactions, item_number

_ARRIVAL_SECONDS = 3.0  # until a label that was sent is among what is learned from


@dataclass(frozen=True)
class RecallReading:
    """Credence's estimate of one model's recall."""

    lower: float  # of the 95% interval
    median: float  # of the posterior
    upper: float
    labels: int  # behind the estimate, by their effective number
    taken_at: float  # when its data was read, seconds since the epoch

    @property
    def points(self) -> float:
        """Width of the interval, in percentage points."""
        return 100 * (self.upper - self.lower)

    def contains(self, recall: float) -> bool:
        """Whether the interval contains this recall."""
        return self.lower <= recall <= self.upper


def recall_of(samples: Samples) -> RecallReading | None:
    """The estimate in one model's samples; None before the first one."""

    def value(name: str) -> float | None:
        found = [number for labels, number in samples[name] if labels.get("measure", "recall") == "recall"]
        return found[0] if found else None

    lower, median, upper = (
        value(f"credence_performance_{end}_ratio") for end in ("lower", "median", "upper")
    )
    labels, at = value("credence_performance_labels"), value("credence_performance_timestamp_seconds")
    if lower is None or median is None or upper is None or labels is None or at is None:
        return None
    return RecallReading(lower, median, upper, round(labels), at)


class RareObserver:
    """Gathers what happened and what Credence estimates."""

    def __init__(self, folder: Path, monitoring_port: int, transactions: Transactions) -> None:
        self.transactions, self.frauds = 0, 0  # sent so far
        self.readings: Mapping[str, RecallReading] = {}  # the latest ones, by model
        # By model: labels sent, frauds among them, and of these the flagged ones.
        self.answers, self.found, self.flagged = Counter[str](), Counter[str](), Counter[str]()
        self._world = transactions
        self._answered_at: dict[str, float] = {}  # when the last label was sent, by model
        self._marks: dict[str, float] = {}
        self._monitoring_port = monitoring_port
        self._journals = [JournalReader(folder / name) for name in (PRODUCER_FILE, LABELLER_FILE)]

    def are_children_ready(self) -> bool:
        """Whether the producer and the labeller are ready."""
        self._read_journals()
        return {PRODUCER_READY, LABELLER_READY} <= self._marks.keys()

    def have_been_sent(self, transactions: int) -> bool:
        """Whether so many transactions have been sent."""
        self._read_journals()
        return self.transactions >= transactions

    def is_credence_served(self) -> bool:
        """Whether the metrics are served."""
        return self.refresh()

    def refresh(self) -> bool:
        """Read the journals and the metrics; whether these are served."""
        self._read_journals()
        text = fetch(self._monitoring_port)
        if text is None:
            return False
        each = {model: recall_of(samples_of(text, model)) for model in MODELS}
        self.readings = {model: reading for model, reading in each.items() if reading is not None}
        return True

    @property
    def labels(self) -> int:
        """Labels behind the estimate that has the fewest."""
        return min((self.readings[model].labels for model in MODELS if model in self.readings), default=0)

    def is_complete(self) -> bool:
        """Whether every model's estimate is based on all labels of its budget."""
        return all(
            self.answers[model] >= LABELS
            and model in self.readings
            and self.readings[model].taken_at > self._answered_at[model] + _ARRIVAL_SECONDS
            for model in MODELS
        )

    def _read_journals(self) -> None:
        for journal in self._journals:
            for entry in journal.new_entries():
                self._take(entry)

    def _take(self, entry: Entry) -> None:
        match entry:
            case TransactionsSent():
                self.transactions += entry.count
                self.frauds += entry.frauds
            case LabelSent(is_first=True):
                self.answers[entry.model] += 1
                is_fraud = entry.true_class == FRAUD
                self.found[entry.model] += is_fraud
                self.flagged[entry.model] += is_fraud and self._world.is_flagged(item_number(entry.item_id))
                self._answered_at[entry.model] = entry.time
            case Mark():
                self._marks[entry.name] = entry.time
