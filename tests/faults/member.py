"""One process of a deployment."""

from __future__ import annotations

import signal
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import yaml
from forge import Forge, ForgedProcess
from layout import ROLES
from wires import Wire

from service.demo.ports import free_port


class Member:
    """One process of a deployment, which may be killed and started again.

    Attributes:
        name: of `ROLES`.
        client: its number, by which its wires to Kafka are known.
        redis_wire: its own, to Redis.
        monitoring_port: where it tells its metrics.
        clock_file: tells how far its clock is ahead.

    Args:
        folder: for its configuration and its log.
        forge: starts it.
        configure: its configuration.
    """

    def __init__(
        self,
        name: str,
        *,
        folder: Path,
        forge: Forge,
        redis_wire: Wire,
        configure: Callable[[Member], Mapping[str, Any]],
    ) -> None:
        self.name = name
        self.client = tuple(ROLES).index(name)
        self.monitoring_port = free_port()
        self.redis_wire = redis_wire
        self._folder = folder
        self._forge = forge
        self._configure = configure
        self._process: ForgedProcess | None = None
        self._asked_to_stop = False
        self.clock_file = folder / f"{name}.clock"
        self.move_clock(0)

    @property
    def running(self) -> bool:
        """Whether its process is there, if only paused."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Of its last life, if that has ended; None if it was killed here."""
        return None if self._process is None else self._process.poll()

    @property
    def log(self) -> Path:
        """What all its lives said."""
        return self._folder / f"{self.name}.log"

    def start(self) -> None:
        """Start it, if it does not run."""
        if self.running:
            return
        self._asked_to_stop = False
        config = self._folder / f"{self.name}.yaml"
        config.write_text(yaml.safe_dump(dict(self._configure(self))))
        self._process = self._forge.start(
            [*ROLES[self.name], "--config", str(config)],
            log=self.log,
            environment={"FAKETIME_TIMESTAMP_FILE": str(self.clock_file)},
        )

    def signal(self, signum: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        if self._process is not None:
            self._process.send_signal(signum)

    def kill(self) -> None:
        """SIGKILL: no chance to flush, or to leave a group."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def ask_to_stop(self) -> None:
        """SIGTERM, once: a second one would end what is just ending well."""
        if not self._asked_to_stop:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        self._asked_to_stop = True

    def stop(self, *, seconds: float = 45.0) -> None:
        """Ask it to stop; it must, and say that nothing failed."""
        if self._process is None:
            return
        self.ask_to_stop()
        code = self._process.wait(seconds)
        assert code == 0, f"{self.name} was asked to stop, and ended with {code}; its log: {self.log}"
        self._process = None

    def check_alive(self) -> None:
        """Fail if it ended by itself."""
        if self._process is not None:
            code = self._process.poll()
            assert code is None, f"{self.name} ended by itself with {code}; its log: {self.log}"

    def move_clock(self, seconds: float) -> None:
        """Set its clock so far ahead of the true time, or behind; heeded within a second."""
        fresh = self.clock_file.with_suffix(".new")
        fresh.write_text(f"{seconds:+.0f}\n")
        fresh.rename(self.clock_file)

    def shown_time(self) -> float:
        """What its clock shows, in seconds since the epoch; 0 where it does not answer."""
        address = f"http://127.0.0.1:{self.monitoring_port}/healthz"
        with suppress(OSError), urllib.request.urlopen(address, timeout=5) as reply:
            return parsedate_to_datetime(reply.headers["date"]).timestamp()
        return 0.0

    def ready(self) -> bool:
        """Whether it says that it does its work."""
        address = f"http://127.0.0.1:{self.monitoring_port}/readyz"
        with suppress(OSError), urllib.request.urlopen(address, timeout=5) as reply:
            return bool(reply.status == 200)
        return False

    def metric(self, sample: str) -> float:
        """Value of one sample, named as in the text format; 0 where it is absent."""
        address = f"http://127.0.0.1:{self.monitoring_port}/metrics"
        with suppress(OSError), urllib.request.urlopen(address, timeout=5) as reply:
            for line in reply.read().decode().splitlines():
                name, _, value = line.rpartition(" ")
                if name == sample:
                    return float(value)
        return 0.0
