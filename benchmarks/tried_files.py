"""How large a file `credence try` streams: rows a second, its memory, and whether the status page stays live.

A file of predictions is generated: three classes, two attributes, true classes. The command runs on it as a
user starts it. Meanwhile the page and its API are fetched twice a second, from when they are announced until
the command has streamed all. Linux alone, as memory is that of /proc.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = ("cat", "dog", "owl")
REGIONS = {"north": 0.95, "east": 0.92, "west": 0.9, "south": 0.8}
DEVICES = ("phone", "tablet")

_PAUSE_SECONDS = 0.5
_TIMEOUT_SECONDS = 10.0
_CHUNK = 10_000


@dataclass(frozen=True)
class Measured:
    """One run of the command.

    Attributes:
        rows: of the file.
        megabytes: its size.
        streamed_seconds: from the first row until Kafka has the last one.
        total_seconds: of the whole command.
        peak_rss_megabytes: largest resident memory of the command's own process.
        page_answers: answers of the page and its API with status 200 until the command stopped them.
        page_failures: requests that were not answered in 10 s, or with another status.
        slowest_answer_seconds: the slowest of them.
        coverage: what the report says.
    """

    rows: int
    megabytes: float
    streamed_seconds: float
    total_seconds: float
    peak_rss_megabytes: float
    page_answers: int
    page_failures: int
    slowest_answer_seconds: float
    coverage: str


def write_file(path: Path, rows: int) -> None:
    """Write predictions of a seed, as CSV or Parquet by the name of the file."""
    rng = np.random.default_rng(1)
    regions = rng.integers(len(REGIONS), size=rows)
    accuracy = np.array(list(REGIONS.values()))[regions]
    predicted = rng.integers(len(CLASSES), size=rows)
    wrong = rng.random(rows) >= accuracy
    true = (predicted + wrong * rng.integers(1, len(CLASSES), size=rows)) % len(CLASSES)
    columns = {
        "item_id": [f"item-{row:07d}" for row in range(rows)],
        "predicted_class": np.array(CLASSES)[predicted].tolist(),
        "score": np.round(np.clip(rng.normal(accuracy, 0.08), 0.34, 0.999), 4).tolist(),
        "region": np.array(list(REGIONS))[regions].tolist(),
        "device": np.array(DEVICES)[rng.integers(len(DEVICES), size=rows)].tolist(),
        "true_class": np.array(CLASSES)[true].tolist(),
    }
    if path.suffix == ".parquet":
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415 - an extra

        parquet.write_table(pa.table(columns), path, row_group_size=_CHUNK)
        return
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


class Watch:
    """Fetches the page, and reads the memory of a process, until it is stopped."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._address = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.peak_kilobytes = self.answers = self.failures = 0
        self.slowest = 0.0
        self._thread.start()

    def visit(self, address: str) -> None:
        """Fetch the page at this address from now on."""
        self._address = address

    def leave(self) -> None:
        """Fetch the page no more: the command is about to stop it."""
        self._address = ""

    def stop(self) -> None:
        """Stop watching."""
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(_PAUSE_SECONDS):
            self._read_memory()
            for path in ("", "api/v1/models") if self._address else ():
                self._fetch(f"{self._address}{path}")

    def _read_memory(self) -> None:
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return
        if found := re.search(r"VmHWM:\s+(\d+) kB", status):
            self.peak_kilobytes = max(self.peak_kilobytes, int(found[1]))

    def _fetch(self, address: str) -> None:
        began = time.monotonic()
        try:
            with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as answer:
                answer.read()
        except OSError:
            self.failures += bool(self._address)
            return
        self.answers += 1
        self.slowest = max(self.slowest, time.monotonic() - began)


def measure(path: Path, *, rows: int, labels: int) -> Measured:
    """Run the command on a file."""
    command = [sys.executable, "-m", "service.app.cli", "try", path.name, "--labels", str(labels)]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=path.parent, stdout=subprocess.PIPE, text=True)
    watch = Watch(process)
    said: list[str] = []
    if process.stdout is None:
        raise AssertionError("the output is a pipe")
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"Look at (\S+)", line):
            watch.visit(found[1])
        if re.match(rf"{rows:,} of {rows:,} rows", line):
            watch.leave()
    code = process.wait()
    total = time.monotonic() - began
    watch.stop()
    if code:
        raise SystemExit("".join(said))
    output = "".join(said)
    speed = re.search(r"\(([\d,]+) a second\)", output)
    coverage = re.search(r"^coverage\s+(.*)$", output, re.MULTILINE)
    if speed is None or coverage is None:
        raise SystemExit(output)
    return Measured(
        rows=rows,
        megabytes=path.stat().st_size / 1e6,
        streamed_seconds=rows / int(speed[1].replace(",", "")),
        total_seconds=total,
        peak_rss_megabytes=watch.peak_kilobytes * 1_024 / 1e6,
        page_answers=watch.answers,
        page_failures=watch.failures,
        slowest_answer_seconds=watch.slowest,
        coverage=coverage[1],
    )


def main() -> None:
    """Generate a file, try it, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--format", choices=["csv", "parquet"], default="csv")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="credence-tried-") as folder:
        path = Path(folder) / f"predictions.{options.format}"
        write_file(path, options.rows)
        found: dict[str, Any] = asdict(measure(path, rows=options.rows, labels=options.labels))
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        print(f"{name:<24} {value if isinstance(value, str) else f'{value:,.1f}'}")


if __name__ == "__main__":
    main()
