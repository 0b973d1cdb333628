"""`make fuzz`: every decoder against a million inputs, or as many as RUNS says.

    python tests/fuzz/run.py [DECODER ...]      # all of `targets.TARGETS` if none is named

Each has a process of its own. Inputs are steered by coverage where the extra `fuzz` is installed (its wheels
are for Linux on x86-64), else drawn by a seeded generator (FUZZER=seeded: also where it is installed). Prints
how many inputs there were, how fast, and every input that broke a property (also after Ctrl-C); nothing is
written to disk.

Time is bounded for every input, and so is the memory of the process. That of one input in `_SAMPLED` is
traced.
"""

from __future__ import annotations

import base64
import os
import random
import resource
import subprocess
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable
from contextlib import nullcontext

try:
    import atheris
except ImportError:
    atheris = None
if os.environ.get("FUZZER") == "seeded":
    atheris = None

_WATCHED = ["consumers.formats"]
with atheris.instrument_imports(include=_WATCHED) if atheris else nullcontext():
    from json_mutators import Scripted
    from targets import SLOW, TARGETS

_MOST_FAILURES = 20
_LONGEST_SCRIPT = 400
_MOST_SECONDS, _SECONDS_PER_BYTE = 1.0, 1e-6
"""Of CPU time; a few inputs have megabytes."""

_SAMPLED = 200
_LEAST_BYTES, _BYTES_PER_BYTE = 1_048_576, 300
"""Memory that an input may take at any time: texts may be 64 KiB long, or 64 times as long as their record,
and are there in several forms; what makes and checks the input takes memory, too."""

_ADDRESSES = 4 << 30
"""Bytes of address space for the whole process; allocations beyond fail, which is a finding."""


class Run:
    """Counts inputs, and keeps those that broke a property."""

    def __init__(self, name: str, runs: int) -> None:
        self._name = name
        self._use: Callable[[Scripted], int] = TARGETS[name]
        self._runs = runs
        self._inputs = 0
        self._failures: dict[str, bytes] = {}
        self._slowest = 0.0
        self._largest = 0
        self._began = time.monotonic()

    def warm_up(self) -> None:
        """Take some inputs uncounted."""
        for size in range(0, _LONGEST_SCRIPT, 4):
            self._use(Scripted(random.Random(size).randbytes(size)))
        self._began = time.monotonic()

    def take(self, script: bytes) -> None:
        """Try one input."""
        self._inputs += 1
        is_traced = self._inputs % _SAMPLED == 0
        if is_traced:
            tracemalloc.start()
        began = time.process_time()
        try:
            size = self._use(Scripted(script))
            self._check_bounds(size, time.process_time() - began, is_traced=is_traced)
        except Exception as error:  # noqa: BLE001 - whatever escapes is a finding
            places = traceback.extract_tb(error.__traceback__)
            where = f"{places[-1].filename}:{places[-1].lineno}"
            self._failures.setdefault(f"{type(error).__name__} at {where}: {str(error)[:200]}", script)
        finally:
            if is_traced:
                tracemalloc.stop()
        if self._inputs >= self._runs or len(self._failures) >= _MOST_FAILURES:
            self.report()

    def _check_bounds(self, size: int, seconds: float, *, is_traced: bool) -> None:
        if is_traced:
            peak = tracemalloc.get_traced_memory()[1]
            self._largest = max(self._largest, peak)
            assert peak < _LEAST_BYTES + _BYTES_PER_BYTE * size, f"{peak} bytes of memory"
        else:
            self._slowest = max(self._slowest, seconds)
            assert seconds < _MOST_SECONDS + _SECONDS_PER_BYTE * size, f"{seconds} s for {size} bytes"

    def report(self) -> None:
        """Tell the result and end the process: the fuzzer's own loop never returns."""
        seconds = time.monotonic() - self._began
        print(
            f"{self._name}: {self._inputs} inputs in {seconds:.0f} s, {self._inputs / seconds:.0f} a second; "
            f"slowest {self._slowest * 1e3:.0f} ms of CPU, most memory {self._largest >> 10} KiB; "
            f"{len(self._failures)} different failures"
        )
        for what, data in self._failures.items():
            print(f"failure: {what}: {base64.b64encode(data).decode()}")
        sys.stdout.flush()
        os._exit(1 if self._failures else 0)


def _fuzz(name: str) -> None:
    """Fuzz one decoder until enough inputs were tried."""
    runs = max(1, int(os.environ.get("RUNS", "1000000")) // SLOW.get(name, 1))
    run, seed = Run(name, runs), os.environ.get("SEED", "1")
    # Imports, and schemas that are compiled, take longer than any input may.
    run.warm_up()
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    if atheris is None:
        rng = random.Random(f"{name}/{seed}")
        try:
            while True:
                run.take(rng.randbytes(rng.randrange(_LONGEST_SCRIPT)))
        except KeyboardInterrupt:
            run.report()
    options = [
        f"-seed={seed}",
        f"-max_len={_LONGEST_SCRIPT}",
        "-len_control=0",
        "-timeout=20",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options], run.take)
    atheris.Fuzz()


def main(names: list[str]) -> int:
    """Fuzz some decoders, or all; the exit code."""
    if unknown := [name for name in names if name not in TARGETS]:
        print(f"no decoder has the name {', '.join(unknown)}; those that have one: {', '.join(TARGETS)}")
        return 2
    if len(names) == 1:
        _fuzz(names[0])
    command = [sys.executable, __file__]
    codes = [subprocess.run([*command, name], check=False).returncode for name in names or TARGETS]
    return max(map(abs, codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
