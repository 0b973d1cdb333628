"""Looks at the demo from outside: the journals of its processes, and Credence's metrics."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from service.demo.findings import Findings
from service.demo.history import History
from service.demo.journal import LABELLER_FILE, PRODUCER_FILE, JournalReader
from service.demo.reading import Reading, fetch, parse
from service.demo.verdict import GroupResult, group_results
from service.demo.view import Scene

_TRUTH_SECONDS = 1.0
_RATE_SECONDS = 3.0


class Observer:
    """Gathers what happened and what Credence estimates, of a run of this many seconds."""

    def __init__(self, folder: Path, monitoring_port: int, seconds: float) -> None:
        self.history = History()
        self.findings = Findings()
        self.reading = Reading(time=time.time())
        self.answered_seen: list[tuple[float, int]] = []  # answers in the metrics, by time
        self._monitoring_port = monitoring_port
        self._seconds = seconds
        self._journals = {name: JournalReader(folder / name) for name in (PRODUCER_FILE, LABELLER_FILE)}
        self._recent_counts: deque[tuple[float, int]] = deque()
        self._truths: dict[tuple[str, str], float] = {}
        self._truths_at = 0.0

    def are_children_ready(self) -> bool:
        """Whether the producer and the labeller are ready."""
        self.read_journals()
        return all(self.history.is_ready.get(name) for name in self._journals)

    def is_credence_served(self) -> bool:
        """Whether the metrics have been served while the stream runs."""
        self.look()
        return bool(self.answered_seen) and self.history.streaming_at is not None

    def read_journals(self) -> None:
        """Read what the processes wrote since the last time."""
        for name, journal in self._journals.items():
            self.history.add(name, journal.new_entries())

    def look(self) -> None:
        """Read the journals and the metrics."""
        self.read_journals()
        text = fetch(self._monitoring_port)
        now = time.time()
        if text is not None:
            self.reading = parse(text, now)
            self.answered_seen.append((now, self.reading.events.get("answered", 0)))
            self.findings.watch(self.reading, self.history.degraded_at)
        self._recent_counts.append((now, len(self.history.stream)))
        while self._recent_counts[0][0] < now - _RATE_SECONDS:
            self._recent_counts.popleft()
        if now - self._truths_at > _TRUTH_SECONDS:
            self._truths_at = now
            self._truths = {(r.reading.grouping, r.reading.group): r.truth for r in self.results()}

    def results(self) -> list[GroupResult]:
        """Every group's newest interval beside the truth."""
        return group_results(self.reading, self.history.stream, degraded_at=self.history.degraded_at)

    def scene(self) -> Scene:
        """What to show now."""
        (first, before), (last, after) = self._recent_counts[0], self._recent_counts[-1]
        return Scene(
            now=time.time(),
            seconds=self._seconds,
            reading=self.reading,
            history=self.history,
            findings=self.findings,
            rate=(after - before) / (last - first) if last > first else 0.0,
            truths=self._truths,
        )
