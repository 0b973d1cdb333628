"""A process that is asked to stop stops, however often it is asked, and whatever it is doing then."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from harness import wait_for
from layout import MODELS
from stand import Stand

from service.app.process import Application
from service.config.settings import Settings

TIMES = 100


def test_a_process_that_is_asked_to_stop_again_and_again_stops(stands: Callable[..., Stand]) -> None:
    member = stands().members["schedule-1"]
    member.start()
    wait_for(member.ready, seconds=60, what="the scheduler is up")
    for _ in range(TIMES):
        member.signal(signal.SIGTERM)
    wait_for(lambda: not member.running, seconds=30, what="the scheduler has stopped")
    assert member.exit_code == 0


def test_a_signal_may_interrupt_what_waits_for_it() -> None:
    application = Application(Settings.model_validate({"models": MODELS}), {"serve"})
    with application._stopping._cond:  # as it is held for a moment where the main thread waits
        asking = threading.Thread(target=application.stop, daemon=True)
        asking.start()
        asking.join(5)
        assert not asking.is_alive()
