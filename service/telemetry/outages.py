"""Logs of outages: once when one begins, then by the minute, and once when it is over."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

_REMIND_SECONDS = 60.0
_QUIET_SECONDS = 20.0
"""Without a failure for so long, an outage is over: longer than the longest backoff and a timeout."""


@dataclass
class _Outage:
    since: float
    logged_at: float
    sources: dict[str, float] = field(default_factory=dict)
    """When each last failed."""


class Outages:
    """The outages of one process; several of its parts see the same one.

    Args:
        stopwatch: monotonic seconds.
    """

    def __init__(self, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self._stopwatch = stopwatch
        self._lock = threading.Lock()
        self._outages: dict[str, _Outage] = {}

    def failed(self, source: str, what: str, cause: str) -> None:
        """A part of the process has failed once more.

        Args:
            source: the part, by a name of its own.
            what: what is wrong, such as `kafka is unavailable`; the same for all who see it.
            cause: is logged besides.
        """
        now = self._stopwatch()
        with self._lock:
            for other, another in list(self._outages.items()):
                if other != what and another.sources.pop(source, None) is not None and not another.sources:
                    del self._outages[other]
            outage = self._outages.get(what)
            if outage is None:
                outage = self._outages[what] = _Outage(now, now)
                log.warning(what, extra={"cause": cause, "down_seconds": 0})
            elif now - outage.logged_at >= _REMIND_SECONDS:
                outage.logged_at = now
                log.warning(what, extra={"cause": cause, "down_seconds": round(now - outage.since)})
            outage.sources[source] = now

    def works(self, source: str, *, contact: bool = False) -> None:
        """A part of the process works; at once with `contact`, else if it has not failed for a while."""
        if not self._outages:
            return
        now = self._stopwatch()
        with self._lock:
            for what, outage in list(self._outages.items()):
                if not contact and now - outage.sources.get(source, now) < _QUIET_SECONDS:
                    continue
                failed_at = outage.sources.pop(source, now)
                if not outage.sources:
                    del self._outages[what]
                    ended_at = now if contact else failed_at
                    log.info("over: %s", what, extra={"down_seconds": round(ended_at - outage.since)})
