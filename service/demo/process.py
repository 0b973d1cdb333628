"""What the producer and the labeller have in common: their arguments, and a clean stop."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from service.config.loader import load_settings
from service.config.settings import Settings

GO_FILE = "go"  # the producer streams as soon as a file of this name is in the folder
_LONGEST_SLEEP_SECONDS = 0.1

Record = tuple[bytes, bytes, list[tuple[str, bytes]]]
"""Key, value and headers of one Kafka record."""


@dataclass(frozen=True)
class Arguments:
    """Arguments of the demo's children."""

    settings: Settings  # of the file that `credence run` reads; the environment is ignored
    folder: Path  # where journals go
    seed: int  # of the world
    seconds: float  # length of the run


def parse_arguments(description: str) -> Arguments:
    """Read the command line of a child."""
    parser = argparse.ArgumentParser(description=description)
    for name, kind in {"--config": Path, "--folder": Path, "--seed": int, "--seconds": float}.items():
        parser.add_argument(name, type=kind, required=True)
    found = parser.parse_args()
    return Arguments(load_settings(found.config, {}), found.folder, found.seed, found.seconds)


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
