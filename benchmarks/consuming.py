"""A consumer of predictions as it runs in service, and what the benchmarks see of it from outside."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.demo.ports import free_port
from service.demo.servers import Child
from service.domain.errors import EmbeddedServerError

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE = re.compile(r"^(\w+)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
_LOOK_SECONDS = 0.2
"""Seldom enough for the looking to cost nothing."""

TOO_FEW = "everything was read between two looks; measure with more predictions"
"""What is said where there is nothing to divide by."""


@dataclass(frozen=True)
class Look:
    """What a consumer had done at one time.

    Attributes:
        at: seconds, of a clock that only goes forward.
        predictions: taken in.
        cpu_seconds: processor time of the process.
        stored_seconds: time that it has stored what was taken in.
        resident_mb: its memory in use.
    """

    at: float
    predictions: int
    cpu_seconds: float
    stored_seconds: float
    resident_mb: float


class ConsumerProcess(Child):
    """`credence consume predictions` with settings of its own.

    Args:
        settings: as a configuration file has them; its port is chosen here.
        folder: for the file and what the process says.
    """

    def __init__(self, settings: Mapping[str, Any], folder: Path) -> None:
        self._port = free_port()
        configuration = folder / f"{self._port}.yaml"
        configuration.write_text(json.dumps({**settings, "monitoring": {"port": self._port}}))
        with (folder / f"{self._port}.log").open("ab") as output:
            command = [sys.executable, "-m", "service.app.cli", "consume", "predictions"]
            super().__init__("a consumer", [*command, "-c", configuration], output=output)

    def look(self) -> Look:
        """What it has done by now.

        Raises:
            EmbeddedServerError: it has exited.
            OSError: it does not answer, as it does not at its start.
        """
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=60) as reply:
                text = reply.read().decode()
        except OSError as error:
            if self.process.poll() is None:
                raise
            raise EmbeddedServerError(f"{self.name} exited with code {self.process.returncode}") from error
        samples: dict[str, float] = {}
        for name, value in _SAMPLE.findall(text):
            samples[name] = samples.get(name, 0.0) + float(value)
        process = Path("/proc") / str(self.process.pid)
        used = process.joinpath("stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
        resident = process.joinpath("status").read_text(encoding="utf-8").split("VmRSS:")[1].split()[0]
        return Look(
            at=time.perf_counter(),
            predictions=int(samples.get("credence_predictions_consumed_total", 0)),
            cpu_seconds=sum(map(int, used)) / _CLOCK_TICKS,
            stored_seconds=samples.get("credence_flush_duration_seconds_sum", 0.0),
            resident_mb=int(resident) / 1e3,
        )

    def wait_for(self, predictions: float, *, seconds: float = 600.0) -> Look:
        """What it has done when it has taken in so many, looked at now and then for so many seconds.

        Raises:
            EmbeddedServerError: it has exited, or has not taken in so many in time.
        """
        self.wait_until(self._answers)
        deadline = time.monotonic() + seconds
        while (look := self.look()).predictions < predictions:
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"{self.name} took in {look.predictions:,} of {predictions:,.0f} predictions "
                    f"in {seconds:g} s"
                )
            time.sleep(_LOOK_SECONDS)
        return look

    def _answers(self) -> bool:
        try:
            self.look()
        except OSError:
            return False
        return True
