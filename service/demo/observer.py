"""Looks at the demo from outside: the journals of its processes, and Credence's metrics."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from service.demo.journal import (
    LABELLER_FILE,
    LABELLER_READY,
    PRODUCER_FILE,
    PRODUCER_READY,
    History,
    JournalReader,
)
from service.demo.metrics import Findings, Reading, fetch, parse
from service.demo.report import GroupResult, group_results
from service.demo.story import PEOPLE, Story

_TRUTH_SECONDS = 1.0
_RATE_SECONDS = 3.0


class Observer:
    """Gathers what happened and what Credence estimates; `people` are those who give the labels."""

    def __init__(self, folder: Path, monitoring_port: int, *, people: str = PEOPLE) -> None:
        self.history = History()
        self.findings = Findings()
        self.story = Story(people)
        self.reading = Reading(time=time.time())
        self.answer_counts: list[tuple[float, int]] = []  # answers in the metrics, by time
        self.rate = 0.0  # recent predictions per second
        self.truths: dict[tuple[str, str], float] = {}  # true accuracies, by (grouping, group)
        self._monitoring_port = monitoring_port
        self._journals = [JournalReader(folder / name) for name in (PRODUCER_FILE, LABELLER_FILE)]
        self._recent_counts: deque[tuple[float, int]] = deque()
        self._truths_at = 0.0

    def are_children_ready(self) -> bool:
        """Whether the producer and the labeller are ready."""
        self.read_journals()
        return {PRODUCER_READY, LABELLER_READY} <= self.history.marks.keys()

    def is_credence_served(self) -> bool:
        """Whether the metrics have been served while the stream runs."""
        self.refresh()
        return bool(self.answer_counts) and self.history.streaming_at is not None

    def read_journals(self) -> None:
        """Read what the processes wrote since the last time."""
        for journal in self._journals:
            self.history.add(journal.new_entries())

    def refresh(self) -> None:
        """Read the journals and the metrics."""
        self.read_journals()
        text = fetch(self._monitoring_port)
        now = time.time()
        if text is not None:
            self.reading = parse(text, now)
            self.answer_counts.append((now, self.reading.events.get("answered", 0)))
            self.findings.watch(self.reading, self.history.degraded_at)
            self.story.watch(self.reading, self.findings, self.history)
        predictions = len(self.history.stream)
        self._recent_counts.append((now, predictions))
        while self._recent_counts[0][0] < now - _RATE_SECONDS:
            self._recent_counts.popleft()
        first, before = self._recent_counts[0]
        self.rate = (predictions - before) / (now - first) if now > first else 0.0
        if now - self._truths_at > _TRUTH_SECONDS:
            self._truths_at = now
            self.truths = {(r.reading.grouping, r.reading.group): r.truth for r in self.results()}

    def results(self) -> list[GroupResult]:
        """Every group's newest interval beside the truth."""
        return group_results(self.reading, self.history.stream, changes=self.history.changes)
