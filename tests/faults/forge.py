"""Starts processes of Credence fast: one process imports everything once, and forks on demand.

What is forked is a process of its own: its clients, threads and randomness begin after the fork, it can be
killed and stopped alone, and its command line is run by `service.app.cli.main`, as that of `credence` is.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

FAKETIME_LIBRARIES = tuple(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
"""Where Debian's package `libfaketime` has its library: at most one."""

_PR_SET_PDEATHSIG = 1
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")


class ForgedProcess:
    """A process of Credence.

    Attributes:
        pid: its id.
        log: the file of its standard output and error.
    """

    def __init__(self, forge: Forge, pid: int, log: Path) -> None:
        self._forge = forge
        self._code: int | None = None
        self.pid = pid
        self.log = log

    def poll(self) -> int | None:
        """Its exit code, negative if a signal ended it; None while it runs."""
        if self._code is None:
            self._code = self._forge.ask(do="poll", pid=self.pid)
        return self._code

    def send_signal(self, signum: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, signum)

    def wait(self, seconds: float) -> int | None:
        """Its exit code; None if it still runs after so long."""
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return code

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        self.send_signal(signal.SIGKILL)
        assert self.wait(60) is not None, f"process {self.pid} outlives SIGKILL"


class Forge:
    """The process that forks.

    Args:
        output: where what it says itself goes.
        environment: more of its environment, and so of all that it forks.
    """

    def __init__(self, *, output: IO[bytes], environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env={**os.environ, **_ONE_THREAD, **(environment or {})},
            start_new_session=True,
        )

    def start(self, arguments: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> ForgedProcess:
        """Run a command line of `credence`.

        Args:
            arguments: of the command line.
            log: the file that its output is appended to.
            environment: more of its environment.
        """
        pid = self.ask(do="start", arguments=list(arguments), log=str(log), environment=dict(environment))
        return ForgedProcess(self, pid, log)

    def ask(self, **order: Any) -> Any:
        """Have the forking process do something; its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the forge has ended; what it said stands in its output"
        return json.loads(answer)

    def close(self) -> None:
        """End it, and with it what it has forked."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _sleep(seconds: float) -> None:
    select.select((), (), (), seconds)


def _become_child(order: Mapping[str, Any]) -> list[str]:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDWR)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.environ.update(order["environment"])
    if "faketime" in os.environ.get("LD_PRELOAD", ""):
        # libfaketime 0.9.10 now and then refuses what time.sleep asks for, a sleep by the monotonic clock.
        time.sleep = _sleep
    arguments: list[str] = order["arguments"]
    return arguments


def _poll(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _serve() -> list[str] | None:
    """Do what is ordered, a line each; the command line to run in a child, None at the end of orders."""
    while line := os.read(0, 1 << 16):
        order = json.loads(line)
        if order["do"] == "start":
            pid = os.fork()
            if pid == 0:
                return _become_child(order)
            answer: int | None = pid
        else:
            answer = _poll(order["pid"])
        os.write(1, json.dumps(answer).encode() + b"\n")
    return None


if __name__ == "__main__":
    import gc

    # The command line imports each command, and each role its modules, when they run. Importing them before
    # the fork saves each process seconds, during which SIGTERM would find no handler and kill it.
    import pyarrow as pa  # noqa: F401  (imported for its effect, as those below)

    import consumers.formats.avro
    import consumers.formats.protobuf  # noqa: F401
    import service.app.role_command
    import service.app.rounds
    import service.app.vendor_wiring  # noqa: F401
    from service.app.cli import main
    from service.monitoring import label_truth

    # Learning of people takes most of a round's time, and trials are about what is requested and counted.
    label_truth.IMPUTATIONS = 2  # type: ignore[misc]

    gc.freeze()
    command = _serve()
    sys.exit(0 if command is None else main(command))
