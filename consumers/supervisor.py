"""Keeps a topic being read: a loop in a thread, and another one where it cannot read on."""

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
"""A loop that has not turned for so long is taken for dead."""

_REREAD_SECONDS = 20.0
"""Between two tries to read a record that cannot be read; each moves the partitions of the group."""


class LoopKeeper:
    """Runs loops over one topic, one at a time.

    Args:
        topic_kind: what is read, in health and metrics.
        topic: its name.
        make: a loop with a client of its own; None when asked to stop before there is one.
        metrics: of the pipeline.
        stopping: set when no further loop is wanted; the loops are told by themselves.
        on_failure: called when a loop fails for good.
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
        """Begin to read, in a thread."""
        self._thread.start()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the last loop to end."""
        self._thread.join(timeout_seconds)

    def check(self) -> Check:
        """How it is."""
        loop = self._loop
        if loop is None:
            return Check(self._kind, alive=True, ready=False, state="starting")
        # One that cannot read on is no better after a restart.
        alive = loop.state == "unreadable" or time.monotonic() - loop.last_turn < STALLED_SECONDS
        return Check(self._kind, alive=alive, ready=loop.state == "running", state=loop.state)

    def _run(self) -> None:
        try:
            while (loop := self._make()) is not None:
                self._loop = loop
                if self._runs_to_its_end(loop):
                    return
        except Exception:
            log.critical("the consumer failed", extra={"topic": self._topic}, exc_info=True)
            self._on_failure()

    def _runs_to_its_end(self, loop: ConsumerLoop) -> bool:
        """Whether it was asked to stop; if it could not read on, another one may try, after a while."""
        try:
            loop.run()
        except Unreadable as error:
            cause = str(error)
        else:
            return True
        self._metrics.backed_off(self._kind, "kafka")
        log.error(
            "the topic cannot be read on",
            extra={"topic": self._topic, "cause": cause, "again_in_seconds": _REREAD_SECONDS},
        )
        return self._stopping.wait(_REREAD_SECONDS)
