"""What the producer and the labeller have in common: their arguments, and a clean stop."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from service.config.loader import load_settings

GO_FILE = "go"  # the producer streams as soon as a file of this name is in the folder
REPAIR_FILE = "repair"  # and its degraded camera is repaired as soon as there is one of this name
_LONGEST_SLEEP_SECONDS = 0.1

Record = tuple[bytes, bytes, list[tuple[str, bytes]]]
"""Key, value and headers of one Kafka record."""


def parse_arguments(description: str) -> argparse.Namespace:
    """Read the command line of a child: settings, folder of journals, seed, length of the run."""
    parser = argparse.ArgumentParser(description=description)
    # The file is that of `credence run`; the environment is ignored.
    parser.add_argument("--config", type=lambda path: load_settings(Path(path), {}), required=True)
    for name, kind in {"--folder": Path, "--seed": int, "--seconds": float}.items():
        parser.add_argument(name, type=kind, required=True)
    return parser.parse_args()


class StopFlag:
    """Remembers that one of these signals asked to stop.

    An event of `threading` will not do: set in a signal handler, it can deadlock.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        self.requested = False
        self._previous = {number: signal.signal(number, self._ask) for number in signals}

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True

    def wait(self, seconds: float) -> bool:
        """Wait this many seconds, or until a signal came; whether one did."""
        deadline = time.monotonic() + seconds
        while not self.requested and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _LONGEST_SLEEP_SECONDS))
        return self.requested

    def restore(self) -> None:
        """Reinstate the previous signal handlers."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)


class SendError(Exception):
    """The broker did not take a record."""


def sender(producer: Any, topic: str) -> Callable[[Record], None]:
    """A function that sends one record, and raises at the next one when the broker refused it."""
    failures: list[BaseException] = []

    def send(record: Record) -> None:
        if failures:
            raise SendError(f"the broker did not take a record on {topic}") from failures[0]
        key, value, headers = record
        producer.send(topic, key=key, value=value, headers=headers).add_errback(failures.append)

    return send
