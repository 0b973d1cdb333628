"""Runs the consumer loop of a topic in a thread, and replaces it after records that cannot be read."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from consumers.loop import ConsumerLoop
from service.domain.errors import Unreadable
from service.telemetry.health import Check
from service.telemetry.instruments import PipelineMetrics

log = logging.getLogger(__name__)

STALLED_SECONDS = 120.0
"""After so long without an iteration a loop counts as dead, and the liveness probe fails."""

_REREAD_SECONDS = 20.0
"""Between two attempts at a record that cannot be read; each makes the group rebalance."""


class ConsumerSupervisor:
    """Runs loops over one topic, one at a time.

    `make` makes a loop with a client of its own, or None if asked to stop before the client has connected.
    `on_failure` is called when a loop fails with an unexpected error.
    """

    def __init__(
        self,
        topic_kind: str,
        topic: str,
        make: Callable[[], ConsumerLoop | None],
        *,
        metrics: PipelineMetrics,
        stopping: threading.Event,
        on_failure: Callable[[], None],
    ) -> None:
        self._kind = topic_kind
        self._topic = topic
        self._make = make
        self._metrics = metrics
        self._stopping = stopping
        self._on_failure = on_failure
        self._loop: ConsumerLoop | None = None
        self._thread = threading.Thread(target=self._run, name=f"consume-{topic_kind}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_seconds)

    def check(self) -> Check:
        """Liveness and readiness of the consumer."""
        loop = self._loop
        if loop is None:
            return Check(self._kind, alive=True, ready=False, state="starting")
        # A restart does not help a loop that cannot read a record.
        alive = loop.state == "unreadable" or time.monotonic() - loop.last_turn < STALLED_SECONDS
        return Check(self._kind, alive=alive, ready=loop.state == "running", state=loop.state)

    def _run(self) -> None:
        try:
            while (loop := self._make()) is not None:
                self._loop = loop
                try:
                    loop.run()
                except Unreadable as error:
                    self._report_unreadable(error)
                    if self._stopping.wait(_REREAD_SECONDS):
                        return
                else:
                    return
        except Exception:
            log.critical("the consumer failed", extra={"topic": self._topic}, exc_info=True)
            self._on_failure()

    def _report_unreadable(self, error: Unreadable) -> None:
        self._metrics.backoffs.labels(self._kind, "kafka").inc()
        log.error(
            "consumer stopped: a record cannot be read",
            extra={"topic": self._topic, "cause": str(error), "retry_in_seconds": _REREAD_SECONDS},
        )
