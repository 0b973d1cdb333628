"""`make fuzz`: all decoders against a million inputs, or as many as RUNS says.

Steered by coverage where the extra `fuzz` is installed (its wheels are for Linux on x86-64), else drawn by
a seeded generator. Prints how many inputs there were, how fast, and every input that broke a property;
nothing is written to disk.
"""

from __future__ import annotations

import base64
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext

try:
    import atheris
except ImportError:
    atheris = None

_WATCHED = ["consumers.formats", "json_mutators", "registered_values"]
with atheris.instrument_imports(include=_WATCHED) if atheris else nullcontext():
    import json_mutators as mutators
    from properties import decoders_agree_with_the_contract, decoders_stand, headers_stand
    from registered_values import formats_stand, record

_MOST_FAILURES = 20


class Run:
    """Counts inputs, and keeps those that broke a property."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._inputs = 0
        self._failures: dict[str, bytes] = {}
        self._began = time.monotonic()

    def take(self, data: bytes) -> None:
        """Try one input; its first byte says how it is used."""
        self._inputs += 1
        kind, rest = (data[0] if data else 0), data[1:]
        try:
            _USES[kind % len(_USES)](rest)
        except Exception as error:  # noqa: BLE001 - whatever escapes is a finding
            where = traceback.extract_tb(error.__traceback__)[-1]
            self._failures.setdefault(f"{type(error).__name__} at {where.filename}:{where.lineno}", data)
        if self._inputs >= self._runs or len(self._failures) >= _MOST_FAILURES:
            self.report()

    def report(self) -> None:
        """Tell the result and end the process: the fuzzer's own loop never returns."""
        seconds = time.monotonic() - self._began
        print(f"{self._inputs} inputs in {seconds:.0f} s, {self._inputs / seconds:.0f} a second")
        for what, data in self._failures.items():
            print(f"failure: {what}: {base64.b64encode(data).decode()}")
        print(f"{len(self._failures)} different failures")
        sys.stdout.flush()
        os._exit(1 if self._failures else 0)


def _mutated(script: bytes) -> None:
    decoders_stand(mutators.value(mutators.Scripted(script)))


def _compared(script: bytes) -> None:
    decoders_agree_with_the_contract(mutators.damaged(mutators.Scripted(script[32:]), _message(script)))


def _message(script: bytes) -> bytes:
    return mutators.message(mutators.Scripted(script[:32]))


def _compared_raw(value: bytes) -> None:
    decoders_stand(value)
    decoders_agree_with_the_contract(value)


def _headers(script: bytes) -> None:
    headers_stand(mutators.headers(mutators.Scripted(script)))


def _formats(script: bytes) -> None:
    formats_stand(record(mutators.Scripted(script[:40]), script[40:]))


_USES: list[Callable[[bytes], None]] = [
    *(_mutated, _compared, _mutated, _compared, _compared_raw, _headers),
    *(_formats, _formats),
]


def main() -> None:
    """Fuzz until enough inputs were tried."""
    run = Run(int(os.environ.get("RUNS", "1000000")))
    seed = os.environ.get("SEED", "1")
    if atheris is None:
        rng = random.Random(seed)
        while True:
            run.take(rng.randbytes(rng.randrange(200)))
    options = [f"-seed={seed}", "-max_len=200", "-timeout=20", "-rss_limit_mb=2048", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *options], run.take)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
