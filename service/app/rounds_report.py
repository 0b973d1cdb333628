"""Reports to Redis whether the rounds of this process succeed, so that every process can show it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from service.domain.errors import Refused, Unavailable
from service.store.consumer_health import ROUNDS, ConsumerHealth, HealthStore

log = logging.getLogger(__name__)


class RoundsReporter:
    """Reports the rounds of a process that may lead; others need Redis alone, which then takes no report.

    Args:
        store: of the reports.
        member: host and port where the process serves its metrics.
        clock: seconds since the epoch.
    """

    def __init__(self, store: HealthStore, *, member: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._member = member
        self._clock = clock
        self._started_at = self._state_since = clock()
        self._state = ""

    def report(self, failure: Unavailable | None) -> None:
        """Report a round, and why it failed if it did."""
        now = self._clock()
        state = "running" if failure is None else "refused" if isinstance(failure, Refused) else "waiting"
        if state != self._state:
            self._state, self._state_since = state, now
        try:
            self._store.report(
                ConsumerHealth(
                    role=ROUNDS,
                    member=self._member,
                    state=state,
                    state_since=self._state_since,
                    written_at=now,
                    started_at=self._started_at,
                    cause="" if failure is None else str(failure),
                    clock_ahead=self._store.clock_ahead(now),
                )
            )
        except Unavailable as error:
            log.debug("no report of this round", extra={"cause": str(error)})

    def leave(self) -> None:
        """Remove the report of a process that stops."""
        try:
            self._store.remove(ROUNDS, self._member)
        except Unavailable as error:
            log.debug("the report of the rounds stays for a day", extra={"cause": str(error)})
