"""Runs of the demo with many seeds: do all close the loop, and do the intervals hold the truth?

Each run is `credence demo` as a newcomer starts it. Half of the runs may have busy processes beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ROW = re.compile(
    r"^(?P<group>.+?)\s+(?P<mean>[\d.]+)%\s+(?P<lower>[\d.]+)% - (?P<upper>[\d.]+)%\s+\d+\s+"
    r"(?P<truth>[\d.]+)%\s+(?P<inside>yes|no)\s*$"
)
_FINDING = re.compile(
    r"^(?P<what>known to have drifted|known to be below|confirmed).*? {2,}(?P<seconds>[\d.]+) s$"
)
_WIDE = "200"
_LAST = 5  # lines of an error


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Processes that compute all the time."""
    children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def one_run(seed: int, seconds: float) -> dict[str, Any]:
    """Exit code of one run, what it found after how many seconds, and the intervals that miss the truth."""
    command = [
        sys.executable,
        "-m",
        "service.app.cli",
        "demo",
        "--seed",
        str(seed),
        "--seconds",
        str(seconds),
    ]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=os.environ | {"COLUMNS": _WIDE}
    )
    rows = [row for line in done.stdout.splitlines() if (row := _ROW.match(line))]
    found = [match for line in done.stdout.splitlines() if (match := _FINDING.match(line.rstrip()))]
    missed = [row for row in rows if row["inside"] == "no"]
    failures = [line for line in done.stdout.splitlines() if line.startswith("Failed: ")]
    if done.returncode and not failures:
        failures = done.stderr.splitlines()[-_LAST:]
    return {
        "seed": seed,
        "exit_code": done.returncode,
        "found": {each["what"]: float(each["seconds"]) for each in found},
        "intervals": len(rows),
        "truth_below": sorted(row["group"] for row in missed if float(row["truth"]) < float(row["mean"])),
        "truth_above": sorted(row["group"] for row in missed if float(row["truth"]) >= float(row["mean"])),
        "failures": failures,
    }


def main() -> None:
    """Run, and print a line a run and the sum of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=40, help="(default: 40)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--seconds", type=float, default=90.0, help="of each run (default: 90)")
    parser.add_argument(
        "--busy", type=int, default=2, help="busy processes beside every other run (default: 2)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    runs = []
    for seed in range(options.first, options.first + options.seeds):
        with busy(options.busy if seed % 2 else 0):
            runs.append(one_run(seed, options.seconds))
        if not options.json:
            print(runs[-1], flush=True)
    intervals = sum(run["intervals"] for run in runs)
    below, above = (sum(len(run[side]) for run in runs) for side in ("truth_below", "truth_above"))
    summary = {
        "runs": len(runs),
        "exit_code_0": sum(run["exit_code"] == 0 for run in runs),
        "found": Counter(what for run in runs for what in run["found"]),
        "intervals": intervals,
        "hold": 1 - (below + above) / max(intervals, 1),
        "truth_below": below,
        "truth_above": above,
    }
    print(json.dumps({"runs": runs, "summary": summary} if options.json else summary))


if __name__ == "__main__":
    main()
