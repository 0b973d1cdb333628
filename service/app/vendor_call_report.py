"""Reports to Redis how many calls of vendors fail, so that every process can show it."""

from __future__ import annotations

import logging
import math
import secrets
from collections import Counter
from collections.abc import Callable
from time import monotonic

from service.domain.errors import Unavailable
from service.store.recent_reports import RecentReports, VendorCalls
from service.telemetry.instruments import VendorMetrics

log = logging.getLogger(__name__)

_REPORT_SECONDS = 5.0
_MINUTE = 60.0

_Counts = tuple[Counter[str], Counter[str]]
"""Calls by vendor, and those that failed."""


class VendorCallReporter:
    """Reports the calls that this process counts; those of a time without Redis follow after it.

    Args:
        reports: of all processes.
        metrics: count the calls.
        clock: seconds since the epoch.
    """

    def __init__(
        self, reports: RecentReports[VendorCalls], metrics: VendorMetrics, clock: Callable[[], float]
    ) -> None:
        self._reports = reports
        self._metrics = metrics
        self._clock = clock
        self._process = secrets.token_hex(4)
        self._minute = -1.0
        self._before: _Counts = Counter(), Counter()
        self._reported: _Counts = Counter(), Counter()
        self._due_at = -math.inf

    def report_due(self) -> None:
        """Report the calls of this minute, unless that was done in the last seconds."""
        if monotonic() < self._due_at:
            return
        self._due_at = monotonic() + _REPORT_SECONDS
        now = self._clock()
        minute = now - now % _MINUTE
        if minute != self._minute:
            self._minute, self._before = minute, self._reported
        counts = self._counts()
        calls, failed = (after - before for after, before in zip(counts, self._before, strict=True))
        try:
            self._reports.add(
                (VendorCalls(name, self._process, calls[name], failed[name], minute) for name in calls), now
            )
        except Unavailable as error:
            log.debug("no report of calls to the vendor API", extra={"cause": str(error)})
        else:
            self._reported = counts

    def _counts(self) -> _Counts:
        calls, failed = Counter[str](), Counter[str]()
        for family in self._metrics.calls.collect():
            for sample in family.samples:
                vendor = sample.labels["vendor"]
                if not vendor or not sample.name.endswith("_total"):
                    continue
                calls[vendor] += round(sample.value)
                if sample.labels["status"] == "5xx":
                    failed[vendor] += round(sample.value)
        return calls, failed
